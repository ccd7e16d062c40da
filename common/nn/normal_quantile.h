// The inverse of the normal distribution function.
#ifndef TANDEM_COMMON_NN_NORMAL_QUANTILE_H_
#define TANDEM_COMMON_NN_NORMAL_QUANTILE_H_

namespace tandem {

// x with P(N(0, 1) <= x) = p, for 0 < p < 1, within 1e-6 of x. The same bits on every processor.
double NormalQuantile(double p);

}  // namespace tandem

#endif  // TANDEM_COMMON_NN_NORMAL_QUANTILE_H_
