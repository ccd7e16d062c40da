// The fixed tree in which R gradients are added, element by element: node (0, r) is micro-batch r,
// node (l, i) = node (l-1, 2i) + node (l-1, 2i+1), and a right child that lies wholly outside R, or
// has no examples, passes the left one through. A node's name fixes its bits.
#ifndef TANDEM_COMMON_BASE_TREE_H_
#define TANDEM_COMMON_BASE_TREE_H_

#include <cstdint>
#include <vector>

namespace tandem {

// A node's name.
struct Node {
  uint32_t level = 0;
  uint64_t index = 0;

  bool operator<(const Node& o) const {
    return level != o.level ? level < o.level : index < o.index;
  }
  bool operator==(const Node& o) const { return level == o.level && index == o.index; }

  Node Parent() const { return {level + 1, index / 2}; }
  Node Sibling() const { return {level, index ^ 1}; }
  // The micro-batches below it: [FirstLeaf, EndLeaf(replicas)).
  uint64_t FirstLeaf() const { return index << level; }
  uint64_t EndLeaf(uint32_t replicas) const {
    const uint64_t end = (index + 1) << level;
    return end < replicas ? end : replicas;
  }
};

// The root of the tree over `replicas` (at least 1) micro-batches is node (RootLevel, 0).
inline uint32_t RootLevel(uint32_t replicas) {
  uint32_t level = 0;
  while ((uint64_t{1} << level) < replicas) ++level;
  return level;
}

// Whether the tree over `replicas` has this node. Any values of `node` may be asked about.
inline bool IsNode(Node node, uint32_t replicas) {
  return node.level <= RootLevel(replicas) && node.index <= (replicas >> node.level) &&
         node.FirstLeaf() < replicas;
}

// The fewest nodes that together hold the micro-batches [begin, end), in order; `end` is at most
// `replicas`.
inline std::vector<Node> NodesOfRange(uint64_t begin, uint64_t end, uint32_t replicas) {
  std::vector<Node> nodes;
  while (begin < end) {
    Node node{0, begin};
    // Up while the parent begins here too and holds nothing outside the range.
    while (node.level < RootLevel(replicas) && node.index % 2 == 0 &&
           node.Parent().EndLeaf(replicas) <= end) {
      node = node.Parent();
    }
    nodes.push_back(node);
    begin = node.EndLeaf(replicas);
  }
  return nodes;
}

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_TREE_H_
