#include "worker/executor.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/tensor/reduce.h"

namespace tandem {
namespace {

// Waking another thread and being woken by it costs about as much.
constexpr double kInlineSeconds = 100e-6;
constexpr double kMeasureWeight = 0.2;

uint64_t TaskNumber(const ComputeTask& task) {
  return std::visit([](const auto& t) { return t.task; }, task);
}

absl::Status At(uint64_t step, uint64_t r, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("step ", step, ", micro-batch ", r, ": ",
                                                  std::string(status.message())));
}

}  // namespace

class Executor::Bench {
 public:
  Bench(const WorkerJob* job, BufferPool* gradients)
      : job_(job), gradients_(gradients), replica_(Replica::Create(job->model.get())) {}

  TaskResult Run(const ComputeTask& task) {
    TaskResult result;
    const auto begin = std::chrono::steady_clock::now();
    std::visit([&](const auto& t) { result.status = Do(t, &result); }, task);
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  }

 private:
  absl::Status Do(const ComputeGradient& task, TaskResult* result) {
    auto gradient = std::make_shared<Gradient>();
    gradient->step = task.step;
    gradient->node = task.node;
    TANDEM_ASSIGN_OR_RETURN(gradient->values, Compute(task, task.node, gradient.get()));
    if (!gradient->skipped.empty()) {
      gradient->values = nullptr;
      gradient->sums.clear();
    }
    result->gradient = std::move(gradient);
    return absl::OkStatus();
  }

  // The gradient of `node`, null when it has no examples. Adds to the sums of `whole`, and to why
  // it is to be left out.
  absl::StatusOr<std::shared_ptr<Buffer>> Compute(const ComputeGradient& task, Node node,
                                                  Gradient* whole) {
    if (node.level == 0) return ComputeLeaf(task, static_cast<uint32_t>(node.index), whole);
    const Node left_node{node.level - 1, node.index * 2};
    TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> left, Compute(task, left_node, whole));
    const Node right_node = left_node.Sibling();
    if (right_node.FirstLeaf() >= job_->plan.replicas()) return left;
    TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> right, Compute(task, right_node, whole));
    if (right == nullptr) return left;
    if (left == nullptr) return right;
    AddInto(left->data(), right->data(), left->size());
    return left;
  }

  absl::StatusOr<std::shared_ptr<Buffer>> ComputeLeaf(const ComputeGradient& task, uint32_t r,
                                                      Gradient* whole) {
    v1::Sums& own = whole->sums.emplace_back();
    job_->plan.MicroBatch(task.step, r, &indices_);
    if (indices_.empty()) return std::shared_ptr<Buffer>();
    const bool synchronous = job_->spec.training().consistency().has_sync();
    const uint64_t divisor = synchronous ? job_->plan.BatchExamples(task.step) : indices_.size();
    if (absl::Status status = job_->train->Read(indices_, &batch_); !status.ok()) {
      return At(task.step, r, status);
    }
    std::shared_ptr<Buffer> gradient = gradients_->Take();
    const absl::Status status = replica_->ComputeGradient(
        batch_, task.weights->data(), 1.0f / static_cast<float>(divisor), gradient->data(), &own);
    if (status.ok()) return gradient;
    const absl::Status at = At(task.step, r, status);
    if (!absl::IsFailedPrecondition(at) || !skips_non_finite()) return at;
    if (whole->skipped.empty()) whole->skipped = std::string(at.message());
    return std::shared_ptr<Buffer>();
  }

  absl::Status Do(const CombineGradients& task, TaskResult* result) {
    auto gradient = std::make_shared<Gradient>();
    gradient->step = task.left->step;
    gradient->node = task.left->node.Parent();
    gradient->skipped = task.left->skipped.empty() ? task.right->skipped : task.left->skipped;
    result->gradient = gradient;
    if (!gradient->skipped.empty()) return absl::OkStatus();
    gradient->sums = task.left->sums;
    gradient->sums.insert(gradient->sums.end(), task.right->sums.begin(), task.right->sums.end());
    if (task.right->values == nullptr || task.left->values == nullptr) {
      gradient->values = task.left->values == nullptr ? task.right->values : task.left->values;
    } else {
      std::shared_ptr<Buffer> sum = gradients_->Take();
      AddFrom(task.left->values->data(), task.right->values->data(), sum->data(), sum->size());
      gradient->values = std::move(sum);
    }
    return absl::OkStatus();
  }

  absl::Status Do(const EvaluateChunk& task, TaskResult* result) {
    const uint64_t batch = job_->spec.evaluation().batch_size();
    const uint64_t begin = task.chunk * batch;
    const uint64_t end = std::min(begin + batch, job_->test->info().examples);
    indices_.resize(end - begin);
    std::iota(indices_.begin(), indices_.end(), begin);
    TANDEM_RETURN_IF_ERROR(job_->test->Read(indices_, &batch_));
    TANDEM_RETURN_IF_ERROR(replica_->Evaluate(batch_, task.weights->data(), &result->sums));
    const uint64_t left_out = result->sums.skipped();
    if (left_out == 0 || (skips_non_finite() && result->sums.examples() > 0)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat("evaluation, test examples ", begin, " to ",
                                                      end - 1, ": the loss or a metric of ",
                                                      left_out, " of them is not finite"));
  }

  bool skips_non_finite() const { return job_->spec.training().non_finite() == "skip"; }

  const WorkerJob* job_;
  BufferPool* gradients_;
  std::unique_ptr<Replica> replica_;
  std::vector<uint64_t> indices_;
  Batch batch_;
};

Executor::Executor(std::shared_ptr<const WorkerJob> job, int threads,
                   std::function<void(uint64_t, TaskResult)> done)
    : job_(std::move(job)),
      gradients_(job_->model->num_elements()),
      done_(std::move(done)),
      own_(std::make_unique<Bench>(job_.get(), &gradients_)),
      usual_seconds_(kInlineSeconds * 2) {
  for (int t = 0; t < threads; ++t) threads_.emplace_back([this] { Work(); });
}

Executor::~Executor() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    queue_.clear();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool Executor::Run(const ComputeTask& task, TaskResult* result) {
  {
    absl::MutexLock lock(&mutex_);
    if (usual_seconds_ > kInlineSeconds || std::holds_alternative<EvaluateChunk>(task)) {
      queue_.push_back(task);
      return false;
    }
  }
  *result = own_->Run(task);
  absl::MutexLock lock(&mutex_);
  usual_seconds_ += kMeasureWeight * (result->seconds - usual_seconds_);
  return true;
}

void Executor::Abandon() {
  absl::MutexLock lock(&mutex_);
  queue_.clear();
}

void Executor::Work() {
  Bench bench(job_.get(), &gradients_);
  while (true) {
    ComputeTask task;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    TaskResult result = bench.Run(task);
    if (std::holds_alternative<ComputeGradient>(task)) {
      absl::MutexLock lock(&mutex_);
      usual_seconds_ += kMeasureWeight * (result.seconds - usual_seconds_);
    }
    done_(TaskNumber(task), std::move(result));
  }
}

}  // namespace tandem
