// Drives a Job as scripts: processes by name, calls by number, time by hand.
#ifndef TANDEM_TESTS_COORDINATOR_JOB_SCRIPT_H_
#define TANDEM_TESTS_COORDINATOR_JOB_SCRIPT_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/job.h"
#include "proto/coordinator.pb.h"

namespace tandem {

// A job of `steps` steps over `replicas` micro-batches, synchronous, 10 examples a step.
v1::JobSpec SmallJob(uint32_t replicas, uint64_t steps);

// Micro-batches or chunks as (step, r), in the order of the answer.
using Names = std::vector<std::pair<uint64_t, uint64_t>>;
Names NamesOf(const v1::LeaseResponse& response, uint32_t replicas);

// Checks of itself that each call is answered once. Not thread-safe.
class JobScript {
 public:
  struct Process {
    uint64_t node = 0;
    std::string incarnation;
    uint64_t seen = 0;       // The cluster's state it has,
    v1::ClusterState state;  // in full.
    uint64_t received = 0;
    bool is_server = false;
  };

  JobScript(const v1::JobSpec& spec, JobOptions options, uint64_t test_examples = 0,
            Resume resume = {});

  // Registers and reads the state that its first heartbeat brings. The status tells of a refusal.
  absl::Status Server(const std::string& name);
  absl::Status Worker(const std::string& name, const std::string& cpu_isa = "avx2");
  absl::Status Register(const std::string& name, const v1::RegisterRequest& request);

  // One heartbeat, from a server with what it holds; the call's number. Reads the state when it is
  // answered at once.
  uint64_t Heartbeat(const std::string& name);
  uint64_t Heartbeat(const std::string& name, v1::HeartbeatRequest request);
  void Leave(const std::string& name);
  void Fatal(const std::string& name, const std::string& error);
  // Every process's heartbeat, until nobody learns anything new.
  void SpreadNews();

  // A lease call that reports `finished`; its number.
  uint64_t Ask(const std::string& name, const std::vector<v1::FinishedWork>& finished = {},
               double seconds_per_micro_batch = 0);
  // Asks, and expects an answer with work at once.
  v1::LeaseResponse Lease(const std::string& name,
                          const std::vector<v1::FinishedWork>& finished = {});
  // All that a grant holds, as finished.
  std::vector<v1::FinishedWork> All(const v1::LeaseResponse& response) const;

  // To `now_ms`, with OnTime whenever it is due.
  void PassTo(int64_t now_ms);
  void Pass(int64_t ms) { PassTo(now_ms + ms); }
  // Passes time while every process but `silent` keeps its heartbeat.
  void PassWithout(const std::string& silent, int64_t ms);
  void Cancel(uint64_t call) {
    job.OnCancelled(now_ms, call);
    Forget(call);
  }

  bool Answered(uint64_t call) const { return answered.count(call) > 0; }
  const v1::LeaseResponse& LeaseAnswer(uint64_t call) const;
  // Not told yet how the job ended, or held for nothing.
  const std::set<uint64_t>& open() const { return open_; }
  // The caller is gone: no answer is expected, nor forbidden.
  void Forget(uint64_t call) { open_.erase(call); }

  // A shard's content: which micro-batches (step * R + r) it has applied. A new holder has what its
  // history began with, or what its primary has.
  std::set<uint64_t>& Content(const v1::ClusterMap& map, int shard, const v1::Holder& holder);
  // What `process` would say of itself.
  v1::ServerStatus StatusOf(const Process& process);
  // All that the job has written so far, as another life of the coordinator finds it.
  JobState State() const;
  // The processes of another script, which lost their coordinator; Rejoin: one registers here.
  void TakeOverProcesses(const JobScript& other);
  void Rejoin(const std::string& name);
  // Does what the job wants written, with `disk` as the result; nothing while `disk_stands`.
  void Write();

  absl::Status disk;
  bool disk_stands = false;
  std::vector<v1::JournalRecord> records;
  std::vector<v1::Manifest> checkpoints;
  std::map<std::string, v1::SavedShard> saved;  // What shards are to say, by process.
  std::map<std::string, std::string> troubles;  // The same: that they have no content, and why.
  bool damaged = false;                         // Because the checkpoint is.

  v1::JobSpec spec;
  Job job;
  int64_t now_ms = 1000;
  std::map<std::string, Process> processes;
  std::map<uint64_t, Job::Reply> answered;
  uint32_t replicas;

 private:
  uint64_t NewCall();
  void Take(Job::Replies* replies);
  void Read(Process* process, uint64_t call);

  uint64_t next_call_ = 1;
  std::set<uint64_t> open_;
  std::map<uint64_t, std::string> heartbeats_;  // By call.
  std::map<std::tuple<std::string, int, uint64_t>, std::set<uint64_t>> content_;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_COORDINATOR_JOB_SCRIPT_H_
