// Run once for each instruction set: matmul_test avx2, matmul_test avx512. A processor that lacks
// it skips the tests.
#include "common/tensor/matmul.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <thread>
#include <tuple>
#include <vector>

#include "common/tensor/cpu_isa.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

std::vector<float> Random(size_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(size);
  for (float& v : values) v = static_cast<float>(random() >> 40) * 0x1p-23f - 1;
  return values;
}

struct Shape {
  size_t m, n, k;
};

// The small kernel's, oneDNN's, and both sides of the border between them.
const Shape kShapes[] = {{1, 1, 1},    {1, 1, 10},    {2, 1, 10},     {7, 3, 5},     {16, 16, 16},
                         {17, 16, 16}, {1, 128, 784}, {784, 128, 1},  {33, 10, 128}, {64, 128, 784},
                         {128, 1, 64}, {5, 1, 4097},  {129, 131, 67}, {1, 1, 9000}};

class MatMulTest : public testing::TestWithParam<std::tuple<Shape, bool, bool>> {
 protected:
  Shape shape() const { return std::get<0>(GetParam()); }
  bool ta() const { return std::get<1>(GetParam()); }
  bool tb() const { return std::get<2>(GetParam()); }

  void Multiply(const float* a, const float* b, Output output, float* c) const {
    MatMul(ta() ? Transpose::kYes : Transpose::kNo, tb() ? Transpose::kYes : Transpose::kNo,
           shape().m, shape().n, shape().k, a, b, output, c);
  }
  std::vector<float> a_ = Random(shape().m * shape().k, 1), b_ = Random(shape().k * shape().n, 2);
};

TEST_P(MatMulTest, IsTheProduct) {
  const auto [m, n, k] = shape();
  std::vector<float> c(m * n, 3), sum(m * n, 3);
  Multiply(a_.data(), b_.data(), Output::kWrite, c.data());
  Multiply(a_.data(), b_.data(), Output::kAdd, sum.data());
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double want = 0, size = 1;
      for (size_t l = 0; l < k; ++l) {
        const double term = static_cast<double>(a_[ta() ? l * m + i : i * k + l]) *
                            b_[tb() ? j * k + l : l * n + j];
        want += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(c[i * n + j], want, 1e-6 * size);
      ASSERT_NEAR(sum[i * n + j], want + 3, 1e-6 * size + 1e-6);
    }
  }
}

// Weights lie one behind the other, so a matrix may begin at any float.
TEST_P(MatMulTest, BitsDoNotDependOnAlignmentOrThread) {
  const auto [m, n, k] = shape();
  std::vector<float> want(m * n);
  Multiply(a_.data(), b_.data(), Output::kWrite, want.data());
  for (size_t offset : {1, 3, 8}) {
    std::vector<float> a(offset, 0), b(offset + 1, 0), c(offset + 2 + m * n);
    a.insert(a.end(), a_.begin(), a_.end());
    b.insert(b.end(), b_.begin(), b_.end());
    float* out = c.data() + offset + 2;
    std::thread([&, offset = offset] {
      Multiply(&a[offset], &b[offset + 1], Output::kWrite, out);
    }).join();
    ASSERT_EQ(std::vector<float>(out, out + m * n), want) << offset;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, MatMulTest,
                         testing::Combine(testing::ValuesIn(kShapes), testing::Bool(),
                                          testing::Bool()));

TEST(CpuIsa, IsFixedOnce) {
  EXPECT_EQ(FixCpuIsa("sse2").message(), "cpu_isa: is \"sse2\"; expected \"avx2\" or \"avx512\"");
  int refused = 0;
  for (absl::string_view isa : kCpuIsas) {
    const absl::Status status = FixCpuIsa(isa);
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("already"));
  }
  EXPECT_EQ(refused, 1);
  EXPECT_TRUE(BestCpuIsa().ok());
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const absl::Status status = tandem::FixCpuIsa(argc > 1 ? argv[1] : "avx2");
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    std::printf("skipped: %s\n", status.ToString().c_str());
    return 0;
  }
  return RUN_ALL_TESTS();
}
