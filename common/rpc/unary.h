// Unary calls on an EventLoop, both ends. The serving side may answer later, as often as the
// protocol holds a call until there is something to say.
#ifndef TANDEM_COMMON_RPC_UNARY_H_
#define TANDEM_COMMON_RPC_UNARY_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/status.h"

namespace tandem {

// One method of an asynchronous service. Calls are named by numbers, so that a pure core can hold
// one. Lives as long as the loop; not thread-safe.
template <typename Request, typename Response>
class UnaryMethod {
 public:
  using Writer = grpc::ServerAsyncResponseWriter<Response>;
  // Asks gRPC for the next call: binds the generated RequestX.
  using Accept = std::function<void(grpc::ServerContext*, Request*, Writer*, void* tag)>;
  using Handler = std::function<void(uint64_t call, const Request& request)>;
  using Cancelled = std::function<void(uint64_t call)>;

  // `next_call` numbers the calls of all methods that share it. `on_call` must lead to Answer, at
  // once or later; `on_cancelled` (may be empty) says that the caller of an unanswered call is
  // gone.
  UnaryMethod(EventLoop* loop, uint64_t* next_call, Accept accept, Handler on_call,
              Cancelled on_cancelled)
      : loop_(loop),
        next_call_(next_call),
        accept_(std::move(accept)),
        on_call_(std::move(on_call)),
        on_cancelled_(std::move(on_cancelled)) {}

  // Begins to serve.
  void Start() { new Call(this); }

  // Answers `call`; a number that is not waiting (its caller is gone) is ignored.
  void Answer(uint64_t call, const absl::Status& status, const Response& response) {
    auto it = waiting_.find(call);
    if (it == waiting_.end()) return;
    it->second->Finish(status, response);
    waiting_.erase(it);
  }

 private:
  class Call : public EventLoop::Tag {
   public:
    explicit Call(UnaryMethod* method) : method_(method), writer_(&context_), done_(this) {
      context_.AsyncNotifyWhenDone(&done_);
      method_->accept_(&context_, &request_, &writer_, this);
    }

    // First: the call is here. Second: the answer is out.
    void Run(bool ok) override {
      if (finishing_ || !ok) {
        finished_ = true;
        // A call that never began gets no word that it is done.
        if (!started_ || done_seen_) delete this;
        return;
      }
      started_ = true;
      if (method_->loop_->stopping()) {
        finished_ = true;
        if (done_seen_) delete this;
        return;
      }
      new Call(method_);
      id_ = (*method_->next_call_)++;
      method_->waiting_[id_] = this;
      method_->on_call_(id_, request_);
    }

    void Finish(const absl::Status& status, const Response& response) {
      finishing_ = true;
      if (method_->loop_->stopping()) {
        finished_ = true;
        if (done_seen_) delete this;
        return;
      }
      if (status.ok()) {
        writer_.Finish(response, grpc::Status::OK, this);
      } else {
        writer_.FinishWithError(ToGrpc(status), this);
      }
    }

   private:
    // The call is over, one way or the other.
    class Done : public EventLoop::Tag {
     public:
      explicit Done(Call* call) : call_(call) {}
      void Run(bool ok) override { call_->OnDone(); }

     private:
      Call* call_;
    };

    void OnDone() {
      done_seen_ = true;
      if (!finishing_ && method_->waiting_.erase(id_) > 0) {
        finished_ = true;
        if (method_->on_cancelled_ && !method_->loop_->stopping()) method_->on_cancelled_(id_);
      }
      if (finished_) delete this;
    }

    UnaryMethod* method_;
    grpc::ServerContext context_;
    Request request_;
    Writer writer_;
    Done done_;
    uint64_t id_ = 0;
    bool started_ = false, finishing_ = false, finished_ = false, done_seen_ = false;
  };

  EventLoop* loop_;
  uint64_t* next_call_;
  Accept accept_;
  Handler on_call_;
  Cancelled on_cancelled_;
  std::map<uint64_t, Call*> waiting_;
};

// A call of ours. `prepare(context, queue)` begins it on a generated stub (stub->AsyncX).
// `on_answer` runs on the loop exactly once, unless the loop stops first. `wait_for_ready`: a peer
// that refuses is tried until the deadline.
template <typename Response>
class UnaryCall : public EventLoop::Tag {
 public:
  using Reader = std::unique_ptr<grpc::ClientAsyncResponseReader<Response>>;

  template <typename Prepare>
  static void Start(EventLoop* loop, std::chrono::milliseconds timeout, Prepare prepare,
                    std::function<void(absl::StatusOr<Response>)> on_answer) {
    if (loop->stopping()) return;
    auto* call = new UnaryCall(loop, std::move(on_answer));
    call->context_.set_deadline(std::chrono::system_clock::now() + timeout);
    call->reader_ = prepare(&call->context_, loop->queue());
    call->reader_->Finish(&call->response_, &call->status_, call);
  }

  void Run(bool ok) override {
    std::unique_ptr<UnaryCall> self(this);
    if (loop_->stopping()) return;
    if (!ok) status_ = grpc::Status(grpc::StatusCode::CANCELLED, "the call was dropped");
    if (status_.ok()) {
      on_answer_(std::move(response_));
    } else {
      on_answer_(FromGrpc(status_));
    }
  }

 private:
  UnaryCall(EventLoop* loop, std::function<void(absl::StatusOr<Response>)> on_answer)
      : loop_(loop), on_answer_(std::move(on_answer)) {}

  EventLoop* loop_;
  std::function<void(absl::StatusOr<Response>)> on_answer_;
  grpc::ClientContext context_;
  grpc::Status status_;
  Response response_;
  Reader reader_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_RPC_UNARY_H_
