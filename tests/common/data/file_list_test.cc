#include "common/data/file_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/common/data/test_files.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FileListTest, KeepsTheOrderGivenAndSortsWithinAGlob) {
  const std::string dir = NewFolder();
  for (const char* name : {"b1", "a10", "a2", "B", "_"}) WriteFile(dir, name, "x");
  const auto files = ExpandGlobs({dir + "/b?", dir + "/B", dir + "/[_Ba]*"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(dir + "/b1", dir + "/B", dir + "/B", dir + "/_", dir + "/a10",
                                  dir + "/a2"));
}

TEST(FileListTest, AGlobWithoutMatchIsNotFound) {
  const std::string pattern = NewFolder() + "/part-*.gz";
  const absl::Status status = ExpandGlobs({pattern}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(pattern));
}

TEST(FileListTest, ABackslashTakesAWildcardAtItsWord) {
  const std::string dir = NewFolder();
  WriteFile(dir, "a*", "x");
  WriteFile(dir, "ab", "x");
  const auto files = ExpandGlobs({dir + "/a\\*"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_THAT(*files, ElementsAre(dir + "/a*"));
}

}  // namespace
}  // namespace tandem
