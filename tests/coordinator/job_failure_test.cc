// What the coordinator does about lost servers, standbys, checkpoints and its own restart.
// docs/failures.md has the rules.
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/manifest.h"
#include "coordinator/job.h"
#include "coordinator/resume.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/job_script.h"

namespace tandem {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

JobOptions Servers(int servers) {
  JobOptions options;
  options.servers = servers;
  return options;
}

Resume Fresh() {
  Resume resume;
  resume.state_dir = "/state";
  return resume;
}

v1::JobSpec WithCheckpoints(v1::JobSpec spec, uint64_t every_steps) {
  spec.mutable_checkpoint()->set_every_steps(every_steps);
  spec.mutable_checkpoint()->set_keep(3);
  return spec;
}

v1::JobSpec WithStandby(v1::JobSpec spec) {
  spec.mutable_servers()->set_standby(1);
  return spec;
}

void Join(JobScript* s, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    ASSERT_TRUE((name[0] == 's' ? s->Server(name) : s->Worker(name)).ok());
  }
  s->SpreadNews();
}

// One worker does `steps` steps, two at a time.
void Train(JobScript* s, const std::string& worker, uint64_t steps) {
  std::vector<v1::FinishedWork> done;
  while (s->job.steps_done() < steps) {
    const v1::LeaseResponse lease = s->Lease(worker, done);
    done = s->All(lease);
    if (s->job.steps_done() + 2 >= steps) {
      s->Ask(worker, done);
      return;
    }
  }
}

// The newest that anybody knows.
const v1::ClusterMap& MapOf(const JobScript& s) {
  const v1::ClusterMap* newest = &s.processes.begin()->second.state.map();
  for (const auto& [name, process] : s.processes) {
    if (process.state.map().epoch() > newest->epoch()) newest = &process.state.map();
  }
  return *newest;
}

// The shards of the map say that they wrote their parts of `step`.
void Save(JobScript* s, uint64_t step) {
  const v1::ClusterMap map = MapOf(*s);
  for (int k = 0; k < map.shards_size(); ++k) {
    v1::SavedShard part;
    part.set_step(step);
    part.set_folder(AsideName(step, map.began()));
    part.set_file(ShardFileName(k, map.shards_size()));
    part.set_bytes(100);
    part.set_checksum(std::string(16, 'c'));
    s->saved[map.shards(k).primary().address()] = part;
  }
  s->SpreadNews();
}

// The coordinator dies and is started again; the processes live.
JobScript Restarted(const JobScript& s, JobOptions options, uint64_t total_steps) {
  const std::vector<v1::Variable> variables = {s.records[0].begun().variables(0)};
  absl::StatusOr<Resume> resume =
      ReadState(s.spec, total_steps, options.servers, variables, s.State());
  EXPECT_TRUE(resume.ok()) << resume.status();
  JobScript next(s.spec, options, 0, resume.value_or(Resume()));
  next.records = s.records;
  next.checkpoints = s.checkpoints;
  next.TakeOverProcesses(s);
  return next;
}

// ---- Standbys ----

TEST(JobFailure, AStandbyIsPlacedOnAnotherProcess) {
  JobScript s(WithStandby(SmallJob(2, 10)), Servers(2));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "s3", "w1"}));
  const v1::ClusterMap map = MapOf(s);
  ASSERT_EQ(map.shards_size(), 2);
  for (const v1::Shard& shard : map.shards()) {
    ASSERT_TRUE(shard.has_standby());
    EXPECT_NE(shard.standby().incarnation(), shard.primary().incarnation());
  }
}

// Moving it would leave its shard without any copy until the new one is filled.
TEST(JobFailure, AStandbyStaysWhereItIsThoughAServerWithoutARoleComes) {
  JobScript s(WithStandby(SmallJob(2, 10)), Servers(2));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "w1"}));
  const v1::ClusterMap before = MapOf(s);
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s3"}));
  EXPECT_EQ(MapOf(s).SerializeAsString(), before.SerializeAsString());
}

