// The contract of Optimizer, run on every optimizer: what holds for one holds for all.
#include "common/optim/optimizer.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/common/optim/plain_optimizer.h"

namespace tandem {
namespace {

// A variable under training: weights, slots and a new weight buffer, at `shift` floats past an
// aligned address. Eight more floats at the end must never change.
struct Variable {
  Variable(const Optimizer& optimizer, size_t n, size_t shift = 0) : n(n), shift(shift) {
    weights = Filled(n, 1);
    out.assign(shift + n + 8, kUntouched);
    for (int k = 0; k < optimizer.num_slots(); ++k) {
      slots.emplace_back(shift + n + 8, optimizer.initial_slot_value(k));
    }
  }

  std::vector<float> Filled(size_t count, uint32_t salt) const {
    std::vector<float> values(shift + count + 8, kUntouched);
    for (size_t i = 0; i < count; ++i) values[shift + i] = Value(i, salt);
    return values;
  }

  // Over many decades, with zeros of both signs: a function of (i, salt).
  static float Value(size_t i, uint32_t salt) {
    uint32_t state = (static_cast<uint32_t>(i) * 747796405u + salt) * 2891336453u;
    state = (state ^ (state >> 15)) * 277803737u;
    if (state % 11 == 0) return state & 1024 ? 0.0f : -0.0f;
    const float scale[] = {1e-12f, 1e-4f, 0.3f, 7.0f, 5e3f};
    return static_cast<int32_t>(state) * 4.65661287e-10f * scale[(state >> 7) % 5];
  }

  std::vector<float*> SlotsAt(size_t i) {
    std::vector<float*> pointers;
    for (auto& slot : slots) pointers.push_back(slot.data() + shift + i);
    return pointers;
  }

  static constexpr float kUntouched = 42;
  size_t n, shift;
  std::vector<float> weights, out;
  std::vector<std::vector<float>> slots;
};

// Updates elements [begin, end), from `weights` to `out`.
void ApplyRange(const Optimizer& optimizer, uint64_t step, const std::vector<float>& gradient,
                Variable& v, size_t begin, size_t end) {
  const size_t at = v.shift + begin;
  optimizer.Apply(step, end - begin, gradient.data() + at, v.weights.data() + at, v.out.data() + at,
                  v.SlotsAt(begin).data());
}

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "element " << i << " of " << got.size() << ": " << got[i] << ", want " << want[i];
  }
}

void ExpectSame(const Variable& got, const Variable& want) {
  ExpectSameBits(got.out, want.out);
  ASSERT_EQ(got.slots.size(), want.slots.size());
  for (size_t k = 0; k < got.slots.size(); ++k) ExpectSameBits(got.slots[k], want.slots[k]);
}

class OptimizerTest : public testing::TestWithParam<const char*> {
 protected:
  const v1::Optimizer spec_ = ParseOptimizer(GetParam());
  const std::unique_ptr<const Optimizer> optimizer_ = CreateOptimizer(spec_).value();
};

TEST_P(OptimizerTest, SlotsAreThoseOfThePlainOne) {
  const std::vector<float> initial = PlainInitialSlots(spec_);
  ASSERT_EQ(static_cast<size_t>(optimizer_->num_slots()), initial.size());
  for (int k = 0; k < optimizer_->num_slots(); ++k) {
    EXPECT_EQ(optimizer_->initial_slot_value(k), initial[k]);
  }
}

// Three updates, at every short length and alignment.
TEST_P(OptimizerTest, BitsAreThoseOfThePlainLoop) {
  for (size_t n = 0; n <= 70; ++n) {
    Variable fast(*optimizer_, n, /*shift=*/n % 9), plain(*optimizer_, n, n % 9);
    for (uint64_t step = 1; step <= 3; ++step) {
      const auto gradient = fast.Filled(n, 100 + step);
      ApplyRange(*optimizer_, step, gradient, fast, 0, n);
      PlainApply(spec_, step, n, gradient.data() + plain.shift, plain.weights.data() + plain.shift,
                 plain.out.data() + plain.shift, plain.SlotsAt(0).data());
      ASSERT_NO_FATAL_FAILURE(ExpectSame(fast, plain)) << "n " << n << ", step " << step;
      fast.weights.swap(fast.out);
      plain.weights.swap(plain.out);
    }
  }
}

TEST_P(OptimizerTest, InPlaceEqualsOutOfPlace) {
  for (size_t n = 0; n <= 70; ++n) {
    Variable apart(*optimizer_, n), in_place(*optimizer_, n);
    const auto gradient = apart.Filled(n, 200);
    ApplyRange(*optimizer_, 1, gradient, apart, 0, n);
    optimizer_->Apply(1, n, gradient.data(), in_place.weights.data(), in_place.weights.data(),
                      in_place.SlotsAt(0).data());
    in_place.out = in_place.weights;
    ASSERT_NO_FATAL_FAILURE(ExpectSame(in_place, apart)) << "n " << n;
  }
}

