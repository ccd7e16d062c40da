#include "common/autodiff/tape.h"

namespace tandem {

void Tape::Begin(Mode mode) {
  mode_ = mode;
  arena_.Reset();
  values_.clear();
  nodes_.clear();
  not_finite_ = Var();
}

Var Tape::Push(const Value& value) {
  values_.push_back(value);
  return Var{static_cast<int>(values_.size()) - 1};
}

Var Tape::Constant(const float* value, size_t size) { return Push({value, nullptr, size}); }

Var Tape::Parameter(const float* value, float* gradient, size_t size) {
  if (mode_ == Mode::kForwardOnly) return Constant(value, size);
  return Push({value, gradient, size, true});
}

Var Tape::Result(size_t size, const Var (&inputs)[3]) {
  bool needs_gradient = false;
  for (Var input : inputs) {
    if (input.id >= 0 && values_[input.id].needs_gradient) needs_gradient = true;
  }
  return Push({arena_.Allocate(size), nullptr, size, needs_gradient});
}

float* Tape::MutableValue(Var result) {
  // Results live in the arena, which is ours to write; the caller's arrays never get here.
  return const_cast<float*>(values_[result.id].value);
}

void Tape::Record(const Node& node) {
  if (needs_gradient(node.output)) nodes_.push_back(node);
}

float* Tape::SeedGradient(Var output) {
  if (!needs_gradient(output)) return nullptr;
  return GradientTarget(output).gradient;
}

Tape::Target Tape::GradientTarget(Var var) {
  Value& value = values_[var.id];
  if (value.gradient == nullptr) value.gradient = arena_.Allocate(value.size);
  const bool add = value.gradient_written;
  value.gradient_written = true;
  return {value.gradient, add};
}

Var Tape::Backward() {
  for (size_t i = nodes_.size(); i > 0; --i) {
    const Node& node = nodes_[i - 1];
    // What nothing has used passes nothing on.
    if (values_[node.output.id].gradient_written) node.backward(this, node);
  }
  return not_finite_;
}

void Tape::ReportNotFinite(Var parameter) {
  if (not_finite_.id < 0) not_finite_ = parameter;
}

}  // namespace tandem
