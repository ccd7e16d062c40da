// Synchronous training: a step at a time, lowest first. Every node of the step is computed with the
// weights of its version, in as many parts as there are threads, and pushed as soon as it is whole;
// the last push of the step also asks for the weights of the next one.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "worker/work.h"

namespace tandem {
namespace {

class SynchronousWork : public WorkKind {
 public:
  void Add(const v1::Work& work) override {
    for (uint64_t step = work.step_begin(); step < work.step_end(); ++step) {
      if (waiting_[step].insert({work.level(), work.index()}).second) ++outstanding_;
    }
  }

  void Continue(Desk* desk) override {
    while (tasks_.empty() && !waiting_.empty()) {
      const uint64_t step = waiting_.begin()->first;
      desk->weights.DropBelow(step);
      std::shared_ptr<const Buffer> weights = desk->weights.Find(step);
      if (weights == nullptr) {
        if (!desk->weights.IsFetching(step)) desk->Fetch(step, step, {});
        return;
      }
      Begin(desk, step, weights);
    }
  }

  void OnPushed(Desk* desk, uint64_t transfer) override {
    auto it = pushing_.find(transfer);
    if (it == pushing_.end()) return;
    desk->Finish(it->second.step, it->second.node, it->second.skipped);
    --outstanding_;
    pushing_.erase(it);
  }

  void OnWeights(Desk* desk, uint64_t key) override { Continue(desk); }

  // Every shard is past `key`: its nodes are in all of them.
  void OnPast(Desk* desk, uint64_t key) override {
    auto it = waiting_.find(key);
    if (it == waiting_.end()) return;
    for (const Node& node : it->second) {
      desk->Finish(key, node, "");
      --outstanding_;
    }
    waiting_.erase(it);
    Continue(desk);
  }

  bool OnTask(Desk* desk, uint64_t task, const TaskResult& result) override {
    if (tasks_.erase(task) == 0) return false;
    Collect(desk, result.gradient);
    Continue(desk);
    return true;
  }

  uint64_t outstanding() const override { return outstanding_; }

 private:
  struct Push {
    uint64_t step;
    Node node;
    std::string skipped;
  };

  void Begin(Desk* desk, uint64_t step, const std::shared_ptr<const Buffer>& weights) {
    step_ = step;
    todo_ = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    parts_.clear();
    for (const Node& part : Split(desk)) {
      const uint64_t task = (*desk->next_task)++;
      tasks_.insert(task);
      desk->actions->push_back(ComputeGradient{task, step, part, weights});
    }
  }

  // The step's nodes, cut further while there are threads without a part.
  std::vector<Node> Split(const Desk* desk) const {
    std::vector<Node> parts(todo_.begin(), todo_.end());
    while (parts.size() < static_cast<size_t>(desk->threads)) {
      auto largest = std::max_element(parts.begin(), parts.end(), [](const Node& a, const Node& b) {
        return a.level < b.level;
      });
      if (largest->level == 0) break;
      const Node left{largest->level - 1, largest->index * 2};
      *largest = left;
      if (left.Sibling().FirstLeaf() < desk->replicas) parts.push_back(left.Sibling());
    }
    return parts;
  }

  // A part of the step is there: push it when it is a node of the lease, else add it to its
  // sibling.
  void Collect(Desk* desk, std::shared_ptr<const Gradient> gradient) {
    Node node = gradient->node;
    while (todo_.count(node) == 0 && node.Sibling().FirstLeaf() >= desk->replicas) {
      node = node.Parent();  // No right sibling: the parent has the same bits.
    }
    if (todo_.erase(node) > 0) {
      PushNode(desk, node, std::move(gradient));
      return;
    }
    auto sibling = parts_.find(node.Sibling());
    if (sibling == parts_.end()) {
      parts_[node] = std::move(gradient);
      return;
    }
    const uint64_t task = (*desk->next_task)++;
    tasks_.insert(task);
    desk->combining.insert(task);
    const bool is_left = node.index < node.Sibling().index;
    CombineGradients combine{task, is_left ? gradient : sibling->second,
                             is_left ? sibling->second : gradient};
    parts_.erase(sibling);
    desk->actions->push_back(std::move(combine));
  }

  void PushNode(Desk* desk, Node node, std::shared_ptr<const Gradient> gradient) {
    const bool last = todo_.empty();
    const bool pull = last && !waiting_.empty() &&
                      !desk->weights.IsFetching(waiting_.begin()->first) &&
                      desk->weights.Find(waiting_.begin()->first) == nullptr;
    Push push{step_, node, gradient->skipped};
    uint64_t transfer;
    if (pull) {
      const uint64_t next = waiting_.begin()->first;
      transfer = desk->Fetch(next, next, {std::move(gradient)});
    } else {
      transfer =
          desk->transfers.Start(desk->now_ms, {std::move(gradient)}, {}, nullptr, desk->actions);
    }
    pushing_[transfer] = std::move(push);
  }

  std::map<uint64_t, std::set<Node>> waiting_;  // Leased and not begun, by step.
  uint64_t outstanding_ = 0;

  uint64_t step_ = 0;                                      // Being computed,
  std::set<Node> todo_;                                    // its nodes that are not yet pushed,
  std::set<uint64_t> tasks_;                               // the tasks under way,
  std::map<Node, std::shared_ptr<const Gradient>> parts_;  // and parts that wait for their sibling.
  std::map<uint64_t, Push> pushing_;                       // By transfer.
};

}  // namespace

std::unique_ptr<WorkKind> NewSynchronousWork() { return std::make_unique<SynchronousWork>(); }

}  // namespace tandem
