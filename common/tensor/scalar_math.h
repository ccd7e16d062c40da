// exp, log and their kin for one float, written so that a loop over them becomes vector code. Every
// fused multiply-add is spelled out, so a value has the same bits in a vector, in a loop's tail and
// on every processor.
//
// Only for kernel files: they are compiled for AVX2, so all of this has internal linkage, and no
// other file can be handed their code. Bounds in ulp are checked by elementwise_test.cc.
#ifndef TANDEM_COMMON_TENSOR_SCALAR_MATH_H_
#define TANDEM_COMMON_TENSOR_SCALAR_MATH_H_

#include <stdint.h>

namespace tandem {
namespace {

// In front of a loop whose iterations do not depend on each other, although its arrays may be the
// same one.
#if defined(__clang__)
#define TANDEM_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TANDEM_INDEPENDENT _Pragma("GCC ivdep")
#endif

constexpr float kInfinity = __builtin_inff();
constexpr float kNaN = __builtin_nanf("");
constexpr float kSmallestNormal = 0x1p-126f;

// Adding and subtracting 1.5 * 2^23 rounds to a whole number, which then sits in the low bits.
constexpr float kRounder = 0x1.8p23f;
constexpr float kLog2E = 0x1.715476p0f;
// ln 2 in two parts: n * kLn2High is exact for |n| < 2^8.
constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;

inline uint32_t BitsOf(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float FromBits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline float Abs(float x) { return FromBits(BitsOf(x) & 0x7fffffffu); }
// Both pass a NaN in `x` through.
inline float AtMost(float x, float limit) { return x > limit ? limit : x; }
inline float AtLeast(float x, float limit) { return x < limit ? limit : x; }

inline float PowerOfTwo(int32_t n) { return FromBits((static_cast<uint32_t>(n) + 127u) << 23); }

// x = n ln 2 + r with |r| <= ln 2 / 2; returns exp(r) - 1. The polynomial is that of Cephes's expf
// (Moshier, netlib.org/cephes).
inline float ReducedExpm1(float x, int32_t* n) {
  const float rounded = __builtin_fmaf(x, kLog2E, kRounder);
  const float whole = rounded - kRounder;
  *n = static_cast<int32_t>(BitsOf(rounded) - BitsOf(kRounder));
  float r = __builtin_fmaf(whole, -kLn2High, x);
  r = __builtin_fmaf(whole, -kLn2Low, r);
  float p = 1.9875691500e-4f;
  p = __builtin_fmaf(p, r, 1.3981999507e-3f);
  p = __builtin_fmaf(p, r, 8.3334519073e-3f);
  p = __builtin_fmaf(p, r, 4.1665795894e-2f);
  p = __builtin_fmaf(p, r, 1.6666665459e-1f);
  p = __builtin_fmaf(p, r, 5.0000001201e-1f);
  return __builtin_fmaf(p, r * r, r);
}

// Within 1.1 ulp, denormal results included.
inline float ExpOf(float x) {
  int32_t n;
  const float m = ReducedExpm1(AtLeast(AtMost(x, 89.0f), -104.0f), &n);
  // In two factors, for neither 2^128 nor 2^-150 is a float.
  const int32_t half = n >> 1;
  return (m + 1.0f) * PowerOfTwo(half) * PowerOfTwo(n - half);
}

// exp(x) - 1 for x <= 0, within 1.6 ulp.
inline float Expm1OfNegative(float x) {
  int32_t n;
  const float m = ReducedExpm1(AtLeast(x, -30.0f), &n);
  const float scale = PowerOfTwo(n);
  return __builtin_fmaf(scale, m, scale - 1.0f);
}

// Within 1 ulp. log(0) = -infinity, log(negative) = NaN. Cephes's logf.
inline float LogOf(float x) {
  const bool tiny = x < kSmallestNormal;
  const uint32_t bits = BitsOf(tiny ? x * 0x1p23f : x);
  // x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)).
  const int32_t exponent = static_cast<int32_t>(bits - 0x3f3504f3u) >> 23;
  const float e = static_cast<float>(exponent) - (tiny ? 23.0f : 0.0f);
  const float f = FromBits(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0f;
  const float square = f * f;
  float p = 7.0376836292e-2f;
  p = __builtin_fmaf(p, f, -1.1514610310e-1f);
  p = __builtin_fmaf(p, f, 1.1676998740e-1f);
  p = __builtin_fmaf(p, f, -1.2420140846e-1f);
  p = __builtin_fmaf(p, f, 1.4249322787e-1f);
  p = __builtin_fmaf(p, f, -1.6668057665e-1f);
  p = __builtin_fmaf(p, f, 2.0000714765e-1f);
  p = __builtin_fmaf(p, f, -2.4999993993e-1f);
  p = __builtin_fmaf(p, f, 3.3333331174e-1f);
  float y = p * f * square;
  y = __builtin_fmaf(e, -2.12194440e-4f, y);
  y = __builtin_fmaf(-0.5f, square, y);
  y = __builtin_fmaf(e, 0.693359375f, f + y);
  y = x < kInfinity ? y : x;  // Infinity and NaN.
  y = x < 0 ? kNaN : y;
  return x == 0 ? -kInfinity : y;
}

// log(1 + u) for u in [0, 1], within 2 ulp. What 1 + u rounds away is put back to first order:
// Kahan's correction.
inline float Log1pOf(float u) {
  const float sum = 1.0f + u;
  return LogOf(sum) + (u - (sum - 1.0f)) / sum;
}

// Within 2.5 ulp: tanh |x| = -m / (m + 2) where m = exp(-2|x|) - 1.
inline float TanhOf(float x) {
  const float m = Expm1OfNegative(-2.0f * Abs(x));
  const float magnitude = -m / (m + 2.0f);
  return FromBits((BitsOf(magnitude) & 0x7fffffffu) | (BitsOf(x) & 0x80000000u));
}

// 1 / (1 + exp(-x)) within 2.5 ulp: exp is taken of -|x| only, so small results keep their bits.
inline float SigmoidOf(float x) {
  const float e = ExpOf(-Abs(x));
  return (x < 0 ? e : 1.0f) / (1.0f + e);
}

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), within 2.5 ulp.
inline float SoftplusOf(float x) { return AtLeast(x, 0.0f) + Log1pOf(ExpOf(-Abs(x))); }

// exp(-x^2 / 2) within 2 ulp: the rounding error of the square is taken from the result.
inline float GaussianOf(float x) {
  const float a = AtMost(Abs(x), 15.0f);
  const float square = a * a;
  const float error = __builtin_fmaf(a, a, -square);
  const float e = ExpOf(-0.5f * square);
  return __builtin_fmaf(e, -0.5f * error, e);
}

// The normal distribution function (1 + erf(x / sqrt(2))) / 2 = Q(-x), within 4 ulp on both sides:
// Q(a) = t R(t) exp(-a^2 / 2) for a >= 0 with t = 1 / (1 + a / sqrt(8)). R is a least-squares fit
// in relative error over a in [0, 14.5], past which the result is 0.
inline float NormalCdfOf(float x) {
  const float a = AtMost(Abs(x), 14.5f);
  const float t = 1.0f / __builtin_fmaf(a, 0.35355339f, 1.0f);
  float p = 0.018115447834134102f;
  p = __builtin_fmaf(p, t, -0.09688176959753036f);
  p = __builtin_fmaf(p, t, 0.1942245364189148f);
  p = __builtin_fmaf(p, t, -0.14999480545520782f);
  p = __builtin_fmaf(p, t, -0.006101584527641535f);
  p = __builtin_fmaf(p, t, 0.014677232131361961f);
  p = __builtin_fmaf(p, t, 0.028691213577985764f);
  p = __builtin_fmaf(p, t, 0.09245699644088745f);
  p = __builtin_fmaf(p, t, 0.12264762818813324f);
  p = __builtin_fmaf(p, t, 0.14112061262130737f);
  p = __builtin_fmaf(p, t, 0.1410444974899292f);
  const float tail = p * t * GaussianOf(a);
  return x < 0 ? tail : 1.0f - tail;
}

}  // namespace
}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_SCALAR_MATH_H_
