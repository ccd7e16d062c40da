#include "ps_server/replicate_client.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "common/base/fault_point.h"
#include "common/rpc/channel.h"
#include "common/rpc/message.h"
#include "common/rpc/status.h"

namespace tandem {
namespace {

constexpr char kMethod[] = "/tandem.v1.ParameterServer/Replicate";

// The first `bytes` of *payload, which loses them.
Payload Cut(Payload* payload, size_t bytes) {
  Payload first, rest;
  for (const Payload::Piece& piece : payload->pieces()) {
    const size_t size = std::min(piece.size, bytes - first.bytes());
    first.Append(piece.data, size, piece.owner);
    rest.Append(piece.data + size, piece.size - size, piece.owner);
  }
  *payload = std::move(rest);
  return first;
}

}  // namespace

class ReplicateClient::Stream {
 public:
  Stream(ReplicateClient* client, OpenLink open)
      : client_(client),
        loop_(client->loop_),
        link_(open.link),
        stub_(CreateChannel(open.address)),
        written_{this, &Stream::OnWritten},
        read_{this, &Stream::OnRead},
        finished_{this, &Stream::OnFinished} {
    context_.set_initial_metadata_corked(true);
    rpc_ = stub_.PrepareCall(&context_, kMethod, loop_->queue());
    rpc_->StartCall(nullptr);
    Message begin;
    *begin.header.mutable_begin() = std::move(open.begin);
    begin.payload = std::move(open.state);
    queue_.push_back(std::move(begin));
    WriteNext();
    ReadNext();
  }

  void Send(SendPush push) {
    Message message;
    *message.header.mutable_push() = std::move(push.push);
    message.payload = std::move(push.gradient);
    queue_.push_back(std::move(message));
    WriteNext();
  }

  // End without a word.
  void Abandon() {
    client_ = nullptr;
    queue_.clear();
    context_.TryCancel();
    Break();
    MaybeDelete();
  }

 private:
  struct Message {
    v1::ReplicateRequest header;
    Payload payload;
    bool begun = false;
  };
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

  void WriteNext() {
    if (writing_ || broken_ || queue_.empty() || loop_->stopping()) return;
    Message& message = queue_.front();
    Payload chunk = message.payload.bytes() <= kChunkBytes ? std::exchange(message.payload, {})
                                                           : Cut(&message.payload, kChunkBytes);
    const grpc::ByteBuffer bytes =
        EncodeMessage(message.begun ? v1::ReplicateRequest() : message.header, chunk);
    message.begun = true;
    if (message.payload.bytes() == 0) queue_.pop_front();
    writing_ = true;
    ++outstanding_;
    rpc_->Write(bytes, &written_);
  }

  void OnWritten(bool ok) {
    writing_ = false;
    if (!ok) return Break();
    WriteNext();
  }

  void ReadNext() {
    if (broken_ || loop_->stopping()) return;
    ++outstanding_;
    rpc_->Read(&message_, &read_);
  }

  void OnRead(bool ok) {
    if (!ok || client_ == nullptr) return Break();
    v1::ReplicateResponse response;
    Payload none;
    const absl::Status status = DecodeMessage(message_, &response, &none);
    message_.Clear();
    if (!status.ok()) {
      context_.TryCancel();
      return Break();
    }
    if (!FaultPoint("standby_acknowledged").ok()) {
      context_.TryCancel();
      return Break();
    }
    ReadNext();
    client_->callbacks_.on_ack(link_, response.acknowledged());
  }

  void Break() {
    if (broken_ || loop_->stopping()) return;
    broken_ = true;
    queue_.clear();
    ++outstanding_;
    rpc_->Finish(&status_, &finished_);
  }

  void OnFinished(bool ok) {
    if (client_ == nullptr || loop_->stopping()) return;
    ReplicateClient* client = std::exchange(client_, nullptr);
    client->streams_.erase(link_);
    absl::Status status = FromGrpc(status_);
    if (status.ok()) status = absl::UnavailableError("the standby closed the stream");
    client->callbacks_.on_broken(link_, status);
  }

  void MaybeDelete() {
    if (outstanding_ == 0 && (broken_ || loop_->stopping())) delete this;
  }

  ReplicateClient* client_;  // Null: abandoned.
  EventLoop* loop_;
  const uint64_t link_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> rpc_;
  Step written_, read_, finished_;
  int outstanding_ = 0;  // Tags that gRPC has not yet handed back.
  bool writing_ = false, broken_ = false;
  grpc::Status status_;
  grpc::ByteBuffer message_;
  std::deque<Message> queue_;
};

ReplicateClient::ReplicateClient(EventLoop* loop, Callbacks callbacks)
    : loop_(loop), callbacks_(std::move(callbacks)) {}

ReplicateClient::~ReplicateClient() {
  for (const auto& [link, stream] : std::exchange(streams_, {})) stream->Abandon();
}

void ReplicateClient::Open(OpenLink open) {
  const uint64_t link = open.link;
  streams_[link] = new Stream(this, std::move(open));
}

void ReplicateClient::Send(SendPush push) {
  if (auto it = streams_.find(push.link); it != streams_.end()) it->second->Send(std::move(push));
}

void ReplicateClient::Close(const CloseLink& close) {
  auto it = streams_.find(close.link);
  if (it == streams_.end()) return;
  Stream* stream = it->second;
  streams_.erase(it);
  stream->Abandon();
}

}  // namespace tandem
