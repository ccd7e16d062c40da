// The data path between two processes on loopback, beside raw TCP in the same run: the real server
// (Shard, ExchangeService, event loop) and a client that keeps one stream full, while a third
// process checks the server's health a hundred times a second.
//   push_N   gradients of N bytes, staged by the shard: received, checked for finite values, kept.
//   Half of
//            each step's micro-batches are timed; the other half, which the tree would add up, are
//            not.
//   pull_N   the weights, N bytes, again and again.
//   messages_4KB  pushes of 4 KB a second.
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/rpc/channel.h"
#include "common/rpc/message.h"
#include "common/rpc/server.h"
#include "ps_server/exchange_service.h"
#include "third_party/grpc_health/health.grpc.pb.h"

namespace tandem {
namespace {

constexpr int kRounds = 5;
constexpr size_t kRoundBytes = 256 << 20;  // Pushed in each round; the shard holds them all.
constexpr size_t kPulls = 4;               // So many times as much is pulled, and sent by raw TCP:
                                           // a connection takes a while to come up to speed.
constexpr uint32_t kMaxPushes = 4096;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "wire_bench: %s\n", what.c_str());
  std::exit(1);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A child that ends with this process.
pid_t Fork() {
  const pid_t pid = fork();
  if (pid < 0) Die("fork failed");
  if (pid == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return pid;
}

void Kill(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
}

// ---- Raw TCP ----

// GB/s of `total` bytes from another process, written and read `chunk` bytes at a time.
double RawTcp(size_t chunk, size_t total) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    Die("cannot listen");
  }
  const pid_t sender = Fork();
  if (sender == 0) {
    const int out = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(out, reinterpret_cast<sockaddr*>(&address), length) != 0) _exit(1);
    const std::vector<char> bytes(chunk, 1);
    for (size_t sent = 0; sent < total;) {
      const ssize_t n = write(out, bytes.data(), std::min(chunk, total - sent));
      if (n <= 0) _exit(1);
      sent += static_cast<size_t>(n);
    }
    _exit(0);
  }
  const int in = accept(listener, nullptr, nullptr);
  std::vector<char> bytes(chunk);
  const double begin = Now();
  size_t got = 0;
  while (got < total) {
    const ssize_t n = read(in, bytes.data(), chunk);
    if (n <= 0) Die("raw TCP broke");
    got += static_cast<size_t>(n);
  }
  const double seconds = Now() - begin;
  waitpid(sender, nullptr, 0);
  close(in);
  close(listener);
  return static_cast<double>(total) / seconds / 1e9;
}

// ---- The server ----

// A job with one variable, of one element for each feature.
v1::JobSpec WireJob(uint32_t replicas) {
  v1::JobSpec job;
  v1::Dense* dense = job.mutable_model()->add_layers()->mutable_dense();
  dense->set_units(1);
  dense->set_use_bias(false);
  dense->set_activation("linear");
  job.mutable_model()->mutable_layers(0)->set_name("dense");
  job.mutable_loss()->mutable_mean_squared_error();
  job.mutable_optimizer()->mutable_sgd()->set_learning_rate(0.01f);
  job.mutable_training()->set_global_batch_size(replicas);
  job.mutable_training()->set_replicas(replicas);
  job.mutable_training()->set_steps(1000000);
  job.mutable_training()->mutable_consistency()->mutable_sync();
  return job;
}

struct Peer {
  pid_t pid;
  std::string address;
  v1::Shard place;
};

