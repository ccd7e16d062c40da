#include "common/rpc/backoff.h"

#include <cstdint>
#include <set>

#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(Backoff, DoublesUpToTheMostWithJitterBelow) {
  // Whole waits: 20, 40, 80, ..., 1280, then 2000 for good. Each draw is in [half, whole].
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Backoff backoff(seed);
    for (int64_t whole : {20, 40, 80, 160, 320, 640, 1280, 2000, 2000, 2000}) {
      const int64_t wait = backoff.NextMs();
      EXPECT_GE(wait, whole / 2);
      EXPECT_LE(wait, whole);
    }
  }
}

TEST(Backoff, ReachesBothEndsOfTheRange) {
  BackoffOptions options;
  options.first_ms = options.max_ms = 3;
  Backoff backoff(1, options);
  std::set<int64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert(backoff.NextMs());
  EXPECT_EQ(seen, (std::set<int64_t>{1, 2, 3}));
}

TEST(Backoff, DoesNotOverflowAfterManyFailures) {
  Backoff backoff(1);
  for (int i = 0; i < 10000; ++i) backoff.NextMs();
  const int64_t wait = backoff.NextMs();
  EXPECT_GE(wait, 1000);
  EXPECT_LE(wait, 2000);
}

TEST(Backoff, BeginsAgainAfterASuccess) {
  Backoff backoff(1);
  for (int i = 0; i < 8; ++i) backoff.NextMs();
  backoff.Reset();
  EXPECT_LE(backoff.NextMs(), 20);
  EXPECT_LE(backoff.NextMs(), 40);
}

TEST(Backoff, IsAFunctionOfTheSeed) {
  Backoff a(7), b(7), other(8);
  bool differs = false;
  for (int i = 0; i < 20; ++i) {
    const int64_t wait = a.NextMs();
    EXPECT_EQ(wait, b.NextMs());
    differs = differs || wait != other.NextMs();
  }
  EXPECT_TRUE(differs);
}

// Those that failed together do not come back together.
TEST(Backoff, SpreadsManyClients) {
  std::set<int64_t> waits;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Backoff backoff(seed);
    for (int i = 0; i < 7; ++i) backoff.NextMs();
    waits.insert(backoff.NextMs());
  }
  EXPECT_GT(waits.size(), 500u);  // Of 1001 values.
}

}  // namespace
}  // namespace tandem
