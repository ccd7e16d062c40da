#include "coordinator/summary.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tandem {
namespace {

// Of this life of the coordinator: what came before it took no time of it.
double PerSecond(const JobSummary& s) {
  if (s.seconds <= 0 || s.steps == 0) return 0;
  const double part =
      static_cast<double>(s.steps - std::min(s.resumed_at, s.steps)) / static_cast<double>(s.steps);
  return static_cast<double>(s.examples) * part / s.seconds;
}

std::string ConsistencyName(const v1::Consistency& consistency) {
  if (consistency.has_async()) return "async";
  return consistency.has_bounded() ? "bounded" : "sync";
}

// One replica and no staleness is plain sequential training.
bool Reproducible(const v1::Training& training) {
  const v1::Consistency& consistency = training.consistency();
  return consistency.has_sync() || (consistency.has_bounded() && training.replicas() == 1 &&
                                    consistency.bounded().staleness() == 0);
}

nlohmann::ordered_json AppliedLists(const JobSummary& s) {
  nlohmann::ordered_json shards = nlohmann::ordered_json::array();
  for (const auto& intervals : s.applied) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const v1::Interval& i : intervals) list.push_back({i.begin(), i.end()});
    shards.push_back(std::move(list));
  }
  return shards;
}

// The number or text `name`, or 0 or empty: a stored summary may be of an older version.
double Number(const nlohmann::json& json, const char* name) {
  auto it = json.find(name);
  return it != json.end() && it->is_number() ? it->get<double>() : 0;
}
std::string Text(const nlohmann::json& json, const char* name) {
  auto it = json.find(name);
  return it != json.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

std::string SummaryJson(const v1::JobSpec& spec, const JobSummary& s, const absl::Status& failure) {
  nlohmann::ordered_json out;
  out["job"] = spec.name();
  out["status"] = failure.ok() ? "ok" : "failed";
  if (!failure.ok()) out["failure"] = std::string(failure.message());
  out["consistency"] = ConsistencyName(spec.training().consistency());
  out["steps"] = s.steps;
  out["resumed_at"] = s.resumed_at;
  out["epochs"] = s.epochs;
  out["examples"] = s.examples;
  out["examples_skipped"] = s.examples_skipped;
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
  out["backups"] = s.backups;
  out["rollbacks"] = s.rollbacks;
  out["promotions"] = s.promotions;
  out["checkpoints_written"] = s.checkpoints_written;
  out["checkpoints_failed"] = s.checkpoints_failed;
  out["reproducible"] = Reproducible(spec.training());
  if (!spec.training().consistency().has_sync()) out["applied"] = AppliedLists(s);
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string SummaryText(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return "the summary cannot be read\n";
  if (Text(json, "status") != "ok") return absl::StrCat("failed: ", Text(json, "failure"), "\n");
  std::string lines =
      absl::StrFormat("%s: %.0f steps, %.0f examples in %.2f s, %.0f examples/s\n",
                      Text(json, "job"), Number(json, "steps"), Number(json, "examples"),
                      Number(json, "seconds"), Number(json, "examples_per_second"));
  absl::StrAppendFormat(&lines, "loss %.4f in the last epoch", Number(json, "final_loss"));
  if (auto eval = json.find("eval"); eval != json.end() && eval->is_object()) {
    for (const auto& [name, value] : eval->items()) {
      absl::StrAppendFormat(&lines, "; test %s %.4f", name, Number(*eval, name.c_str()));
    }
  }
  absl::StrAppendFormat(&lines, "\nparams %s (%s), %.0f workers, %.0f servers\n",
                        Text(json, "params_digest"), Text(json, "cpu_isa"),
                        Number(json, "workers_seen"), Number(json, "servers"));
  return lines;
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
