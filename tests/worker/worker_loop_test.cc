#include "worker/worker_loop.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/worker_script.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- Synchronous ----

WorkerScript Synchronous(int threads = 1, uint32_t replicas = 4, int shards = 1) {
  WorkerScript s(threads, shards, /*synchronous=*/true, replicas);
  s.Map(1);
  EXPECT_THAT(s.Asks(), ElementsAre("lease"));
  EXPECT_EQ(s.last_lease().map_epoch(), 1u);
  return s;
}

TEST(WorkerLoop, PushesAStepAndPullsTheNextInOneExchange) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 2, 1, 0)});
  // At once another call waits for whatever else may come.
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 0", "lease"));
  EXPECT_EQ(s.last_lease().received(), 1u);
  s.Pulled();
  EXPECT_THAT(s.Asks(), ElementsAre("compute 0:(1, 0)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(1, 0) pull 1"));
  s.Pushed();
  // Half of the lease is done: a second call reports it, and takes the place of the first.
  EXPECT_THAT(s.Asks(), ElementsAre("lease done 0:(1, 0)"));
  s.NoWork();
  s.Pulled();
  EXPECT_THAT(s.Asks(), ElementsAre("compute 1:(1, 0)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 1:(1, 0)"));  // Nothing further is leased.
  s.Pushed();
  EXPECT_THAT(s.Asks(), ElementsAre("lease done 1:(1, 0)"));
}

TEST(WorkerLoop, WaitsForEveryShard) {
  WorkerScript s = Synchronous(1, 4, 2);
  s.Grant({Train(0, 1, 2, 0)});
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 0", "shard 1: pull 0", "lease"));
  s.Pulled();
  EXPECT_THAT(s.Asks(), IsEmpty());
  s.Pulled();
  EXPECT_THAT(s.Asks(), ElementsAre("compute 0:(2, 0)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(2, 0)", "shard 1: push 0:(2, 0)"));
  s.Pushed();
  EXPECT_THAT(s.Asks(), IsEmpty());
  s.Pushed();
  EXPECT_THAT(s.Asks(), ElementsAre("lease done 0:(2, 0)"));
}

// Two threads: node (2, 0) is computed as (1, 0) and (1, 1), which are then added.
TEST(WorkerLoop, SplitsANodeOverItsThreads) {
  WorkerScript s = Synchronous(2);
  s.Grant({Train(0, 1, 2, 0)});
  s.Pulled();
  EXPECT_THAT(s.Asks(),
              ElementsAre("shard 0: pull 0", "lease", "compute 0:(1, 0)", "compute 0:(1, 1)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), IsEmpty());
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("combine 0:(1, 0) 0:(1, 1)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(2, 0)"));
}

// R = 3 and four threads: (2, 0) is (1, 0) and (1, 1); (1, 0) is 0 and 1; (1, 1) is 2 alone.
TEST(WorkerLoop, SplitsTheRaggedEndOfTheTree) {
  WorkerScript s = Synchronous(4, 3);
  s.Grant({Train(0, 1, 2, 0)});
  s.Pulled();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 0", "lease", "compute 0:(0, 0)",
                                    "compute 0:(0, 2)", "compute 0:(0, 1)"));
  s.Computed();
  s.Computed();
  EXPECT_THAT(s.Asks(), IsEmpty());  // 2 waits, as (1, 1), for (1, 0).
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("combine 0:(0, 0) 0:(0, 1)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("combine 0:(1, 0) 0:(0, 2)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(2, 0)"));
  s.Pushed();
  EXPECT_THAT(s.Asks(), ElementsAre("lease done 0:(2, 0)"));
}

TEST(WorkerLoop, PushesEachNodeOfAStepAsSoonAsItIsThere) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 2, 0, 1), Train(0, 2, 1, 1)});
  s.Pulled();
  EXPECT_THAT(s.Asks(),
              ElementsAre("shard 0: pull 0", "lease", "compute 0:(0, 1)", "compute 0:(1, 1)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(0, 1)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(1, 1) pull 1"));  // The step's last.
}

// A worker that waits for version 2 gets a node of step 1, which another one gave up. Version 2 may
// never come before that node is pushed: it goes first.
TEST(WorkerLoop, AnUrgentLeaseOfAnEarlierStepGoesFirst) {
  WorkerScript s = Synchronous();
  s.Grant({Train(2, 3, 0, 0)});
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 2", "lease"));
  s.Grant({Train(1, 2, 0, 3)});
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 1", "lease"));
  // The shard answers the second pull (the first waits).
  WorkerActions actions;
  s.loop.OnPulled(0, 2, 0, &actions);
  ASSERT_EQ(actions.size(), 1u);
  const auto& compute = std::get<ComputeGradient>(actions[0]);
  EXPECT_EQ(compute.step, 1u);
  EXPECT_EQ(compute.node.index, 3u);
}

