#include "ps_server/exchange_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_point.h"
#include "common/rpc/channel.h"
#include "common/rpc/message.h"
#include "common/rpc/status.h"
#include "common/tensor/reduce.h"

namespace tandem {
namespace {

// Acknowledgements that may wait to be written before a stream is read on.
constexpr uint64_t kMaxUnsentAcks = 1024;
// So many are written even while more pushes come in.
constexpr uint64_t kMaxGatheredAcks = 256;
// Pushes of a stream that may wait for the standby before the stream is read on.
constexpr uint64_t kMaxUnanswered = 64;

}  // namespace

// One call of Exchange. Reads on while it can; writes one message at a time, into which it gathers
// what has come up meanwhile. Deletes itself when gRPC has nothing more to say about it.
class ExchangeService::Stream {
 public:
  explicit Stream(ExchangeService* service)
      : service_(service),
        id_(service->next_call_++),
        rpc_(&context_),
        accepted_{this, &Stream::OnAccepted},
        read_{this, &Stream::OnRead},
        written_{this, &Stream::OnWritten},
        finished_{this, &Stream::OnFinished},
        done_{this, &Stream::OnDone} {
    context_.AsyncNotifyWhenDone(&done_);
    outstanding_ = 1;
    service_->service_->RequestExchange(&context_, &rpc_, service->queue_, service->queue_,
                                        &accepted_);
  }

  uint64_t id() const { return id_; }

  void OnAnswer(const ShardAnswer& answer) {
    if (!answer.status.ok()) {
      pull_waits_ = false;
      Fail(answer.status);
    } else if (answer.pushed.has_value()) {
      --unanswered_;
      ++acks_.count;
      acks_.duplicates += answer.pushed->duplicate ? 1 : 0;
      acks_.version = answer.pushed->version;
    } else {
      pull_waits_ = false;
      weights_ = answer.weights;
      sent_bytes_ = 0;
    }
  }

  // Goes on with whatever can be done now. The stream may be gone afterwards.
  void Pump() {
    if (pull_.has_value() && unanswered_ == 0 && !finishing_) {
      ServerActions actions;
      BeginPull(&actions);
      Perform(std::move(actions));
    }
    if (!writing_ && !finishing_ && !service_->loop_->stopping()) {
      if (!failure_.ok()) weights_.reset();
      if (weights_.has_value() || acks_.count >= kMaxGatheredAcks ||
          (acks_.count > 0 && (half_closed_ || !failure_.ok()))) {
        Write();
      } else if (acks_.count > 0) {
        WriteWhenIdle();
      } else if (!failure_.ok()) {
        Finish(failure_);
      } else if (half_closed_ && !pull_waits_ && !pull_.has_value() && unanswered_ == 0) {
        Finish(absl::OkStatus());
      }
    }
    MaybeRead();
    MaybeDelete();
  }

  void Fail(const absl::Status& status) {
    if (failure_.ok()) failure_ = status;
    DropPush();
  }

 private:
  struct Step : EventLoop::Tag {
    Step(Stream* stream, void (Stream::*run)(bool)) : stream(stream), run(run) {}
    void Run(bool ok) override {
      --stream->outstanding_;
      (stream->*run)(ok);
    }
    Stream* stream;
    void (Stream::*run)(bool);
  };

  struct Acks {
    uint64_t count = 0, duplicates = 0, version = 0;
  };

  void OnAccepted(bool ok) {
    if (!ok) {  // The server is going down; the call never began and gets no OnDone.
      delete this;
      return;
    }
    ++outstanding_;  // OnDone.
    if (service_->loop_->stopping()) return;
    service_->Accept();
    if (service_->streams_.size() >= kMaxStreams) {
      Fail(absl::ResourceExhaustedError(absl::StrCat(kMaxStreams, " streams are open already")));
    } else if (service_->core_ == nullptr) {
      Fail(absl::UnavailableError("this server has no cluster map yet"));
    }
    service_->streams_[id_] = this;
    Pump();
  }

  // More pushes may be on their way: one message acknowledges them all.
  void WriteWhenIdle() {
    if (write_waits_) return;
    write_waits_ = true;
    ExchangeService* service = service_;
    service->loop_->WhenIdle([service, id = id_] {
      auto it = service->streams_.find(id);
      if (it == service->streams_.end()) return;
      Stream* stream = it->second;
      stream->write_waits_ = false;
      if (stream->writing_ || stream->finishing_ || stream->acks_.count == 0) return;
      stream->Write();
      stream->MaybeRead();
    });
  }

