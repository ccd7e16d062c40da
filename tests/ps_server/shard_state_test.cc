// A shard's state on its way to checkpoints and standbys, and back.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ps_server/shard.h"
#include "tests/ps_server/shard_script.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ShardJobOptions Options(bool synchronous) {
  ShardJobOptions options;
  options.synchronous = synchronous;
  options.optimizer = "adam";
  options.replicas = synchronous ? 5 : 2;
  return options;
}

std::vector<float> Values(const Buffer& buffer) {
  return std::vector<float>(buffer.data(), buffer.data() + buffer.size());
}

std::vector<float> GradientOf(uint64_t step, uint64_t r) {
  std::mt19937 random(static_cast<uint32_t>(step * 100 + r));
  std::vector<float> gradient(kModelElements);
  for (float& value : gradient) value = static_cast<float>(random()) * 1e-9f - 2;
  return gradient;
}

void PushStep(ShardScript* s, uint64_t step, uint64_t first = 0, uint64_t end = UINT64_MAX) {
  end = std::min<uint64_t>(end, s->job->plan.replicas());
  for (uint64_t r = first; r < end; ++r) {
    ASSERT_TRUE(s->Push(s->MakePush(step, 0, r), GradientOf(step, r)).status.ok());
  }
}

std::string Hashes(const ShardScript& s) { return s.shard->Inspect(true).chunk_hashes(); }

// A snapshot stays as it was while updates go on, and the updates are those of a shard that never
// was asked for one.
TEST(ShardState, ASnapshotStaysWhileUpdatesGoOn) {
  for (bool synchronous : {true, false}) {
    ShardScript s(MakeShardJob(Options(synchronous)), MakeMap(1), 0);
    ShardScript undisturbed(s.job, MakeMap(1), 0);
    PushStep(&s, 0);
    PushStep(&undisturbed, 0);
    const ShardTensors snapshot = s.shard->Snapshot();
    const ShardTensors again = s.shard->Snapshot();
    EXPECT_EQ(again.weights.get(), snapshot.weights.get());  // Nothing is copied.
    const std::vector<float> weights = Values(*snapshot.weights), m = Values(*snapshot.slots.at(0)),
                             v = Values(*snapshot.slots.at(1));
    for (uint64_t step = 1; step < 4; ++step) {
      PushStep(&s, step);
      PushStep(&undisturbed, step);
    }
    EXPECT_EQ(Values(*snapshot.weights), weights);
    EXPECT_EQ(Values(*snapshot.slots[0]), m);
    EXPECT_EQ(Values(*snapshot.slots[1]), v);
    EXPECT_EQ(Hashes(s), Hashes(undisturbed));
    EXPECT_EQ(snapshot.state.version(), synchronous ? 1u : 2u);
  }
}

// When the snapshot is gone, asynchronous updates are in place again.
TEST(ShardState, UpdatesAreInPlaceAgainAfterASnapshot) {
  ShardScript s(MakeShardJob(Options(false)), MakeMap(1), 0);
  { const ShardTensors snapshot = s.shard->Snapshot(); }
  const float* before = s.shard->Snapshot().weights->data();
  PushStep(&s, 0);
  EXPECT_EQ(s.shard->Snapshot().weights->data(), before);
}

// What shards hold, cut to the blocks of `to`, as a checkpoint does it.
ShardTensors Gather(const std::vector<ShardTensors>& parts, size_t first, const v1::Shard& to) {
  ShardTensors tensors;
  tensors.state = parts[0].state;
  size_t elements = 0;
  for (const v1::Block& block : to.blocks()) elements += block.end() - block.begin();
  tensors.blocks.assign(to.blocks().begin(), to.blocks().end());
  for (int t = -1; t < static_cast<int>(parts[0].slots.size()); ++t) {
    std::vector<float> all;
    for (const ShardTensors& part : parts) {
      for (float value : Values(t < 0 ? *part.weights : *part.slots[static_cast<size_t>(t)])) {
        all.push_back(value);
      }
    }
    auto buffer = std::make_shared<Buffer>(elements);
    std::copy_n(all.data() + first, elements, buffer->data());
    if (t < 0) {
      tensors.weights = std::move(buffer);
    } else {
      tensors.slots.push_back(std::move(buffer));
    }
  }
  return tensors;
}

