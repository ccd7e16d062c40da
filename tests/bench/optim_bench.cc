// How fast the optimizers and the reduction kernels run over arrays far larger than the caches, one
// thread, beside a plain loop over the same bytes in the same run. One JSON line a measurement:
//   {"name": "adam_apply", "value": 45.1, "unit": "GB/s", "limit": 45.3, "ratio": 1.00}
// Both take turns on the same arrays, so they meet the same pages. Every run is checked on elements
// sampled over the whole array, and a wrong one ends the program with status 1.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/optim/optimizer.h"
#include "common/tensor/buffer.h"
#include "common/tensor/reduce.h"
#include "tests/bench/plain_loops.h"
#include "tests/common/optim/plain_optimizer.h"

namespace tandem {
namespace {

constexpr size_t kSize = size_t{16} << 20;  // 64 MiB an array: twice a large third-level cache.
constexpr int kRounds = 21;

// Sampled elements: runs of 64 (so that every lane of a vector is among them), at odd places.
constexpr size_t kSampleRun = 64, kSampleStride = 262139;

void Fail(const std::string& what) {
  std::fprintf(stderr, "optim_bench: wrong result of %s\n", what.c_str());
  std::exit(1);
}

template <typename Body>
void ForEachSample(Body body) {
  for (size_t start = 0; start + kSampleRun <= kSize; start += kSampleStride) {
    for (size_t i = start; i < start + kSampleRun; ++i) body(i);
  }
  for (size_t i = kSize - kSampleRun; i < kSize; ++i) body(i);
}

std::vector<float> Sample(const Buffer& buffer) {
  std::vector<float> sample;
  ForEachSample([&](size_t i) { sample.push_back(buffer.data()[i]); });
  return sample;
}

Buffer Filled(uint32_t seed, float scale) {
  Buffer buffer(kSize);
  for (size_t i = 0; i < kSize; ++i) {
    seed = seed * 1664525u + 1013904223u;
    buffer.data()[i] = static_cast<int32_t>(seed) * (scale / 2147483648.0f);
  }
  return buffer;
}

double Seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// `ours` and `plain` return the seconds of one run; who goes first alternates. Reported is the
// round with the median ratio: the two runs of a round are neighbours in time, so what else the
// machine does meets both.
void Report(const char* name, double bytes, const std::function<double()>& ours,
            const std::function<double()>& plain) {
  ours();  // Touch the pages, wake the clock.
  plain();
  struct Round {
    double ours, plain;
  };
  std::vector<Round> rounds(kRounds);
  for (int i = 0; i < kRounds; ++i) {
    if (i % 2 == 0) rounds[i].ours = ours();
    rounds[i].plain = plain();
    if (i % 2 != 0) rounds[i].ours = ours();
  }
  const auto median = rounds.begin() + kRounds / 2;
  std::nth_element(rounds.begin(), median, rounds.end(), [](const Round& a, const Round& b) {
    return a.plain / a.ours < b.plain / b.ours;
  });
  const double value = bytes / median->ours * 1e-9, limit = bytes / median->plain * 1e-9;
  std::printf(
      "{\"name\": \"%s\", \"value\": %.1f, \"unit\": \"GB/s\", \"limit\": %.1f, \"ratio\": %.2f}\n",
      name, value, limit, value / limit);
  std::fflush(stdout);
}

// A shard's dense weights as the server holds them: two buffers, and an update reads the one and
// writes the other.
class ShardMemory {
 public:
  explicit ShardMemory(const Optimizer& optimizer)
      : gradient_(Filled(1, 0.1f)), weights_(Filled(2, 1.0f)), next_(Filled(3, 1.0f)) {
    for (int k = 0; k < optimizer.num_slots(); ++k) {
      slots_.emplace_back(kSize);
      std::fill_n(slots_.back().data(), kSize, optimizer.initial_slot_value(k));
    }
    for (auto& slot : slots_) slot_pointers_.push_back(slot.data());
  }

  using Update = std::function<void(const float* gradient, const float* weights, float* out,
                                    float* const* slots)>;

  // Seconds of one update, which must do at the sampled elements what the oracle does.
  double Run(const v1::Optimizer& spec, uint64_t step, const Update& update) {
    const auto gradient = Sample(gradient_), before = Sample(weights_);
    std::vector<std::vector<float>> slots;
    for (auto& slot : slots_) slots.push_back(Sample(slot));
    const double seconds = Seconds(
        [&] { update(gradient_.data(), weights_.data(), next_.data(), slot_pointers_.data()); });

    std::vector<float> want(before.size());
    std::vector<float*> pointers;
    for (auto& slot : slots) pointers.push_back(slot.data());
    PlainApply(spec, step, want.size(), gradient.data(), before.data(), want.data(),
               pointers.data());
    if (Sample(next_) != want) Fail("weights: " + spec.ShortDebugString());
    for (size_t k = 0; k < slots.size(); ++k) {
      if (Sample(slots_[k]) != slots[k]) Fail("slots: " + spec.ShortDebugString());
    }
    std::swap(weights_, next_);
    return seconds;
  }

