#include "common/data/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/common/data/test_files.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<std::vector<std::string>> Lines(const std::string& bytes) {
  auto source = GzipReader::Open(WriteFile(NewFolder(), "text", bytes));
  if (!source.ok()) return source.status();
  LineReader reader(*std::move(source));
  std::vector<std::string> lines;
  absl::string_view line;
  while (true) {
    const absl::StatusOr<bool> more = reader.Next(&line);
    if (!more.ok()) return more.status();
    if (!*more) return lines;
    lines.emplace_back(line);
  }
}

TEST(LineReaderTest, TakesEveryKindOfLineEnd) {
  EXPECT_THAT(*Lines(""), ElementsAre());
  EXPECT_THAT(*Lines("\n"), ElementsAre(""));
  EXPECT_THAT(*Lines("a\r\n\r\nb\n c\rd"), ElementsAre("a", "", "b", " c\rd"));
  EXPECT_THAT(*Lines(Gzip("a\nb\r")), ElementsAre("a", "b"));
}

TEST(LineReaderTest, LinesMayBeLongerThanItsBuffer) {
  std::vector<std::string> lines;
  std::string text;
  for (const size_t size : {10, 300000, 0, 262143, 262144, 2000000, 3}) {
    lines.push_back(std::string(size, static_cast<char>('a' + lines.size())));
    text += lines.back() + "\n";
  }
  EXPECT_TRUE(*Lines(text) == lines);
}

TEST(LineReaderTest, ALineHasALimit) {
  const absl::Status status =
      Lines("a\n" + std::string(LineReader::kMaxLineBytes + 1, 'x')).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("text:2: expected a line of less than"));
}

}  // namespace
}  // namespace tandem