TEST(ShardState, IsRestoredOnAnyNumberOfShards) {
  for (bool synchronous : {true, false}) {
    const auto job = MakeShardJob(Options(synchronous));
    std::string expected;
    std::vector<ShardTensors> parts;
    for (int k = 0; k < 2; ++k) {
      ShardScript s(job, MakeMap(2), k);
      for (uint64_t step = 0; step < 3; ++step) PushStep(&s, step);
      EXPECT_EQ(s.shard->cut(), 3u);
      parts.push_back(s.shard->Snapshot());
      for (uint64_t step = 3; step < 6; ++step) PushStep(&s, step);
      expected += Hashes(s);
    }
    for (int shards : {1, 2, 3, 4}) {
      std::string hashes;
      for (int k = 0; k < shards; ++k) {
        ShardScript s(job, MakeMap(shards), k);
        auto restored = Shard::Restore(job, MakeMap(shards), k,
                                       Gather(parts, s.first, MakeMap(shards).shards(k)));
        ASSERT_TRUE(restored.ok()) << restored.status();
        s.shard = *std::move(restored);
        EXPECT_TRUE(s.Push(2, 0, 0, 1).pushed->duplicate);
        for (uint64_t step = 3; step < 6; ++step) PushStep(&s, step);
        hashes += Hashes(s);
        EXPECT_EQ(s.shard->Inspect(false).epochs(0).examples(), 8u);
      }
      EXPECT_EQ(hashes, expected) << shards << " shards";
    }
  }
}

TEST(ShardState, RefusesTensorsOfAnotherShard) {
  const auto job = MakeShardJob(Options(true));
  ShardScript s(job, MakeMap(1), 0);
  const auto restore = [&](ShardTensors tensors) {
    return std::string(Shard::Restore(job, MakeMap(1), 0, std::move(tensors)).status().message());
  };
  ShardTensors tensors = s.shard->Snapshot();
  tensors.slots.pop_back();
  EXPECT_THAT(restore(tensors), HasSubstr("has 1 slots; the job's optimizer has 2"));
  tensors = s.shard->Snapshot();
  tensors.weights = std::make_shared<Buffer>(7);
  EXPECT_THAT(restore(tensors), HasSubstr("has 7 elements; shard 0 has 2200"));
  tensors = s.shard->Snapshot();
  tensors.state.set_version(11);
  EXPECT_THAT(restore(tensors), HasSubstr("version 11"));
  tensors = s.shard->Snapshot();
  tensors.state.add_applied()->set_end(3);
  EXPECT_THAT(restore(tensors), HasSubstr("asynchronous"));
}

// The whole state, in the middle of a step, goes to another shard, which goes on with the same bits
// while the first one goes on too.
TEST(ShardState, AReplicaGoesOnWhereItsPrimaryWas) {
  for (bool synchronous : {true, false}) {
    for (uint64_t middle = 0; middle < 5; ++middle) {
      const auto job = MakeShardJob(Options(synchronous));
      const uint64_t replicas = job->plan.replicas();
      ShardScript s(job, MakeMap(2), 0);
      PushStep(&s, 0);
      PushStep(&s, 1, 0, middle);
      v1::ReplicaBegin begin;
      Payload payload;
      s.shard->Export(&begin, &payload);
      EXPECT_EQ(*Shard::ReplicaBytes(*job, MakeMap(2), 0, begin), payload.bytes());
      PushStep(&s, 1, middle);
      PushStep(&s, 2);

      auto imported = Shard::Import(job, MakeMap(2), 0, begin, payload);
      ASSERT_TRUE(imported.ok()) << imported.status();
      ShardScript other(job, MakeMap(2), 0);
      other.shard = *std::move(imported);
      if (synchronous) {
        EXPECT_EQ(other.Answer(other.Pull(0)).status.ok(), middle == 0);  // The version before.
      }
      if (middle > 0) {
        EXPECT_TRUE(other.Push(1, 0, 0, 9).pushed->duplicate);
      }
      PushStep(&other, 1, std::min(middle, replicas));
      PushStep(&other, 2);
      EXPECT_EQ(Hashes(other), Hashes(s)) << "after " << middle;
      const v1::InspectResponse a = s.shard->Inspect(false), b = other.shard->Inspect(false);
      EXPECT_EQ(a.version(), b.version());
      ASSERT_EQ(a.epochs_size(), b.epochs_size());
      EXPECT_EQ(a.epochs(1).loss(), b.epochs(1).loss());
    }
  }
}

