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
    TANDEM_ASSIGN_OR_RETURN(gradient->values, Compute(task, task.node, &gradient->sums));
    result->gradient = std::move(gradient);
    return absl::OkStatus();
  }

  // The gradient of `node`, null when it has no examples.
  absl::StatusOr<std::shared_ptr<Buffer>> Compute(const ComputeGradient& task, Node node,
                                                  std::vector<v1::Sums>* sums) {
    if (node.level == 0) return ComputeLeaf(task, static_cast<uint32_t>(node.index), sums);
    const Node left_node{node.level - 1, node.index * 2};
    TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> left, Compute(task, left_node, sums));
    const Node right_node = left_node.Sibling();
    if (right_node.FirstLeaf() >= job_->plan.replicas()) return left;
    TANDEM_ASSIGN_OR_RETURN(std::shared_ptr<Buffer> right, Compute(task, right_node, sums));
    if (right == nullptr) return left;
    if (left == nullptr) return right;
    AddInto(left->data(), right->data(), left->size());
    return left;
  }

  absl::StatusOr<std::shared_ptr<Buffer>> ComputeLeaf(const ComputeGradient& task, uint32_t r,
                                                      std::vector<v1::Sums>* sums) {
    v1::Sums& own = sums->emplace_back();
    job_->plan.MicroBatch(task.step, r, &indices_);
    if (indices_.empty()) return std::shared_ptr<Buffer>();
    const bool synchronous = job_->spec.training().consistency().has_sync();
    const uint64_t divisor = synchronous ? job_->plan.BatchExamples(task.step) : indices_.size();
    absl::Status status = job_->train->Read(indices_, &batch_);
    std::shared_ptr<Buffer> gradient = gradients_->Take();
    if (status.ok()) {
      status = replica_->ComputeGradient(
          batch_, task.weights->data(), 1.0f / static_cast<float>(divisor), gradient->data(), &own);
    }
    if (!status.ok()) return At(task.step, r, status);
    return gradient;
  }

  absl::Status Do(const CombineGradients& task, TaskResult* result) {
    auto gradient = std::make_shared<Gradient>();
    gradient->step = task.left->step;
    gradient->node = task.left->node.Parent();
    gradient->sums = task.left->sums;
    gradient->sums.insert(gradient->sums.end(), task.right->sums.begin(), task.right->sums.end());
    if (task.right->values == nullptr || task.left->values == nullptr) {
      gradient->values = task.left->values == nullptr ? task.right->values : task.left->values;
    } else {
      std::shared_ptr<Buffer> sum = gradients_->Take();
      AddFrom(task.left->values->data(), task.right->values->data(), sum->data(), sum->size());
      gradient->values = std::move(sum);
    }
    result->gradient = std::move(gradient);
    return absl::OkStatus();
  }

  absl::Status Do(const EvaluateChunk& task, TaskResult* result) {
    const uint64_t batch = job_->spec.evaluation().batch_size();
    const uint64_t begin = task.chunk * batch;
    const uint64_t end = std::min(begin + batch, job_->test->info().examples);
    indices_.resize(end - begin);
    std::iota(indices_.begin(), indices_.end(), begin);
    TANDEM_RETURN_IF_ERROR(job_->test->Read(indices_, &batch_));
    return replica_->Evaluate(batch_, task.weights->data(), &result->sums);
  }

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
