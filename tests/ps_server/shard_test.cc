#include "ps_server/shard.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ps_server/shard_script.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ShardScript OneShard(const ShardJobOptions& options = {}) {
  return ShardScript(MakeShardJob(options), MakeMap(1), 0);
}

ShardJobOptions Asynchronous() {
  ShardJobOptions options;
  options.synchronous = false;
  return options;
}

// ---- Synchronous steps ----

// SGD with learning rate 0.5: weight 7 of "b" starts at 7; gradients 1 and 3 make 4, 7 - 0.5 * 4
// = 5.
TEST(Shard, AppliesTheSumOfAllMicroBatches) {
  ShardScript s = OneShard();
  EXPECT_EQ(s.Weights()[7], 7);
  EXPECT_EQ(s.Weights()[1500 + 7], 107);  // Variable number 1.
  ShardAnswer answer = s.Push(0, 0, 0, 1);
  EXPECT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_FALSE(answer.pushed->duplicate);
  EXPECT_EQ(answer.pushed->version, 0u);
  answer = s.Push(0, 0, 1, 3);
  EXPECT_EQ(answer.pushed->version, 1u);
  EXPECT_EQ(s.Weights()[7], 5);
  EXPECT_EQ(s.Weights()[1500 + 7], 105);
}

TEST(Shard, APushOfTheRootIsAWholeStep) {
  ShardScript s = OneShard();
  EXPECT_EQ(s.Push(0, 1, 0, 4).pushed->version, 1u);
  EXPECT_EQ(s.Weights()[7], 5);
}

TEST(Shard, TheFirstOfANameCounts) {
  ShardScript s = OneShard();
  s.Push(0, 0, 0, 1);
  const ShardAnswer again = s.Push(0, 0, 0, 100);
  EXPECT_TRUE(again.status.ok());
  EXPECT_TRUE(again.pushed->duplicate);
  s.Push(0, 0, 1, 3);
  const ShardAnswer late = s.Push(0, 0, 1, 100);  // Of a step that is over.
  EXPECT_TRUE(late.pushed->duplicate);
  EXPECT_EQ(late.pushed->version, 1u);
  EXPECT_EQ(s.Weights()[7], 5);
  EXPECT_EQ(s.shard->Inspect(false).duplicates_ignored(), 2u);
}

TEST(Shard, APullWaitsForItsVersion) {
  ShardScript s = OneShard();
  const uint64_t one = s.Pull(1), two = s.Pull(2), other = s.Pull(1);
  EXPECT_THAT(s.answers, IsEmpty());
  s.Push(0, 1, 0, 4);
  EXPECT_EQ(s.Answer(one).weights->buffer->data()[7], 5);
  EXPECT_EQ(s.Answer(other).weights->version, 1u);
  EXPECT_THAT(s.answers, IsEmpty());
  s.Push(1, 1, 0, 2);
  EXPECT_EQ(s.Answer(two).weights->buffer->data()[7], 4);
}

TEST(Shard, ACancelledPullIsForgotten) {
  ShardScript s = OneShard();
  s.shard->Cancel(s.Pull(1));
  s.Push(0, 1, 0, 4);
  EXPECT_THAT(s.answers, IsEmpty());
}