// Sums that are being added to in place are shared with an export only as they are.
TEST(ShardState, AnExportStaysWhileTheStepGoesOn) {
  ShardJobOptions options = Options(true);
  options.replicas = 8;
  ShardScript s(MakeShardJob(options), MakeMap(1), 0);
  PushStep(&s, 0, 0, 2);
  v1::ReplicaBegin begin;
  Payload payload;
  s.shard->Export(&begin, &payload);
  std::vector<char> before(payload.bytes()), after(payload.bytes());
  payload.CopyTo(before.data());
  PushStep(&s, 0, 2);
  PushStep(&s, 1);
  payload.CopyTo(after.data());
  EXPECT_EQ(before, after);
}

TEST(ShardState, AReplicaKnowsThatItsStepIsSkipped) {
  ShardJobOptions options = Options(true);
  options.skip = true;
  ShardScript s(MakeShardJob(options), MakeMap(1), 0);
  s.PushSkipped(0, 0, 1);
  v1::ReplicaBegin begin;
  Payload payload;
  s.shard->Export(&begin, &payload);
  ShardScript other(s.job, MakeMap(1), 0);
  other.shard = *Shard::Import(s.job, MakeMap(1), 0, begin, payload);
  const std::vector<float> before = other.Weights();
  PushStep(&other, 0, 0, 1);
  PushStep(&other, 0, 2);
  EXPECT_EQ(other.shard->version(), 1u);
  EXPECT_EQ(other.Weights(), before);
}

TEST(ShardState, RefusesAStateThatCannotBe) {
  const auto job = MakeShardJob(Options(true));
  ShardScript s(job, MakeMap(1), 0);
  v1::ReplicaBegin begin;
  Payload payload;
  s.shard->Export(&begin, &payload);
  EXPECT_EQ(Shard::Import(job, MakeMap(1), 0, begin, Payload()).status().code(),
            absl::StatusCode::kInvalidArgument);
  v1::ReplicaBegin many = begin;
  for (int i = 0; i < 9; ++i) many.add_nodes();
  EXPECT_FALSE(Shard::ReplicaBytes(*job, MakeMap(1), 0, many).ok());
  v1::ReplicaBegin outside = begin;
  outside.add_nodes()->set_index(UINT64_MAX);
  EXPECT_FALSE(Shard::ReplicaBytes(*job, MakeMap(1), 0, outside).ok());
  v1::ReplicaBegin twice = begin;
  for (int i = 0; i < 2; ++i) twice.add_nodes()->set_empty(true);
  EXPECT_FALSE(Shard::Import(job, MakeMap(1), 0, twice, payload).ok());
}

TEST(ShardState, GoesOnUnderANewMap) {
  ShardScript s(MakeShardJob(Options(true)), MakeMap(1), 0);
  PushStep(&s, 0);
  const std::vector<float> before = s.Weights();
  s.Pull(2);
  std::vector<ShardAnswer> answers;
  s.shard->Adopt(5, &answers);
  ASSERT_THAT(answers, SizeIs(1));
  EXPECT_EQ(answers[0].status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(s.Push(1, 0, 0, 1).status.code(), absl::StatusCode::kFailedPrecondition);
  const ShardAnswer pulled = s.Answer(s.Pull(1, 5));
  EXPECT_EQ(Values(*pulled.weights->buffer), before);
  EXPECT_THAT(s.answers, IsEmpty());
}

TEST(ShardState, StandsAtACutWhenNothingLaterIsApplied) {
  ShardScript s(MakeShardJob(Options(false)), MakeMap(1), 0);
  EXPECT_EQ(s.shard->cut(), 0u);
  s.Push(0, 0, 0, 1);
  EXPECT_EQ(s.shard->cut(), std::nullopt);
  s.Push(1, 0, 0, 1);
  EXPECT_EQ(s.shard->cut(), std::nullopt);
  s.Push(0, 0, 1, 1);
  EXPECT_EQ(s.shard->cut(), std::nullopt);
  s.Push(1, 0, 1, 1);
  EXPECT_EQ(s.shard->cut(), 2u);
}

}  // namespace
}  // namespace tandem