Peer StartServer(size_t bytes, uint32_t replicas) {
  const uint64_t inputs = bytes / sizeof(float);
  const v1::JobSpec spec = WireJob(replicas);
  v1::ClusterMap map;
  map.set_epoch(1);
  map.set_began(1);
  v1::Block* block = map.add_shards()->add_blocks();
  map.mutable_shards(0)->mutable_primary()->set_incarnation("me");
  map.mutable_shards(0)->mutable_primary()->set_since(1);
  block->set_variable("dense/kernel");
  block->set_end(inputs);

  int fds[2];
  if (pipe(fds) != 0) Die("pipe failed");
  const pid_t pid = Fork();
  if (pid == 0) {
    auto model = Model::Create(spec, {inputs});
    auto optimizer = CreateOptimizer(spec.optimizer());
    if (!model.ok()) Die(std::string(model.status().message()));
    auto job =
        std::make_shared<const ShardJob>(ShardJob{spec, *std::move(model), *std::move(optimizer),
                                                  BatchPlan(spec.training(), false, 0, replicas)});
    ServerLoop core("me", job, false, 0);
    v1::ClusterState state;
    *state.mutable_map() = map;
    ServerActions actions;
    core.OnState(0, state, &actions);
    if (!core.serving()) Die("the shard cannot be made");
    Server server;
    ParameterServerService grpc_service;
    ExchangeService service;
    if (!server.Start("127.0.0.1:0", {&grpc_service}).ok()) Die("cannot serve");
    service.Start(&grpc_service, server.loop(), server.queue(), [&service](ServerActions todo) {
      std::vector<ShardAnswer> answers;
      for (ServerAction& action : todo) answers.push_back(std::get<ShardAnswer>(std::move(action)));
      service.Deliver(answers);
    });
    service.SetCore(&core);
    server.SetServing(true);
    const std::string line = server.address() + "\n";
    if (write(fds[1], line.data(), line.size()) < 0) Die("pipe broke");
    server.Run(0);
    _exit(0);
  }
  close(fds[1]);
  char line[64] = {};
  if (read(fds[0], line, sizeof line - 1) <= 0) Die("the server did not start");
  close(fds[0]);
  return {pid, std::string(line, std::strcspn(line, "\n")), map.shards(0)};
}