TEST(WorkerLoop, AVersionThatIsPastIsFinished) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 1, 0, 0), Train(0, 1, 0, 1), Train(3, 4, 0, 0)});
  s.Asks();
  s.ExchangeError(absl::OutOfRangeError("every shard is past it"));
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 3", "lease done 0:(0, 0) done 0:(0, 1)"));
}

TEST(WorkerLoop, SendsAgainWhatWasNotAcknowledged) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 2, 2, 0)});
  s.Pulled();
  s.Computed();
  s.Asks();
  s.ExchangeError(absl::UnavailableError("connection reset"));
  EXPECT_THAT(s.Asks(), ElementsAre("wake"));
  s.PassTo(1000);
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(2, 0) pull 1"));
  s.Pushed();
  s.Asks();
  EXPECT_EQ(s.last_lease().retries(), 1u);
  s.NoWork();
  s.ExchangeError(absl::UnavailableError("connection reset"));
  EXPECT_THAT(s.Asks(), ElementsAre("wake"));
  s.PassTo(2000);
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 1"));
  s.Pulled();
  s.Computed();
  s.Pushed();
  EXPECT_EQ(s.last_lease().retries(), 1u);  // Each is reported once.
}

TEST(WorkerLoop, GivesUpWhenAShardRefuses) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 1, 2, 0)});
  s.Pulled();
  s.Computed();
  s.Asks();
  s.ExchangeError(absl::InvalidArgumentError("dense/kernel[7] is not finite"));
  EXPECT_THAT(s.Asks(), ElementsAre("give up: dense/kernel[7] is not finite"));
}

TEST(WorkerLoop, GivesUpWhenAComputationFails) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 1, 2, 0)});
  s.Pulled();
  s.Asks();
  s.ComputeFails(absl::FailedPreconditionError("loss is not finite"));
  EXPECT_THAT(s.Asks(), ElementsAre("give up: loss is not finite"));
}

// ---- Leases ----

TEST(WorkerLoop, IgnoresAGrantThatItHas) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 1, 2, 0)});
  s.Pulled();
  s.Asks();
  s.GrantAgain();
  EXPECT_THAT(s.Asks(), ElementsAre("lease"));
  s.Computed();
  s.Pushed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(2, 0)", "lease done 0:(2, 0)"));
}

TEST(WorkerLoop, IgnoresWorkOfAnotherMap) {
  WorkerScript s = Synchronous();
  v1::Work work = Train(0, 1, 2, 0);
  work.set_map_epoch(2);
  s.Grant({work});
  EXPECT_THAT(s.Asks(), ElementsAre("lease"));
}

TEST(WorkerLoop, ReportsAgainWhatAFailedCallReported) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 1, 2, 0)});
  s.Pulled();
  s.Computed();
  s.NoWork();  // The call that waited; another takes its place.
  s.Asks();
  s.Pushed();
  EXPECT_THAT(s.Asks(), ElementsAre("lease done 0:(2, 0)"));
  s.LeaseError(absl::UnavailableError("no route"));  // The one that waited,
  s.LeaseError(absl::UnavailableError("no route"));  // and the one that reported.
  EXPECT_THAT(s.Asks(), ElementsAre("wake", "wake"));
  s.PassTo(1000);
  EXPECT_THAT(s.Asks(), ElementsAre("lease done 0:(2, 0)"));
}

TEST(WorkerLoop, RegistersAgainWhenItIsNotKnown) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 1, 2, 0)});
  s.Asks();
  s.LeaseError(absl::FailedPreconditionError("not registered"));
  EXPECT_THAT(s.Asks(), ElementsAre("abandon", "register"));
  s.Map(1);  // Known again: the leases of before are void.
  EXPECT_THAT(s.Asks(), ElementsAre("lease"));
  EXPECT_EQ(s.last_lease().received(), 0u);
}

TEST(WorkerLoop, ANewMapVoidsAllWork) {
  WorkerScript s = Synchronous();
  s.Grant({Train(0, 1, 2, 0)});
  s.Pulled();
  s.Asks();
  s.Map(2);
  EXPECT_THAT(s.Asks(), ElementsAre("abandon", "lease"));
  EXPECT_EQ(s.last_lease().map_epoch(), 2u);
  EXPECT_EQ(s.last_lease().received(), 0u);
  // Events of before say nothing any more.
  WorkerActions actions;
  TaskResult result;
  result.gradient = std::make_shared<Gradient>();
  s.loop.OnTask(0, 1, result, &actions);
  s.loop.OnPushed(0, 1, 0, 1, &actions);
  s.loop.OnLease(0, 1, v1::LeaseResponse(), &actions);
  EXPECT_TRUE(actions.empty());
  s.Map(2);  // The same one changes nothing.
  EXPECT_THAT(s.Asks(), IsEmpty());
}

