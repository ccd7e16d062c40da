#include "common/autodiff/ops.h"

#include <limits>

#include "common/tensor/elementwise.h"
#include "common/tensor/matmul.h"
#include "common/tensor/softmax.h"

namespace tandem {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

void Apply(Activation activation, size_t rows, size_t columns, const float* x, float* y) {
  if (activation == Activation::kSoftmax) {
    Softmax(rows, columns, x, y);
  } else if (activation != Activation::kLinear || x != y) {
    Activate(activation, rows * columns, x, y);
  }
}

// dx and dy may be the same array.
void ApplyBackward(Activation activation, size_t rows, size_t columns, const float* x,
                   const float* y, const float* dy, float* dx) {
  if (activation == Activation::kSoftmax) {
    SoftmaxBackward(rows, columns, y, dy, dx);
  } else if (activation != Activation::kLinear || dx != dy) {
    ActivateBackward(activation, rows * columns, x, y, dy, dx);
  }
}

Output OutputOf(const Tape::Target& target) { return target.add ? Output::kAdd : Output::kWrite; }

void CheckFinite(Tape* tape, Var parameter) {
  if (!(MaxAbs(tape->size(parameter), tape->gradient(parameter)) <= kLargest)) {
    tape->ReportNotFinite(parameter);
  }
}

void ParameterGradients(Tape* tape, const Tape::Node& node, const float* dz) {
  const Var x = node.inputs[0], kernel = node.inputs[1], bias = node.inputs[2];
  const Tape::Target dw = tape->GradientTarget(kernel);
  MatMul(Transpose::kYes, Transpose::kNo, node.inner, node.columns, node.rows, tape->value(x), dz,
         OutputOf(dw), dw.gradient);
  // A kernel may be far larger than the two matrices whose product its gradient is. Where these are
  // so small that no sum of products can overflow, there is no need to read the gradient again.
  const double bound = static_cast<double>(MaxAbs(tape->size(x), tape->value(x))) *
                       MaxAbs(node.rows * node.columns, dz) * static_cast<double>(node.rows);
  if (dw.add || !(bound <= kLargest / 4)) CheckFinite(tape, kernel);
  if (bias.id < 0) return;
  const Tape::Target db = tape->GradientTarget(bias);
  ColumnSums(node.rows, node.columns, dz, db.add, db.gradient);
  CheckFinite(tape, bias);
}

void DenseBackward(Tape* tape, const Tape::Node& node) {
  const auto activation = static_cast<Activation>(node.attribute);
  const Var x = node.inputs[0], kernel = node.inputs[1];
  // The gradient of the output becomes that of the product, in place.
  float* dz = tape->gradient(node.output);
  ApplyBackward(activation, node.rows, node.columns, node.saved, tape->value(node.output), dz, dz);
  ParameterGradients(tape, node, dz);
  if (!tape->needs_gradient(x)) return;
  const Tape::Target dx = tape->GradientTarget(x);
  MatMul(Transpose::kNo, Transpose::kYes, node.rows, node.inner, node.columns, dz,
         tape->value(kernel), OutputOf(dx), dx.gradient);
}

void ActivateBackwardNode(Tape* tape, const Tape::Node& node) {
  const auto activation = static_cast<Activation>(node.attribute);
  const Var x = node.inputs[0];
  const size_t size = node.rows * node.columns;
  const Tape::Target dx = tape->GradientTarget(x);
  float* out = dx.add ? tape->Scratch(size) : dx.gradient;
  ApplyBackward(activation, node.rows, node.columns, tape->value(x), tape->value(node.output),
                tape->gradient(node.output), out);
  if (dx.add) Add(size, out, dx.gradient);
}

}  // namespace

Var Dense(Tape* tape, const DenseShape& shape, Activation activation, Var x, Var kernel, Var bias) {
  const size_t size = shape.rows * shape.units;
  const Var inputs[3] = {x, kernel, bias};
  const Var output = tape->Result(size, inputs);
  float* y = tape->MutableValue(output);
  float* z = DerivativeNeedsInput(activation) ? tape->Scratch(size) : y;
  MatMul(Transpose::kNo, Transpose::kNo, shape.rows, shape.units, shape.inputs, tape->value(x),
         tape->value(kernel), Output::kWrite, z);
  if (bias.id >= 0) AddToRows(shape.rows, shape.units, tape->value(bias), z);
  Apply(activation, shape.rows, shape.units, z, y);
  tape->Record({DenseBackward,
                {x, kernel, bias},
                output,
                shape.rows,
                shape.units,
                shape.inputs,
                static_cast<int>(activation),
                z});
  return output;
}

Var Activate(Tape* tape, Activation activation, size_t rows, size_t columns, Var x) {
  if (activation == Activation::kLinear) return x;
  const Var inputs[3] = {x, Var(), Var()};
  const Var output = tape->Result(rows * columns, inputs);
  Apply(activation, rows, columns, tape->value(x), tape->MutableValue(output));
  tape->Record({ActivateBackwardNode,
                {x, Var(), Var()},
                output,
                rows,
                columns,
                0,
                static_cast<int>(activation)});
  return output;
}

}  // namespace tandem
