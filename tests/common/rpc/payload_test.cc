#include "common/rpc/payload.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

// `bytes` in pieces of the given sizes, each in an allocation of its own, at an odd address.
Payload Cut(const std::string& bytes, const std::vector<size_t>& sizes) {
  Payload payload;
  size_t at = 0;
  for (size_t size : sizes) {
    auto piece = std::make_shared<std::string>("x" + bytes.substr(at, size));
    payload.Append(piece->data() + 1, size, piece);
    at += size;
  }
  return payload;
}

std::string Bytes(const std::vector<float>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// Each run that the cursor gives, as floats.
std::vector<std::vector<float>> Runs(FloatCursor* cursor, size_t most) {
  std::vector<std::vector<float>> runs;
  while (true) {
    size_t n;
    const void* run = cursor->Next(most, &n);
    if (n == 0) return runs;
    runs.emplace_back(n);
    std::memcpy(runs.back().data(), run, n * sizeof(float));
  }
}

TEST(Payload, CountsItsBytesAndSkipsEmptyPieces) {
  Payload payload = Cut("abcdef", {2, 0, 4});
  EXPECT_EQ(payload.bytes(), 6u);
  EXPECT_EQ(payload.pieces().size(), 2u);
  std::string out(6, '.');
  payload.CopyTo(out.data());
  EXPECT_EQ(out, "abcdef");
}

TEST(Payload, AppendsAnother) {
  Payload payload = Cut("ab", {2});
  payload.Append(Cut("cde", {1, 2}));
  EXPECT_EQ(payload.bytes(), 5u);
  std::string out(5, '.');
  payload.CopyTo(out.data());
  EXPECT_EQ(out, "abcde");
}

TEST(Payload, KeepsItsOwnersAlive) {
  auto owner = std::make_shared<std::string>("abcd");
  std::weak_ptr<std::string> watch = owner;
  auto payload = std::make_unique<Payload>(owner->data(), owner->size(), owner);
  owner.reset();
  EXPECT_FALSE(watch.expired());
  const Payload copy = *payload;
  payload.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(copy.pieces()[0].data[3], 'd');
}

TEST(FloatCursor, GivesRunsThatLieInOnePiece) {
  // 16 bytes as 10 + 6: two whole values, one of 2 + 2 bytes, one whole value.
  const Payload payload = Cut(Bytes({1, 2, 3, 4}), {10, 6});
  FloatCursor cursor(&payload);
  EXPECT_THAT(Runs(&cursor, 100), ElementsAre(ElementsAre(1, 2), ElementsAre(3), ElementsAre(4)));
}

TEST(FloatCursor, GivesAtMostAsManyAsAskedFor) {
  const Payload payload = Cut(Bytes({1, 2, 3, 4, 5}), {20});
  FloatCursor cursor(&payload);
  EXPECT_THAT(Runs(&cursor, 2), ElementsAre(ElementsAre(1, 2), ElementsAre(3, 4), ElementsAre(5)));
}

TEST(FloatCursor, StitchesAValueFromSeveralPieces) {
  const Payload payload = Cut(Bytes({1.5f, -2.25f}), {1, 2, 3, 1, 1});
  FloatCursor cursor(&payload);
  EXPECT_THAT(Runs(&cursor, 100), ElementsAre(ElementsAre(1.5f), ElementsAre(-2.25f)));
}

TEST(FloatCursor, WaitsForTheRestOfAValue) {
  const std::string bytes = Bytes({1, 2});
  Payload payload = Cut(bytes.substr(0, 5), {5});
  FloatCursor cursor(&payload);
  EXPECT_THAT(Runs(&cursor, 100), ElementsAre(ElementsAre(1)));
  EXPECT_THAT(Runs(&cursor, 100), ElementsAre());  // One byte of the second.
  payload.Append(Cut(bytes.substr(5, 2), {2}));
  EXPECT_THAT(Runs(&cursor, 100), ElementsAre());  // Three bytes.
  payload.Append(Cut(bytes.substr(7), {1}));
  EXPECT_THAT(Runs(&cursor, 100), ElementsAre(ElementsAre(2)));
}

TEST(FloatCursor, GivesNothingOfNothing) {
  const Payload payload;
  FloatCursor cursor(&payload);
  size_t n = 7;
  cursor.Next(1, &n);
  EXPECT_EQ(n, 0u);
}

// However it is cut and in whatever portions it is read, the values are the same.
TEST(FloatCursor, CutsDoNotShow) {
  std::mt19937 random(1);
  std::vector<float> values(100);
  for (float& value : values) value = static_cast<float>(random());
  for (int round = 0; round < 500; ++round) {
    std::vector<size_t> sizes;
    for (size_t left = values.size() * sizeof(float); left > 0; left -= sizes.back()) {
      sizes.push_back(std::min<size_t>(left, random() % (round % 2 == 0 ? 6 : 90)));
    }
    const Payload payload = Cut(Bytes(values), sizes);
    FloatCursor cursor(&payload);
    std::vector<float> read;
    while (true) {
      size_t n;
      const void* run = cursor.Next(1 + random() % 20, &n);
      if (n == 0) break;
      read.resize(read.size() + n);
      std::memcpy(&read[read.size() - n], run, n * sizeof(float));
    }
    ASSERT_EQ(read, values);
  }
}

}  // namespace
}  // namespace tandem
