#include "coordinator/job.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/job_script.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

JobOptions Servers(int servers, int min_workers = 1) {
  JobOptions options;
  options.servers = servers;
  options.min_workers = min_workers;
  return options;
}

bool Waits(const JobScript& s) { return s.job.phase() == v1::PHASE_WAITING; }
bool Trains(const JobScript& s) { return s.job.phase() == v1::PHASE_TRAINING; }

// ---- Start ----

TEST(Job, StartsWhenServersHaveInstalledTheMapAndTheWorkersAreThere) {
  JobScript s(SmallJob(4, 10), Servers(2, 2));
  EXPECT_EQ(s.job.waiting_for(), "servers: 0 of 2; workers: 0 of 2");
  ASSERT_TRUE(s.Server("s1").ok());
  ASSERT_TRUE(s.Worker("w1").ok());
  EXPECT_EQ(s.job.waiting_for(), "servers: 1 of 2; workers: 1 of 2");
  ASSERT_TRUE(s.Server("s2").ok());
  EXPECT_EQ(s.job.waiting_for(), "workers: 1 of 2");
  ASSERT_TRUE(s.Worker("w2").ok());
  EXPECT_EQ(s.job.waiting_for(), "servers to take their shards");
  EXPECT_TRUE(Waits(s));
  s.SpreadNews();  // The servers install the map and say so.
  EXPECT_TRUE(Trains(s));
  EXPECT_EQ(s.job.waiting_for(), "");
  const v1::ClusterMap& map = s.processes["w1"].state.map();
  EXPECT_EQ(map.epoch(), 1u);
  ASSERT_EQ(map.shards_size(), 2);
  EXPECT_EQ(map.shards(0).primary().address(), "s1:1");
}

TEST(Job, StartsInAnyOrder) {
  for (const std::vector<std::string>& order : {std::vector<std::string>{"w1", "w2", "s1", "s2"},
                                                {"s1", "w1", "s2", "w2"},
                                                {"s2", "s1", "w2", "w1"},
                                                {"w1", "s1", "w2", "s2"}}) {
    JobScript s(SmallJob(4, 10), Servers(2, 2));
    for (const std::string& name : order) {
      ASSERT_TRUE((name[0] == 's' ? s.Server(name) : s.Worker(name)).ok());
      s.SpreadNews();
    }
    EXPECT_TRUE(Trains(s));
  }
}

TEST(Job, TheInstructionSetIsTheBestThatTheFirstWorkersShare) {
  JobScript s(SmallJob(4, 10), Servers(1, 2));
  ASSERT_TRUE(s.Worker("w1", "avx512").ok());
  ASSERT_TRUE(s.Worker("w2", "avx2").ok());
  ASSERT_TRUE(s.Server("s1").ok());
  s.SpreadNews();
  EXPECT_EQ(s.processes["w1"].state.cpu_isa(), "avx2");
}

