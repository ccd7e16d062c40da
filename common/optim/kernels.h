// The loops of the optimizers: one update of n elements each, in one pass over memory.
//
// `out` may be `w`, else no two arrays overlap. Any alignment of 4 bytes. Every operation is
// rounded to float32 in the order written in kernels.cc, which is Keras 3's.
#ifndef TANDEM_COMMON_OPTIM_KERNELS_H_
#define TANDEM_COMMON_OPTIM_KERNELS_H_

#include <cstddef>

namespace tandem::optim_internal {

void SgdKernel(size_t n, float rate, const float* g, const float* w, float* out);

void MomentumKernel(size_t n, float rate, float momentum, const float* g, const float* w,
                    float* out, float* m);

void NesterovKernel(size_t n, float rate, float momentum, const float* g, const float* w,
                    float* out, float* m);

// `alpha` is the learning rate with both bias corrections.
struct AdamConstants {
  float alpha, one_minus_beta_1, one_minus_beta_2, epsilon;
};
void AdamKernel(size_t n, AdamConstants c, const float* g, const float* w, float* out, float* m,
                float* v);

void AdagradKernel(size_t n, float rate, float epsilon, const float* g, const float* w, float* out,
                   float* accumulator);

}  // namespace tandem::optim_internal

#endif  // TANDEM_COMMON_OPTIM_KERNELS_H_
