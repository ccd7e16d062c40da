#include "common/data/gzip_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/common/data/test_files.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// All bytes of the file, by reads of `step` bytes.
absl::StatusOr<std::string> ReadAll(const std::string& path, size_t step) {
  auto reader = GzipReader::Open(path);
  if (!reader.ok()) return reader.status();
  std::string all, block(step, '\0');
  while (true) {
    const absl::StatusOr<size_t> got = (*reader)->Read(block.data(), step);
    if (!got.ok()) return got.status();
    all.append(block, 0, *got);
    if (*got < step) return all;
  }
}

// Neither constant nor random, and longer than the reader's input buffer even when compressed.
std::string LongText() {
  std::string text;
  uint64_t state = 1;
  for (int i = 0; i < 300000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    text += static_cast<char>('a' + (state >> 60));
  }
  return text;
}

absl::Status ErrorOf(const std::string& path) { return ReadAll(path, 1000).status(); }

TEST(GzipReaderTest, GivesTheSameBytesPlainAndCompressed) {
  const std::string dir = NewFolder(), text = LongText();
  const std::string plain = WriteFile(dir, "plain.gz", text);  // Names do not count.
  const std::string gzip = WriteFile(dir, "gzip.txt", Gzip(text));
  for (const size_t step : {1, 7, 65536, 1000000}) {
    EXPECT_TRUE(*ReadAll(plain, step) == text) << step;
    EXPECT_TRUE(*ReadAll(gzip, step) == text) << step;
  }
}

TEST(GzipReaderTest, JoinsSeveralMembers) {
  const std::string path =
      WriteFile(NewFolder(), "x", Gzip("one ") + Gzip("") + Gzip("two ") + Gzip(LongText()));
  EXPECT_TRUE(*ReadAll(path, 100) == "one two " + LongText());
}

TEST(GzipReaderTest, AnEmptyFileHasNoBytes) {
  const std::string dir = NewFolder();
  EXPECT_EQ(*ReadAll(WriteFile(dir, "a", ""), 10), "");
  EXPECT_EQ(*ReadAll(WriteFile(dir, "b", Gzip("")), 10), "");
  EXPECT_EQ(*ReadAll(WriteFile(dir, "c", "\x1f"), 10), "\x1f");
}

TEST(GzipReaderTest, EveryCutIsFound) {
  const std::string dir = NewFolder(), whole = Gzip("a text that is compressed");
  for (size_t size = 2; size < whole.size(); ++size) {
    const std::string path = WriteFile(dir, "cut", whole.substr(0, size));
    const absl::Status status = ErrorOf(path);
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": cut short"));
  }
}

TEST(GzipReaderTest, DamageAndWhatFollowsTheEndAreFound) {
  const std::string dir = NewFolder();
  std::string damaged = Gzip(LongText());
  damaged[damaged.size() - 5] ^= 1;  // In the check sum.
  for (const std::string& bytes : {damaged, Gzip("x") + "more", Gzip("x") + std::string(9, '\0')}) {
    const std::string path = WriteFile(dir, "damaged", bytes);
    const absl::Status status = ErrorOf(path);
    ASSERT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(path + ": damaged near byte "));
  }
}

TEST(GzipReaderTest, OpensRegularFilesOnly) {
  const std::string dir = NewFolder(), pipe = dir + "/pipe";
  EXPECT_EQ(ErrorOf(dir + "/none"), absl::NotFoundError(dir + "/none: no such file"));
  EXPECT_EQ(ErrorOf(dir), absl::InvalidArgumentError(dir + ": a folder: expected a file"));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf(pipe).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("/dev/zero").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tandem