  void MaybeRead() {
    const bool busy = pull_waits_ || (pull_.has_value() && !pushing_) || weights_.has_value() ||
                      acks_.count >= kMaxUnsentAcks || unanswered_ >= kMaxUnanswered;
    if (reading_ || half_closed_ || busy || !failure_.ok() || finishing_ || cancelled_ ||
        service_->loop_->stopping()) {
      return;
    }
    reading_ = true;
    ++outstanding_;
    rpc_.Read(&message_, &read_);
  }

  void OnRead(bool ok) {
    reading_ = false;
    if (!ok) {
      half_closed_ = true;
      if (pushing_) Fail(absl::InvalidArgumentError("the stream ended inside a payload"));
    } else if (failure_.ok()) {
      ServerActions actions;
      if (absl::Status status = Take(&actions); !status.ok()) Fail(status);
      message_.Clear();
      Perform(std::move(actions));
    }
    Pump();
  }

  void Perform(ServerActions actions) {
    ++outstanding_;  // Delivering may pump this stream too: it must outlive that.
    service_->perform_(std::move(actions));
    --outstanding_;
  }

  // Takes one message.
  absl::Status Take(ServerActions* actions) {
    request_.Clear();
    Payload payload;
    absl::Status status = DecodeMessage(message_, &request_, &payload);
    if (!status.ok()) return status;
    if (request_.has_push() || request_.has_pull()) {
      if (pushing_) return absl::InvalidArgumentError("an operation begins inside a payload");
      status = Begin();
      if (!status.ok()) return status;
    } else if (!pushing_ || payload.bytes() == 0) {
      return absl::InvalidArgumentError(
          "message: expected push or pull, or the payload of a push that has begun");
    }
    if (payload.bytes() > 0 || pushing_) {
      status = TakePayload(std::move(payload));
      if (!status.ok()) return status;
    }
    if (pushing_ && gradient_.bytes() == expected_bytes_) EndPush(actions);
    BeginPull(actions);
    return absl::OkStatus();
  }

  absl::Status Begin() {
    pull_.reset();
    if (request_.has_pull()) pull_ = request_.pull();
    if (!request_.has_push()) return absl::OkStatus();
    absl::StatusOr<size_t> bytes = service_->core_->CheckPush(request_.push());
    if (!bytes.ok()) return std::move(bytes).status();
    const size_t limit = std::max(kMaxTransferBytes, kMinTransfers * *bytes);
    const size_t under_way = service_->transfer_bytes_ + service_->core_->waiting_bytes();
    if (under_way + *bytes > limit) {
      return absl::ResourceExhaustedError(
          absl::StrCat("pushes of ", under_way, " bytes are under way already"));
    }
    service_->transfer_bytes_ += *bytes;
    push_ = std::move(*request_.mutable_push());
    expected_bytes_ = *bytes;
    gradient_ = Payload();
    check_.emplace(&gradient_);
    checked_ = 0;
    pushing_ = true;
    return absl::OkStatus();
  }

