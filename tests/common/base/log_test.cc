#include "common/base/log.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::Each;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

TEST(Log, WritesTimeNameAndText) {
  SetLogName("worker 7");
  testing::internal::CaptureStderr();
  Log("hello");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("[0-9-]{10} [0-9:]{8}\\.[0-9]{3} worker 7: hello\n"));
}

TEST(Log, KeepsAMessageOnOneLine) {
  SetLogName("worker 7");
  testing::internal::CaptureStderr();
  Log("first\nsecond\rthird");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("[^\n]* worker 7: first second third\n"));
}

TEST(Log, DoesNotMixTheLinesOfThreads) {
  SetLogName("worker 7");
  testing::internal::CaptureStderr();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 50; ++k) Log("a line of some length");
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines =
      absl::StrSplit(testing::internal::GetCapturedStderr(), '\n', absl::SkipEmpty());
  EXPECT_THAT(lines, SizeIs(200));
  EXPECT_THAT(lines, Each(MatchesRegex(".{23} worker 7: a line of some length")));
}

TEST(LogEvery, SpeaksAtOnceAndThenOnceAnInterval) {
  LogEvery every(absl::Seconds(10));
  const absl::Time start = absl::UnixEpoch();
  EXPECT_TRUE(every.Due(start));
  EXPECT_FALSE(every.Due(start + absl::Seconds(9)));
  EXPECT_TRUE(every.Due(start + absl::Seconds(10)));
  EXPECT_FALSE(every.Due(start + absl::Seconds(19)));
  EXPECT_TRUE(every.Due(start + absl::Seconds(60)));  // A pause is not made up for.
  EXPECT_FALSE(every.Due(start + absl::Seconds(61)));
}

}  // namespace
}  // namespace tandem
