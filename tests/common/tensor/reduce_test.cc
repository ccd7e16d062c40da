// Each kernel against the plain loop beside it, at every alignment and every short length.
#include "common/tensor/reduce.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace tandem {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();
constexpr float kSpecial[] = {0.0f,   -0.0f, kDenormal,    -kDenormal, kMax,  -kMax,
                              1e-38f, 1.0f,  0.333333343f, 1e30f,      -1e-6f};

// Lengths around the vector width, and around the block of the finite check.
std::vector<size_t> Lengths() {
  std::vector<size_t> lengths;
  for (size_t n = 0; n <= 70; ++n) lengths.push_back(n);
  for (size_t n : {2047, 2048, 2049, 5000}) lengths.push_back(n);
  return lengths;
}

// Finite values, special ones among them; `salt` varies them.
std::vector<float> Values(size_t n, uint32_t salt) {
  std::vector<float> values(n);
  uint32_t state = salt * 2654435761u + 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = state % 5 == 0 ? kSpecial[(state >> 8) % std::size(kSpecial)]
                           : static_cast<int32_t>(state) * 1e-7f;
  }
  return values;
}

// A copy of `values` that begins `offset` bytes past an aligned address.
class Bytes {
 public:
  Bytes(const std::vector<float>& values, size_t offset)
      : memory_(values.size() * sizeof(float) + 16), offset_(offset) {
    if (!values.empty()) {
      std::memcpy(memory_.data() + offset, values.data(), values.size() * sizeof(float));
    }
  }
  const void* data() const { return memory_.data() + offset_; }

 private:
  std::vector<char> memory_;
  size_t offset_;
};

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "element " << i << " of " << got.size() << ": " << got[i] << ", want " << want[i];
  }
}

std::vector<float> PlainSum(const std::vector<float>& left, const std::vector<float>& right) {
  std::vector<float> sum(left.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = left[i] + right[i];
  return sum;
}

TEST(Reduce, AddIntoIsThePlainLoop) {
  for (size_t n : Lengths()) {
    const auto left = Values(n, 1), right = Values(n, 2);
    for (size_t offset = 0; offset < 16; ++offset) {
      std::vector<float> accumulator = left;
      AddInto(accumulator.data(), Bytes(right, offset).data(), n);
      ExpectSameBits(accumulator, PlainSum(left, right));
    }
  }
}

TEST(Reduce, AddIntoTakesAnAccumulatorAtAnyFloat) {
  for (size_t start = 0; start < 16; ++start) {
    const auto left = Values(50, 3), right = Values(50 - start, 4);
    std::vector<float> got = left, want = left;
    AddInto(got.data() + start, Bytes(right, 3).data(), right.size());
    for (size_t i = start; i < want.size(); ++i) want[i] = left[i] + right[i - start];
    ExpectSameBits(got, want);
  }
}

TEST(Reduce, AddFromIsThePlainLoop) {
  for (size_t n : Lengths()) {
    const auto left = Values(n, 5), right = Values(n, 6);
    for (size_t offset = 0; offset < 16; ++offset) {
      std::vector<float> out(n, kNan);
      // The two sides differ in alignment, as two messages do.
      AddFrom(Bytes(left, offset).data(), Bytes(right, 15 - offset).data(), out.data(), n);
      ExpectSameBits(out, PlainSum(left, right));
    }
  }
}

TEST(Reduce, AddFromDoublesWhenBothSidesAreTheSame) {
  const auto values = Values(37, 7);
  std::vector<float> out(values.size());
  AddFrom(values.data(), values.data(), out.data(), values.size());
  ExpectSameBits(out, PlainSum(values, values));
}

TEST(Reduce, AddWritesNothingPastTheEnd) {
  for (size_t n = 0; n < 40; ++n) {
    std::vector<float> accumulator(n + 8, 42.0f), out(n + 8, 42.0f);
    const std::vector<float> ones(n, 1.0f);
    AddInto(accumulator.data(), ones.data(), n);
    AddFrom(ones.data(), ones.data(), out.data(), n);
    for (size_t i = n; i < n + 8; ++i) {
      ASSERT_EQ(accumulator[i], 42.0f);
      ASSERT_EQ(out[i], 42.0f);
    }
  }
}

TEST(Reduce, SignOfZeroAndOverflowAreIeees) {
  std::vector<float> sum = {-0.0f, -0.0f, 0.0f, kMax, -kMax, kDenormal, 1.0f};
  const std::vector<float> right = {-0.0f, 0.0f, -0.0f, kMax, -kMax, kDenormal, -1.0f};
  AddInto(sum.data(), right.data(), sum.size());
  ExpectSameBits(sum, {-0.0f, 0.0f, 0.0f, kInf, -kInf, 2 * kDenormal, 0.0f});
}

TEST(Reduce, FiniteValuesAreFinite) {
  for (size_t n : Lengths()) {
    for (size_t offset = 0; offset < 16; ++offset) {
      const Bytes bytes(Values(n, 8), offset);
      ASSERT_TRUE(AllFinite(bytes.data(), n));
      ASSERT_EQ(FirstNonFinite(bytes.data(), n), n);
    }
  }
}

TEST(Reduce, ANonFiniteValueIsFoundAtEveryPosition) {
  const float kinds[] = {kInf, -kInf, kNan, -kNan, std::numeric_limits<float>::signaling_NaN()};
  for (size_t n : Lengths()) {
    if (n > 100) continue;
    for (size_t bad = 0; bad < n; ++bad) {
      std::vector<float> values = Values(n, 9);
      values[bad] = kinds[bad % std::size(kinds)];
      const Bytes bytes(values, bad % 16);
      ASSERT_FALSE(AllFinite(bytes.data(), n)) << bad << " of " << n;
      ASSERT_EQ(FirstNonFinite(bytes.data(), n), bad);
    }
  }
}

TEST(Reduce, TheFirstOfSeveralIsNamed) {
  std::vector<float> values = Values(10000, 10);
  for (size_t bad : {9999, 8191, 8190, 4096, 2048, 2047, 5, 0}) {
    values[bad] = kNan;
    EXPECT_EQ(FirstNonFinite(values.data(), values.size()), bad);
    EXPECT_FALSE(AllFinite(values.data(), values.size()));
  }
}

TEST(Reduce, NothingIsReadPastTheEnd) {
  for (size_t n = 0; n < 40; ++n) {
    std::vector<float> values(n, 1.0f);
    values.push_back(kNan);
    EXPECT_TRUE(AllFinite(values.data(), n));
    EXPECT_EQ(FirstNonFinite(values.data(), n), n);
  }
}

TEST(Reduce, NothingIsDoneWithNothing) {
  AddInto(nullptr, nullptr, 0);
  AddFrom(nullptr, nullptr, nullptr, 0);
  EXPECT_TRUE(AllFinite(nullptr, 0));
  EXPECT_EQ(FirstNonFinite(nullptr, 0), 0u);
}

}  // namespace
}  // namespace tandem
