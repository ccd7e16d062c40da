#include "common/nn/initializer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/nn/normal_quantile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr size_t kDraws = 200'000;

struct Moments {
  double mean, deviation, largest;
};

Moments MomentsOf(const v1::Initializer& spec) {
  const auto initializer = ResolveInitializer("field", spec, {300, 100});
  std::vector<float> values(kDraws);
  Draw(*initializer, 1, 2, 0, kDraws, values.data());
  Moments m = {};
  for (float v : values) {
    m.mean += v / double{kDraws};
    m.largest = std::max<double>(m.largest, std::abs(v));
  }
  for (float v : values) m.deviation += (v - m.mean) * (v - m.mean) / kDraws;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

void ExpectUniform(const v1::Initializer& spec, double limit) {
  const Moments m = MomentsOf(spec);
  EXPECT_NEAR(m.mean, 0, 0.01 * limit);
  EXPECT_NEAR(m.deviation, limit / std::sqrt(3), 0.01 * limit);
  EXPECT_LE(m.largest, limit * (1 + 1e-7));
  EXPECT_GE(m.largest, 0.999 * limit);
}

// Keras: the standard deviation after the cut is the one asked for, and the cut lies at
// 2 / 0.8796 = 2.27 of it.
void ExpectTruncated(const v1::Initializer& spec, double deviation) {
  const Moments m = MomentsOf(spec);
  EXPECT_NEAR(m.mean, 0, 0.01 * deviation);
  EXPECT_NEAR(m.deviation, deviation, 0.01 * deviation);
  EXPECT_LE(m.largest, 2.27369 * deviation);
  EXPECT_GE(m.largest, 2.27 * deviation);
}

TEST(Initializer, HasTheMomentsOfKeras) {
  v1::Initializer spec;
  spec.mutable_glorot_uniform();
  ExpectUniform(spec, std::sqrt(6.0 / 400));
  spec.mutable_he_uniform();
  ExpectUniform(spec, std::sqrt(6.0 / 300));
  spec.mutable_random_uniform();
  ExpectUniform(spec, 0.05);
  spec.mutable_glorot_normal();
  ExpectTruncated(spec, std::sqrt(2.0 / 400));
  spec.mutable_he_normal();
  ExpectTruncated(spec, std::sqrt(2.0 / 300));
  spec.mutable_random_normal()->set_mean(3);
  const Moments m = MomentsOf(spec);
  EXPECT_NEAR(m.mean, 3, 0.001);
  EXPECT_NEAR(m.deviation, 0.05, 0.0005);
}

TEST(Initializer, Constants) {
  v1::Initializer spec;
  EXPECT_EQ(MomentsOf(spec).largest, 0);
  spec.mutable_ones();
  EXPECT_NEAR(MomentsOf(spec).mean, 1, 1e-9);
  EXPECT_EQ(MomentsOf(spec).largest, 1);
  spec.mutable_constant()->set_value(-0.5f);
  EXPECT_NEAR(MomentsOf(spec).mean, -0.5, 1e-9);
  EXPECT_EQ(MomentsOf(spec).largest, 0.5);
}

TEST(Initializer, VariablesDiffer) {
  const Initializer uniform = {Initializer::Distribution::kUniform, -1, 1};
  std::vector<float> a(100), b(100);
  Draw(uniform, 1, 2, 0, 100, a.data());
  Draw(uniform, 1, 3, 0, 100, b.data());
  EXPECT_NE(a, b);
}

// Computed by another program, with Python's statistics.NormalDist.inv_cdf. They may not change
// from one version to the next, or a job that is resumed with another binary would not be the same
// job.
TEST(Initializer, ValuesAreFixed) {
  std::vector<float> values(3);
  Draw({Initializer::Distribution::kUniform, -1, 1}, 1, 2, 0, 3, values.data());
  EXPECT_THAT(values, testing::ElementsAre(0.115094297f, -0.123811714f, -0.179714382f));
  Draw({Initializer::Distribution::kTruncatedNormal, 0, 1}, 1, 2, 0, 3, values.data());
  EXPECT_THAT(values, testing::ElementsAre(0.15702574f, -0.169003963f, -0.246324867f));
}

TEST(NormalQuantile, InvertsTheDistribution) {
  for (double p : {1e-15, 1e-9, 1e-5, 0.02, 0.0749, 0.0751, 0.3, 0.5, 0.8, 0.97, 0.99999}) {
    const double x = NormalQuantile(p);
    EXPECT_NEAR(0.5 * std::erfc(-x / std::sqrt(2.0)) / p, 1, 2e-5) << p;
    // The far upper tail cannot be told from 1 as finely.
    if (p > 1e-9) {
      EXPECT_NEAR(NormalQuantile(1 - p), -x, 1e-6 * (1 + std::abs(x)));
    }
  }
}

}  // namespace
}  // namespace tandem
