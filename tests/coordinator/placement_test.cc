#include "coordinator/placement.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

v1::Variable Var(const std::string& name, std::vector<uint64_t> shape) {
  v1::Variable variable;
  variable.set_name(name);
  for (uint64_t axis : shape) variable.add_shape(axis);
  return variable;
}

std::vector<std::string> Names(const std::vector<v1::Block>& blocks) {
  std::vector<std::string> names;
  for (const v1::Block& b : blocks) {
    names.push_back(absl::StrCat(b.variable(), "[", b.begin(), ", ", b.end(), ")"));
  }
  return names;
}

uint64_t Size(const std::vector<v1::Block>& blocks) {
  uint64_t size = 0;
  for (const v1::Block& block : blocks) size += block.end() - block.begin();
  return size;
}

// 5000 elements over 2 shards: the cut nearest to 2500 that a chunk allows is 2048 (2560 is none).
TEST(PlaceBlocks, CutsAtChunks) {
  const auto blocks = PlaceBlocks({Var("kernel", {50, 100})}, 2);
  EXPECT_THAT(Names(blocks[0]), ElementsAre("kernel[0, 2048)"));
  EXPECT_THAT(Names(blocks[1]), ElementsAre("kernel[2048, 5000)"));
}

// 1500 elements: half is 750; between 0 and 1024 of "a" and its end 1000, the end is nearest.
TEST(PlaceBlocks, CutsAtAVariablesEnd) {
  const auto blocks = PlaceBlocks({Var("a", {1000}), Var("b", {500})}, 2);
  EXPECT_THAT(Names(blocks[0]), ElementsAre("a[0, 1000)"));
  EXPECT_THAT(Names(blocks[1]), ElementsAre("b[0, 500)"));
}

TEST(PlaceBlocks, OneShardHoldsEverything) {
  const auto blocks = PlaceBlocks({Var("a", {3000}), Var("b", {}), Var("c", {7, 2})}, 1);
  EXPECT_THAT(Names(blocks[0]), ElementsAre("a[0, 3000)", "b[0, 1)", "c[0, 14)"));
}

TEST(PlaceBlocks, MoreShardsThanChunksLeavesSomeEmpty) {
  const auto blocks = PlaceBlocks({Var("dense/kernel", {4}), Var("dense/bias", {1})}, 5);
  ASSERT_EQ(blocks.size(), 5u);
  uint64_t total = 0;
  size_t empty = 0;
  for (const auto& shard : blocks) {
    total += Size(shard);
    empty += shard.empty() ? 1 : 0;
  }
  EXPECT_EQ(total, 5u);
  EXPECT_GE(empty, 3u);
}

// Case C40: placed by bytes, not by tensors; 640000 + 10 * 100 elements over 4 shards.
TEST(PlaceBlocks, SlicesALargeVariable) {
  std::vector<v1::Variable> variables = {Var("large", {10000, 64})};
  for (int i = 0; i < 10; ++i) variables.push_back(Var(absl::StrCat("small", i), {10, 10}));
  for (const auto& shard : PlaceBlocks(variables, 4)) {
    EXPECT_NEAR(static_cast<double>(Size(shard)), 641000 / 4.0, kChunkElements);
  }
}

std::vector<v1::Variable> RandomVariables(std::mt19937* random) {
  std::vector<v1::Variable> variables(1 + (*random)() % 12);
  for (size_t v = 0; v < variables.size(); ++v) {
    const uint64_t size = (*random)() % 3 == 0 ? 1 + (*random)() % 50 : 1 + (*random)() % 20000;
    variables[v] = Var(absl::StrCat("v", (*random)() % 1000, "/", v), {size});
  }
  return variables;
}

TEST(PlaceBlocks, IsABalancedCutOfTheVariablesEndToEnd) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<v1::Variable> variables = RandomVariables(&random);
    const int shards = 1 + static_cast<int>(random() % 20);
    uint64_t total = 0;
    for (const v1::Variable& variable : variables) total += NumElements(variable);

    const auto placed = PlaceBlocks(variables, shards);
    ASSERT_EQ(placed.size(), static_cast<size_t>(shards));
    size_t v = 0;
    uint64_t at = 0;  // Of variable v.
    for (const auto& blocks : placed) {
      EXPECT_NEAR(static_cast<double>(Size(blocks)), static_cast<double>(total) / shards,
                  kChunkElements);
      for (const v1::Block& block : blocks) {
        ASSERT_EQ(block.variable(), variables[v].name());
        ASSERT_EQ(block.begin(), at);
        ASSERT_LT(block.begin(), block.end());
        ASSERT_EQ(block.begin() % kChunkElements, 0u);
        at = block.end();
        if (at == NumElements(variables[v])) {
          ++v;
          at = 0;
        } else {
          ASSERT_EQ(at % kChunkElements, 0u);
        }
      }
    }
    ASSERT_EQ(v, variables.size());

    const auto again = PlaceBlocks(variables, shards);
    for (size_t k = 0; k < placed.size(); ++k) ASSERT_EQ(Names(again[k]), Names(placed[k]));
  }
}

