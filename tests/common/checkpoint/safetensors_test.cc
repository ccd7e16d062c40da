#include "common/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/match.h"

namespace tandem {
namespace {

TEST(Safetensors, ReadsWhatItWrote) {
  const std::string encoded = EncodeSafetensorsHeader(
      {{"b", {0, 8}}, {"a", {8, 20}}, {"empty", {20, 20}}}, {{"k", "v\"\n"}});
  EXPECT_EQ(encoded.size() % 64, 0u);
  uint64_t length;
  std::memcpy(&length, encoded.data(), 8);
  EXPECT_EQ(length, encoded.size() - 8);
  const auto header = DecodeSafetensorsHeader(encoded.substr(8), 20);
  ASSERT_TRUE(header.ok()) << header.status();
  EXPECT_EQ(header->bytes, encoded.size());
  EXPECT_EQ(header->tensors.at("a").begin, 8u);
  EXPECT_EQ(header->tensors.at("a").end, 20u);
  EXPECT_EQ(header->tensors.size(), 3u);
  EXPECT_EQ(header->metadata.at("k"), "v\"\n");
}

TEST(Safetensors, SaysWhatIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is no JSON object"},
      {"[]", "is no JSON object"},
      {"{\"a\":", "is no JSON object"},
      {R"({"__metadata__":3})", "expected an object"},
      {R"({"__metadata__":{"a":3}})", "expected texts"},
      {R"({"a":3})", "expected dtype F32"},
      {R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}})", "expected dtype F32"},
      {R"({"a":{"dtype":"F32","shape":[2]}})", "expected data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", "expected data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", "expected data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8,9]}})", "expected data_offsets"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,8]}})", "expected a shape"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "the shape needs 12 bytes"},
      {R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})",
       "the shape is too large"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "the file has 8"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "belongs to none"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       "belongs to none or to two"},
      {R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "the file has 8"},
  };
  for (const auto& [header, expected] : cases) {
    const absl::Status status = DecodeSafetensorsHeader(header, 8).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << header;
    EXPECT_TRUE(absl::StrContains(status.message(), expected)) << header << ": " << status;
  }
}

TEST(Safetensors, SurvivesDeepNesting) {
  std::string deep(100000, '[');
  EXPECT_TRUE(absl::IsDataLoss(DecodeSafetensorsHeader(deep, 0).status()));
}

}  // namespace
}  // namespace tandem
