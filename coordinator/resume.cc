#include "coordinator/resume.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/one_line.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "google/protobuf/util/message_differencer.h"

namespace tandem {
namespace {

// What another run of the same job may change: it does not touch what the weights of a step are, or
// may be chosen anew at any step.
v1::JobSpec Lasting(v1::JobSpec spec) {
  spec.clear_name();
  spec.clear_servers();
  spec.clear_evaluation();
  spec.clear_checkpoint();
  spec.mutable_dataset()->clear_train_files();
  spec.mutable_dataset()->clear_test_files();
  spec.mutable_training()->clear_length();
  spec.mutable_training()->clear_cpu_isa();
  spec.mutable_training()->clear_prefetch();
  spec.mutable_training()->clear_non_finite();
  return spec;
}

// `what` names the record or file that `theirs` is from.
absl::Status CheckSameJob(const std::string& what, const v1::JobSpec& theirs,
                          const v1::JobSpec& ours) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  if (differencer.Compare(Lasting(theirs), Lasting(ours))) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what, " is of another job (", OneLine(differences.substr(0, differences.find('\n'))),
      "); name another --state_dir, or start the job that this one is of"));
}

// Another life's map must be one that this job can have made.
bool MapFits(const v1::ClusterMap& map, const std::vector<v1::Variable>& variables) {
  if (map.epoch() == 0 || map.began() == 0 || map.began() > map.epoch()) return false;
  if (map.variables_size() != static_cast<int>(variables.size())) return false;
  for (int v = 0; v < map.variables_size(); ++v) {
    if (map.variables(v).SerializeAsString() !=
        variables[static_cast<size_t>(v)].SerializeAsString()) {
      return false;
    }
  }
  return map.shards_size() > 0;
}

class Reader {
 public:
  Reader(const v1::JobSpec& spec, uint64_t total_steps, int servers,
         const std::vector<v1::Variable>& variables, const JobState& state)
      : spec_(spec),
        total_steps_(total_steps),
        servers_(servers),
        variables_(variables),
        state_(state),
        journal_(absl::StrCat(state.state_dir, "/journal")) {}

  absl::StatusOr<Resume> Read() {
    resume_.state_dir = state_.state_dir;
    TANDEM_RETURN_IF_ERROR(ReadRecords());
    TANDEM_RETURN_IF_ERROR(ReadCheckpoints());
    const std::string& wanted = spec_.training().cpu_isa();
    if (!wanted.empty() && !resume_.cpu_isa.empty() && wanted != resume_.cpu_isa) {
      return absl::FailedPreconditionError(
          absl::StrCat("training.cpu_isa: is ", wanted, ", and ", state_.state_dir,
                       " was begun with ", resume_.cpu_isa, "; name another --state_dir"));
    }
    // Who goes on with more or fewer servers goes on from a checkpoint.
    if (resume_.map.has_value() && resume_.map->shards_size() != servers_) Forget();
    return std::move(resume_);
  }

 private:
  void Forget() {
    resume_.map.reset();
    resume_.started = false;
  }

  absl::Status ReadRecords() {
    const v1::JournalEnded* ended = nullptr;
    for (const v1::JournalRecord& record : state_.records) {
      if (resume_.begun == record.has_begun()) {
        return absl::DataLossError(
            absl::StrCat(journal_,
                         ": does not begin with the job, or does so twice; move it away "
                         "to go on from the last checkpoint"));
      }
      if (record.has_begun()) {
        TANDEM_RETURN_IF_ERROR(ReadBegun(record.begun()));
      } else if (record.has_map()) {
        TANDEM_RETURN_IF_ERROR(ReadMap(record.map()));
        ended = nullptr;
      } else if (record.has_started()) {
        resume_.cpu_isa = record.started().cpu_isa();
        resume_.started = true;
      } else if (record.has_ended()) {
        ended = &record.ended();
        Forget();
      }
    }
    if (state_.journal_torn) ++resume_.last_epoch;  // It may have been a map's.
    if (ended != nullptr && ended->failure().empty() && ended->steps() == total_steps_) {
      resume_.summary = ended->summary();
    }
    return absl::OkStatus();
  }

  absl::Status ReadBegun(const v1::JournalBegun& begun) {
    resume_.begun = true;
    TANDEM_RETURN_IF_ERROR(CheckSameJob(journal_, begun.job(), spec_));
    v1::Manifest manifest;
    *manifest.mutable_variables() = begun.variables();
    if (CheckModel(manifest, variables_).ok()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(journal_, " is of a job with other variables; name another --state_dir"));
  }

  absl::Status ReadMap(const v1::JournalMap& record) {
    if (!MapFits(record.map(), variables_) || record.map().epoch() <= resume_.last_epoch) {
      return absl::DataLossError(absl::StrCat(journal_, ": map ", record.map().epoch(),
                                              " does not follow map ", resume_.last_epoch,
                                              " of this job; move it away to go on from the last "
                                              "checkpoint"));
    }
    resume_.map = record.map();
    resume_.last_epoch = record.map().epoch();
    resume_.rollbacks = record.rollbacks();
    return absl::OkStatus();
  }

  absl::Status ReadCheckpoints() {
    const v1::Manifest* newest = nullptr;
    absl::Status bad;
    uint64_t beyond = 0;
    for (const CheckpointEntry& entry : state_.checkpoints) {
      if (!entry.status.ok()) {
        bad = entry.status;
        resume_.notes.push_back(absl::StrCat("passed by: ", std::string(bad.message())));
        continue;
      }
      if (entry.manifest.step() > total_steps_) {
        beyond = entry.manifest.step();
        continue;
      }
      newest = &entry.manifest;
      resume_.checkpoints.push_back({entry.manifest.step(), entry.name});
    }
    if (newest == nullptr && !bad.ok()) {
      return absl::Status(bad.code(), absl::StrCat("no checkpoint in ", state_.state_dir,
                                                   " is good: ", std::string(bad.message()),
                                                   "; move it away to begin anew"));
    }
    if (newest == nullptr && beyond > 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("the checkpoints in ", state_.state_dir, " are of step ", beyond,
                       " or more, and the job has ", total_steps_, "; name another --state_dir"));
    }
    if (newest == nullptr) return absl::OkStatus();
    TANDEM_RETURN_IF_ERROR(CheckModel(*newest, variables_));
    TANDEM_RETURN_IF_ERROR(CheckSameJob(
        absl::StrCat(state_.state_dir, "/checkpoints/", resume_.checkpoints.back().name),
        newest->job(), spec_));
    if (resume_.cpu_isa.empty()) resume_.cpu_isa = newest->cpu_isa();
    return absl::OkStatus();
  }

  const v1::JobSpec& spec_;
  const uint64_t total_steps_;
  const int servers_;
  const std::vector<v1::Variable>& variables_;
  const JobState& state_;
  const std::string journal_;
  Resume resume_;
};

}  // namespace

absl::StatusOr<Resume> ReadState(const v1::JobSpec& spec, uint64_t total_steps, int servers,
                                 const std::vector<v1::Variable>& variables,
                                 const JobState& state) {
  return Reader(spec, total_steps, servers, variables, state).Read();
}

}  // namespace tandem
