// gradient_bench [--cpu_isa=avx2|avx512] [benchmark flags]. Beside each gradient stands the time of
// its bare products, the limit to hold it against.
#include <cstdio>
#include <cstring>

#include "benchmark/benchmark.h"
#include "common/tensor/cpu_isa.h"
#include "common/tensor/matmul.h"
#include "tests/common/nn/jobs.h"

namespace tandem {
namespace {

constexpr size_t kPixels = 784, kHidden = 128, kClasses = 10;

void BM_MlpGradient(benchmark::State& state) {
  const auto model = ModelOf(JobOf(R"pb(
                               model {
                                 layers { flatten {} }
                                 layers { dense { units: 128 activation: "relu" } }
                                 layers { dense { units: 10 activation: "softmax" } }
                               }
                               loss { sparse_categorical_crossentropy {} }
                               metrics { accuracy {} }
                             )pb"),
                             {28, 28});
  const auto replica = Replica::Create(model.get());
  const Batch batch = RandomBatch(state.range(0), kPixels, kClasses, 1);
  const std::vector<float> weights = InitialWeights(*model, 1);
  std::vector<float> gradient(weights.size());
  v1::Sums sums;
  for (auto _ : state) {
    if (!replica->ComputeGradient(batch, weights.data(), 1, gradient.data(), &sums).ok()) {
      state.SkipWithError("gradient failed");
    }
  }
}
BENCHMARK(BM_MlpGradient)->Arg(1)->Arg(32)->Arg(64)->Arg(128)->Unit(benchmark::kMicrosecond);

void BM_MlpProducts(benchmark::State& state) {
  const size_t n = state.range(0);
  const std::vector<float> x(n * kPixels, 0.5f), w1(kPixels * kHidden, 0.01f),
      w2(kHidden * kClasses, 0.01f);
  std::vector<float> h(n * kHidden), y(n * kClasses), dw1(w1.size()), dw2(w2.size()), dh(h.size());
  const auto no = Transpose::kNo, yes = Transpose::kYes;
  for (auto _ : state) {
    MatMul(no, no, n, kHidden, kPixels, x.data(), w1.data(), Output::kWrite, h.data());
    MatMul(no, no, n, kClasses, kHidden, h.data(), w2.data(), Output::kWrite, y.data());
    MatMul(yes, no, kHidden, kClasses, n, h.data(), y.data(), Output::kWrite, dw2.data());
    MatMul(no, yes, n, kHidden, kClasses, y.data(), w2.data(), Output::kWrite, dh.data());
    MatMul(yes, no, kPixels, kHidden, n, x.data(), dh.data(), Output::kWrite, dw1.data());
  }
}
BENCHMARK(BM_MlpProducts)->Arg(1)->Arg(32)->Arg(64)->Arg(128)->Unit(benchmark::kMicrosecond);

void BM_TinyGradient(benchmark::State& state) {
  const auto model = ModelOf(JobOf(R"pb(
                               model { layers { dense { units: 1 use_bias: false } } }
                               loss { mean_squared_error {} }
                             )pb"),
                             {10});
  const auto replica = Replica::Create(model.get());
  const Batch batch = RandomBatch(2, 10, 2, 1);
  const std::vector<float> weights = InitialWeights(*model, 1);
  std::vector<float> gradient(weights.size());
  v1::Sums sums;
  for (auto _ : state) {
    if (!replica->ComputeGradient(batch, weights.data(), 1, gradient.data(), &sums).ok()) {
      state.SkipWithError("gradient failed");
    }
  }
}
BENCHMARK(BM_TinyGradient);

void BM_TinyProducts(benchmark::State& state) {
  const std::vector<float> x(20, 0.5f), w(10, 0.1f);
  std::vector<float> y(2), dw(10);
  for (auto _ : state) {
    MatMul(Transpose::kNo, Transpose::kNo, 2, 1, 10, x.data(), w.data(), Output::kWrite, y.data());
    MatMul(Transpose::kYes, Transpose::kNo, 10, 1, 2, x.data(), y.data(), Output::kWrite,
           dw.data());
    benchmark::DoNotOptimize(dw.data());
  }
}
BENCHMARK(BM_TinyProducts);

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  constexpr char kFlag[] = "--cpu_isa=";
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kFlag, sizeof(kFlag) - 1) != 0) continue;
    const absl::Status status = tandem::FixCpuIsa(argv[i] + sizeof(kFlag) - 1);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 2;
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
