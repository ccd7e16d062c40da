// What a shard refuses.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "ps_server/shard.h"

namespace tandem {
namespace {

bool Finite(const v1::Sums& sums) {
  return std::isfinite(sums.loss()) && std::all_of(sums.metrics().begin(), sums.metrics().end(),
                                                   [](double m) { return std::isfinite(m); });
}

std::string Name(const v1::Push& push) {
  return absl::StrCat("push of step ", push.step(), ", node (", push.level(), ", ", push.index(),
                      ")");
}

bool SameBlock(const v1::Block& a, const v1::Block& b) {
  return a.begin() == b.begin() && a.end() == b.end() && a.variable() == b.variable();
}

}  // namespace

absl::Status Shard::CheckEpoch(uint64_t map_epoch) const {
  if (map_epoch == map_epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("map epoch ", map_epoch, " is not current; the shard's is ", map_epoch_));
}

std::string Shard::ElementName(size_t element) const {
  for (const v1::Block& block : place_.blocks()) {
    const uint64_t size = block.end() - block.begin();
    if (element < size) return absl::StrCat(block.variable(), "[", block.begin() + element, "]");
    element -= size;
  }
  return "an element that is not there";
}

absl::Status Shard::CheckBlocks(const v1::Push& push) const {
  for (int b = 0; b < place_.blocks_size() || b < push.blocks_size(); ++b) {
    if (b < place_.blocks_size() && b < push.blocks_size() &&
        SameBlock(place_.blocks(b), push.blocks(b))) {
      continue;
    }
    if (b < push.blocks_size() && FindVariable(*job_->model, push.blocks(b).variable()) < 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          Name(push), ": blocks[", b, "]: unknown variable \"", push.blocks(b).variable(), "\""));
    }
    const bool extra = b >= place_.blocks_size();
    const v1::Block& block = extra ? push.blocks(b) : place_.blocks(b);
    return absl::InvalidArgumentError(absl::StrCat(
        Name(push), ": blocks[", b, "]: ", extra ? "this shard does not hold " : "expected ",
        block.variable(), "[", block.begin(), ", ", block.end(), ")"));
  }
  return absl::OkStatus();
}

absl::Status Shard::CheckSums(const v1::Push& push) const {
  const Node node{push.level(), push.index()};
  const uint64_t leaves = node.EndLeaf(job_->plan.replicas()) - node.FirstLeaf();
  if (static_cast<uint64_t>(push.sums_size()) != leaves) {
    return absl::InvalidArgumentError(absl::StrCat(Name(push), ": has ", push.sums_size(),
                                                   " sums; expected one for each of its ", leaves,
                                                   " micro-batches"));
  }
  for (uint64_t leaf = 0; leaf < leaves; ++leaf) {
    const v1::Sums& sums = push.sums(static_cast<int>(leaf));
    const auto r = static_cast<uint32_t>(node.FirstLeaf() + leaf);
    const uint64_t expected = job_->plan.MicroBatchExamples(push.step(), r);
    if (sums.examples() != expected) {
      return absl::InvalidArgumentError(absl::StrCat(Name(push), ": sums[", leaf, "]: counts ",
                                                     sums.examples(), " examples; micro-batch ", r,
                                                     " has ", expected));
    }
    if (!Finite(sums) || sums.metrics_size() > job_->spec.metrics_size()) {
      return absl::InvalidArgumentError(absl::StrCat(Name(push), ": sums[", leaf,
                                                     "]: expected finite sums of at most ",
                                                     job_->spec.metrics_size(), " metrics"));
    }
  }
  return absl::OkStatus();
}

absl::Status Shard::CheckSkipped(const v1::Push& push) const {
  if (job_->spec.training().non_finite() != "skip") {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(push),
                     ": skipped is set, but the job stops at what is not finite; set "
                     "training.non_finite to \"skip\" to leave it out"));
  }
  if (push.empty() || push.blocks_size() > 0 || push.sums_size() > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(push), ": skipped is set; expected neither empty, blocks nor sums"));
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Shard::CheckPush(const v1::Push& push) const {
  TANDEM_RETURN_IF_ERROR(failure_);
  TANDEM_RETURN_IF_ERROR(CheckEpoch(push.map_epoch()));
  const Node node{push.level(), push.index()};
  if (push.step() >= job_->plan.total_steps()) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(push), ": the job has ", job_->plan.total_steps(), " steps"));
  }
  if (!IsNode(node, job_->plan.replicas()) || (!synchronous() && node.level != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(push), ": no such node; the job has ", job_->plan.replicas(), " replicas",
                     synchronous() ? "" : " and takes micro-batches (level 0) alone"));
  }
  if (synchronous() && push.step() > version_) {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(push), ": too far ahead; the shard is at step ", version_));
  }
  if (push.skipped()) {
    TANDEM_RETURN_IF_ERROR(CheckSkipped(push));
    return 0;
  }
  TANDEM_RETURN_IF_ERROR(CheckSums(push));
  // The larger micro-batches come first: a node is empty when its first one is.
  const bool empty =
      job_->plan.MicroBatchExamples(push.step(), static_cast<uint32_t>(node.FirstLeaf())) == 0;
  if (push.empty() != empty) {
    return absl::InvalidArgumentError(
        absl::StrCat(Name(push), ": empty is ", push.empty() ? "set" : "not set",
                     ", but the node has ", empty ? "no " : "", "examples"));
  }
  if (empty) return 0;
  TANDEM_RETURN_IF_ERROR(CheckBlocks(push));
  return elements_ * sizeof(float);
}

absl::Status Shard::CheckWhole(const v1::Push& push, const Payload& gradient) const {
  TANDEM_ASSIGN_OR_RETURN(const size_t bytes, CheckPush(push));
  if (gradient.bytes() == bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Name(push), ": payload of ", gradient.bytes(), " bytes; expected ", bytes));
}

absl::Status Shard::NonFiniteError(const v1::Push& push, size_t element) const {
  return absl::InvalidArgumentError(
      absl::StrCat(Name(push), ": the gradient of ", ElementName(element), " is not finite"));
}

}  // namespace tandem