// Version t stays until the first push named t + 1 tells that every shard has reached t + 1.
TEST(Shard, KeepsThePreviousVersionUntilTheNextStepsFirstPush) {
  ShardScript s = OneShard();
  s.Push(0, 1, 0, 4);
  const ShardAnswer previous = s.Answer(s.Pull(0));
  ASSERT_TRUE(previous.status.ok());
  EXPECT_EQ(previous.weights->version, 0u);
  EXPECT_EQ(previous.weights->buffer->data()[7], 7);
  EXPECT_TRUE(s.Push(0, 0, 0, 1).pushed->duplicate);  // A repeat of step 0 tells nothing.
  EXPECT_TRUE(s.Answer(s.Pull(0)).status.ok());

  s.Push(1, 0, 0, 1);
  EXPECT_EQ(s.Answer(s.Pull(0)).status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(s.Answer(s.Pull(1)).status.ok());
  s.Push(1, 0, 1, 1);
  EXPECT_TRUE(s.Answer(s.Pull(1)).status.ok());
  EXPECT_EQ(s.Answer(s.Pull(0)).status.code(), absl::StatusCode::kOutOfRange);
}

// An answer that is still on its way out is not written over by the updates that follow.
TEST(Shard, WeightsThatAreBeingSentStayAsTheyAre) {
  ShardScript s = OneShard();
  const ShardAnswer held = s.Answer(s.Pull(0));
  for (uint64_t step = 0; step < 4; ++step) s.Push(step, 1, 0, 4);
  EXPECT_EQ(held.weights->buffer->data()[7], 7);
  EXPECT_EQ(s.Weights()[7], -1);  // 7 - 4 * 2.
}

TEST(Shard, RefusesAStepThatItHasNotReached) {
  ShardScript s = OneShard();
  EXPECT_EQ(s.Push(1, 0, 0, 1).status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(s.Push(10, 0, 0, 1).status.code(),
            absl::StatusCode::kInvalidArgument);  // No such step.
  EXPECT_EQ(s.Answer(s.Pull(11)).status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Shard, BoundsTheWaitingPulls) {
  ShardScript s = OneShard();
  for (size_t i = 0; i < Shard::kMaxWaitingPulls; ++i) s.Pull(1);
  EXPECT_THAT(s.answers, IsEmpty());
  EXPECT_EQ(s.Answer(s.Pull(1)).status.code(), absl::StatusCode::kResourceExhausted);
  s.Push(0, 1, 0, 1);
  EXPECT_THAT(s.answers, SizeIs(Shard::kMaxWaitingPulls));
}

// ---- Refusals: each names what was wrong and changes nothing ----

absl::Status Refusal(ShardScript* s, const v1::Push& push) {
  const absl::Status checked = s->shard->CheckPush(push).status();
  EXPECT_EQ(s->Push(push, std::vector<float>(kModelElements, 1)).status, checked);
  EXPECT_EQ(s->shard->Inspect(false).staged_bytes(), 0u);
  EXPECT_EQ(s->shard->version(), 0u);
  return checked;
}

TEST(Shard, RefusesAnotherMapEpoch) {
  ShardScript s = OneShard();
  v1::Push push = s.MakePush(0, 0, 0);
  push.set_map_epoch(2);
  const absl::Status status = Refusal(&s, push);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "map epoch 2 is not current; the shard's is 1");
  EXPECT_EQ(s.Answer(s.Pull(0, 2)).status.code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Shard, RefusesNodesOutsideTheTree) {
  ShardScript s = OneShard();
  for (Node node : {Node{0, 2}, Node{2, 0}, Node{1, 1}, Node{77, 0}, Node{0, UINT64_MAX}}) {
    v1::Push push = s.MakePush(0, 0, 0);
    push.set_level(node.level);
    push.set_index(node.index);
    const absl::Status status = Refusal(&s, push);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("no such node; the job has 2 replicas"));
  }
}

TEST(Shard, RefusesWrongBlocks) {
  ShardScript s = OneShard();
  v1::Push push = s.MakePush(0, 0, 0);
  push.mutable_blocks(1)->set_variable("c");
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("blocks[1]: unknown variable \"c\""));
  push = s.MakePush(0, 0, 0);
  push.mutable_blocks(0)->set_end(1499);
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("blocks[0]: expected b[0, 1500)"));
  push = s.MakePush(0, 0, 0);
  push.mutable_blocks()->RemoveLast();
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("blocks[1]: expected a[0, 700)"));
  push = s.MakePush(0, 0, 0);
  *push.add_blocks() = push.blocks(1);
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("this shard does not hold a[0, 700)"));
}

TEST(Shard, RefusesWrongSums) {
  ShardScript s = OneShard();
  v1::Push push = s.MakePush(0, 0, 0);
  push.clear_sums();
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("has 0 sums; expected one for each of its 1"));
  push = s.MakePush(0, 0, 0);
  push.mutable_sums(0)->set_examples(5);
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("counts 5 examples; micro-batch 0 has 4"));
  push = s.MakePush(0, 0, 0);
  push.mutable_sums(0)->set_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("finite sums"));
  push = s.MakePush(0, 0, 0);
  push.mutable_sums(0)->add_metrics(1);
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("at most 1 metrics"));
  push = s.MakePush(0, 0, 0);
  push.set_empty(true);
  EXPECT_THAT(Refusal(&s, push).message(), HasSubstr("empty is set, but the node has examples"));
}

TEST(Shard, RefusesAPayloadOfAnotherLength) {
  ShardScript s = OneShard();
  EXPECT_EQ(*s.shard->CheckPush(s.MakePush(0, 0, 0)), kModelElements * sizeof(float));
  std::vector<ShardAnswer> answers;
  s.shard->Push(99, s.MakePush(0, 0, 0), Payload(), &answers);
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_THAT(answers[0].status.message(), HasSubstr("payload of 0 bytes; expected 8800"));
}

