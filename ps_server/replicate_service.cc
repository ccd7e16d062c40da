#include "ps_server/replicate_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/fault_point.h"
#include "common/rpc/message.h"
#include "common/rpc/status.h"

namespace tandem {

// One call of Replicate. Deletes itself when gRPC has nothing more to say about it.
class ReplicateService::Stream {
 public:
  explicit Stream(ReplicateService* service)
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
    service_->service_->RequestReplicate(&context_, &rpc_, service->queue_, service->queue_,
                                         &accepted_);
  }

  void Acknowledge(uint64_t acknowledged) {
    acknowledged_ = acknowledged;
    Pump();
  }

  void End(const absl::Status& status) {
    if (!end_.has_value()) end_ = status;
    payload_ = Payload();
    Pump();
  }

 private:
  struct Step : EventLoop::Tag {
    Step(Stream* stream, void (Stream::*run)(bool)) : stream(stream), run(run) {}
    void Run(bool ok) override {
      (stream->*run)(ok);  // Still counted: the handler may not delete its stream under itself.
      --stream->outstanding_;
      stream->MaybeDelete();
    }
    Stream* stream;
    void (Stream::*run)(bool);
  };

  void OnAccepted(bool ok) {
    if (!ok) return;  // The server is going down; the call never began and gets no OnDone.
    ++outstanding_;   // OnDone.
    if (service_->loop_->stopping()) return;
    service_->Accept();
    if (service_->streams_.size() >= kMaxStreams) {
      end_ = absl::ResourceExhaustedError(absl::StrCat(kMaxStreams, " streams are open already"));
    } else if (service_->core_ == nullptr) {
      end_ = absl::FailedPreconditionError("this server has no cluster map yet");
    }
    service_->streams_[id_] = this;
    Pump();
  }

  // Goes on with whatever can be done now.
  void Pump() {
    if (finishing_ || service_->loop_->stopping()) return;
    if (!writing_ && end_.has_value()) {
      finishing_ = true;
      ++outstanding_;
      rpc_.Finish(ToGrpc(*end_), &finished_);
      return;
    }
    if (!writing_ && acknowledged_ > written_up_to_) {
      v1::ReplicateResponse response;
      response.set_acknowledged(acknowledged_);
      written_up_to_ = acknowledged_;
      writing_ = true;
      ++outstanding_;
      rpc_.Write(EncodeMessage(response, Payload()), &written_);
    }
    if (!reading_ && !end_.has_value()) {
      reading_ = true;
      ++outstanding_;
      rpc_.Read(&message_, &read_);
    }
  }

  void OnRead(bool ok) {
    reading_ = false;
    if (end_.has_value() || finishing_) return;
    if (!ok) {
      End(absl::OkStatus());  // The primary has closed it.
      return;
    }
    ServerActions actions;
    const absl::Status status = Take(&actions);
    message_.Clear();
    service_->perform_(std::move(actions));
    if (!status.ok()) {
      End(status);
    } else {
      Pump();
    }
  }

  // Takes one message.
  absl::Status Take(ServerActions* actions) {
    request_.Clear();
    Payload payload;
    if (absl::Status status = DecodeMessage(message_, &request_, &payload); !status.ok()) {
      return status;
    }
    if (request_.has_begin() || request_.has_push()) {
      if (open_ || request_.has_begin() == begun_ ||
          (request_.has_begin() && request_.has_push())) {
        return absl::InvalidArgumentError("message: expected begin once, first, then pushes");
      }
      absl::StatusOr<size_t> bytes = request_.has_begin()
                                         ? service_->core_->CheckReplica(request_.begin())
                                         : service_->core_->CheckReplicaPush(id_, request_.push());
      if (!bytes.ok()) return std::move(bytes).status();
      expected_bytes_ = *bytes;
      open_ = true;
      first_ = std::move(request_);
    } else if (!open_ || payload.bytes() == 0) {
      return absl::InvalidArgumentError("message: expected begin, a push, or the payload of one");
    }
    if (payload.bytes() > expected_bytes_ - payload_.bytes()) {
      return absl::InvalidArgumentError(absl::StrCat("payload: is longer than the ",
                                                     expected_bytes_, " bytes that it must have"));
    }
    payload_.Append(std::move(payload));
    if (payload_.bytes() < expected_bytes_) return absl::OkStatus();
    open_ = false;
    Payload whole = std::exchange(payload_, Payload());
    const int64_t now = EventLoop::NowMs();
    if (!begun_) {
      begun_ = true;
      service_->core_->OnReplica(now, id_, first_.begin(), std::move(whole), actions);
    } else {
      service_->core_->OnReplicaPush(now, id_, first_.push(), std::move(whole), actions);
      return FaultPoint("standby_applied");
    }
    return absl::OkStatus();
  }

  void OnWritten(bool ok) {
    writing_ = false;
    if (ok) Pump();
  }

  void OnFinished(bool ok) {}

  void OnDone(bool ok) {
    finishing_ = true;
    payload_ = Payload();
    if (service_->core_ != nullptr) service_->core_->OnReplicaGone(id_);
  }

  void MaybeDelete() {
    if (outstanding_ > 0) return;
    service_->streams_.erase(id_);
    delete this;
  }

  ReplicateService* service_;
  const uint64_t id_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> rpc_;
  Step accepted_, read_, written_, finished_, done_;
  int outstanding_ = 0;  // Tags that gRPC has not yet handed back.

  bool reading_ = false, writing_ = false, finishing_ = false;
  std::optional<absl::Status> end_;
  uint64_t acknowledged_ = 0, written_up_to_ = 0;

  grpc::ByteBuffer message_;
  v1::ReplicateRequest request_;
  bool begun_ = false;          // `begin` is complete.
  bool open_ = false;           // A payload is to follow.
  v1::ReplicateRequest first_;  // Of the message that is open.
  size_t expected_bytes_ = 0;
  Payload payload_;
};

void ReplicateService::Start(ParameterServerService* service, EventLoop* loop,
                             grpc::ServerCompletionQueue* queue, Perform perform) {
  service_ = service;
  loop_ = loop;
  queue_ = queue;
  perform_ = std::move(perform);
  Accept();
}

void ReplicateService::Accept() { new Stream(this); }

void ReplicateService::Acknowledge(const AckReplica& ack) {
  if (auto it = streams_.find(ack.call); it != streams_.end()) {
    it->second->Acknowledge(ack.acknowledged);
  }
}

void ReplicateService::End(const EndReplica& end) {
  if (auto it = streams_.find(end.call); it != streams_.end()) it->second->End(end.status);
}

}  // namespace tandem
