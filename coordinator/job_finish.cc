// FinishJob: defaults and checks, in the order of job.proto.
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "coordinator/job_checks.h"
#include "coordinator/job_file.h"
#include "coordinator/job_model.h"
#include "coordinator/job_optimizer.h"
#include "coordinator/job_scan.h"

namespace tandem {
namespace {

constexpr uint32_t kMaxFeatures = 1u << 24;  // A dense row of 64 MiB.
constexpr uint32_t kMaxBatchSize = 1u << 24;
constexpr uint32_t kMaxPrefetch = 16;     // Staler gradients than that train nothing well.
constexpr uint32_t kMaxReplicas = 65536;  // A server may stage R/2 + 1 gradients.
constexpr uint32_t kMaxStaleness =
    1u << 20;  // Each step that runs ahead costs the coordinator memory.
// An update has the number step * R + r, and there must be room to count on.
constexpr uint64_t kMaxUpdates = uint64_t{1} << 62;
// With at most 2^32 steps an epoch, epochs * R within this keeps to kMaxUpdates.
constexpr uint32_t kMaxEpochsTimesReplicas = 1u << 30;

using Files = google::protobuf::RepeatedPtrField<std::string>;

absl::Status CheckFiles(absl::string_view path, const Files& files) {
  for (int i = 0; i < files.size(); ++i) {
    if (files[i].empty())
      return Fault(absl::StrCat(path, "[", i, "]"), "is empty; expected a path");
  }
  return absl::OkStatus();
}

absl::Status FinishDataset(v1::Dataset* dataset) {
  if (dataset->train_files().empty()) return Fault("dataset.train_files", "is required");
  TANDEM_RETURN_IF_ERROR(CheckFiles("dataset.train_files", dataset->train_files()));
  TANDEM_RETURN_IF_ERROR(CheckFiles("dataset.test_files", dataset->test_files()));
  TANDEM_RETURN_IF_ERROR(CheckChosen("dataset", *dataset, "has no format"));
  if (!dataset->has_shuffle()) dataset->set_shuffle(true);
  if (dataset->has_idx()) {
    v1::Idx* const idx = dataset->mutable_idx();
    if (!idx->has_scale()) idx->set_scale(1.0f / 255);
    return absl::OkStatus();
  }
  v1::LibSvm* const libsvm = dataset->mutable_libsvm();
  if (!libsvm->has_index_base()) libsvm->set_index_base(1);
  TANDEM_RETURN_IF_ERROR(
      CheckRange("dataset.libsvm.num_features", libsvm->num_features(), 1u, kMaxFeatures));
  return CheckRange("dataset.libsvm.index_base", libsvm->index_base(), 0u, 1u);
}

absl::Status FinishLoss(v1::Loss* loss) {
  TANDEM_RETURN_IF_ERROR(CheckChosen("loss", *loss, "is required"));
  if (loss->has_sparse_categorical_crossentropy()) {
    auto* const crossentropy = loss->mutable_sparse_categorical_crossentropy();
    if (!crossentropy->has_from_logits()) crossentropy->set_from_logits(false);
  }
  if (loss->has_binary_crossentropy()) {
    v1::BinaryCrossentropy* const crossentropy = loss->mutable_binary_crossentropy();
    if (!crossentropy->has_from_logits()) crossentropy->set_from_logits(false);
    if (!crossentropy->has_label_smoothing()) crossentropy->set_label_smoothing(0);
    return CheckRange("loss.binary_crossentropy.label_smoothing", crossentropy->label_smoothing(),
                      0.0f, 1.0f);
  }
  return absl::OkStatus();
}

// A metric that is there twice would be one name with two values in the summary.
absl::Status CheckMetrics(const v1::JobSpec& job) {
  absl::flat_hash_map<int, int> first;  // The metric's index by its kind.
  for (int i = 0; i < job.metrics_size(); ++i) {
    const std::string path = absl::StrCat("metrics[", i, "]");
    TANDEM_RETURN_IF_ERROR(CheckChosen(path, job.metrics(i), "has no kind"));
    const auto [before, inserted] = first.try_emplace(job.metrics(i).kind_case(), i);
    if (!inserted) return Fault(path, absl::StrCat("is the same as metrics[", before->second, "]"));
  }
  return absl::OkStatus();
}

absl::Status CheckLength(const v1::Training& training) {
  TANDEM_RETURN_IF_ERROR(CheckChosen("training", training, "has no length"));
  if (training.has_epochs()) {
    const uint32_t most = kMaxEpochsTimesReplicas / training.replicas();
    return CheckRange("training.epochs", training.epochs(), 1u, most);
  }
  const uint64_t most = kMaxUpdates / training.replicas();
  return CheckRange("training.steps", training.steps(), uint64_t{1}, most);
}

absl::Status FinishTraining(v1::Training* training) {
  TANDEM_RETURN_IF_ERROR(
      CheckRange("training.global_batch_size", training->global_batch_size(), 1u, kMaxBatchSize));
  if (!training->has_replicas()) training->set_replicas(4);
  if (!training->has_prefetch()) training->set_prefetch(1);
  if (training->non_finite().empty()) training->set_non_finite("stop");
  TANDEM_RETURN_IF_ERROR(
      CheckKnown("training.non_finite", training->non_finite(), {"stop", "skip"}));
  TANDEM_RETURN_IF_ERROR(CheckRange("training.prefetch", training->prefetch(), 0u, kMaxPrefetch));
  TANDEM_RETURN_IF_ERROR(CheckRange("training.replicas", training->replicas(), 1u, kMaxReplicas));
  TANDEM_RETURN_IF_ERROR(CheckLength(*training));
  v1::Consistency* const consistency = training->mutable_consistency();
  if (consistency->kind_case() == v1::Consistency::KIND_NOT_SET) consistency->mutable_sync();
  TANDEM_RETURN_IF_ERROR(CheckRange("training.consistency.bounded.staleness",
                                    consistency->bounded().staleness(), 0u, kMaxStaleness));
  if (training->cpu_isa().empty()) return absl::OkStatus();  // The first workers decide.
  return CheckKnown("training.cpu_isa", training->cpu_isa(), {"avx2", "avx512"});
}

absl::Status FinishEvaluation(const v1::Dataset& dataset, v1::Evaluation* evaluation) {
  if (!evaluation->has_batch_size()) evaluation->set_batch_size(1000);
  TANDEM_RETURN_IF_ERROR(
      CheckRange("evaluation.batch_size", evaluation->batch_size(), 1u, kMaxBatchSize));
  if (evaluation->every_epochs() > 0 && dataset.test_files().empty()) {
    return Fault("evaluation.every_epochs", absl::StrCat("is ", evaluation->every_epochs(),
                                                         ", but there are no dataset.test_files"));
  }
  return absl::OkStatus();
}

absl::Status FinishCheckpoint(v1::Checkpoint* checkpoint) {
  if (!checkpoint->has_every_steps()) checkpoint->set_every_steps(1000);
  if (!checkpoint->has_keep()) checkpoint->set_keep(3);
  TANDEM_RETURN_IF_ERROR(
      CheckAtLeast("checkpoint.every_steps", checkpoint->every_steps(), uint64_t{1}));
  return CheckAtLeast("checkpoint.keep", checkpoint->keep(), 1u);
}

}  // namespace

absl::Status FinishJob(v1::JobSpec* job) {
  TANDEM_RETURN_IF_ERROR(ScanMessage(*job));
  if (job->name().empty()) job->set_name("job");
  TANDEM_RETURN_IF_ERROR(FinishDataset(job->mutable_dataset()));
  TANDEM_RETURN_IF_ERROR(CheckRange("servers.standby", job->servers().standby(), 0u, 1u));
  TANDEM_RETURN_IF_ERROR(FinishModel(job->mutable_model()));
  TANDEM_RETURN_IF_ERROR(FinishLoss(job->mutable_loss()));
  TANDEM_RETURN_IF_ERROR(CheckMetrics(*job));
  TANDEM_RETURN_IF_ERROR(FinishOptimizer(job->mutable_optimizer()));
  TANDEM_RETURN_IF_ERROR(FinishTraining(job->mutable_training()));
  TANDEM_RETURN_IF_ERROR(FinishEvaluation(job->dataset(), job->mutable_evaluation()));
  return FinishCheckpoint(job->mutable_checkpoint());
}

}  // namespace tandem