TEST(Shard, NamesTheElementThatIsNotFinite) {
  ShardScript s = OneShard();
  const absl::Status status = s.shard->NonFiniteError(s.MakePush(3, 1, 0), 1507);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "push of step 3, node (1, 0): the gradient of a[7] is not finite");
}

TEST(Shard, RefusesAMapThatIsNotOfTheModel) {
  v1::ClusterMap map = MakeMap(1);
  map.mutable_shards(0)->mutable_blocks(1)->set_end(701);
  EXPECT_EQ(Shard::Create(MakeShardJob({}), map, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
  map.mutable_shards(0)->mutable_blocks(1)->set_variable("c");
  EXPECT_EQ(Shard::Create(MakeShardJob({}), map, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// ---- What it tells ----

TEST(Shard, InspectCountsMemory) {
  ShardJobOptions options;
  options.replicas = 4;
  options.optimizer = "adam";
  ShardScript s = OneShard(options);
  const uint64_t one = kModelElements * sizeof(float);
  EXPECT_EQ(s.shard->Inspect(false).weight_bytes(), one);
  EXPECT_EQ(s.shard->Inspect(false).slot_bytes(), 2 * one);  // m and v.
  s.Push(0, 0, 0, 1);
  s.Push(0, 0, 2, 1);
  EXPECT_EQ(s.shard->Inspect(false).staged_bytes(), 2 * one);
  s.Push(0, 0, 1, 1);
  s.Push(0, 0, 3, 1);
  const v1::InspectResponse after = s.shard->Inspect(true);
  EXPECT_EQ(after.version(), 1u);
  EXPECT_EQ(after.staged_bytes(), 0u);
  EXPECT_EQ(after.peak_staged_bytes(), 2 * one);
  EXPECT_EQ(after.weight_bytes(), 2 * one);           // The version before is still there.
  EXPECT_THAT(after.chunk_hashes(), SizeIs(3 * 16));  // 1024 + 476 of "b", 700 of "a".
}

// Two steps an epoch: 12 examples in batches of 8, 8 + 4.
TEST(Shard, AddsUpSumsByEpoch) {
  ShardJobOptions options;
  options.examples = 12;
  ShardScript s = OneShard(options);
  for (uint64_t step = 0; step < 3; ++step) {
    s.Push(step, 0, 1, 0);
    s.Push(step, 0, 0, 0);
  }
  const v1::InspectResponse held = s.shard->Inspect(false);
  ASSERT_EQ(held.epochs_size(), 2);
  EXPECT_EQ(held.epochs(0).examples(), 12u);
  EXPECT_EQ(held.epochs(0).loss(), 2 * (1 + 2));  // Two steps, losses 1 and 2 of the micro-batches.
  EXPECT_EQ(held.epochs(0).metrics(0), 4);
  EXPECT_EQ(held.epochs(1).examples(), 8u);
  const v1::ShardStatus status = s.shard->Status(true);
  EXPECT_EQ(status.version(), 3u);
  EXPECT_EQ(status.epoch().examples(), 8u);
  EXPECT_EQ(status.report().updates_applied(), 3u);
  EXPECT_EQ(status.report().epochs_size(), 2);
  EXPECT_FALSE(s.shard->Status(false).has_report());
}

// 3 examples over 4 replicas: the last one has none, and pushes its name alone.
TEST(Shard, TakesNodesWithoutExamples) {
  ShardJobOptions options;
  options.replicas = 4;
  options.examples = options.batch = 3;
  ShardScript s = OneShard(options);
  EXPECT_EQ(*s.shard->CheckPush(s.MakePush(0, 0, 3)), 0u);
  for (uint64_t r = 0; r < 4; ++r) {
    EXPECT_TRUE(s.Push(0, 0, r, 1).status.ok());
  }
  EXPECT_EQ(s.shard->version(), 1u);
  EXPECT_EQ(s.Weights()[7], 7 - 0.5f * 3);
}

// ---- Asynchronous ----

TEST(Shard, AsynchronousAppliesEachMicroBatchOnce) {
  ShardScript s = OneShard(Asynchronous());
  EXPECT_EQ(s.Push(5, 0, 1, 2).pushed->version, 1u);  // Any step, in any order.
  EXPECT_EQ(s.Weights()[7], 6);
  EXPECT_TRUE(s.Push(5, 0, 1, 2).pushed->duplicate);
  EXPECT_EQ(s.Weights()[7], 6);
  EXPECT_EQ(s.Push(0, 0, 0, 2).pushed->version, 2u);
  EXPECT_EQ(s.Weights()[7], 5);
  const v1::InspectResponse held = s.shard->Inspect(false);
  ASSERT_EQ(held.applied_size(), 2);  // Numbers 0 * 2 + 0 and 5 * 2 + 1.
  EXPECT_EQ(held.applied(0).begin(), 0u);
  EXPECT_EQ(held.applied(1).begin(), 11u);
  EXPECT_EQ(held.applied(1).end(), 12u);
  EXPECT_EQ(held.duplicates_ignored(), 1u);
  EXPECT_EQ(held.weight_bytes(), kModelElements * sizeof(float));  // One buffer.
  EXPECT_EQ(s.shard->Status(true).report().updates_applied(), 2u);
}

TEST(Shard, AsynchronousAnswersPullsAtOnce) {
  ShardScript s = OneShard(Asynchronous());
  EXPECT_EQ(s.Answer(s.Pull(0)).weights->version, 0u);
  s.Push(0, 0, 0, 2);
  EXPECT_EQ(s.Answer(s.Pull(0)).weights->version, 1u);
  EXPECT_EQ(s.Answer(s.Pull(1000)).weights->version, 1u);  // The version asked for says nothing.
}

TEST(Shard, AsynchronousTakesMicroBatchesAlone) {
  ShardScript s = OneShard(Asynchronous());
  EXPECT_THAT(s.Push(0, 1, 0, 1).status.message(),
              HasSubstr("takes micro-batches (level 0) alone"));
}

TEST(Shard, AsynchronousAppliesEverythingExactlyOnceInAnyOrder) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    ShardScript s = OneShard(Asynchronous());
    std::vector<std::pair<uint64_t, uint64_t>> names;
    for (uint64_t step = 0; step < 10; ++step) {
      for (uint64_t r = 0; r < 2; ++r) names.insert(names.end(), 1 + random() % 3, {step, r});
    }
    std::shuffle(names.begin(), names.end(), random);
    for (const auto& [step, r] : names) s.Push(step, 0, r, 1);
    EXPECT_EQ(s.Weights()[7], 7 - 0.5f * 20);
    const v1::InspectResponse held = s.shard->Inspect(false);
    ASSERT_EQ(held.applied_size(), 1);
    EXPECT_EQ(held.applied(0).end(), 20u);
    EXPECT_EQ(held.duplicates_ignored(), names.size() - 20);
  }
}

// ---- Numbers that went bad ----

ShardJobOptions Skipping() {
  ShardJobOptions options;
  options.skip = true;
  options.optimizer = "adam";
  return options;
}

TEST(Shard, ASkippedNodeSkipsItsStepInEveryOrder) {
  for (const std::vector<int>& order : {std::vector<int>{0, 1}, {1, 0}}) {
    ShardScript s = OneShard(Skipping());
    s.Push(0, 1, 0, 1);
    const std::vector<float> before = s.Weights();
    for (int r : order) {
      const auto index = static_cast<uint64_t>(r);
      EXPECT_TRUE((r == 0 ? s.PushSkipped(1, 0, index) : s.Push(1, 0, index, 5)).status.ok());
    }
    EXPECT_EQ(s.shard->version(), 2u);
    EXPECT_EQ(s.Weights(), before);
    EXPECT_TRUE(s.Answer(s.Pull(1)).status.ok());  // The two-buffer rule holds.
    const v1::InspectResponse held = s.shard->Inspect(false);
    EXPECT_EQ(held.epochs(1).examples(), 0u);
    EXPECT_EQ(held.epochs(1).skipped(), 8u);
    EXPECT_EQ(held.weight_bytes(), kModelElements * sizeof(float));  // Both versions share it.
    EXPECT_EQ(s.shard->Snapshot().state.updates(), 1u);

    // The next update is the optimizer's second.
    s.Push(2, 1, 0, 3);
    ShardScript other = OneShard(Skipping());
    other.Push(0, 1, 0, 1);
    other.Push(1, 1, 0, 3);
    EXPECT_EQ(s.Weights(), other.Weights());
    EXPECT_EQ(s.Answer(s.Pull(2)).weights->buffer->data()[7], before[7]);
  }
}

TEST(Shard, ASkipThatIsCoveredAlreadySkipsItsStep) {
  ShardJobOptions options = Skipping();
  options.replicas = 4;
  ShardScript s = OneShard(options);
  const std::vector<float> before = s.Weights();
  s.Push(0, 1, 0, 5);
  EXPECT_TRUE(s.PushSkipped(0, 0, 1).pushed->duplicate);
  s.Push(0, 1, 1, 5);
  EXPECT_EQ(s.shard->version(), 1u);
  EXPECT_EQ(s.Weights(), before);
}

TEST(Shard, AsynchronousSkipsTheMicroBatchAlone) {
  ShardJobOptions options = Skipping();
  options.synchronous = false;
  ShardScript s = OneShard(options);
  const std::vector<float> before = s.Weights();
  EXPECT_FALSE(s.PushSkipped(0, 0, 1).pushed->duplicate);
  EXPECT_TRUE(s.Push(0, 0, 1, 9).pushed->duplicate);
  EXPECT_EQ(s.Weights(), before);
  s.Push(0, 0, 0, 9);
  EXPECT_NE(s.Weights(), before);
  const v1::InspectResponse held = s.shard->Inspect(false);
  EXPECT_EQ(held.version(), 1u);
  EXPECT_EQ(held.applied(0).end(), 2u);
  EXPECT_EQ(held.epochs(0).examples(), 4u);
  EXPECT_EQ(held.epochs(0).skipped(), 4u);
}

TEST(Shard, RefusesSkipsOfAJobThatStops) {
  ShardScript s = OneShard();
  const absl::Status status = s.PushSkipped(0, 0, 0).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("set training.non_finite to \"skip\""));
}

TEST(Shard, ASumThatOverflowsStopsTheJob) {
  for (bool skip : {false, true}) {
    ShardJobOptions options;
    options.skip = skip;
    ShardScript s = OneShard(options);
    const std::vector<float> before = s.Weights();
    std::vector<float> gradient(kModelElements, 1);
    gradient[1507] = 3e38f;
    EXPECT_TRUE(s.Push(s.MakePush(0, 0, 0), gradient).status.ok());
    EXPECT_TRUE(s.shard->failure().ok());
    const absl::Status status = s.Push(s.MakePush(0, 0, 1), gradient).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("step 0: the sum of the gradients of a[7] overflows"));
    EXPECT_EQ(s.shard->failure(), status);
    EXPECT_EQ(s.shard->version(), 0u);
    EXPECT_EQ(s.Push(0, 0, 0, 1).status, status);
    EXPECT_EQ(s.Answer(s.Pull(0)).status, status);
  }
}

// ---- How many shards there are does not show ----

std::vector<float> TrainOn(int shards, const std::string& optimizer, std::string* hashes) {
  ShardJobOptions options;
  options.replicas = 5;
  options.optimizer = optimizer;
  const auto job = MakeShardJob(options);
  std::vector<float> weights;
  for (int k = 0; k < shards; ++k) {
    ShardScript s(job, MakeMap(shards), k);
    std::mt19937 values(7), order(static_cast<uint32_t>(k));
    for (uint64_t step = 0; step < 6; ++step) {
      std::vector<std::vector<float>> gradients(5, std::vector<float>(kModelElements));
      for (auto& gradient : gradients) {
        for (float& value : gradient) value = static_cast<float>(values()) * 1e-9f - 2;
      }
      std::vector<uint64_t> arrivals = {0, 1, 2, 3, 4};
      std::shuffle(arrivals.begin(), arrivals.end(), order);  // Another on each shard.
      for (uint64_t r : arrivals) {
        EXPECT_TRUE(s.Push(s.MakePush(step, 0, r), gradients[r]).status.ok());
      }
    }
    EXPECT_EQ(s.shard->version(), 6u);
    for (float weight : s.Weights()) weights.push_back(weight);
    *hashes += s.shard->Inspect(true).chunk_hashes();
  }
  return weights;
}

TEST(Shard, TheNumberOfShardsDoesNotShow) {
  for (const char* optimizer : {"sgd", "adam"}) {
    std::string one_hashes;
    const std::vector<float> one = TrainOn(1, optimizer, &one_hashes);
    ASSERT_THAT(one, SizeIs(kModelElements));
    for (int shards : {2, 3, 4}) {
      std::string hashes;
      const std::vector<float> many = TrainOn(shards, optimizer, &hashes);
      ASSERT_EQ(many.size(), one.size());
      EXPECT_EQ(std::memcmp(many.data(), one.data(), one.size() * sizeof(float)), 0)
          << optimizer << ", " << shards << " shards";
      EXPECT_EQ(hashes, one_hashes);
    }
  }
}

}  // namespace
}  // namespace tandem
