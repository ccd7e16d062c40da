// The course of whole jobs: consistency, evaluation, the end; and many random ones.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/coordinator/job_script.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::SizeIs;

JobScript Training(const v1::JobSpec& spec, const std::vector<std::string>& workers,
                   uint64_t test_examples = 0) {
  JobOptions options;
  options.min_workers = static_cast<int>(workers.size());
  JobScript s(spec, options, test_examples);
  EXPECT_TRUE(s.Server("s1").ok());
  for (const std::string& name : workers) EXPECT_TRUE(s.Worker(name).ok());
  s.SpreadNews();
  EXPECT_EQ(s.job.phase(), v1::PHASE_TRAINING);
  return s;
}

v1::JobSpec Bounded(uint32_t replicas, uint64_t steps, uint32_t staleness) {
  v1::JobSpec spec = SmallJob(replicas, steps);
  spec.mutable_training()->mutable_consistency()->mutable_bounded()->set_staleness(staleness);
  return spec;
}

TEST(JobCourse, EndsAndTellsEveryone) {
  JobScript s = Training(SmallJob(2, 2), {"w1", "w2"});
  const v1::LeaseResponse one = s.Lease("w1"), two = s.Lease("w2");
  const uint64_t held = s.Ask("w1", s.All(one));
  EXPECT_FALSE(s.Answered(held));
  s.Ask("w2", s.All(two));
  EXPECT_EQ(s.job.phase(), v1::PHASE_REPORTING);
  s.SpreadNews();
  EXPECT_EQ(s.job.phase(), v1::PHASE_ENDED);
  EXPECT_TRUE(s.LeaseAnswer(held).ended());
  EXPECT_TRUE(s.job.over());
  EXPECT_TRUE(s.job.failure().ok());
  EXPECT_EQ(s.job.summary().steps, 2u);
  EXPECT_EQ(s.job.summary().examples, 20u);
  EXPECT_EQ(s.job.summary().final_loss, 0.25);  // 5 over 20 examples.
  EXPECT_THAT(s.job.summary().params_digest, SizeIs(32));
  EXPECT_THAT(s.open(), SizeIs(0));
}

TEST(JobCourse, AMemberThatIsSilentAtTheEndIsWaitedForNoLongerThanTheTimeout) {
  JobScript s = Training(SmallJob(1, 1), {"w1"});
  s.Cancel(s.Heartbeat("w1"));  // It never learns of the end.
  s.Ask("w1", s.All(s.Lease("w1")));
  s.Heartbeat("s1");
  s.Heartbeat("s1");
  EXPECT_EQ(s.job.phase(), v1::PHASE_ENDED);
  EXPECT_FALSE(s.job.over());
  s.Pass(5000);
  EXPECT_TRUE(s.job.over());
  EXPECT_TRUE(s.job.failure().ok());
}

TEST(JobCourse, AFatalErrorEndsTheJob) {
  JobScript s = Training(SmallJob(2, 10), {"w1", "w2"});
  s.Lease("w1");
  s.Lease("w2");
  const uint64_t held = s.Ask("w2");
  s.Fatal("w1", "data.csv, line 7: not a number");
  EXPECT_EQ(s.job.failure().message(), "data.csv, line 7: not a number");
  EXPECT_TRUE(s.LeaseAnswer(held).ended());
  s.SpreadNews();
  EXPECT_EQ(s.processes["w2"].state.failure(), "data.csv, line 7: not a number");
  EXPECT_TRUE(s.job.over());
  EXPECT_THAT(s.open(), SizeIs(0));
}

TEST(JobCourse, AServerLostWhileReportingBeginsAgain) {
  JobScript s = Training(SmallJob(1, 1), {"w1"});
  s.Ask("w1", s.All(s.Lease("w1")));
  EXPECT_EQ(s.job.phase(), v1::PHASE_REPORTING);
  ASSERT_TRUE(s.Server("s1").ok());
  s.SpreadNews();
  EXPECT_EQ(s.job.phase(), v1::PHASE_TRAINING);
  EXPECT_EQ(s.job.summary().rollbacks, 1u);
  s.processes["w1"].received = 0;
  s.Ask("w1", s.All(s.Lease("w1")));
  s.SpreadNews();
  EXPECT_TRUE(s.job.over());
  EXPECT_EQ(s.job.summary().steps, 1u);
}

// ---- Bounded and asynchronous ----

