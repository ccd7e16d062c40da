#include "worker/shard_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_point.h"
#include "common/rpc/channel.h"
#include "common/rpc/message.h"
#include "common/rpc/status.h"
#include "proto/parameter_server.pb.h"

namespace tandem {
namespace {

constexpr char kMethod[] = "/tandem.v1.ParameterServer/Exchange";
// The deadline of an exchange. A pull may wait for other workers, so running into it is no fault.
constexpr int64_t kDeadlineMs = 30000;

}  // namespace

class ShardClient::Stream {
 public:
  explicit Stream(ShardClient* client)
      : client_(client),
        loop_(client->loop_),
        written_{this, &Stream::OnWritten},
        read_{this, &Stream::OnRead},
        finished_{this, &Stream::OnFinished} {
    // The call's metadata go out with the first message; there is no tag of their own then.
    context_.set_initial_metadata_corked(true);
    rpc_ = client->stub_.PrepareCall(&context_, kMethod, loop_->queue());
    rpc_->StartCall(nullptr);
  }

  bool idle() const { return !busy_ && !broken_; }

  void Begin(Exchange exchange) {
    exchange_ = std::move(exchange);
    busy_ = true;
    push_ = acked_ = offset_ = received_ = 0;
    pull_sent_ = !exchange_.pull_version.has_value();
    pulled_ = pull_sent_;
    timer_ = loop_->At(EventLoop::NowMs() + kDeadlineMs, [this] {
      timed_out_ = true;
      context_.TryCancel();
    });
    WriteNext();
    ReadNext();
  }

  // The client is gone: end without a word.
  void Abandon() {
    client_ = nullptr;
    loop_->Cancel(timer_);
    context_.TryCancel();
    if (outstanding_ == 0 && !loop_->stopping()) Break();
    MaybeDelete();
  }

 private:
  struct Step : EventLoop::Tag {
    Step(Stream* stream, void (Stream::*run)(bool)) : stream(stream), run(run) {}
    void Run(bool ok) override {
      (stream->*run)(ok);  // Still counted: the handler may not delete its stream under itself.
      if (stream->client_ == nullptr) stream->Break();
      --stream->outstanding_;
      stream->MaybeDelete();
    }
    Stream* stream;
    void (Stream::*run)(bool);
  };

  void WriteNext() {
    if (writing_ || broken_ || client_ == nullptr || loop_->stopping()) return;
    v1::ExchangeRequest header;
    Payload payload;
    if (push_ < exchange_.pushes.size()) {
      NextOfPush(&header, &payload);
    } else if (!pull_sent_) {
      SetPull(&header);
    } else {
      return;
    }
    writing_ = true;
    ++outstanding_;
    rpc_->Write(EncodeMessage(header, payload), &written_);
  }

  void NextOfPush(v1::ExchangeRequest* header, Payload* payload) {
    const Gradient& gradient = *exchange_.pushes[push_];
    const bool has_values = gradient.values != nullptr;
    const size_t total = has_values ? client_->elements_ * sizeof(float) : 0;
    if (offset_ == 0) {
      v1::Push* push = header->mutable_push();
      push->set_map_epoch(client_->map_epoch_);
      push->set_shard(client_->number_);
      push->set_step(gradient.step);
      push->set_level(gradient.node.level);
      push->set_index(gradient.node.index);
      push->set_skipped(!gradient.skipped.empty());
      push->set_empty(!has_values && !push->skipped());
      if (has_values) *push->mutable_blocks() = client_->shard_.blocks();
      for (const v1::Sums& sums : gradient.sums) *push->add_sums() = sums;
      if (push_ + 1 == exchange_.pushes.size() && !pull_sent_) SetPull(header);
    }
    const size_t bytes = std::min(kChunkBytes, total - offset_);
    if (bytes > 0) {
      const auto* from =
          reinterpret_cast<const char*>(gradient.values->data() + client_->first_element_);
      payload->Append(from + offset_, bytes, gradient.values);
    }
    offset_ += bytes;
    if (offset_ == total) {
      ++push_;
      offset_ = 0;
      sends_push_ = true;
    }
  }

  void SetPull(v1::ExchangeRequest* header) {
    header->mutable_pull()->set_map_epoch(client_->map_epoch_);
    header->mutable_pull()->set_shard(client_->number_);
    header->mutable_pull()->set_version(*exchange_.pull_version);
    pull_sent_ = true;
  }

  void OnWritten(bool ok) {
    writing_ = false;
    if (!ok) return Break();
    if (sends_push_) FaultPoint("push_sent").IgnoreError();
    sends_push_ = false;
    if (busy_) WriteNext();
  }

  void ReadNext() {
    if (reading_ || broken_ || !busy_ || loop_->stopping()) return;
    reading_ = true;
    ++outstanding_;
    rpc_->Read(&message_, &read_);
  }

