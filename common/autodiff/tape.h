// Reverse-mode differentiation: operations (ops.h) write down what their backward pass needs, and
// Backward goes through the notes in reverse.
//
//   tape.Begin(Tape::Mode::kRecord);
//   Var x = tape.Constant(features, rows * inputs);
//   Var w = tape.Parameter(weights, gradient, inputs * units);
//   Var y = MatMul(&tape, rows, units, inputs, x, w);
//   ... write the derivative of the result with respect to y to tape.SeedGradient(y) ...
//   tape.Backward();  // `gradient` is now filled.
#ifndef TANDEM_COMMON_AUTODIFF_TAPE_H_
#define TANDEM_COMMON_AUTODIFF_TAPE_H_

#include <cstddef>
#include <vector>

#include "common/tensor/arena.h"

namespace tandem {

// An array of floats on a tape. Its shape is the business of the operations.
struct Var {
  int id = -1;
};

// Keeps its memory from one Begin to the next: a sequence of operations that has been seen once
// costs no heap allocation. Not thread-safe.
class Tape {
 public:
  enum class Mode { kRecord, kForwardOnly };

  // What an operation writes down. `backward` reads the gradient of `output` and passes gradients
  // on to the inputs; it may overwrite the gradient that it reads.
  struct Node;
  using BackwardFn = void (*)(Tape* tape, const Node& node);
  struct Node {
    BackwardFn backward;
    Var inputs[3];
    Var output;
    size_t rows = 0, columns = 0, inner = 0;  // As the operation likes.
    int attribute = 0;
    const float* saved = nullptr;  // Scratch that the forward pass has filled.
  };

  // Where a backward pass writes the gradient of an input: over what is there, or added to it
  // because another operation has used the same input.
  struct Target {
    float* gradient;
    bool add;
  };

  // Forgets everything, keeps the memory. kForwardOnly records nothing and has no gradients.
  void Begin(Mode mode);

  // An array of the caller's without a gradient.
  Var Constant(const float* value, size_t size);
  // An array of the caller's. Its gradient goes to `gradient`, unless the mode is kForwardOnly; it
  // is written whole by the operations that use the parameter, and left alone if none does.
  Var Parameter(const float* value, float* gradient, size_t size);

  // The rest is for operations.

  // A new array. It takes part in Backward if one of `inputs` does.
  Var Result(size_t size, const Var (&inputs)[3]);
  float* MutableValue(Var result);
  const float* value(Var var) const { return values_[var.id].value; }
  size_t size(Var var) const { return values_[var.id].size; }
  // False for constants, for what depends on constants alone, and in kForwardOnly.
  bool needs_gradient(Var var) const { return values_[var.id].needs_gradient; }
  // Does nothing unless the output needs a gradient.
  void Record(const Node& node);

  // Memory for the derivative of the final result with respect to `output`, which Backward starts
  // from. Null when no parameter is behind `output`.
  float* SeedGradient(Var output);
  // Where gradients of `var`, which needs one, go. Each call counts as one writing of it.
  Target GradientTarget(Var var);
  // The gradient that has arrived at `var`.
  float* gradient(Var var) { return values_[var.id].gradient; }
  // Scratch until the next Begin.
  float* Scratch(size_t size) { return arena_.Allocate(size); }

  // Runs all nodes backward. Returns the first parameter whose gradient a node reported to be not
  // finite; its id is -1 when there is none.
  Var Backward();
  void ReportNotFinite(Var parameter);

 private:
  struct Value {
    const float* value = nullptr;
    float* gradient = nullptr;
    size_t size = 0;
    bool needs_gradient = false;
    bool gradient_written = false;
  };

  Var Push(const Value& value);

  Mode mode_ = Mode::kForwardOnly;
  Arena arena_;
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  Var not_finite_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_AUTODIFF_TAPE_H_