TEST(JobFailure, AReadyStandbyTakesOverWithoutARollback) {
  JobScript s(WithStandby(SmallJob(2, 20)), Servers(1));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "s3", "w1"}));
  Train(&s, "w1", 4);
  const v1::ClusterMap before = MapOf(s);
  s.Leave("s1");
  s.SpreadNews();
  const v1::ClusterMap after = MapOf(s);
  EXPECT_GT(after.epoch(), before.epoch());
  EXPECT_EQ(after.began(), before.began());
  EXPECT_EQ(after.shards(0).primary().SerializeAsString(),
            before.shards(0).standby().SerializeAsString());
  EXPECT_EQ(after.shards(0).standby().address(), "s3:1");  // Filled again.
  EXPECT_EQ(after.shards(0).standby().since(), after.epoch());
  EXPECT_EQ(s.job.phase(), v1::PHASE_TRAINING);
  EXPECT_EQ(s.job.steps_done(), 4u);
  EXPECT_EQ(s.job.summary().rollbacks, 0u);
  EXPECT_EQ(s.job.summary().promotions, 1u);
  s.processes["w1"].received = 0;
  EXPECT_THAT(NamesOf(s.Lease("w1"), 2), Contains(Pair(4, 0)));  // At once what is next.
}

// It has no content that could be promoted.
TEST(JobFailure, AStandbyThatIsNotFilledIsNoHelp) {
  JobScript s(WithStandby(SmallJob(2, 20)), Servers(1));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 4);
  s.troubles["s2:1"] = "is being filled";
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s2"}));
  ASSERT_TRUE(MapOf(s).shards(0).has_standby());
  s.Leave("s1");
  s.troubles.clear();
  s.SpreadNews();
  EXPECT_EQ(s.job.summary().rollbacks, 1u);
  EXPECT_EQ(s.job.summary().promotions, 0u);
  EXPECT_EQ(s.job.steps_done(), 0u);
}

TEST(JobFailure, ALostStandbyIsReplacedAndNothingElseHappens) {
  JobScript s(WithStandby(SmallJob(2, 20)), Servers(1));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "s3", "w1"}));
  ASSERT_EQ(MapOf(s).shards(0).standby().address(), "s2:1");
  Train(&s, "w1", 4);
  s.Leave("s2");
  s.SpreadNews();
  EXPECT_EQ(MapOf(s).shards(0).standby().address(), "s3:1");
  EXPECT_EQ(MapOf(s).shards(0).primary().address(), "s1:1");
  EXPECT_EQ(s.job.steps_done(), 4u);
  EXPECT_EQ(s.job.summary().rollbacks, 0u);
  s.Leave("s3");
  s.SpreadNews();
  EXPECT_FALSE(MapOf(s).shards(0).has_standby());  // There is nobody.
}

// A server that was restarted blank under its old address is another one.
TEST(JobFailure, ABlankServerUnderAnOldAddressHoldsNothing) {
  JobScript s(WithStandby(SmallJob(2, 20)), Servers(1));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "w1"}));
  Train(&s, "w1", 4);
  ASSERT_TRUE(s.Server("s1").ok());
  s.SpreadNews();
  EXPECT_EQ(MapOf(s).shards(0).primary().address(), "s2:1");
  EXPECT_EQ(MapOf(s).shards(0).standby().address(), "s1:1");
  EXPECT_EQ(MapOf(s).shards(0).standby().since(), MapOf(s).epoch());
  EXPECT_EQ(s.job.steps_done(), 4u);
}

TEST(JobFailure, AServerThatComesBackInTimeIsTakenAgain) {
  JobScript s(SmallJob(2, 20), Servers(1));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 4);
  const uint64_t epoch = MapOf(s).epoch();
  s.PassWithout("s1", 5000);
  EXPECT_THAT(s.job.waiting_for(), HasSubstr("s1:1 is not heard"));
  // The same life: it stood still, and nobody could take its place.
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_SERVER);
  request.set_incarnation(s.processes["s1"].incarnation);
  request.set_address("s1:1");
  ASSERT_TRUE(s.Register("s1", request).ok());
  s.SpreadNews();
  EXPECT_EQ(MapOf(s).epoch(), epoch);
  EXPECT_EQ(s.job.waiting_for(), "");
  EXPECT_EQ(s.job.steps_done(), 4u);
}

