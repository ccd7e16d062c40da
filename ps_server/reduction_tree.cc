#include "ps_server/reduction_tree.h"

#include <algorithm>
#include <cstring>

#include "common/tensor/reduce.h"

namespace tandem {
namespace {

bool Aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % alignof(float) == 0; }

// Copies the next `count` values of `cursor` to `out`.
void CopyNext(FloatCursor* cursor, float* out, size_t count) {
  for (size_t n = 0; count > 0; out += n, count -= n) {
    const void* run = cursor->Next(count, &n);
    std::memcpy(out, run, n * sizeof(float));
  }
}

// Adds the next `count` values of `cursor` to `out`.
void AddNext(FloatCursor* cursor, float* out, size_t count) {
  for (size_t n = 0; count > 0; out += n, count -= n) {
    const void* run = cursor->Next(count, &n);
    AddInto(out, run, n);
  }
}

// Writes the sums of the next `count` values of both to `out`, in one pass.
void SumNext(FloatCursor* left, FloatCursor* right, float* out, size_t count) {
  for (size_t n = 0; count > 0; count -= n) {
    const auto* run = static_cast<const char*>(left->Next(count, &n));
    for (size_t k = 0, m = 0; k < n; k += m, out += m) {
      const void* other = right->Next(n - k, &m);
      AddFrom(run + k * sizeof(float), other, out, m);
    }
  }
}

}  // namespace

ReductionTree::ReductionTree(uint32_t replicas, size_t elements)
    : replicas_(replicas), root_level_(RootLevel(replicas)), elements_(elements) {}

bool ReductionTree::Covered(Node node) const {
  while (true) {
    if (nodes_.count(node) > 0) return true;
    if (node.level == root_level_) return false;
    node = node.Parent();
  }
}

void ReductionTree::DropCovered(Node node) {
  for (uint32_t level = 0; level < node.level; ++level) {
    const uint32_t down = node.level - level;
    auto it = nodes_.lower_bound({level, node.index << down});
    const Node end{level, (node.index + 1) << down};
    while (it != nodes_.end() && it->first < end) {
      staged_bytes_ -= it->second.gradient.bytes();
      it = nodes_.erase(it);
    }
  }
}

ReductionTree::Partial ReductionTree::Sum(Partial left, Partial right) const {
  if (right.gradient.bytes() == 0) return left;
  if (left.gradient.bytes() == 0) return right;
  // Addition of two values commutes, so the sum may be formed in whichever side is our own memory.
  if (!Writable(left)) std::swap(left, right);
  FloatCursor right_cursor(&right.gradient);
  if (Writable(left)) {
    AddNext(&right_cursor, left.buffer->data(), elements_);
    return left;
  }
  auto buffer = std::make_shared<Buffer>(elements_);
  FloatCursor left_cursor(&left.gradient);
  SumNext(&left_cursor, &right_cursor, buffer->data(), elements_);
  return {Payload(buffer->data(), buffer->bytes(), buffer), buffer};
}

bool ReductionTree::Add(Node node, Payload gradient) {
  if (Covered(node)) return false;
  DropCovered(node);
  staged_bytes_ += gradient.bytes();
  Partial partial{std::move(gradient), nullptr};
  while (node.level < root_level_) {
    const Node sibling = node.Sibling();
    if (sibling.FirstLeaf() < replicas_) {
      auto it = nodes_.find(sibling);
      if (it == nodes_.end() || node.level + 1 == root_level_) break;
      staged_bytes_ -= partial.gradient.bytes() + it->second.gradient.bytes();
      const bool is_left = node.index < sibling.index;
      partial = is_left ? Sum(std::move(partial), std::move(it->second))
                        : Sum(std::move(it->second), std::move(partial));
      staged_bytes_ += partial.gradient.bytes();
      nodes_.erase(it);
    }
    node = node.Parent();
  }
  nodes_.emplace(node, std::move(partial));
  return true;
}

bool ReductionTree::complete() const {
  if (nodes_.count({root_level_, 0}) > 0) return true;
  return root_level_ > 0 && nodes_.count({root_level_ - 1, 0}) > 0 &&
         nodes_.count({root_level_ - 1, 1}) > 0;
}

std::vector<std::pair<Node, Payload>> ReductionTree::Nodes() const {
  std::vector<std::pair<Node, Payload>> nodes;
  for (const auto& [node, partial] : nodes_) nodes.emplace_back(node, partial.gradient);
  return nodes;
}

void ReductionTree::Clear() {
  nodes_.clear();
  staged_bytes_ = 0;
}

ReductionTree::Reader::Reader(const ReductionTree& tree)
    : left_cursor_(&left_), right_cursor_(&right_), tile_(kTileFloats) {
  for (const auto& [node, partial] : tree.nodes_) {
    if (partial.gradient.bytes() == 0) continue;
    (left_.bytes() == 0 ? left_ : right_) = partial.gradient;
  }
}

const float* ReductionTree::Reader::Next(size_t count) {
  if (left_.bytes() == 0) {  // A step without any example moves the weights by slots alone.
    std::fill_n(tile_.data(), count, 0.0f);
    return tile_.data();
  }
  if (right_.bytes() > 0) {
    SumNext(&left_cursor_, &right_cursor_, tile_.data(), count);
    return tile_.data();
  }
  size_t n;
  const void* run = left_cursor_.Next(count, &n);
  if (n == count && Aligned(run)) return static_cast<const float*>(run);
  std::memcpy(tile_.data(), run, n * sizeof(float));
  if (n < count) CopyNext(&left_cursor_, tile_.data() + n, count - n);
  return tile_.data();
}

}  // namespace tandem
