// The real files of Debian's package dataset-fashion-mnist, where it is installed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>

#include "common/data/dataset.h"

namespace tandem {
namespace {

using testing::ElementsAre;

constexpr char kFolder[] = "/usr/share/datasets/fashion-mnist";

// The sanitizers' own memory would count.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMeasureMemory = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kMeasureMemory = false;
#else
constexpr bool kMeasureMemory = true;
#endif
#else
constexpr bool kMeasureMemory = true;
#endif

// The most memory that this process has used so far; 0 where that would say nothing.
size_t PeakMegabytes() {
  if (!kMeasureMemory) return 0;
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss >> 10;
}

// One test, because the peak of a process never falls: scanning has to come first.
TEST(FashionMnistTest, ScansAndOpensInLittleMemory) {
  if (!std::filesystem::exists(kFolder)) {
    GTEST_SKIP() << kFolder << " is not there: apt-get install dataset-fashion-mnist";
  }
  v1::Dataset spec;
  spec.mutable_idx();
  spec.add_train_files(std::string(kFolder) + "/train-*");
  spec.add_test_files(std::string(kFolder) + "/t10k-*");

  const absl::StatusOr<DatasetInfo> info = ScanDataset(spec, Split::kTrain);
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->examples, 60000);
  EXPECT_THAT(info->example_shape, ElementsAre(28, 28));
  EXPECT_EQ(info->min_label, 0);
  EXPECT_EQ(info->max_label, 9);
  EXPECT_LT(PeakMegabytes(), 40);

  const auto train = OpenDataset(spec, Split::kTrain);
  ASSERT_TRUE(train.ok()) << train.status();
  // 45 MiB of pixels, and one copy of them only.
  EXPECT_LT(PeakMegabytes(), 90);

  const auto test = OpenDataset(spec, Split::kTest);
  ASSERT_TRUE(test.ok()) << test.status();
  EXPECT_EQ((*test)->info().examples, 10000);
  Batch batch;
  ASSERT_TRUE((*test)->Read({0, 1, 2, 9999}, &batch).ok());
  EXPECT_THAT(batch.labels, ElementsAre(9, 2, 1, 5));
}

}  // namespace
}  // namespace tandem