TEST(WorkerLoop, LeavesAtTheEnd) {
  WorkerScript s = Synchronous();
  s.End();
  EXPECT_THAT(s.Asks(), ElementsAre("leave"));
  s.PassTo(1000);
  EXPECT_THAT(s.Asks(), IsEmpty());  // And asks no more.
}

// Two threads, each 0.2 s for a micro-batch: 0.1 s each in the mean. Adding two gradients is no
// measurement of a micro-batch.
TEST(WorkerLoop, MeasuresSecondsPerMicroBatch) {
  WorkerScript s = Synchronous(2, 2);
  s.Grant({Train(0, 1, 1, 0)});
  s.Pulled();
  s.Computed(0.2);
  s.Computed(0.2);
  s.Computed(0.000001);  // The sum.
  s.Pushed();
  EXPECT_THAT(s.Asks().back(), "lease done 0:(1, 0)");
  EXPECT_NEAR(s.last_lease().seconds_per_micro_batch(), 0.1, 1e-9);
}

// ---- Asynchronous ----

// One thread: one micro-batch is computed while the weights of the next are fetched. A third one
// begins with the push of the first.
TEST(WorkerLoop, AsynchronousKeepsOneMoreThanItsThreadsUnderWay) {
  WorkerScript s(1, 1, /*synchronous=*/false, 4);
  s.Map(1);
  s.Asks();
  s.Grant({Train(0, 1, 0, 0), Train(0, 1, 0, 1), Train(0, 1, 0, 2), Train(0, 1, 0, 3)});
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 0", "shard 0: pull 0", "lease"));
  s.Pulled();
  s.Pulled();
  EXPECT_THAT(s.Asks(), ElementsAre("compute 0:(0, 0)", "compute 0:(0, 1)"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(0, 0) pull 0"));
  s.Pulled();
  s.Pushed();
  EXPECT_THAT(s.Asks(), ElementsAre("compute 0:(0, 2)"));  // One of four: not worth a report.
  s.Computed();
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: push 0:(0, 1) pull 0", "shard 0: push 0:(0, 2)"));
  s.Pushed();
  EXPECT_THAT(s.Asks(), ElementsAre("lease done 0:(0, 0) done 0:(0, 1)"));
}

TEST(WorkerLoop, AsynchronousSendsAPushAgainUnderItsName) {
  WorkerScript s(1, 1, false, 4);
  s.Map(1);
  s.Grant({Train(5, 6, 0, 2)});
  s.Pulled();
  s.Computed();
  s.Asks();
  s.ExchangeError(absl::UnavailableError("connection reset"));
  s.PassTo(1000);
  EXPECT_THAT(s.Asks(), ElementsAre("wake", "shard 0: push 5:(0, 2)"));
  s.Pushed();
  EXPECT_THAT(s.Asks(), ElementsAre("lease done 5:(0, 2)"));
}

// ---- Evaluation ----

TEST(WorkerLoop, EvaluatesChunksWithOnePull) {
  WorkerScript s = Synchronous(2);
  s.Grant({Evaluate(10, 0), Evaluate(10, 1), Evaluate(10, 2)});
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 10", "lease"));
  s.Pulled();
  EXPECT_THAT(s.Asks(), ElementsAre("evaluate 0", "evaluate 1"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("evaluate 2"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("lease done chunk 0 of 10 done chunk 1 of 10"));
  EXPECT_EQ(s.last_lease().finished(0).sums().examples(), 10u);
}

TEST(WorkerLoop, AnEvaluationThatIsOverIsDropped) {
  WorkerScript s = Synchronous();
  s.Grant({Evaluate(10, 0)});
  s.Asks();
  s.ExchangeError(absl::OutOfRangeError("every shard is past it"));
  EXPECT_THAT(s.Asks(), IsEmpty());
  s.Grant({Evaluate(20, 3)});
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 20", "lease"));
}

TEST(WorkerLoop, AsynchronousEvaluationTakesWhatTheShardsHold) {
  WorkerScript s(1, 1, false, 4);
  s.Map(1);
  s.Asks();
  s.Grant({Evaluate(10, 0)});
  EXPECT_THAT(s.Asks(), ElementsAre("shard 0: pull 0", "lease"));
  s.Pulled();
  EXPECT_THAT(s.Asks(), ElementsAre("evaluate 0"));
  s.Computed();
  EXPECT_THAT(s.Asks(), ElementsAre("lease done chunk 0 of 10"));
}

}  // namespace
}  // namespace tandem