// ---- Checkpoints ----

TEST(JobFailure, ACheckpointIsCommittedWhenAllShardsHaveWrittenTheirs) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 4), Servers(2), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "w1"}));
  Train(&s, "w1", 4);
  Save(&s, 4);
  ASSERT_THAT(s.checkpoints, SizeIs(1));
  const v1::Manifest& manifest = s.checkpoints[0];
  EXPECT_EQ(manifest.step(), 4u);
  EXPECT_EQ(manifest.cpu_isa(), "avx2");
  EXPECT_EQ(manifest.files_size(), 2);
  EXPECT_EQ(manifest.files(1).name(), "shard-1-of-2.safetensors");
  EXPECT_EQ(manifest.files(1).checksum(), "63636363636363636363636363636363");
  s.SpreadNews();
  EXPECT_THAT(s.checkpoints, SizeIs(1));  // What is said again counts once.
  EXPECT_EQ(s.job.summary().checkpoints_written, 1u);
}

TEST(JobFailure, WithoutAStandbyAllShardsReturnToTheLastCheckpoint) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 4), Servers(2), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "w1"}));
  Train(&s, "w1", 4);
  Save(&s, 4);
  Train(&s, "w1", 6);
  s.saved.clear();
  s.Leave("s1");
  EXPECT_THAT(s.job.waiting_for(), HasSubstr("servers: 1 of 2 (s1:1 left)"));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s3"}));
  const v1::ClusterMap map = MapOf(s);
  EXPECT_EQ(map.began(), map.epoch());
  EXPECT_EQ(map.checkpoint(), CheckpointName(4));
  EXPECT_EQ(map.step(), 4u);
  EXPECT_EQ(s.job.phase(), v1::PHASE_TRAINING);
  EXPECT_EQ(s.job.steps_done(), 4u);
  EXPECT_EQ(s.job.summary().rollbacks, 1u);
}

TEST(JobFailure, ADamagedCheckpointIsPassedBy) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 2), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 2);
  Save(&s, 2);
  Train(&s, "w1", 4);
  Save(&s, 4);
  ASSERT_THAT(s.checkpoints, SizeIs(2));
  s.saved.clear();
  s.troubles["s2:1"] = "shard-0-of-1.safetensors: its checksum is wrong";
  s.damaged = true;
  s.Leave("s1");
  ASSERT_TRUE(s.Server("s2").ok());
  s.Heartbeat("s2");  // It learns of the map of step 4,
  EXPECT_EQ(s.processes["s2"].state.map().step(), 4u);
  s.Heartbeat("s2");  // and says that it cannot.
  s.troubles.clear();
  s.SpreadNews();
  EXPECT_EQ(MapOf(s).step(), 2u);
  EXPECT_EQ(s.job.steps_done(), 2u);
  EXPECT_EQ(s.job.phase(), v1::PHASE_TRAINING);
}

TEST(JobFailure, NoGoodCheckpointEndsTheJobRatherThanBeginAnew) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 2), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 2);
  Save(&s, 2);
  s.saved.clear();
  s.troubles["s2:1"] = "shard-0-of-1.safetensors: its checksum is wrong";
  s.damaged = true;
  s.Leave("s1");
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s2"}));
  EXPECT_EQ(s.job.phase(), v1::PHASE_ENDED);
  EXPECT_EQ(s.job.failure().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(s.job.failure().message(), HasSubstr("shard-0-of-1.safetensors"));
}

TEST(JobFailure, TheJobEndsWhenTheLastCheckpointStands) {
  JobScript s(WithCheckpoints(SmallJob(2, 4), 100), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 4);
  s.SpreadNews();
  EXPECT_EQ(s.job.phase(), v1::PHASE_REPORTING);
  EXPECT_EQ(s.job.waiting_for(), "the last checkpoint");
  Save(&s, 4);
  EXPECT_EQ(s.job.phase(), v1::PHASE_ENDED);
  EXPECT_TRUE(s.records.back().has_ended());
  EXPECT_EQ(s.records.back().ended().steps(), 4u);
}

