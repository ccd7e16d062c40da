#include "common/base/tree.h"

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <random>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {

void PrintTo(const Node& node, std::ostream* out) {
  *out << "(" << node.level << ", " << node.index << ")";
}

namespace {

using ::testing::ElementsAre;

TEST(Tree, RootLevelIsTheLogarithmRoundedUp) {
  EXPECT_EQ(RootLevel(1), 0u);
  EXPECT_EQ(RootLevel(2), 1u);
  EXPECT_EQ(RootLevel(3), 2u);
  EXPECT_EQ(RootLevel(4), 2u);
  EXPECT_EQ(RootLevel(5), 3u);
  EXPECT_EQ(RootLevel(65536), 16u);
  EXPECT_EQ(RootLevel(65537), 17u);
  EXPECT_EQ(RootLevel(UINT32_MAX), 32u);
}

// R = 5:        (3,0)
//              /     \.
//         (2,0)       (2,1)
//         /   \       /
//     (1,0)  (1,1)  (1,2)
//      / \    / \    /
//     0   1  2   3  4
TEST(Tree, NodesOfFiveReplicas) {
  EXPECT_EQ((Node{1, 2}).FirstLeaf(), 4u);
  EXPECT_EQ((Node{1, 2}).EndLeaf(5), 5u);  // Not 6: replica 5 is not there.
  EXPECT_EQ((Node{2, 1}).EndLeaf(5), 5u);
  EXPECT_EQ((Node{3, 0}).EndLeaf(5), 5u);
  EXPECT_EQ((Node{1, 2}).Parent(), (Node{2, 1}));
  EXPECT_EQ((Node{1, 2}).Sibling(), (Node{1, 3}));

  EXPECT_TRUE(IsNode({3, 0}, 5));
  EXPECT_TRUE(IsNode({2, 1}, 5));
  EXPECT_TRUE(IsNode({0, 4}, 5));
  EXPECT_FALSE(IsNode({0, 5}, 5));
  EXPECT_FALSE(IsNode({1, 3}, 5));  // Wholly outside.
  EXPECT_FALSE(IsNode({4, 0}, 5));  // Above the root.
}

// Names come from the network: shifts of any amount and indexes of any size must give an answer.
TEST(Tree, IsNodeTakesAnyValues) {
  for (uint32_t replicas : {1u, 5u, 65536u, UINT32_MAX}) {
    EXPECT_FALSE(IsNode({UINT32_MAX, 0}, replicas));
    EXPECT_FALSE(IsNode({64, 1}, replicas));
    EXPECT_FALSE(IsNode({0, UINT64_MAX}, replicas));
    EXPECT_FALSE(IsNode({1, uint64_t{1} << 63}, replicas));  // FirstLeaf would overflow to 0.
  }
}

TEST(NodesOfRange, WorkedExamples) {
  EXPECT_THAT(NodesOfRange(0, 8, 8), ElementsAre(Node{3, 0}));
  EXPECT_THAT(NodesOfRange(0, 4, 8), ElementsAre(Node{2, 0}));
  // 1 alone, 2 and 3 together, 4 alone.
  EXPECT_THAT(NodesOfRange(1, 5, 8), ElementsAre(Node{0, 1}, Node{1, 1}, Node{0, 4}));
  // R = 5: 4 alone is as well (1, 2) or (2, 1), and 2 to 4 end where the tree does.
  EXPECT_THAT(NodesOfRange(4, 5, 5), ElementsAre(Node{2, 1}));
  EXPECT_THAT(NodesOfRange(2, 5, 5), ElementsAre(Node{1, 1}, Node{2, 1}));
  EXPECT_THAT(NodesOfRange(3, 3, 5), ElementsAre());
}

// The fewest nodes that cover [begin, end): from every position, try all nodes that begin there.
size_t FewestNodes(uint64_t begin, uint64_t end, uint32_t replicas) {
  std::vector<size_t> fewest(end + 1, SIZE_MAX);
  fewest[begin] = 0;
  for (uint64_t at = begin; at < end; ++at) {
    if (fewest[at] == SIZE_MAX) continue;
    for (uint32_t level = 0; level <= RootLevel(replicas); ++level) {
      if (at % (uint64_t{1} << level) != 0) break;
      const uint64_t node_end = Node{level, at >> level}.EndLeaf(replicas);
      if (node_end <= end) fewest[node_end] = std::min(fewest[node_end], fewest[at] + 1);
    }
  }
  return fewest[end];
}

void CheckRange(uint64_t begin, uint64_t end, uint32_t replicas) {
  const std::vector<Node> nodes = NodesOfRange(begin, end, replicas);
  uint64_t at = begin;
  for (const Node& node : nodes) {
    ASSERT_TRUE(IsNode(node, replicas)) << testing::PrintToString(node);
    ASSERT_EQ(node.FirstLeaf(), at);
    at = node.EndLeaf(replicas);
  }
  ASSERT_EQ(at, end);
  ASSERT_EQ(nodes.size(), FewestNodes(begin, end, replicas));
}

TEST(NodesOfRange, CoversExactlyWithTheFewestNodes) {
  for (uint32_t replicas = 1; replicas <= 33; ++replicas) {
    for (uint64_t begin = 0; begin < replicas; ++begin) {
      for (uint64_t end = begin + 1; end <= replicas; ++end) {
        SCOPED_TRACE(testing::Message() << "[" << begin << ", " << end << ") of " << replicas);
        ASSERT_NO_FATAL_FAILURE(CheckRange(begin, end, replicas));
      }
    }
  }
}

TEST(NodesOfRange, CoversExactlyWithTheFewestNodesOfLargeTrees) {
  std::mt19937 random(1);
  for (uint32_t replicas : {100u, 1000u, 1023u, 1025u}) {
    for (int i = 0; i < 200; ++i) {
      uint64_t begin = random() % replicas, end = random() % replicas;
      if (begin > end) std::swap(begin, end);
      SCOPED_TRACE(testing::Message() << "[" << begin << ", " << end << ") of " << replicas);
      ASSERT_NO_FATAL_FAILURE(CheckRange(begin, end, replicas));
    }
  }
}

}  // namespace
}  // namespace tandem