pid_t StartHealthChecks(const std::string& address) {
  const pid_t pid = Fork();
  if (pid != 0) return pid;
  auto stub = grpc::health::v1::Health::NewStub(CreateChannel(address));
  while (true) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    if (!stub->Check(&context, {}, &response).ok()) _exit(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// ---- The client ----

// One stream, kept full: writes while it reads.
class Client {
 public:
  explicit Client(const std::string& address) : stub_(CreateChannel(address)) {
    rpc_ = stub_.PrepareCall(&context_, "/tandem.v1.ParameterServer/Exchange", &queue_);
    rpc_->StartCall(&queue_);
    Next();
  }

  // Writes `count` messages that `make(k)` gives, and reads until `read` says that it has all
  // answers.
  void Run(size_t count, const std::function<grpc::ByteBuffer(size_t)>& make,
           const std::function<bool(const v1::ExchangeResponse&, const Payload&)>& read) {
    size_t written = 0;
    bool complete = false;
    Write(make(written));
    Read();
    while (!complete || writing_) {
      const bool is_read = Next() == &in_;
      if (!is_read) {
        writing_ = false;
        if (++written < count) Write(make(written));
        continue;
      }
      v1::ExchangeResponse response;
      Payload payload;
      if (absl::Status status = DecodeMessage(in_, &response, &payload); !status.ok()) {
        Die(std::string(status.message()));
      }
      complete = read(response, payload);
      if (!complete) Read();
    }
  }

 private:
  void Write(const grpc::ByteBuffer& message) {
    writing_ = true;
    rpc_->Write(message, &writing_);
  }
  void Read() { rpc_->Read(&in_, &in_); }
  void* Next() {
    void* tag;
    bool ok;
    if (!queue_.Next(&tag, &ok) || !ok) Die("the stream broke");
    return tag;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> rpc_;
  grpc::ByteBuffer in_;
  bool writing_ = false;
};

// A step's pushes of leaves first, first + 2, ...; `count` of them.
void PushLeaves(Client* client, const v1::Shard& place, uint64_t step, uint64_t first,
                uint64_t count, const std::shared_ptr<const Buffer>& gradient) {
  uint64_t acknowledged = 0;
  client->Run(
      count,
      [&](size_t k) {
        v1::ExchangeRequest request;
        v1::Push* push = request.mutable_push();
        push->set_map_epoch(1);
        push->set_step(step);
        push->set_index(first + 2 * k);
        *push->mutable_blocks() = place.blocks();
        push->add_sums()->set_examples(1);
        return EncodeMessage(request, Payload(gradient->data(), gradient->bytes(), gradient));
      },
      [&](const v1::ExchangeResponse& response, const Payload&) {
        if (response.pushed().duplicates() > 0) Die("a push was taken for a duplicate");
        acknowledged += response.pushed().count();
        return acknowledged == count;
      });
}

void Pull(Client* client, uint64_t version, uint64_t count, size_t bytes) {
  uint64_t received = 0;
  client->Run(
      count,
      [&](size_t) {
        v1::ExchangeRequest request;
        request.mutable_pull()->set_map_epoch(1);
        request.mutable_pull()->set_version(version);
        return EncodeMessage(request, Payload());
      },
      [&](const v1::ExchangeResponse& response, const Payload& payload) {
        if (response.has_pulled() && response.pulled().version() != version) Die("wrong version");
        received += payload.bytes();
        return received == count * bytes;
      });
}

void Print(const std::string& name, double value, const char* unit, double limit) {
  std::printf(
      "{\"name\": \"%s\", \"value\": %.3f, \"unit\": \"%s\", \"limit\": %.3f, \"ratio\": %.3f}\n",
      name.c_str(), value, unit, limit, value / limit);
  std::fflush(stdout);
}

struct Figures {
  std::vector<double> tcp, push, pull, push_ratio, pull_ratio;
};

Figures Measure(size_t bytes) {
  const auto pushes =
      static_cast<uint32_t>(std::clamp<size_t>(kRoundBytes / bytes, 16, kMaxPushes));
  const Peer server = StartServer(bytes, 2 * pushes);
  const pid_t health = StartHealthChecks(server.address);
  auto gradient = std::make_shared<Buffer>(bytes / sizeof(float));
  std::fill_n(gradient->data(), gradient->size(), 0.001f);
  auto client = std::make_unique<Client>(server.address);
  const double total = static_cast<double>(pushes) * static_cast<double>(bytes) / 1e9;
  Figures figures;
  for (int round = -1; round < kRounds; ++round) {  // The first one warms up.
    const double tcp =
        RawTcp(std::min(bytes, kChunkBytes), std::max<size_t>(kRoundBytes, 64 << 20));
    double begin = Now();
    const auto step = static_cast<uint64_t>(round + 1);
    PushLeaves(client.get(), server.place, step, 0, pushes, gradient);
    const double push = total / (Now() - begin);
    PushLeaves(client.get(), server.place, step, 1, pushes, gradient);
    begin = Now();
    Pull(client.get(), step + 1, kPulls * pushes, bytes);
    const double pull = kPulls * total / (Now() - begin);
    if (round < 0) continue;
    figures.tcp.push_back(tcp);
    figures.push.push_back(push);
    figures.pull.push_back(pull);
  }
  if (waitpid(health, nullptr, WNOHANG) != 0) Die("a health check failed");
  Kill(health);
  Kill(server.pid);
  client.release();  // Its server is gone; the process ends soon.
  return figures;
}

void Report(const char* size, const Figures& figures) {
  Print(std::string("push_") + size, Median(figures.push), "GB/s", Median(figures.tcp));
  Print(std::string("pull_") + size, Median(figures.pull), "GB/s", Median(figures.tcp));
}

// Each size in a process of its own: gRPC must not be alive when a server is forked.
void InChild(const std::function<void()>& body) {
  const pid_t pid = Fork();
  if (pid == 0) {
    body();
    std::fflush(stdout);
    _exit(0);
  }
  int status;
  waitpid(pid, &status, 0);
  if (status != 0) std::exit(1);
}

}  // namespace
}  // namespace tandem

int main() {
  using namespace tandem;  // NOLINT
  InChild([] { Report("4MB", Measure(4 << 20)); });
  InChild([] { Report("64KB", Measure(64 << 10)); });
  InChild([] {
    const Figures figures = Measure(4 << 10);
    Print("messages_4KB", Median(figures.push) * 1e9 / 4096, "messages/s", 80000);
  });
  return 0;
}
