// A step of a tiny model costs microseconds, so a replica may not go to the heap in a steady state.
#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "common/nn/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/nn/jobs.h"

namespace {

std::atomic<int> allocations = 0;

void* Count(size_t size, size_t alignment) {
  ++allocations;
  // aligned_alloc wants a multiple.
  void* p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p == nullptr) std::abort();
  return p;
}

}  // namespace

void* operator new(size_t size) { return Count(size, alignof(std::max_align_t)); }
void* operator new[](size_t size) { return Count(size, alignof(std::max_align_t)); }
void* operator new(size_t size, std::align_val_t a) { return Count(size, static_cast<size_t>(a)); }
void* operator new[](size_t size, std::align_val_t a) {
  return Count(size, static_cast<size_t>(a));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace tandem {
namespace {

TEST(Replica, DoesNotAllocateOnceSizesAreKnown) {
  const auto model = ModelOf(JobOf(R"pb(model {
                                          layers { flatten {} }
                                          layers { dense { units: 64 activation: "silu" } }
                                          layers { activation { activation: "tanh" } }
                                          layers { dense { units: 10 activation: "softmax" } }
                                        }
                                        loss { sparse_categorical_crossentropy {} }
                                        metrics { accuracy {} })pb"),
                             {6, 7});
  const std::vector<float> weights = InitialWeights(*model, 1);
  std::vector<float> gradient(weights.size());
  const Batch batches[] = {RandomBatch(2, 42, 10, 1), RandomBatch(33, 42, 10, 2)};
  const auto replica = Replica::Create(model.get());
  v1::Sums sums;
  const auto pass = [&] {
    bool ok = true;
    for (const Batch& batch : batches) {
      ok &= replica->ComputeGradient(batch, weights.data(), 1, gradient.data(), &sums).ok();
      ok &= replica->Evaluate(batch, weights.data(), &sums).ok();
    }
    return ok;
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(pass());
  const int before = allocations;
  EXPECT_GT(before, 0);
  EXPECT_TRUE(pass());
  EXPECT_EQ(allocations, before);
}

}  // namespace
}  // namespace tandem
