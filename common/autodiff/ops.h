// Operations on a tape. Matrices are row-major.
#ifndef TANDEM_COMMON_AUTODIFF_OPS_H_
#define TANDEM_COMMON_AUTODIFF_OPS_H_

#include <cstddef>

#include "common/autodiff/tape.h"
#include "common/tensor/activation.h"

namespace tandem {

struct DenseShape {
  size_t rows, inputs, units;
};

// activation(x[rows, inputs] kernel[inputs, units] + bias[units]) as one operation: product, bias
// and activation share their memory. A bias with id -1 is absent. Reports parameters whose gradient
// is not finite to the tape.
Var Dense(Tape* tape, const DenseShape& shape, Activation activation, Var x, Var kernel, Var bias);

// activation(x), element by element, or over the rows of x[rows, columns] for kSoftmax. kLinear is
// x itself.
Var Activate(Tape* tape, Activation activation, size_t rows, size_t columns, Var x);

}  // namespace tandem

#endif  // TANDEM_COMMON_AUTODIFF_OPS_H_
