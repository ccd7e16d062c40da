#include "common/nn/initializer.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/nn/normal_quantile.h"

namespace tandem {
namespace {

using Distribution = Initializer::Distribution;

// Of a standard normal variable cut at +-2: its standard deviation, and the probability below -2.
constexpr double kTruncatedDeviation = 0.87962566103423978;
constexpr double kBelowTwo = 0.022750131948179207;

absl::Status FieldError(absl::string_view field, absl::string_view name, double value,
                        absl::string_view expected) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ".", name, ": is ", value, "; expected ", expected));
}

absl::StatusOr<Initializer> Uniform(absl::string_view field, const v1::RandomUniform& spec) {
  const float low = spec.has_minval() ? spec.minval() : -0.05f;
  const float high = spec.has_maxval() ? spec.maxval() : 0.05f;
  if (!std::isfinite(low)) {
    return FieldError(field, "random_uniform.minval", low, "a finite number");
  }
  if (!std::isfinite(high) || high < low) {
    return FieldError(field, "random_uniform.maxval", high,
                      absl::StrCat("a finite number, at least minval, ", low));
  }
  return Initializer{Distribution::kUniform, low, high};
}

absl::StatusOr<Initializer> Normal(absl::string_view field, const v1::RandomNormal& spec) {
  const float mean = spec.has_mean() ? spec.mean() : 0.0f;
  const float stddev = spec.has_stddev() ? spec.stddev() : 0.05f;
  if (!std::isfinite(mean)) return FieldError(field, "random_normal.mean", mean, "a finite number");
  if (!std::isfinite(stddev) || stddev < 0) {
    return FieldError(field, "random_normal.stddev", stddev, "a finite number, at least 0");
  }
  return Initializer{Distribution::kNormal, mean, stddev};
}

// Keras's VarianceScaling: the variance is scale / fan.
Initializer Scaled(Distribution distribution, double scale, double fan) {
  const double variance = scale / std::max(1.0, fan);
  if (distribution == Distribution::kUniform) {
    const double limit = std::sqrt(3 * variance);
    return {distribution, -limit, limit};
  }
  return {distribution, 0, std::sqrt(variance)};
}

// Uniform in (0, 1), with all the bits a double holds.
double Uniform53(uint64_t seed, uint64_t variable, uint64_t element) {
  const auto bits = RandomBits(seed, Purpose::kInitializer, variable, element);
  const uint64_t wide = static_cast<uint64_t>(bits[0]) << 32 | bits[1];
  return (static_cast<double>(wide >> 12) + 0.5) * 0x1p-52;
}

float DrawOne(const Initializer& initializer, uint64_t seed, uint64_t variable, uint64_t element) {
  const double u = Uniform53(seed, variable, element);
  switch (initializer.distribution) {
    case Distribution::kConstant:
      return static_cast<float>(initializer.a);
    case Distribution::kUniform:
      return static_cast<float>(initializer.a + (initializer.b - initializer.a) * u);
    case Distribution::kNormal:
      return static_cast<float>(initializer.a + initializer.b * NormalQuantile(u));
    case Distribution::kTruncatedNormal: {
      const double p = kBelowTwo + (1 - 2 * kBelowTwo) * u;
      return static_cast<float>(initializer.a +
                                initializer.b / kTruncatedDeviation * NormalQuantile(p));
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<Initializer> ResolveInitializer(absl::string_view field, const v1::Initializer& spec,
                                               const Fans& fans) {
  const double average = (fans.in + fans.out) / 2;
  switch (spec.kind_case()) {
    case v1::Initializer::kOnes:
      return Initializer{Distribution::kConstant, 1};
    case v1::Initializer::kConstant:
      if (!std::isfinite(spec.constant().value())) {
        return FieldError(field, "constant.value", spec.constant().value(), "a finite number");
      }
      return Initializer{Distribution::kConstant, spec.constant().value()};
    case v1::Initializer::kGlorotUniform:
      return Scaled(Distribution::kUniform, 1, average);
    case v1::Initializer::kGlorotNormal:
      return Scaled(Distribution::kTruncatedNormal, 1, average);
    case v1::Initializer::kHeUniform:
      return Scaled(Distribution::kUniform, 2, fans.in);
    case v1::Initializer::kHeNormal:
      return Scaled(Distribution::kTruncatedNormal, 2, fans.in);
    case v1::Initializer::kRandomUniform:
      return Uniform(field, spec.random_uniform());
    case v1::Initializer::kRandomNormal:
      return Normal(field, spec.random_normal());
    case v1::Initializer::kZeros:
    case v1::Initializer::KIND_NOT_SET:
      break;
  }
  return Initializer{};
}

void Draw(const Initializer& initializer, uint64_t seed, uint64_t variable, uint64_t begin,
          uint64_t end, float* out) {
  if (initializer.distribution == Distribution::kConstant) {
    std::fill(out, out + (end - begin), static_cast<float>(initializer.a));
    return;
  }
  for (uint64_t element = begin; element < end; ++element) {
    out[element - begin] = DrawOne(initializer, seed, variable, element);
  }
}

}  // namespace tandem