TEST(JobCourse, BoundedStalenessOpensAsManySteps) {
  JobScript s = Training(Bounded(2, 10, 1), {"w1"});
  // Staleness 1: steps 0 and 1 may be under way, and 2 only when 0 is done.
  const v1::LeaseResponse first = s.Lease("w1");
  EXPECT_THAT(NamesOf(first, 2), ElementsAre(Pair(0, 0), Pair(0, 1), Pair(1, 0), Pair(1, 1)));
  const std::vector<v1::FinishedWork> done = s.All(first);
  EXPECT_FALSE(s.Answered(s.Ask("w1", {done[0]})));
  for (const v1::FinishedWork& work : done) {
    if (work.step() == 0 && work.index() == 1) {
      EXPECT_THAT(NamesOf(s.Lease("w1", {work}), 2), ElementsAre(Pair(2, 0), Pair(2, 1)));
    }
  }
}

TEST(JobCourse, BoundedStalenessWakesThoseWhoWait) {
  JobScript s = Training(Bounded(2, 10, 0), {"w1", "w2"});
  const v1::LeaseResponse one = s.Lease("w1"), two = s.Lease("w2");
  EXPECT_THAT(NamesOf(one, 2), SizeIs(1));  // An equal share,
  EXPECT_THAT(NamesOf(two, 2), SizeIs(1));
  const uint64_t waiting = s.Ask("w1", s.All(one));
  EXPECT_FALSE(s.Answered(waiting));
  s.Ask("w2", s.All(two));
  ASSERT_TRUE(s.Answered(waiting));
  EXPECT_EQ(NamesOf(s.LeaseAnswer(waiting), 2)[0].first, 1u);
}

// 20000 micro-batches a step, each an entry of its own that goes on over the steps: found by name,
// not by looking through all of them.
TEST(JobCourse, LeasesOfManyReplicasAreQuicklyWritten) {
  v1::JobSpec spec = SmallJob(20000, 100);
  spec.mutable_training()->mutable_consistency()->mutable_async();
  JobScript s = Training(spec, {"w1"});
  const v1::LeaseResponse lease = s.Lease("w1");
  EXPECT_EQ(lease.work_size(), 20000);
  EXPECT_EQ(lease.work(0).step_end() - lease.work(0).step_begin(), 2u);
}

// A worker always has a call waiting: the one right after a grant must not take what is the
// others'.
TEST(JobCourse, AWorkerThatAsksAgainLeavesTheOthersTheirShare) {
  JobScript s = Training(Bounded(8, 10, 0), {"w1", "w2", "w3", "w4"});
  EXPECT_THAT(NamesOf(s.Lease("w1"), 8), SizeIs(2));
  EXPECT_FALSE(s.Answered(s.Ask("w1")));
  for (const char* name : {"w2", "w3", "w4"}) EXPECT_THAT(NamesOf(s.Lease(name), 8), SizeIs(2));
}

TEST(JobCourse, ALostWorkersMicroBatchesAreLeasedAgainWhenNotSynchronous) {
  JobScript s = Training(Bounded(4, 10, 0), {"w1", "w2"});
  const Names one = NamesOf(s.Lease("w1"), 4);
  s.Lease("w2");
  const uint64_t waiting = s.Ask("w2");
  s.Leave("w1");
  ASSERT_TRUE(s.Answered(waiting));
  EXPECT_EQ(NamesOf(s.LeaseAnswer(waiting), 4), one);
}

// ---- Evaluation ----

v1::JobSpec WithEvaluation(uint64_t steps, uint32_t every_epochs) {
  v1::JobSpec spec = SmallJob(1, steps);
  spec.mutable_evaluation()->set_every_epochs(every_epochs);
  spec.mutable_evaluation()->set_batch_size(10);
  return spec;
}

