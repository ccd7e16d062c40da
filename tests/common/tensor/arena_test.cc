#include "common/tensor/arena.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(Arena, AlignsAndDoesNotOverlap) {
  Arena arena;
  float* a = arena.Allocate(1);
  float* b = arena.Allocate(17);
  float* c = arena.Allocate(0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % kBufferAlignment, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % kBufferAlignment, 0u);
  EXPECT_GE(b, a + 1);
  EXPECT_GE(c, b + 17);
}

TEST(Arena, ARepeatedPatternNeedsNoMoreMemory) {
  Arena arena;
  for (size_t size : {10, 5000, 100, 20000}) arena.Allocate(size);
  arena.Reset();
  const size_t capacity = arena.capacity();
  float* first = arena.Allocate(10);
  for (size_t size : {5000, 100, 20000}) arena.Allocate(size);
  arena.Reset();
  EXPECT_EQ(arena.capacity(), capacity);
  EXPECT_EQ(arena.Allocate(10), first);
}

}  // namespace
}  // namespace tandem