TEST(JobFailure, ACheckpointThatCannotBeWrittenDoesNotStopTheJob) {
  JobScript s(WithCheckpoints(SmallJob(2, 4), 100), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 4);
  v1::SavedShard part;
  part.set_step(4);
  part.set_folder(AsideName(4, 1));
  part.set_error("the disk is full");
  s.saved["s1:1"] = part;
  s.SpreadNews();
  EXPECT_EQ(s.job.phase(), v1::PHASE_ENDED);
  EXPECT_TRUE(s.job.failure().ok());
  EXPECT_EQ(s.job.summary().checkpoints_failed, 1u);
}

// Nothing of a later step may be applied before the checkpoint's cut.
TEST(JobFailure, AsynchronousLeasesStopAtACheckpoint) {
  v1::JobSpec spec = WithCheckpoints(SmallJob(2, 20), 2);
  spec.mutable_training()->mutable_consistency()->mutable_async();
  JobScript s(spec, Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  const v1::LeaseResponse lease = s.Lease("w1");
  const Names names = NamesOf(lease, 2);
  for (const auto& [step, r] : names) EXPECT_LT(step, 2u);
  v1::LeaseResponse next = s.Lease("w1", s.All(lease));
  while (s.job.steps_done() < 2) next = s.Lease("w1", s.All(next));
  for (const auto& [step, r] : NamesOf(next, 2)) EXPECT_LT(step, 4u);
}

// ---- The journal ----

TEST(JobFailure, NobodyIsToldOfAMapBeforeItIsInTheJournal) {
  JobScript s(SmallJob(2, 20), Servers(1), 0, Fresh());
  s.disk_stands = true;
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  EXPECT_EQ(MapOf(s).epoch(), 0u);
  s.disk_stands = false;
  s.Write();
  s.SpreadNews();
  EXPECT_EQ(MapOf(s).epoch(), 1u);
  ASSERT_THAT(s.records, SizeIs(3));
  EXPECT_TRUE(s.records[0].has_begun());
  EXPECT_TRUE(s.records[1].has_map());
  EXPECT_TRUE(s.records[2].has_started());
}

TEST(JobFailure, ADiskThatRefusesIsSaidAndTriedAgain) {
  JobScript s(SmallJob(2, 20), Servers(1), 0, Fresh());
  s.disk = absl::UnavailableError("/state/journal: no space left");
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  EXPECT_THAT(s.job.waiting_for(), HasSubstr("/state/journal: no space left"));
  s.disk = absl::OkStatus();
  s.PassWithout("", 2500);
  s.SpreadNews();
  EXPECT_EQ(s.job.phase(), v1::PHASE_TRAINING);
  EXPECT_EQ(s.job.waiting_for(), "");
}

TEST(JobFailure, TrainingGoesOnWhileTheDiskRefuses) {
  JobScript s(WithStandby(SmallJob(2, 20)), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "w1"}));
  s.disk = absl::UnavailableError("/state/journal: no space left");
  s.Leave("s2");  // A map without it cannot be written.
  Train(&s, "w1", 4);
  EXPECT_EQ(s.job.steps_done(), 4u);
  EXPECT_THAT(s.job.waiting_for(), HasSubstr("no space left"));
  EXPECT_TRUE(MapOf(s).shards(0).has_standby());
  s.disk = absl::OkStatus();
  s.PassWithout("", 1500);
  s.SpreadNews();
  EXPECT_FALSE(MapOf(s).shards(0).has_standby());
}

// ---- The coordinator restarts ----

