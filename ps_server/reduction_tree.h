// The sum of a step's R gradients in the order of the fixed tree (common/base/tree.h): its bits do
// not depend on who sent which node, when, or how often.
#ifndef TANDEM_PS_SERVER_REDUCTION_TREE_H_
#define TANDEM_PS_SERVER_REDUCTION_TREE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/tree.h"
#include "common/rpc/payload.h"
#include "common/tensor/buffer.h"

namespace tandem {

// The nodes of one step that have arrived and are not yet part of a larger one. Siblings are added
// as soon as both are there, except the root's two children, which are added by whoever reads the
// sum: a pass over memory is saved. Holds at most R/2 + 1 gradients. Not thread-safe.
class ReductionTree {
 public:
  // Gradients have `elements` values each.
  ReductionTree(uint32_t replicas, size_t elements);

  // Takes a gradient, or an empty payload for a node without examples. False: the node is covered
  // by what is known, and was ignored. One that covers known nodes takes their place. `node` must
  // be a node of the tree, `gradient` empty or complete.
  bool Add(Node node, Payload gradient);

  // Every micro-batch is in.
  bool complete() const;

  // The sum, tile by tile in order; complete() must hold.
  class Reader {
   public:
    explicit Reader(const ReductionTree& tree);
    // The next `count` (at most kTileFloats) values: where they are, valid until the next call.
    const float* Next(size_t count);

   private:
    Payload left_, right_;
    FloatCursor left_cursor_, right_cursor_;
    Buffer tile_;
  };
  static constexpr size_t kTileFloats = 4096;  // 16 KiB: two tiles stay in a first-level cache.

  // What is held: (node, gradient), in order. The memory is shared, and not written any more.
  std::vector<std::pair<Node, Payload>> Nodes() const;

  // Forgets everything: the next step begins.
  void Clear();

  // Bytes of the gradients held.
  size_t staged_bytes() const { return staged_bytes_; }

 private:
  struct Partial {
    Payload gradient;  // Empty: no examples.
    // Where it is our own sum, which may be added to as long as `gradient` alone refers to it.
    std::shared_ptr<Buffer> buffer;
  };

  static bool Writable(const Partial& partial) {
    return partial.buffer != nullptr && partial.buffer.use_count() == 2;
  }
  bool Covered(Node node) const;
  void DropCovered(Node node);
  Partial Sum(Partial left, Partial right) const;

  uint32_t replicas_, root_level_;
  size_t elements_;
  std::map<Node, Partial> nodes_;
  size_t staged_bytes_ = 0;
};

}  // namespace tandem

#endif  // TANDEM_PS_SERVER_REDUCTION_TREE_H_
