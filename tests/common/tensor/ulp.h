// Distance of a float from the exact value, and floats spread over the whole line.
#ifndef TANDEM_TESTS_COMMON_TENSOR_ULP_H_
#define TANDEM_TESTS_COMMON_TENSOR_ULP_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tandem {

// |got - want| in units in the last place of the float nearest to `want`.
inline double UlpError(float got, double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : std::numeric_limits<double>::infinity();
  const float nearest = static_cast<float>(want);
  if (got == nearest) return 0;
  if (!std::isfinite(got) || !std::isfinite(nearest)) {
    return std::numeric_limits<double>::infinity();
  }
  int exponent;
  std::frexp(nearest, &exponent);
  return std::abs(got - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// Every `stride`-th float of all 2^32, except NaNs.
inline std::vector<float> EveryFloat(uint32_t stride) {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += stride) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isnan(x)) values.push_back(x);
  }
  return values;
}

}  // namespace tandem

#endif  // TANDEM_TESTS_COMMON_TENSOR_ULP_H_