// A map of `shards` shards, and the hashes that they would report of weights 0, 1, 2, ...
struct Cluster {
  Cluster(const std::vector<v1::Variable>& variables, int shards) {
    for (const v1::Variable& variable : variables) *map.add_variables() = variable;
    float next = 0;
    for (const auto& blocks : PlaceBlocks(variables, shards)) {
      v1::Shard* shard = map.add_shards();
      std::string& own = hashes.emplace_back();
      for (const v1::Block& block : blocks) {
        *shard->add_blocks() = block;
        std::vector<float> weights(block.end() - block.begin());
        for (float& weight : weights) weight = next++;
        for (size_t at = 0; at < weights.size(); at += kChunkElements) {
          own += Hash128(&weights[at],
                         std::min<size_t>(kChunkElements, weights.size() - at) * sizeof(float));
        }
      }
    }
  }

  v1::ClusterMap map;
  std::vector<std::string> hashes;
};

TEST(ParamsDigest, DoesNotDependOnTheNumberOfShards) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const std::vector<v1::Variable> variables = RandomVariables(&random);
    const Cluster one(variables, 1);
    const std::string digest = *ParamsDigest(one.map, one.hashes);
    EXPECT_EQ(digest.size(), 32u);
    for (int shards : {2, 3, 7, 40}) {
      const Cluster many(variables, shards);
      EXPECT_EQ(*ParamsDigest(many.map, many.hashes), digest) << shards << " shards";
    }
  }
}

TEST(ParamsDigest, DependsOnNamesShapesAndWeights) {
  const Cluster a({Var("a", {2000}), Var("b", {10})}, 2);
  const std::string digest = *ParamsDigest(a.map, a.hashes);
  const Cluster renamed({Var("a", {2000}), Var("c", {10})}, 2);
  EXPECT_NE(*ParamsDigest(renamed.map, renamed.hashes), digest);
  const Cluster shaped({Var("a", {20, 100}), Var("b", {10})}, 2);
  EXPECT_NE(*ParamsDigest(shaped.map, shaped.hashes), digest);
  Cluster trained = a;
  trained.hashes[1].back() ^= 1;
  EXPECT_NE(*ParamsDigest(trained.map, trained.hashes), digest);
}

// Variables are taken in the order of their names, wherever the model has them.
TEST(ParamsDigest, DoesNotDependOnTheModelsOrder) {
  v1::ClusterMap map;
  *map.add_variables() = Var("b", {1});
  *map.add_variables() = Var("a", {1});
  for (const char* name : {"b", "a"}) {
    v1::Block* block = map.add_shards()->add_blocks();
    block->set_variable(name);
    block->set_end(1);
  }
  v1::ClusterMap turned;
  *turned.add_variables() = map.variables(1);
  *turned.add_variables() = map.variables(0);
  *turned.add_shards() = map.shards(1);
  *turned.add_shards() = map.shards(0);
  const std::string hash_b(kHash128Bytes, 'b'), hash_a(kHash128Bytes, 'a');
  EXPECT_EQ(*ParamsDigest(map, {hash_b, hash_a}), *ParamsDigest(turned, {hash_a, hash_b}));
}

TEST(ParamsDigest, RefusesAWrongNumberOfHashes) {
  Cluster cluster({Var("a", {5000})}, 2);
  std::vector<std::string> few = cluster.hashes, many = cluster.hashes;
  few[1].resize(few[1].size() - kHash128Bytes);
  EXPECT_EQ(ParamsDigest(cluster.map, few).status().code(), absl::StatusCode::kInternal);
  many[0] += std::string(kHash128Bytes, 'x');
  EXPECT_EQ(ParamsDigest(cluster.map, many).status().code(), absl::StatusCode::kInternal);
  few[1].clear();
  EXPECT_EQ(ParamsDigest(cluster.map, few).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace tandem
