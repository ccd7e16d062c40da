// Activation functions of one argument, as Keras 3 defines them, and their derivatives. The same
// bits on every processor.
#ifndef TANDEM_COMMON_TENSOR_ACTIVATION_H_
#define TANDEM_COMMON_TENSOR_ACTIVATION_H_

#include <cstddef>

namespace tandem {

enum class Activation {
  kLinear,
  kRelu,
  kSigmoid,
  kTanh,
  kSoftmax,  // Over rows: see softmax.h. All others work element by element.
  kElu,
  kSelu,
  kSoftplus,
  kSoftsign,
  kSilu,
  kGelu,
  kLeakyRelu,
  kExponential,
  kHardSigmoid,
  kRelu6,
};

// Whether the derivative is taken from the input. The others need the output alone, so their input
// can be overwritten with it.
bool DerivativeNeedsInput(Activation activation);

// y = f(x). x and y may be the same array. Not for kSoftmax.
void Activate(Activation activation, size_t n, const float* x, float* y);
// dx = f'(x) dy, where y = f(x); x is read only where DerivativeNeedsInput. dx and dy may be the
// same array. Where f has a kink, f' is TensorFlow's: relu'(0) = 0, leaky_relu'(0) = 0.2.
void ActivateBackward(Activation activation, size_t n, const float* x, const float* y,
                      const float* dy, float* dx);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_ACTIVATION_H_