TEST(Job, RefusesAWorkerThatLacksTheInstructionSet) {
  v1::JobSpec spec = SmallJob(4, 10);
  spec.mutable_training()->set_cpu_isa("avx512");
  JobScript s(spec, Servers(1));
  const absl::Status status = s.Worker("w1", "avx2");
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(status.message(), HasSubstr("avx512"));
  EXPECT_EQ(s.Worker("w2", "neon").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(s.Worker("w3", "avx512").ok());
}

TEST(Job, RefusesMalformedRegistrations) {
  JobScript s(SmallJob(4, 10), Servers(1));
  v1::RegisterRequest request;
  EXPECT_EQ(s.Register("x", request).code(), absl::StatusCode::kInvalidArgument);  // No role.
  request.set_role(v1::ROLE_SERVER);
  EXPECT_EQ(s.Register("x", request).code(), absl::StatusCode::kInvalidArgument);  // No life.
  request.set_incarnation(std::string(65, 'x'));
  request.set_address("host:1");
  EXPECT_EQ(s.Register("x", request).code(), absl::StatusCode::kInvalidArgument);
  request.set_incarnation(std::string(64, 'x'));
  EXPECT_TRUE(s.Register("x", request).ok());
  request.set_incarnation("y");
  request.clear_address();
  EXPECT_EQ(s.Register("y", request).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Job, AnswersStrangersThatTheyMustRegister) {
  JobScript s(SmallJob(4, 10), Servers(1));
  s.processes["ghost"].node = 99;
  s.processes["ghost"].incarnation = "x";
  for (uint64_t call : {s.Heartbeat("ghost"), s.Ask("ghost")}) {
    ASSERT_TRUE(s.Answered(call));
    EXPECT_EQ(s.answered[call].status.code(), absl::StatusCode::kFailedPrecondition);
  }
}

// ---- A cluster of one server that trains, for what follows ----

JobScript Training(const v1::JobSpec& spec, const std::vector<std::string>& workers,
                   uint64_t test_examples = 0, int servers = 1) {
  JobScript s(spec, Servers(servers, static_cast<int>(workers.size())), test_examples);
  for (int k = 1; k <= servers; ++k) EXPECT_TRUE(s.Server("s" + std::to_string(k)).ok());
  for (const std::string& name : workers) EXPECT_TRUE(s.Worker(name).ok());
  s.SpreadNews();
  EXPECT_EQ(s.job.phase(), v1::PHASE_TRAINING);
  return s;
}

TEST(Job, LeasesAlignedRangesSeveralStepsAhead) {
  JobScript s = Training(SmallJob(4, 10), {"w1", "w2"});
  // Two steps ahead of an unmeasured worker: columns 0 and 1 of steps 0 and 1, as one node.
  const v1::LeaseResponse lease = s.Lease("w1");
  ASSERT_EQ(lease.work_size(), 1);
  EXPECT_EQ(lease.work(0).level(), 1u);
  EXPECT_EQ(lease.work(0).index(), 0u);
  EXPECT_EQ(lease.work(0).step_begin(), 0u);
  EXPECT_EQ(lease.work(0).step_end(), 2u);
  EXPECT_THAT(NamesOf(s.Lease("w2"), 4),
              ElementsAre(Pair(0, 2), Pair(0, 3), Pair(1, 2), Pair(1, 3)));
}

TEST(Job, KeepsTheSameRangeWithTheSameWorker) {
  JobScript s = Training(SmallJob(4, 100), {"w1", "w2"});
  v1::LeaseResponse lease = s.Lease("w2");
  for (uint64_t step = 2; step < 20; step += 2) {
    lease = s.Lease("w2", s.All(lease));
    EXPECT_THAT(NamesOf(lease, 4),
                ElementsAre(Pair(step, 2), Pair(step, 3), Pair(step + 1, 2), Pair(step + 1, 3)));
  }
}

// w1 needs 0.1 s, w2 0.3 s a micro-batch: speeds 10 and 3.3, shares of 4 are 3 and 1.
TEST(Job, SizesRangesBySpeed) {
  JobScript s = Training(SmallJob(4, 10), {"w1", "w2"});
  s.Ask("w1", {}, 0.1);
  const uint64_t call = s.Ask("w2", {}, 0.3);
  ASSERT_TRUE(s.Answered(call));
  EXPECT_THAT(NamesOf(s.LeaseAnswer(call), 4), ElementsAre(Pair(0, 3), Pair(1, 3)));
}

// 1 / seconds of what a broken clock says must not end in a cast of infinity.
TEST(Job, TakesAnyMeasurement) {
  JobScript s = Training(SmallJob(4, 10), {"w1", "w2"});
  for (double seconds : {1e-320, 1e-300, 1e300, -1.0, 0.0}) {
    s.Ask("w1", {}, seconds);
    s.Ask("w2", {}, 1 / seconds);
  }
  EXPECT_TRUE(Trains(s));
}

TEST(Job, ACallIsHeldUntilThereIsWorkOrTheHoldIsOver) {
  JobScript s = Training(SmallJob(4, 10), {"w1"});
  s.Lease("w1");
  const uint64_t held = s.Ask("w1");
  EXPECT_FALSE(s.Answered(held));
  s.Pass(999);
  EXPECT_FALSE(s.Answered(held));
  s.Pass(1);
  ASSERT_TRUE(s.Answered(held));
  EXPECT_EQ(s.LeaseAnswer(held).work_size(), 0);
}

TEST(Job, ANewCallTakesThePlaceOfAHeldOne) {
  JobScript s = Training(SmallJob(4, 10), {"w1"});
  s.Lease("w1");
  const uint64_t first = s.Ask("w1");
  const uint64_t second = s.Ask("w1");
  EXPECT_EQ(s.LeaseAnswer(first).work_size(), 0);
  EXPECT_FALSE(s.Answered(second));
}

// An answer that never arrived must not leave its micro-batches with a worker that knows nothing of
// them.
TEST(Job, AGrantIsRepeatedUntilItHasArrived) {
  JobScript s = Training(SmallJob(4, 10), {"w1"});
  const uint64_t lost = s.Ask("w1");
  const v1::LeaseResponse grant = s.LeaseAnswer(lost);
  const uint64_t again = s.Ask("w1");
  ASSERT_TRUE(s.Answered(again));
  EXPECT_EQ(s.LeaseAnswer(again).SerializeAsString(), grant.SerializeAsString());
  s.processes["w1"].received = grant.grant();
  EXPECT_FALSE(s.Answered(s.Ask("w1")));  // It has enough.
}

// ---- Workers that come and go ----

TEST(Job, ALostWorkersLeasesGoToTheOthersAtOnce) {
  JobScript s = Training(SmallJob(4, 10), {"w1", "w2"});
  s.Lease("w1");
  s.Lease("w2");
  const uint64_t held = s.Ask("w2");  // It holds enough, and waits.
  EXPECT_FALSE(s.Answered(held));
  s.Cancel(held);
  s.PassWithout("w1", 4000);
  const uint64_t waiting = s.Ask("w2");
  EXPECT_FALSE(s.Answered(waiting));
  s.PassWithout("w1", 1000);  // 5 s without a word.
  ASSERT_TRUE(s.Answered(waiting));
  EXPECT_THAT(NamesOf(s.LeaseAnswer(waiting), 4),
              ElementsAre(Pair(0, 0), Pair(0, 1), Pair(1, 0), Pair(1, 1)));
  EXPECT_EQ(s.job.summary().leases_expired, 4u);
  // Whatever the lost one still says is answered.
  const uint64_t late = s.Ask("w1");
  EXPECT_EQ(s.answered[late].status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Job, AWorkerWhoseConnectionBrokeIsLostAfterTheGrace) {
  JobScript s = Training(SmallJob(4, 10), {"w1", "w2"});
  s.Lease("w1");
  const uint64_t heartbeat = s.Heartbeat("w1"), lease = s.Ask("w1");
  s.Lease("w2");
  s.Cancel(heartbeat);
  s.Cancel(lease);
  s.PassWithout("w1", 500);
  const uint64_t waiting = s.Ask("w2");
  s.PassWithout("w1", 499);
  EXPECT_FALSE(s.Answered(waiting));
  s.PassWithout("w1", 1);  // 1000 ms.
  ASSERT_TRUE(s.Answered(waiting));
  EXPECT_THAT(NamesOf(s.LeaseAnswer(waiting), 4), SizeIs(4));
}

TEST(Job, AWorkerThatComesBackWithinTheGraceKeepsItsLeases) {
  JobScript s = Training(SmallJob(4, 10), {"w1", "w2"});
  s.Lease("w1");
  s.Cancel(s.Heartbeat("w1"));
  s.Pass(900);
  s.Heartbeat("w1");
  s.PassWithout("", 3000);
  EXPECT_EQ(s.job.summary().leases_expired, 0u);
}

// One call may break while the process lives: its heartbeat is still held.
TEST(Job, ABrokenLeaseCallIsNoLostWorker) {
  JobScript s = Training(SmallJob(4, 10), {"w1"});
  s.Lease("w1");
  s.Heartbeat("w1");
  s.Cancel(s.Ask("w1"));
  s.Pass(1000);  // The heartbeat is answered when its hold is over, and the next one comes.
  s.PassWithout("", 3000);
  EXPECT_EQ(s.job.summary().leases_expired, 0u);
}

TEST(Job, AWorkerThatLeavesHandsItsLeasesBackAtOnce) {
  JobScript s = Training(SmallJob(4, 10), {"w1", "w2"});
  s.Lease("w1");
  s.Lease("w2");
  const uint64_t held = s.Ask("w1"), waiting = s.Ask("w2");
  s.Leave("w1");
  EXPECT_TRUE(s.Answered(held));
  EXPECT_THAT(NamesOf(s.LeaseAnswer(waiting), 4), SizeIs(4));
}

TEST(Job, RegisteringTwiceIsOneWorker) {
  JobScript s(SmallJob(4, 10), Servers(1, 2));
  ASSERT_TRUE(s.Server("s1").ok());
  v1::RegisterRequest request;
  request.set_role(v1::ROLE_WORKER);
  request.set_incarnation("one life");
  request.set_cpu_isa("avx2");
  ASSERT_TRUE(s.Register("w1", request).ok());
  const uint64_t node = s.processes["w1"].node;
  const uint64_t held = s.Heartbeat("w1");
  EXPECT_FALSE(s.Answered(held));
  ASSERT_TRUE(s.Register("w1", request).ok());  // The first answer was lost.
  EXPECT_NE(s.processes["w1"].node, node);
  EXPECT_EQ(s.answered[held].status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(s.job.waiting_for(), "workers: 1 of 2");
  EXPECT_EQ(s.job.summary().workers_seen, 1u);
}

TEST(Job, MoreWorkersThanReplicasStandBy) {
  JobScript s = Training(SmallJob(2, 10), {"w1", "w2", "w3"});
  s.Lease("w1");
  s.Lease("w2");
  const uint64_t spare = s.Ask("w3");
  EXPECT_FALSE(s.Answered(spare));
  s.Leave("w1");
  ASSERT_TRUE(s.Answered(spare));  // It takes the place.
  EXPECT_THAT(NamesOf(s.LeaseAnswer(spare), 2), SizeIs(2));
}

TEST(Job, ALateWorkerGetsItsShareOfFurtherSteps) {
  JobScript s = Training(SmallJob(4, 10), {"w1"});
  const v1::LeaseResponse first = s.Lease("w1");
  EXPECT_THAT(NamesOf(first, 4), SizeIs(8));
  ASSERT_TRUE(s.Worker("w2").ok());
  EXPECT_THAT(NamesOf(s.Lease("w2"), 4),
              ElementsAre(Pair(2, 2), Pair(2, 3), Pair(3, 2), Pair(3, 3)));
  EXPECT_THAT(NamesOf(s.Lease("w1", s.All(first)), 4),
              ElementsAre(Pair(2, 0), Pair(2, 1), Pair(3, 0), Pair(3, 1)));
}

// ---- Servers that are lost ----

TEST(Job, ALostServerBeginsTheJobAgainUnderANewMap) {
  JobScript s = Training(SmallJob(4, 10), {"w1"});
  const v1::LeaseResponse old = s.Lease("w1");
  s.Lease("w1", s.All(old));
  EXPECT_EQ(s.job.steps_done(), 2u);
  s.PassWithout("s1", 5000);
  // The map stands until there is a better one: the server may come back.
  EXPECT_TRUE(Trains(s));
  EXPECT_THAT(s.job.waiting_for(), HasSubstr("servers: 0 of 1 (s1:1 is not heard)"));
  ASSERT_TRUE(s.Server("s1").ok());
  s.SpreadNews();
  EXPECT_TRUE(Trains(s));
  EXPECT_EQ(s.processes["w1"].state.map().epoch(), 2u);
  EXPECT_EQ(s.job.steps_done(), 0u);
  EXPECT_EQ(s.job.summary().rollbacks, 1u);
  // What was done under the old map counts no more.
  const v1::LeaseResponse again = s.Lease("w1", s.All(old));
  EXPECT_EQ(s.job.steps_done(), 0u);
  EXPECT_THAT(NamesOf(again, 4), SizeIs(8));
  EXPECT_EQ(NamesOf(again, 4)[0], std::make_pair(uint64_t{0}, uint64_t{0}));
}

// A call of before the rollback, granted work of the new map, would be dropped by a worker that has
// not heard of that map: the work would be nobody's.
TEST(Job, AHeldCallOfTheOldMapGetsNoWorkOfTheNewOne) {
  JobScript s = Training(SmallJob(4, 10), {"w1"});
  s.Lease("w1");
  ASSERT_TRUE(s.Server("spare").ok());
  const uint64_t held = s.Ask("w1");
  const v1::ClusterState old = s.processes["w1"].state;
  s.Leave("s1");  // The spare one takes its place at once.
  s.Heartbeat("spare");
  s.Heartbeat("spare");
  EXPECT_TRUE(Trains(s));
  EXPECT_FALSE(s.Answered(held));
  s.processes["w1"].state = old;
  const uint64_t late = s.Ask("w1");  // On its way when the map changed.
  EXPECT_EQ(s.LeaseAnswer(held).work_size(), 0);
  EXPECT_FALSE(s.Answered(late));
  s.processes["w1"].seen = 0;
  s.SpreadNews();
  s.processes["w1"].received = 0;
  const v1::LeaseResponse lease = s.Lease("w1");
  EXPECT_EQ(lease.work(0).map_epoch(), 2u);
  EXPECT_THAT(NamesOf(lease, 4), SizeIs(8));
}

TEST(Job, AServerLostBeforeTheStartIsNoRollback) {
  JobScript s(SmallJob(4, 10), Servers(1));
  ASSERT_TRUE(s.Server("s1").ok());
  ASSERT_TRUE(s.Server("s1").ok());  // Restarted at its address.
  ASSERT_TRUE(s.Worker("w1").ok());
  s.SpreadNews();
  EXPECT_TRUE(Trains(s));
  EXPECT_EQ(s.job.summary().rollbacks, 0u);
}

}  // namespace
}  // namespace tandem
