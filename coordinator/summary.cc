#include "coordinator/summary.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem {
namespace {

double PerSecond(const JobSummary& summary) {
  return summary.seconds > 0 ? static_cast<double>(summary.examples) / summary.seconds : 0;
}

}  // namespace

std::string SummaryJson(const Job& job) {
  const JobSummary& s = job.summary();
  const v1::Consistency& consistency = job.spec().training().consistency();
  nlohmann::ordered_json out;
  out["job"] = job.spec().name();
  out["status"] = job.failure().ok() ? "ok" : "failed";
  if (!job.failure().ok()) out["failure"] = std::string(job.failure().message());
  out["consistency"] = consistency.has_async()     ? "async"
                       : consistency.has_bounded() ? "bounded"
                                                   : "sync";
  out["steps"] = s.steps;
  out["epochs"] = s.epochs;
  out["examples"] = s.examples;
  out["seconds"] = s.seconds;
  out["examples_per_second"] = PerSecond(s);
  out["final_loss"] = s.final_loss;
  out["epoch_losses"] = s.epoch_losses;
  out["eval"] = s.evaluation;
  out["params_digest"] = s.params_digest;
  out["cpu_isa"] = s.cpu_isa;
  out["workers_seen"] = s.workers_seen;
  out["servers"] = s.servers;
  out["retries"] = s.retries;
  out["duplicates_ignored"] = s.duplicates_ignored;
  out["leases_expired"] = s.leases_expired;
  out["rollbacks"] = s.rollbacks;
  // One replica and no staleness is plain sequential training.
  out["reproducible"] =
      consistency.has_sync() || (consistency.has_bounded() && job.plan().replicas() == 1 &&
                                 consistency.bounded().staleness() == 0);
  if (!consistency.has_sync()) {
    nlohmann::ordered_json shards = nlohmann::ordered_json::array();
    for (const auto& intervals : s.applied) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const v1::Interval& i : intervals) list.push_back({i.begin(), i.end()});
      shards.push_back(std::move(list));
    }
    out["applied"] = std::move(shards);
  }
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string SummaryText(const Job& job) {
  const JobSummary& s = job.summary();
  if (!job.failure().ok()) {
    return absl::StrCat("failed: ", std::string(job.failure().message()), "\n");
  }
  std::string text =
      absl::StrFormat("%s: %d steps, %d examples in %.2f s, %.0f examples/s\n", job.spec().name(),
                      s.steps, s.examples, s.seconds, PerSecond(s));
  absl::StrAppendFormat(&text, "loss %.4f in the last epoch", s.final_loss);
  for (const auto& [name, value] : s.evaluation) {
    absl::StrAppendFormat(&text, "; test %s %.4f", name, value);
  }
  absl::StrAppendFormat(&text, "\nparams %s (%s), %d workers, %d servers\n", s.params_digest,
                        s.cpu_isa, s.workers_seen, s.servers);
  return text;
}

absl::Status WriteFile(const std::string& file, const std::string& text) {
  const std::string aside = file + ".tmp";
  std::FILE* out = std::fopen(aside.c_str(), "w");
  bool ok = out != nullptr;
  ok = ok && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (out != nullptr) ok = std::fclose(out) == 0 && ok;
  ok = ok && std::rename(aside.c_str(), file.c_str()) == 0;
  if (ok) return absl::OkStatus();
  const std::string reason = std::strerror(errno);
  std::remove(aside.c_str());
  return absl::UnavailableError(absl::StrCat(file, ": cannot be written: ", reason));
}

}  // namespace tandem