TEST(JobFailure, ARestartedCoordinatorGoesOnUnderItsMap) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 100), Servers(2), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "w1"}));
  Train(&s, "w1", 6);
  const uint64_t epoch = MapOf(s).epoch();
  JobScript next = Restarted(s, Servers(2), 20);
  EXPECT_THAT(next.job.waiting_for(), HasSubstr("servers: 0 of 2"));
  next.Rejoin("w1");
  next.Rejoin("s1");
  EXPECT_EQ(next.job.phase(), v1::PHASE_WAITING);
  next.Rejoin("s2");
  next.SpreadNews();
  EXPECT_EQ(next.job.phase(), v1::PHASE_TRAINING);
  EXPECT_EQ(MapOf(next).epoch(), epoch);
  EXPECT_EQ(next.job.steps_done(), 6u);
  EXPECT_EQ(next.job.summary().rollbacks, 0u);
  EXPECT_EQ(MapOf(next).shards_size(), 2);
  EXPECT_EQ(next.processes["w1"].state.cpu_isa(), "avx2");
}

// An asynchronous job's leases are what not every shard has applied.
TEST(JobFailure, ARestartedCoordinatorLeasesWhatSomeShardLacks) {
  v1::JobSpec spec = SmallJob(2, 20);
  spec.mutable_training()->mutable_consistency()->mutable_async();
  spec = WithCheckpoints(spec, 100);
  JobScript s(spec, Servers(2), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "s2", "w1"}));
  const v1::ClusterMap map = MapOf(s);
  // Shard 0: updates 0 to 4 and 7; shard 1: 0 to 5 and 7. In both: 0 to 4, and 7.
  for (uint64_t u : {0, 1, 2, 3, 4, 7}) s.Content(map, 0, map.shards(0).primary()).insert(u);
  for (uint64_t u : {0, 1, 2, 3, 4, 5, 7}) s.Content(map, 1, map.shards(1).primary()).insert(u);
  JobScript next = Restarted(s, Servers(2), 20);
  for (const std::string name : {"s1", "s2", "w1"}) next.Rejoin(name);
  next.SpreadNews();
  EXPECT_EQ(next.job.steps_done(), 2u);
  Names names = NamesOf(next.Lease("w1"), 2);
  ASSERT_THAT(names, SizeIs(testing::Ge(3)));
  names.resize(3);
  EXPECT_THAT(names, ElementsAre(Pair(2, 1), Pair(3, 0), Pair(4, 0)));
}

TEST(JobFailure, HoldersHaveOneLeaseTimeToComeBack) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 100), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 4);
  JobScript next = Restarted(s, Servers(1), 20);
  next.processes.erase("s1");  // It died, too.
  ASSERT_TRUE(next.Server("s2").ok());
  next.PassWithout("", 4900);
  EXPECT_EQ(MapOf(next).epoch(), 1u);
  next.PassWithout("", 700);
  next.SpreadNews();
  EXPECT_EQ(MapOf(next).epoch(), 2u);
  EXPECT_EQ(MapOf(next).shards(0).primary().address(), "s2:1");
  EXPECT_EQ(next.job.summary().rollbacks, 1u);
}

// Its address tells that it is gone: nobody need wait.
TEST(JobFailure, ABlankServerAtAHoldersAddressIsNotWaitedFor) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 100), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  JobScript next = Restarted(s, Servers(1), 20);
  next.processes.erase("s1");
  ASSERT_TRUE(next.Server("s1").ok());
  next.SpreadNews();
  EXPECT_EQ(MapOf(next).epoch(), 2u);
}

TEST(JobFailure, EverythingLostGoesOnFromTheLastCheckpoint) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 4), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 4);
  Save(&s, 4);
  Train(&s, "w1", 6);
  JobScript next = Restarted(s, Servers(1), 20);
  next.processes.clear();
  ASSERT_NO_FATAL_FAILURE(Join(&next, {"s1", "w1"}));
  EXPECT_EQ(MapOf(next).step(), 4u);
  EXPECT_EQ(next.job.steps_done(), 4u);
}