// 10 examples and batches of 10: a step is an epoch. 35 test examples are 4 chunks, of which chunk
// i has 10 examples and a loss of i, by the script: (0 + 1 + 2 + 3) / 40 = 0.15.
TEST(JobCourse, EvaluatesBetweenEpochsAndAtTheEnd) {
  JobScript s = Training(WithEvaluation(3, 2), {"w1"}, 35);
  const v1::LeaseResponse train = s.Lease("w1");
  EXPECT_THAT(NamesOf(train, 1), ElementsAre(Pair(0, 0), Pair(1, 0)));  // Not past the boundary.
  v1::LeaseResponse lease = s.Lease("w1", s.All(train));
  EXPECT_EQ(s.job.phase(), v1::PHASE_EVALUATING);
  Names chunks;
  while (s.job.phase() == v1::PHASE_EVALUATING) {
    EXPECT_TRUE(lease.work(0).evaluation());
    EXPECT_EQ(lease.work(0).step_begin(), 2u);
    for (const auto& name : NamesOf(lease, 1)) chunks.push_back(name);
    lease = s.Lease("w1", s.All(lease));
  }
  std::sort(chunks.begin(), chunks.end());
  EXPECT_THAT(chunks, ElementsAre(Pair(2, 0), Pair(2, 1), Pair(2, 2), Pair(2, 3)));
  EXPECT_EQ(s.job.summary().evaluation.at("loss"), 0.15);

  EXPECT_THAT(NamesOf(lease, 1), ElementsAre(Pair(2, 0)));  // Step 2, of training.
  EXPECT_FALSE(lease.work(0).evaluation());
  lease = s.Lease("w1", s.All(lease));
  EXPECT_TRUE(lease.work(0).evaluation());
  EXPECT_EQ(lease.work(0).step_begin(), 3u);
}

TEST(JobCourse, AChunkCountsOnceWhoeverReportsIt) {
  JobScript s = Training(WithEvaluation(1, 0), {"w1", "w2"}, 20);
  const v1::LeaseResponse train = s.Lease("w1");
  const uint64_t waiting = s.Ask("w2");
  v1::LeaseResponse zero = s.Lease("w1", s.All(train));
  ASSERT_TRUE(s.Answered(waiting));
  std::vector<v1::FinishedWork> done = s.All(zero);
  for (const v1::FinishedWork& other : s.All(s.LeaseAnswer(waiting))) done.push_back(other);
  ASSERT_THAT(done, SizeIs(2));  // Chunks 0 and 1, one each.
  done[0].mutable_sums()->set_loss(4);
  s.Ask("w1", {done[0], done[0]});
  done[0].mutable_sums()->set_loss(1000);
  s.Ask("w2", {done[0]});  // Also by another.
  EXPECT_EQ(s.job.phase(), v1::PHASE_EVALUATING);
  done[1].mutable_sums()->set_loss(2);
  s.Ask("w2", {done[1]});
  EXPECT_EQ(s.job.phase(), v1::PHASE_REPORTING);
  EXPECT_EQ(s.job.summary().evaluation.at("loss"), 6.0 / 20);
}

// 16 chunks, 2 workers: w1 gets 16 / 4 + 1 = 5, then w2 11 / 4 + 1 = 3; and w1 no more while it
// holds them.
TEST(JobCourse, ChunksAreSharedAmongTheWorkers) {
  JobScript s = Training(WithEvaluation(1, 0), {"w1", "w2"}, 160);
  const v1::LeaseResponse train = s.Lease("w1");
  const uint64_t waiting = s.Ask("w2");
  EXPECT_EQ(s.Lease("w1", s.All(train)).work_size(), 5);
  EXPECT_EQ(s.LeaseAnswer(waiting).work_size(), 3);
  EXPECT_FALSE(s.Answered(s.Ask("w1")));
}

// ---- Random courses ----

struct Sim {
  Sim(const v1::JobSpec& spec, uint64_t test_examples, uint32_t seed)
      : spec(spec), random(seed), s(spec, Options(), test_examples) {}

  static JobOptions Options() {
    JobOptions options;
    options.servers = 2;
    options.min_workers = 1;
    return options;
  }

  uint32_t Roll(uint32_t n) { return static_cast<uint32_t>(random() % n); }

  void Join() {
    const std::string name = "w" + std::to_string(next_worker++);
    ASSERT_TRUE(s.Worker(name).ok());
    held[name];
  }

  void Kill(const std::string& name) {
    s.processes.erase(name);
    held.erase(name);
    asked.erase(name);
  }

  // What an answered lease call brought.
  void Receive(const std::string& name) {
    auto it = asked.find(name);
    if (it == asked.end() || !s.Answered(it->second)) return;
    const Job::Reply& reply = s.answered.at(it->second);
    asked.erase(it);
    if (!reply.status.ok()) return Kill(name);
    if (Roll(10) == 0) return;  // Lost on its way.
    const auto& response = std::get<v1::LeaseResponse>(reply.response);
    JobScript::Process& process = s.processes.at(name);
    if (response.grant() <= process.received) return;
    process.received = response.grant();
    for (const v1::FinishedWork& work : s.All(response)) {
      if (work.map_epoch() == process.state.map().epoch()) held[name].push_back(work);
    }
  }

