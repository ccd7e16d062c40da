#include "common/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/base/hash.h"

namespace tandem {
namespace {

v1::Manifest Example() {
  v1::Manifest manifest;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"pb(
        job {
          name: "00000000000000000000000000000000"
          seed: 7
          optimizer { sgd { learning_rate: 0.1 } }
        }
        variables { name: "a" shape: 3 shape: 1000 }
        variables { name: "b" shape: 5 }
        slots: 1
        step: 400
        cpu_isa: "avx2"
        files {
          name: "shard-0-of-2.safetensors"
          bytes: 100
          checksum: "0123456789abcdef0123456789abcdef"
          blocks { variable: "a" end: 2048 }
        }
        files {
          name: "shard-1-of-2.safetensors"
          bytes: 200
          checksum: "00000000000000000000000000000000"
          blocks { variable: "a" begin: 2048 end: 3000 }
          blocks { variable: "b" end: 5 }
        }
      )pb",
      &manifest));
  return manifest;
}

TEST(Manifest, ReadsWhatItWrote) {
  const std::string text = EncodeManifest(Example());
  auto manifest = DecodeManifest(text);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->format(), kManifestFormat);
  manifest->clear_format();
  manifest->clear_checksum();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*manifest, Example()));
}

TEST(Manifest, NoticesEveryFlippedBit) {
  const std::string text = EncodeManifest(Example());
  for (size_t byte = 0; byte < text.size(); ++byte) {
    std::string flipped = text;
    flipped[byte] = static_cast<char>(flipped[byte] ^ (1 << (byte % 8)));
    const absl::Status status = DecodeManifest(flipped).status();
    // A flip in the format's digit can look like a newer format.
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsFailedPrecondition(status))
        << byte << ": " << status;
  }
}

TEST(Manifest, NoticesEveryCut) {
  const std::string text = EncodeManifest(Example());
  for (size_t size = 0; size < text.size() - 1; ++size) {
    EXPECT_FALSE(DecodeManifest(text.substr(0, size)).ok()) << size;
  }
}

TEST(Manifest, RefusesANewerFormat) {
  const std::string text =
      absl::StrReplaceAll(EncodeManifest(Example()), {{"\"format\": 1", "\"format\": 2"}});
  const absl::Status status = DecodeManifest(text).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "has format 2; this version reads up to 1"));
}

TEST(Manifest, SaysWhatIsWrong) {
  const std::pair<std::string, std::function<void(v1::Manifest*)>> cases[] = {
      {"names no files", [](auto* m) { m->clear_files(); }},
      {"has too many slots", [](auto* m) { m->set_slots(1000); }},
      {"files[1]: expected shard-1-of-2.safetensors",
       [](auto* m) { m->mutable_files(1)->set_name("../../x"); }},
      {"files[0]: expected", [](auto* m) { m->mutable_files(0)->set_checksum("12"); }},
      {"\"c\" is no variable",
       [](auto* m) { m->mutable_files(1)->mutable_blocks(1)->set_variable("c"); }},
      {"variable \"a\": element 2048 of 3000 is in no file",
       [](auto* m) { m->mutable_files(1)->mutable_blocks(0)->set_begin(2049); }},
      {"variable \"a\": element 2048 of 3000",
       [](auto* m) { m->mutable_files(1)->mutable_blocks(0)->set_begin(2047); }},
      {"variable \"b\": element 0 of 5",
       [](auto* m) { m->mutable_files(1)->mutable_blocks(1)->set_end(6); }},
      {"variable \"b\": element 0 of 5",
       [](auto* m) { m->mutable_files(1)->mutable_blocks()->RemoveLast(); }},
      {"variable \"a\" has no name, or is there twice",
       [](auto* m) { m->mutable_variables(1)->set_name("a"); }},
      {"variable \"b\": bad shape", [](auto* m) { m->mutable_variables(1)->set_shape(0, 0); }},
      {"variable \"b\": bad shape",
       [](auto* m) {
         m->mutable_variables(1)->set_shape(0, uint64_t{1} << 40);
         m->mutable_variables(1)->add_shape(uint64_t{1} << 40);
       }},
  };
  for (const auto& [expected, change] : cases) {
    v1::Manifest manifest = Example();
    change(&manifest);
    const absl::Status status = DecodeManifest(EncodeManifest(manifest)).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << expected;
    EXPECT_TRUE(absl::StrContains(status.message(), expected)) << status;
  }
  EXPECT_TRUE(absl::StrContains(DecodeManifest("{}").status().message(), "is no manifest"));
}

TEST(Manifest, IgnoresWhatANewerWriterAdds) {
  const std::string zeros(32, '0');
  std::string text = EncodeManifest(Example());
  const std::string checksum = DecodeManifest(text)->checksum();
  text = absl::StrReplaceAll(
      text, {{"\"format\": 1,", "\"format\": 1,\n \"new\": [1, {}],"}, {checksum, zeros}});
  const std::string hash = absl::BytesToHexString(Hash128(text.data(), text.size()));
  text.replace(text.rfind(zeros), zeros.size(), hash);
  EXPECT_TRUE(DecodeManifest(text).ok()) << DecodeManifest(text).status();
}

}  // namespace
}  // namespace tandem
