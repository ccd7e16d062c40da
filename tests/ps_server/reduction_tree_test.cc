#include "ps_server/reduction_tree.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

using Values = std::vector<float>;

// A step's micro-batches; an empty vector is one without examples.
using Leaves = std::vector<Values>;

// The definition of the tree, as one would say it. Empty: no examples below `node`.
Values PlainSum(const Leaves& leaves, Node node) {
  if (node.FirstLeaf() >= leaves.size()) return {};
  if (node.level == 0) return leaves[node.index];
  const Values left = PlainSum(leaves, {node.level - 1, node.index * 2});
  const Values right = PlainSum(leaves, {node.level - 1, node.index * 2 + 1});
  if (right.empty()) return left;
  if (left.empty()) return right;
  Values sum(left.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = left[i] + right[i];
  return sum;
}

Values PlainSum(const Leaves& leaves) {
  return PlainSum(leaves, {RootLevel(static_cast<uint32_t>(leaves.size())), 0});
}

Payload Whole(const Values& values) {
  auto owner = std::make_shared<Values>(values);
  return Payload(owner->data(), owner->size() * sizeof(float), owner);
}

// Cut into pieces of random lengths from 1 byte on, each at a random alignment.
Payload Cut(const Values& values, std::mt19937* random) {
  Payload payload;
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  const size_t total = values.size() * sizeof(float);
  const size_t most = (*random)() % 2 == 0 ? 7 : total + 1;
  for (size_t at = 0; at < total;) {
    const size_t size = std::min<size_t>(total - at, 1 + (*random)() % most);
    const size_t shift = (*random)() % 8;
    auto piece =
        std::make_shared<std::string>(std::string(shift, 'x') + std::string(bytes + at, size));
    payload.Append(piece->data() + shift, size, piece);
    at += size;
  }
  return payload;
}

Values Read(const ReductionTree& tree, size_t elements, size_t tile = ReductionTree::kTileFloats) {
  Values sum(elements);
  ReductionTree::Reader reader(tree);
  for (size_t at = 0; at < elements; at += tile) {
    const size_t count = std::min(tile, elements - at);
    std::memcpy(&sum[at], reader.Next(count), count * sizeof(float));
  }
  return sum;
}

bool SameBits(const Values& a, const Values& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Floats near 1e8 are 8 apart, so that adding 3 changes nothing. The tree gives
// (1e8 + 3) + (-1e8 + 3) = 1e8 - 1e8 = 0; one after the other, ((1e8 + 3) - 1e8) + 3 would be 3.
TEST(ReductionTree, AddsInTheOrderOfTheTree) {
  ReductionTree tree(4, 1);
  for (uint64_t r : {3, 0, 2, 1}) {
    const float leaf[] = {1e8f, 3, -1e8f, 3};
    EXPECT_FALSE(tree.complete());
    EXPECT_TRUE(tree.Add({0, r}, Whole({leaf[r]})));
  }
  EXPECT_TRUE(tree.complete());
  EXPECT_THAT(Read(tree, 1), ElementsAre(0));
}

// R = 4: after 0 and 2 two gradients are held; 1 is added to 0 at once, 3 to 2; the last sum, of
// (1, 0) and (1, 1), is formed by the reader.
TEST(ReductionTree, AddsSiblingsAtOnceButForTheLastTwo) {
  ReductionTree tree(4, 2);
  const size_t one = 2 * sizeof(float);
  tree.Add({0, 0}, Whole({1, 10}));
  EXPECT_EQ(tree.staged_bytes(), one);
  tree.Add({0, 2}, Whole({3, 30}));
  EXPECT_EQ(tree.staged_bytes(), 2 * one);
  tree.Add({0, 1}, Whole({2, 20}));
  EXPECT_EQ(tree.staged_bytes(), 2 * one);
  tree.Add({0, 3}, Whole({4, 40}));
  EXPECT_EQ(tree.staged_bytes(), 2 * one);
  EXPECT_THAT(Read(tree, 2), ElementsAre(10, 100));
  tree.Clear();
  EXPECT_EQ(tree.staged_bytes(), 0u);
  EXPECT_FALSE(tree.complete());
}

TEST(ReductionTree, KeepsTheFirstOfAName) {
  ReductionTree tree(2, 1);
  EXPECT_TRUE(tree.Add({0, 0}, Whole({1})));
  EXPECT_FALSE(tree.Add({0, 0}, Whole({100})));
  EXPECT_TRUE(tree.Add({0, 1}, Whole({2})));
  EXPECT_FALSE(tree.Add({0, 1}, Whole({100})));
  EXPECT_THAT(Read(tree, 1), ElementsAre(3));
}

TEST(ReductionTree, IgnoresALateNodeThatIsCovered) {
  ReductionTree tree(8, 1);
  EXPECT_TRUE(tree.Add({2, 0}, Whole({10})));  // Micro-batches 0 to 3.
  for (Node covered : {Node{0, 0}, Node{0, 3}, Node{1, 1}}) {
    EXPECT_FALSE(tree.Add(covered, Whole({100})));
  }
  EXPECT_TRUE(tree.Add({0, 4}, Whole({1})));
  EXPECT_TRUE(tree.Add({2, 1}, Whole({5})));  // Covers 4, whose own gradient is let go.
  EXPECT_EQ(tree.staged_bytes(), 2 * sizeof(float));
  EXPECT_THAT(Read(tree, 1), ElementsAre(15));
}

// R = 5: micro-batch 4 has no sibling, so (0, 4), (1, 2) and (2, 1) are the same sum by three
// names.
TEST(ReductionTree, ANodeWithoutRightSiblingHasItsParentsName) {
  ReductionTree tree(5, 1);
  EXPECT_TRUE(tree.Add({1, 2}, Whole({7})));
  EXPECT_FALSE(tree.Add({0, 4}, Whole({7})));
  EXPECT_FALSE(tree.Add({2, 1}, Whole({7})));
  EXPECT_TRUE(tree.Add({2, 0}, Whole({1})));
  EXPECT_THAT(Read(tree, 1), ElementsAre(8));
}

// Adding zeros would turn -0 into +0: a node without examples is passed over instead.
TEST(ReductionTree, PassesOverNodesWithoutExamples) {
  ReductionTree tree(4, 1);
  tree.Add({0, 0}, Whole({-0.0f}));
  tree.Add({0, 1}, Payload());
  tree.Add({1, 1}, Payload());
  ASSERT_TRUE(tree.complete());
  EXPECT_TRUE(std::signbit(Read(tree, 1)[0]));
}

TEST(ReductionTree, AStepWithoutAnyExampleIsZero) {
  ReductionTree tree(2, 3);
  tree.Add({0, 0}, Payload());
  tree.Add({0, 1}, Payload());
  ASSERT_TRUE(tree.complete());
  EXPECT_THAT(Read(tree, 3), ElementsAre(0, 0, 0));
}

TEST(ReductionTree, AnEmptyShardCompletesToo) {
  ReductionTree tree(3, 0);
  for (uint64_t r = 0; r < 3; ++r) EXPECT_TRUE(tree.Add({0, r}, Payload()));
  EXPECT_TRUE(tree.complete());
}

TEST(ReductionTree, OneReplicaIsItsOwnSum) {
  ReductionTree tree(1, 2);
  EXPECT_TRUE(tree.Add({0, 0}, Whole({1, 2})));
  EXPECT_TRUE(tree.complete());
  EXPECT_THAT(Read(tree, 2), ElementsAre(1, 2));
  EXPECT_FALSE(tree.Add({0, 0}, Whole({5, 5})));
}

// What comes from a sender's memory is never written to.
TEST(ReductionTree, LeavesPayloadsAsTheyWere) {
  auto left = std::make_shared<Values>(Values{1, 2}),
       right = std::make_shared<Values>(Values{3, 4});
  ReductionTree tree(4, 2);
  tree.Add({0, 0}, Payload(left->data(), 8, left));
  tree.Add({0, 1}, Payload(right->data(), 8, right));
  EXPECT_THAT(*left, ElementsAre(1, 2));
  EXPECT_THAT(*right, ElementsAre(3, 4));
}

// Tiles that end anywhere, with sums that the reader forms.
TEST(ReductionTree, ReadsInTilesOfAnySize) {
  std::mt19937 random(1);
  Leaves leaves(2, Values(10000));
  for (Values& leaf : leaves) {
    for (float& value : leaf) value = static_cast<float>(random()) / 7;
  }
  ReductionTree tree(2, 10000);
  for (uint64_t r = 0; r < 2; ++r) tree.Add({0, r}, Cut(leaves[r], &random));
  for (size_t tile : {size_t{1}, size_t{1000}, ReductionTree::kTileFloats}) {
    EXPECT_TRUE(SameBits(Read(tree, 10000, tile), PlainSum(leaves))) << tile;
  }
}

// Everything at once: nodes of any level in any order, some twice, some without examples.
class AnyOrder {
 public:
  AnyOrder(uint32_t replicas, uint32_t seed) : replicas_(replicas), random_(seed) {
    const size_t elements = 1 + random_() % 40;
    // Short last batches: the last micro-batches of a step are the empty ones.
    const uint32_t full = random_() % 3 == 0 ? 1 + random_() % replicas : replicas;
    std::uniform_real_distribution<float> value(-1, 1);
    leaves_.resize(replicas);
    for (uint32_t r = 0; r < full; ++r) {
      leaves_[r].resize(elements);
      for (float& v : leaves_[r]) v = value(random_) * static_cast<float>(1 << (random_() % 20));
    }
    elements_ = elements;
  }

  void Run() {
    std::vector<Node> order = Arrivals();
    ReductionTree tree(replicas_, elements_);
    std::vector<bool> known(replicas_);
    size_t most_staged = 0;
    for (const Node& node : order) {
      if (tree.complete()) break;  // As the shard: the step is over.
      bool is_new = false;
      for (uint64_t r = node.FirstLeaf(); r < node.EndLeaf(replicas_); ++r) {
        is_new = is_new || !known[r];
        known[r] = true;
      }
      const Values values = PlainSum(leaves_, node);
      ASSERT_EQ(tree.Add(node, Cut(values, &random_)), is_new)
          << "node (" << node.level << ", " << node.index << ")";
      most_staged = std::max(most_staged, tree.staged_bytes());
      ASSERT_EQ(tree.complete(), std::find(known.begin(), known.end(), false) == known.end());
    }
    ASSERT_TRUE(tree.complete());
    EXPECT_LE(most_staged, (replicas_ / 2 + 1) * elements_ * sizeof(float));
    EXPECT_TRUE(SameBits(Read(tree, elements_), PlainSum(leaves_)));
  }

 private:
  // Every micro-batch, and random nodes (larger ones before and after what they cover), some
  // repeated.
  std::vector<Node> Arrivals() {
    std::vector<Node> order;
    for (uint64_t r = 0; r < replicas_; ++r) order.push_back({0, r});
    for (uint32_t extra = random_() % (replicas_ + 1); extra > 0; --extra) {
      const uint32_t level = random_() % (RootLevel(replicas_) + 1);
      order.push_back({level, (random_() % replicas_) >> level});
    }
    const size_t once = order.size();
    for (size_t i = 0; i < once; ++i) {
      if (random_() % 4 == 0) order.push_back(order[i]);
    }
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

  uint32_t replicas_;
  size_t elements_ = 0;
  Leaves leaves_;
  std::mt19937 random_;
};

TEST(ReductionTree, ArrivalDoesNotShow) {
  for (uint32_t replicas = 1; replicas <= 33; ++replicas) {
    for (uint32_t seed = 0; seed < 30; ++seed) {
      SCOPED_TRACE(testing::Message() << replicas << " replicas, seed " << seed);
      ASSERT_NO_FATAL_FAILURE(AnyOrder(replicas, seed).Run());
    }
  }
}

TEST(ReductionTree, ArrivalDoesNotShowInLargeTrees) {
  for (uint32_t replicas : {64u, 100u, 255u, 257u, 1000u}) {
    SCOPED_TRACE(testing::Message() << replicas << " replicas");
    ASSERT_NO_FATAL_FAILURE(AnyOrder(replicas, replicas).Run());
  }
}

// The worst order: all even micro-batches first. R/2 gradients wait, and no more.
TEST(ReductionTree, TheWorstOrderHoldsHalfOfTheGradients) {
  ReductionTree tree(64, 1);
  for (uint64_t r = 0; r < 64; r += 2) tree.Add({0, r}, Whole({1}));
  EXPECT_EQ(tree.staged_bytes(), 32 * sizeof(float));
  // In order, the partial sums are the ones in the binary form of how many came: at most 6.
  ReductionTree in_order(64, 1);
  for (uint64_t r = 0; r < 64; ++r) {
    in_order.Add({0, r}, Whole({1}));
    EXPECT_LE(in_order.staged_bytes(), 6 * sizeof(float));
  }
  EXPECT_THAT(Read(in_order, 1), ElementsAre(64));
}

}  // namespace
}  // namespace tandem
