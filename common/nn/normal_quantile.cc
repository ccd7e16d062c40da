// Algorithm AS 241, PPND16: Wichura, "The percentage points of the normal distribution", Applied
// Statistics 37, 1988. Additions, products, quotients and square roots are the same everywhere; the
// one logarithm is our own, of floats, which is what limits the accuracy.
#include "common/nn/normal_quantile.h"

#include <cmath>

#include "common/tensor/elementwise.h"

namespace tandem {
namespace {

// Coefficients from the constant term up.
constexpr double kCentralNumerator[] = {3.3871328727963666080,    1.3314166789178437745e+2,
                                        1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                        4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                        3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr double kCentralDenominator[] = {1,
                                          4.2313330701600911252e+1,
                                          6.8718700749205790830e+2,
                                          5.3941960214247511077e+3,
                                          2.1213794301586595867e+4,
                                          3.9307895800092710610e+4,
                                          2.8729085735721942674e+4,
                                          5.2264952788528545610e+3};
constexpr double kTailNumerator[] = {1.42343711074968357734,    4.63033784615654529590,
                                     5.76949722146069140550,    3.64784832476320460504,
                                     1.27045825245236838258,    2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kTailDenominator[] = {1,
                                       2.05319162663775882187,
                                       1.67638483018380384940,
                                       6.89767334985100004550e-1,
                                       1.48103976427480074590e-1,
                                       1.51986665636164571966e-2,
                                       5.47593808499534494600e-4,
                                       1.05075007164441684324e-9};
constexpr double kFarNumerator[] = {6.65790464350110377720,    5.46378491116411436990,
                                    1.78482653991729133580,    2.96560571828504891230e-1,
                                    2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                    2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr double kFarDenominator[] = {1,
                                      5.99832206555887937690e-1,
                                      1.36929880922735805310e-1,
                                      1.48753612908506148525e-2,
                                      7.86869131145613259100e-4,
                                      1.84631831751005468180e-5,
                                      1.42151175831644588870e-7,
                                      2.04426310338993978564e-15};

double Polynomial(const double (&coefficients)[8], double x) {
  double sum = coefficients[7];
  for (int i = 6; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

}  // namespace

double NormalQuantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Polynomial(kCentralNumerator, r) / Polynomial(kCentralDenominator, r);
  }
  const float tail = static_cast<float>(q < 0 ? p : 1 - p);
  float log_tail;
  Log(1, &tail, &log_tail);
  const double r = std::sqrt(-static_cast<double>(log_tail));
  const double x = r <= 5
                       ? Polynomial(kTailNumerator, r - 1.6) / Polynomial(kTailDenominator, r - 1.6)
                       : Polynomial(kFarNumerator, r - 5) / Polynomial(kFarDenominator, r - 5);
  return q < 0 ? -x : x;
}

}  // namespace tandem