 private:
  Buffer gradient_, weights_, next_;
  std::vector<Buffer> slots_;
  std::vector<float*> slot_pointers_;
};

// Bytes an update must move for each element: it reads gradient, weight and slots, and writes the
// new weight and the slots. (A processor that fetches `out` before it overwrites it moves 4 more,
// for us and for the plain loop; they are not counted.)
double UpdateBytes(int slots) { return kSize * sizeof(float) * (3.0 + 2.0 * slots); }

void BenchOptimizer(const char* name, const char* text, const ShardMemory::Update& plain) {
  constexpr uint64_t kStep = 1000;  // The same for all runs: the arithmetic costs the same.
  const auto spec = ParseOptimizer(text);
  const auto optimizer = CreateOptimizer(spec).value();
  ShardMemory memory(*optimizer);
  const auto ours = [&](const float* g, const float* w, float* out, float* const* slots) {
    optimizer->Apply(kStep, kSize, g, w, out, slots);
  };
  Report(
      name, UpdateBytes(optimizer->num_slots()), [&] { return memory.Run(spec, kStep, ours); },
      [&] { return memory.Run(spec, kStep, plain); });
}

void BenchOptimizers() {
  // Adam's rate at step 1000, as Keras computes it.
  const float power_1 = static_cast<float>(std::pow(double{0.9f}, 1000));
  const float power_2 = static_cast<float>(std::pow(double{0.999f}, 1000));
  const float alpha = 0.001f * std::sqrt(1 - power_2) / (1 - power_1);
  BenchOptimizer("adam_apply", "adam {}",
                 [&](const float* g, const float* w, float* out, float* const* slots) {
                   bench::PlainAdam(kSize, alpha, g, w, out, slots[0], slots[1]);
                 });
  BenchOptimizer("sgd_apply", "sgd {}",
                 [](const float* g, const float* w, float* out, float* const*) {
                   bench::PlainSgd(kSize, 0.01f, g, w, out);
                 });
  BenchOptimizer("adagrad_apply", "adagrad {}",
                 [](const float* g, const float* w, float* out, float* const* slots) {
                   bench::PlainAdagrad(kSize, 0.001f, g, w, out, slots[0]);
                 });
}

// Reads the accumulator and the bytes, writes the accumulator.
void BenchAddInto() {
  Buffer accumulator = Filled(4, 1.0f);
  const Buffer right = Filled(5, 1.0f);
  const auto run = [&](const std::function<void()>& add) {
    std::vector<float> want = Sample(accumulator), addend = Sample(right);
    for (size_t i = 0; i < want.size(); ++i) want[i] += addend[i];
    const double seconds = Seconds(add);
    if (Sample(accumulator) != want) Fail("add_into");
    return seconds;
  };
  Report(
      "add_into", 3.0 * kSize * sizeof(float),
      [&] { return run([&] { AddInto(accumulator.data(), right.data(), kSize); }); },
      [&] { return run([&] { bench::PlainAdd(kSize, accumulator.data(), right.data()); }); });
}

// Reads every value once.
void BenchAllFinite() {
  Buffer values = Filled(6, 1.0f);
  const auto ours = [&] {
    bool finite = false;
    const double seconds = Seconds([&] { finite = AllFinite(values.data(), kSize); });
    if (!finite) Fail("all_finite");
    return seconds;
  };
  const auto plain = [&] {
    size_t count = 1;
    const double seconds =
        Seconds([&] { count = bench::PlainCountNonFinite(kSize, values.data()); });
    if (count != 0) Fail("the plain count");
    return seconds;
  };
  Report("all_finite", 1.0 * kSize * sizeof(float), ours, plain);
  values.data()[kSize - 1] = INFINITY;
  if (AllFinite(values.data(), kSize)) Fail("all_finite with an infinity");
  if (FirstNonFinite(values.data(), kSize) != kSize - 1) Fail("first_non_finite");
}

}  // namespace
}  // namespace tandem

int main() {
  tandem::BenchOptimizers();
  tandem::BenchAddInto();
  tandem::BenchAllFinite();
}