TEST_P(OptimizerTest, ACutAnywhereDoesNotShow) {
  constexpr size_t kSize = 70;
  Variable whole(*optimizer_, kSize);
  const auto gradient = whole.Filled(kSize, 300);
  ApplyRange(*optimizer_, 5, gradient, whole, 0, kSize);
  for (size_t cut = 0; cut <= kSize; ++cut) {
    Variable parts(*optimizer_, kSize);
    ApplyRange(*optimizer_, 5, gradient, parts, cut, kSize);
    ApplyRange(*optimizer_, 5, gradient, parts, 0, cut);
    ASSERT_NO_FATAL_FAILURE(ExpectSame(parts, whole)) << "cut at " << cut;
  }
}

TEST_P(OptimizerTest, WeightsAndGradientAreOnlyRead) {
  Variable v(*optimizer_, 37);
  const auto gradient = v.Filled(37, 400), gradient_before = gradient, before = v.weights;
  ApplyRange(*optimizer_, 1, gradient, v, 0, 37);
  ExpectSameBits(gradient, gradient_before);
  ExpectSameBits(v.weights, before);
}

TEST_P(OptimizerTest, AnArrayPastTheCachesIsUpdatedToItsEnd) {
  constexpr size_t kSize = (1 << 20) + 13;
  Variable fast(*optimizer_, kSize, 3), plain(*optimizer_, kSize, 3);
  const auto gradient = fast.Filled(kSize, 500);
  ApplyRange(*optimizer_, 2, gradient, fast, 0, kSize);
  PlainApply(spec_, 2, kSize, gradient.data() + 3, plain.weights.data() + 3, plain.out.data() + 3,
             plain.SlotsAt(0).data());
  ExpectSame(fast, plain);
}

TEST_P(OptimizerTest, AnyStepGivesFiniteWeights) {
  for (uint64_t step : {uint64_t{1}, uint64_t{1} << 24, uint64_t{1} << 40, uint64_t{1} << 63,
                        std::numeric_limits<uint64_t>::max()}) {
    Variable v(*optimizer_, 9);
    ApplyRange(*optimizer_, step, v.Filled(9, 600), v, 0, 9);
    for (float w : v.out) EXPECT_EQ(w - w, 0.0f) << "step " << step;
  }
}

// A gradient that is not finite must reach the weights, where the server's check sees it, and not
// its neighbours.
TEST_P(OptimizerTest, ANanStaysInItsElement) {
  Variable clean(*optimizer_, 20), v(*optimizer_, 20);
  auto gradient = v.Filled(20, 700);
  ApplyRange(*optimizer_, 1, gradient, clean, 0, 20);
  gradient[11] = std::numeric_limits<float>::quiet_NaN();
  ApplyRange(*optimizer_, 1, gradient, v, 0, 20);
  EXPECT_NE(v.out[11], v.out[11]);
  v.out[11] = clean.out[11];
  ExpectSameBits(v.out, clean.out);
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerTest,
    testing::Values("sgd {}", "sgd { learning_rate: 0.37 nesterov: true }",
                    "sgd { learning_rate: 0.1 momentum: 0.9 }", "sgd { momentum: 1 }",
                    "sgd { learning_rate: 0.05 momentum: 0.85 nesterov: true }", "adam {}",
                    "adam { learning_rate: 0.02 beta_1: 0.85 beta_2: 0.9935 epsilon: 0.001 }",
                    "adam { beta_1: 0 beta_2: 0 }", "adagrad {}",
                    "adagrad { learning_rate: 0.3 initial_accumulator_value: 0.5 epsilon: 0.01 }"));

// The large step of Adam: the correction is gone, so step 2^40 is step 2^63, and the powers in
// between are those of double arithmetic.
TEST(AdamTest, BiasCorrectionFollowsTheStep) {
  const auto spec = ParseOptimizer("adam { beta_1: 0.99 beta_2: 0.99999 }");
  const auto optimizer = CreateOptimizer(spec).value();
  for (uint64_t step = 1; step < (uint64_t{1} << 24); step = step * 3 / 2 + 1) {
    Variable fast(*optimizer, 8), plain(*optimizer, 8);
    const auto gradient = fast.Filled(8, 800);
    ApplyRange(*optimizer, step, gradient, fast, 0, 8);
    PlainApply(spec, step, 8, gradient.data(), plain.weights.data(), plain.out.data(),
               plain.SlotsAt(0).data());
    ASSERT_NO_FATAL_FAILURE(ExpectSame(fast, plain)) << "step " << step;
  }
  Variable late(*optimizer, 8), later(*optimizer, 8);
  const auto gradient = late.Filled(8, 900);
  ApplyRange(*optimizer, uint64_t{1} << 40, gradient, late, 0, 8);
  ApplyRange(*optimizer, uint64_t{1} << 63, gradient, later, 0, 8);
  ExpectSame(late, later);
}

}  // namespace
}  // namespace tandem