  void OnRead(bool ok) {
    reading_ = false;
    if (!ok || client_ == nullptr) return Break();
    v1::ExchangeResponse header;
    Payload payload;
    absl::Status status = DecodeMessage(message_, &header, &payload);
    message_.Clear();
    if (status.ok()) status = Check(header, payload);
    if (!status.ok()) {
      protocol_error_ = status;
      context_.TryCancel();
      return Break();
    }
    payload.CopyTo(reinterpret_cast<char*>(exchange_.into == nullptr
                                               ? nullptr
                                               : exchange_.into->data() + client_->first_element_) +
                   received_);
    received_ += payload.bytes();
    acked_ += header.pushed().count();
    const bool pulled_now = !pulled_ && pull_begun_ && received_ == Bytes();
    pulled_ = pulled_ || pulled_now;
    const uint64_t id = exchange_.id;
    if (acked_ == exchange_.pushes.size() && pulled_) {
      busy_ = pull_begun_ = false;
      loop_->Cancel(timer_);
      exchange_ = Exchange();
    } else {
      ReadNext();
    }
    // Last, as they may begin another exchange on this stream, or end the client.
    const Callbacks& callbacks = client_->callbacks_;
    if (header.pushed().count() > 0) callbacks.on_pushed(id, header.pushed().count());
    if (pulled_now && client_ != nullptr) client_->callbacks_.on_pulled(id);
  }

  size_t Bytes() const { return client_->elements_ * sizeof(float); }

  absl::Status Check(const v1::ExchangeResponse& header, const Payload& payload) {
    if (header.pushed().count() > exchange_.pushes.size() - acked_) {
      return absl::InternalError("the shard acknowledged pushes that were not made");
    }
    if (header.has_pulled()) {
      if (pulled_ || pull_begun_ || header.pulled().payload_bytes() != Bytes()) {
        return absl::InternalError(absl::StrCat("the shard sends ", header.pulled().payload_bytes(),
                                                " bytes of weights; expected ", Bytes()));
      }
      pull_begun_ = true;
    }
    if (payload.bytes() > 0 && (!pull_begun_ || payload.bytes() > Bytes() - received_)) {
      return absl::InternalError("the shard sends more weights than it said");
    }
    return absl::OkStatus();
  }

  void Break() {
    if (broken_ || loop_->stopping()) return;
    broken_ = true;
    ++outstanding_;
    rpc_->Finish(&status_, &finished_);
  }

  void OnFinished(bool ok) {
    loop_->Cancel(timer_);
    if (client_ == nullptr || loop_->stopping()) return;
    auto& streams = client_->streams_;
    streams.erase(std::find(streams.begin(), streams.end(), this));
    ShardClient* client = client_;
    client_ = nullptr;
    if (!busy_) return;
    absl::Status status = FromGrpc(status_);
    if (!protocol_error_.ok()) status = protocol_error_;
    if (timed_out_) {
      status =
          absl::DeadlineExceededError(absl::StrCat("no answer for ", kDeadlineMs / 1000, " s"));
    }
    if (status.ok()) status = absl::UnavailableError("the shard closed the stream");
    client->callbacks_.on_error(exchange_.id, status);
  }

  void MaybeDelete() {
    if (outstanding_ == 0 && (broken_ || loop_->stopping())) delete this;
  }

  ShardClient* client_;
  EventLoop* loop_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> rpc_;
  Step written_, read_, finished_;
  int outstanding_ = 0;  // Tags that gRPC has not yet handed back.
  bool busy_ = false, writing_ = false, reading_ = false;
  bool broken_ = false, timed_out_ = false;
  grpc::Status status_;
  absl::Status protocol_error_;
  grpc::ByteBuffer message_;

  Exchange exchange_;
  EventLoop::TimerId timer_;
  size_t push_ = 0, offset_ = 0;  // What is written next,
  bool sends_push_ = false;       // What is being written ends a push.
  bool pull_sent_ = true;
  uint64_t acked_ = 0;  // and what has come back.
  bool pull_begun_ = false, pulled_ = true;
  size_t received_ = 0;
};

ShardClient::ShardClient(EventLoop* loop, const v1::ClusterMap& map, int number,
                         size_t first_element, size_t elements, Callbacks callbacks)
    : loop_(loop),
      map_epoch_(map.epoch()),
      number_(static_cast<uint32_t>(number)),
      shard_(map.shards(number)),
      first_element_(first_element),
      elements_(elements),
      callbacks_(std::move(callbacks)),
      stub_(CreateChannel(shard_.primary().address())) {}

ShardClient::~ShardClient() {
  for (Stream* stream : std::vector<Stream*>(streams_)) stream->Abandon();
}

void ShardClient::Start(Exchange exchange) {
  auto it = std::find_if(streams_.begin(), streams_.end(), [](Stream* s) { return s->idle(); });
  if (it == streams_.end()) {
    streams_.push_back(new Stream(this));
    it = streams_.end() - 1;
  }
  (*it)->Begin(std::move(exchange));
}

}  // namespace tandem