TEST(JobFailure, MoreServersGoOnFromTheLastCheckpoint) {
  JobScript s(WithCheckpoints(SmallJob(2, 20), 4), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 4);
  Save(&s, 4);
  JobScript next = Restarted(s, Servers(2), 20);
  next.processes.clear();
  ASSERT_NO_FATAL_FAILURE(Join(&next, {"s1", "s2", "w1"}));
  EXPECT_EQ(MapOf(next).shards_size(), 2);
  EXPECT_EQ(MapOf(next).step(), 4u);
  EXPECT_GT(MapOf(next).epoch(), 1u);
}

TEST(JobFailure, AnEndedJobIsNotRunAgain) {
  JobScript s(WithCheckpoints(SmallJob(2, 4), 100), Servers(1), 0, Fresh());
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 4);
  Save(&s, 4);
  s.SpreadNews();
  ASSERT_EQ(s.job.phase(), v1::PHASE_ENDED);
  JobScript next = Restarted(s, Servers(1), 4);
  EXPECT_EQ(next.job.phase(), v1::PHASE_ENDED);
  EXPECT_EQ(next.job.summary_json(), s.job.summary_json());
  ASSERT_TRUE(next.Worker("w1").ok());  // Who comes is told.
  EXPECT_EQ(next.processes["w1"].state.phase(), v1::PHASE_ENDED);
  EXPECT_FALSE(next.job.over());
  next.Pass(5100);
  EXPECT_TRUE(next.job.over());
  // The same with more steps is another run, from the last checkpoint.
  v1::JobSpec longer = s.spec;
  longer.mutable_training()->set_steps(8);
  s.spec = longer;
  JobScript more = Restarted(s, Servers(1), 8);
  more.processes.clear();
  ASSERT_NO_FATAL_FAILURE(Join(&more, {"s1", "w1"}));
  EXPECT_EQ(more.job.phase(), v1::PHASE_TRAINING);
  EXPECT_EQ(more.job.steps_done(), 4u);
}

// A coordinator that stood still takes nobody for lost.
TEST(JobFailure, ItsOwnPauseCountsForNobody) {
  JobScript s(SmallJob(2, 20), Servers(1));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1"}));
  Train(&s, "w1", 2);
  const uint64_t epoch = MapOf(s).epoch();
  s.now_ms += 60000;  // No event at all.
  Job::Replies replies;
  s.job.OnTime(s.now_ms, &replies);
  s.PassWithout("", 3000);
  EXPECT_EQ(MapOf(s).epoch(), epoch);
  EXPECT_EQ(s.job.summary().leases_expired, 0u);
}

// ---- Stragglers ----

TEST(JobFailure, ALateStepIsLeasedToWhoeverIsThrough) {
  JobScript s(SmallJob(2, 20), Servers(1));
  ASSERT_NO_FATAL_FAILURE(Join(&s, {"s1", "w1", "w2"}));
  const v1::LeaseResponse slow = s.Lease("w1"), quick = s.Lease("w2");
  s.Ask("w1", {}, 0.01);
  const uint64_t more = s.Ask("w2", s.All(quick), 0.01);
  s.processes["w2"].received = s.LeaseAnswer(more).grant();
  // w2 gets work of further steps, and waits.
  uint64_t held = s.Ask("w2");
  EXPECT_FALSE(s.Answered(held));
  for (int i = 0; i < 4 && !(s.Answered(held) && s.LeaseAnswer(held).work_size() > 0); ++i) {
    s.PassWithout("", 300);
    if (s.Answered(held) && s.LeaseAnswer(held).work_size() == 0) held = s.Ask("w2");
  }
  ASSERT_TRUE(s.Answered(held));
  EXPECT_THAT(NamesOf(s.LeaseAnswer(held), 2), Contains(Pair(0, NamesOf(slow, 2)[0].second)));
  EXPECT_EQ(s.job.summary().backups, 1u);
  // Whoever is first counts; the other's report does no harm.
  s.Ask("w2", s.All(s.LeaseAnswer(held)));
  EXPECT_EQ(s.job.steps_done(), 1u);
  s.Ask("w1", s.All(slow));
  EXPECT_EQ(s.job.steps_done(), 2u);
}

}  // namespace
}  // namespace tandem