  absl::Status TakePayload(Payload payload) {
    if (!pushing_) return absl::InvalidArgumentError("payload: a pull has none");
    if (payload.bytes() > expected_bytes_ - gradient_.bytes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "payload: ", gradient_.bytes() + payload.bytes(), " bytes of step ", push_.step(),
          ", node (", push_.level(), ", ", push_.index(), "); expected ", expected_bytes_));
    }
    gradient_.Append(std::move(payload));
    while (true) {
      size_t count;
      const void* run = check_->Next(SIZE_MAX, &count);
      if (count == 0) return absl::OkStatus();
      if (!AllFinite(run, count)) {
        return service_->core_->NonFiniteError(push_, checked_ + FirstNonFinite(run, count));
      }
      checked_ += count;
    }
  }

  void EndPush(ServerActions* actions) {
    FaultPoint("apply").IgnoreError();
    Payload gradient = std::move(gradient_);
    DropPush();
    ++unanswered_;
    service_->core_->Push(EventLoop::NowMs(), id_, push_, std::move(gradient), actions);
  }

  // Once no push before it waits any more, but for those that `actions` answers: answers come in
  // the order of the operations.
  void BeginPull(ServerActions* actions) {
    if (pushing_ || !pull_.has_value() || !failure_.ok()) return;
    uint64_t waiting = unanswered_;
    for (const ServerAction& action : *actions) {
      const auto* answer = std::get_if<ShardAnswer>(&action);
      if (answer == nullptr || answer->call != id_) continue;
      if (!answer->status.ok()) return;
      --waiting;
    }
    if (waiting > 0) return;
    pull_waits_ = true;
    service_->core_->Pull(EventLoop::NowMs(), id_, *pull_, actions);
    pull_.reset();
  }

  // No push is under way any more.
  void DropPush() {
    if (pushing_) service_->transfer_bytes_ -= expected_bytes_;
    pushing_ = false;
    gradient_ = Payload();
  }

  void Write() {
    v1::ExchangeResponse header;
    Payload chunk;
    if (acks_.count > 0) {
      header.mutable_pushed()->set_count(acks_.count);
      header.mutable_pushed()->set_duplicates(acks_.duplicates);
      header.mutable_pushed()->set_version(acks_.version);
      acks_ = Acks();
    }
    if (weights_.has_value()) {
      const Buffer& buffer = *weights_->buffer;
      if (sent_bytes_ == 0) {
        header.mutable_pulled()->set_version(weights_->version);
        header.mutable_pulled()->set_payload_bytes(buffer.bytes());
      }
      const size_t bytes = std::min(kChunkBytes, buffer.bytes() - sent_bytes_);
      chunk.Append(reinterpret_cast<const char*>(buffer.data()) + sent_bytes_, bytes,
                   weights_->buffer);
      sent_bytes_ += bytes;
      if (sent_bytes_ == buffer.bytes()) weights_.reset();
    }
    writing_ = true;
    ++outstanding_;
    rpc_.Write(EncodeMessage(header, chunk), &written_);
  }

  void OnWritten(bool ok) {
    writing_ = false;
    if (!ok) OnGone();
    Pump();
  }

  void Finish(const absl::Status& status) {
    finishing_ = true;
    ++outstanding_;
    rpc_.Finish(ToGrpc(status), &finished_);
  }

  void OnFinished(bool ok) { Pump(); }

  void OnDone(bool ok) {
    OnGone();
    Pump();
  }

  // The caller is gone, or has all it gets.
  void OnGone() {
    cancelled_ = true;
    finishing_ = true;
    DropPush();
    weights_.reset();
    if (pull_waits_) service_->core_->Cancel(id_);
    pull_waits_ = false;
    pull_.reset();
  }

  void MaybeDelete() {
    if (outstanding_ > 0) return;
    service_->streams_.erase(id_);
    delete this;
  }

  ExchangeService* service_;
  const uint64_t id_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> rpc_;
  Step accepted_, read_, written_, finished_, done_;
  int outstanding_ = 0;  // Tags that gRPC has not yet handed back.

  bool reading_ = false, writing_ = false, write_waits_ = false, finishing_ = false;
  bool half_closed_ = false, cancelled_ = false;
  absl::Status failure_;

  grpc::ByteBuffer message_;
  v1::ExchangeRequest request_;
  bool pushing_ = false;
  v1::Push push_;
  size_t expected_bytes_ = 0;
  Payload gradient_;
  std::optional<FloatCursor> check_;
  size_t checked_ = 0;
  uint64_t unanswered_ = 0;       // Pushes that are complete.
  std::optional<v1::Pull> pull_;  // To act when they are answered.
  bool pull_waits_ = false;

  Acks acks_;  // Not yet written.
  std::optional<Weights> weights_;
  size_t sent_bytes_ = 0;
};

ExchangeService::~ExchangeService() = default;

void ExchangeService::Start(ParameterServerService* service, EventLoop* loop,
                            grpc::ServerCompletionQueue* queue, Perform perform) {
  service_ = service;
  loop_ = loop;
  queue_ = queue;
  perform_ = std::move(perform);
  inspect_ = std::make_unique<UnaryMethod<v1::InspectRequest, v1::InspectResponse>>(
      loop, &next_call_,
      [this](grpc::ServerContext* context, v1::InspectRequest* request,
             grpc::ServerAsyncResponseWriter<v1::InspectResponse>* writer, void* tag) {
        service_->RequestInspect(context, request, writer, queue_, queue_, tag);
      },
      [this](uint64_t call, const v1::InspectRequest& request) {
        absl::StatusOr<v1::InspectResponse> held =
            absl::UnavailableError("this server has no cluster map yet");
        if (core_ != nullptr) held = core_->Inspect(request);
        inspect_->Answer(call, held.status(), held.ok() ? *held : v1::InspectResponse());
      },
      nullptr);
  inspect_->Start();
  Accept();
}

void ExchangeService::Accept() { new Stream(this); }

void ExchangeService::Deliver(const std::vector<ShardAnswer>& answers) {
  // First all of them, then the writing: what one stream gets goes out in one message.
  for (const ShardAnswer& answer : answers) {
    auto it = streams_.find(answer.call);
    if (it != streams_.end()) it->second->OnAnswer(answer);
  }
  for (const ShardAnswer& answer : answers) {
    auto it = streams_.find(answer.call);
    if (it != streams_.end()) it->second->Pump();
  }
}

}  // namespace tandem