  void Act(const std::string& name) {
    Receive(name);
    if (s.processes.count(name) == 0 || s.processes.at(name).state.map().epoch() == 0) return;
    std::vector<v1::FinishedWork>& mine = held[name];
    std::vector<v1::FinishedWork> done;
    for (uint32_t n = Roll(6); n > 0 && !mine.empty(); --n) {
      std::swap(mine[Roll(static_cast<uint32_t>(mine.size()))], mine.back());
      done.push_back(mine.back());
      mine.pop_back();
    }
    for (const v1::FinishedWork& work : done) Check(work);
    asked[name] = s.Ask(name, done, Roll(3) == 0 ? 0.01 * (1 + Roll(10)) : 0);
  }

  // Bounded: a micro-batch is under way only when all steps before t - s are done everywhere.
  void Check(const v1::FinishedWork& work) {
    if (work.evaluation() || !spec.training().consistency().has_bounded()) return;
    if (work.map_epoch() != s.processes.begin()->second.state.map().epoch()) return;
    ASSERT_LE(work.step(),
              s.job.steps_done() + spec.training().consistency().bounded().staleness());
  }

  void Run() {
    ASSERT_TRUE(s.Server("s1").ok());
    ASSERT_NO_FATAL_FAILURE(Join());
    ASSERT_TRUE(s.Server("s2").ok());
    int turn = 0;
    for (; !s.job.over() && turn < 20000; ++turn) {
      std::vector<std::string> names;
      for (const auto& [name, process] : s.processes) {
        if (s.job.phase() == v1::PHASE_ENDED) break;
        names.push_back(name);
      }
      if (names.empty()) names = {"nobody"};
      const std::string name = names[Roll(static_cast<uint32_t>(names.size()))];
      const bool worker = name[0] == 'w';
      const uint32_t dice = Roll(1000);
      if (s.processes.count(name) > 0) {
        ASSERT_NO_FATAL_FAILURE(See(name));
      }
      if (dice < 4 && worker) {
        Kill(name);
      } else if (dice < 10 && held.size() < 6) {
        ASSERT_NO_FATAL_FAILURE(Join());
      } else if (dice < 11 && name[0] == 's' && turn < 3000) {
        ASSERT_TRUE(s.Server(name).ok());  // Restarted at its address.
      } else if (worker) {
        ASSERT_NO_FATAL_FAILURE(Act(name));
      } else if (name[0] == 's') {
        s.Heartbeat(name);
      }
      s.Pass(Roll(20));
    }
    ASSERT_TRUE(s.job.over()) << "phase " << s.job.phase() << " after " << turn << " turns";
    ASSERT_TRUE(s.job.failure().ok()) << s.job.failure();
    EXPECT_EQ(s.job.steps_done(), s.job.plan().total_steps());
    EXPECT_EQ(s.job.summary().steps, s.job.plan().total_steps());
    EXPECT_THAT(s.open(), SizeIs(0));
  }

  // A worker's heartbeat; a new map voids what it holds.
  void See(const std::string& name) {
    const uint64_t epoch = s.processes.at(name).state.map().epoch();
    const uint64_t call = s.Heartbeat(name);
    if (s.Answered(call) && !s.answered.at(call).status.ok()) {
      Kill(name);
      if (name[0] == 's') {
        ASSERT_TRUE(s.Server(name).ok());
      }
      return;
    }
    JobScript::Process& process = s.processes.at(name);
    if (process.state.map().epoch() == epoch) return;
    held[name].clear();
    asked.erase(name);
    process.received = 0;
  }

  const v1::JobSpec spec;
  std::mt19937 random;
  JobScript s;
  int next_worker = 1;
  std::map<std::string, std::vector<v1::FinishedWork>> held;
  std::map<std::string, uint64_t> asked;
};

TEST(JobCourse, RandomSynchronousJobsEnd) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(Sim(SmallJob(1 + seed % 7, 30), 0, seed).Run());
  }
}

TEST(JobCourse, RandomBoundedJobsEnd) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(Sim(Bounded(1 + seed % 7, 30, seed % 4), 0, seed).Run());
  }
}

TEST(JobCourse, RandomAsynchronousJobsEnd) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    v1::JobSpec spec = SmallJob(1 + seed % 7, 30);
    spec.mutable_training()->mutable_consistency()->mutable_async();
    ASSERT_NO_FATAL_FAILURE(Sim(spec, 0, seed).Run());
  }
}

TEST(JobCourse, RandomJobsWithEvaluationEnd) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(Sim(WithEvaluation(12, 1 + seed % 5), 75, seed).Run());
  }
}

}  // namespace
}  // namespace tandem
