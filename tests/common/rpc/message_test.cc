#include "common/rpc/message.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.pb.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

Payload Of(const std::string& bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  return Payload(owner->data(), owner->size(), owner);
}

std::string Text(const Payload& payload) {
  std::string text(payload.bytes(), '\0');
  payload.CopyTo(text.data());
  return text;
}

std::string Wire(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string wire;
  for (const grpc::Slice& slice : slices) {
    wire.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return wire;
}

// `wire` in slices of at most `most` bytes.
grpc::ByteBuffer Slices(const std::string& wire, size_t most) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < wire.size(); at += most) {
    slices.emplace_back(wire.data() + at, std::min(most, wire.size() - at));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

v1::ExchangeRequest SomePush() {
  v1::ExchangeRequest request;
  request.mutable_push()->set_map_epoch(3);
  request.mutable_push()->set_step(1234567);
  v1::Block* block = request.mutable_push()->add_blocks();
  block->set_variable("dense/kernel");
  block->set_end(2048);
  request.mutable_pull()->set_version(7);
  return request;
}

TEST(EncodeMessage, IsAnOrdinaryProtobufMessage) {
  const std::string wire = Wire(EncodeMessage(SomePush(), Of("tensor")));
  v1::ExchangeRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(wire));
  EXPECT_EQ(parsed.payload(), "tensor");
  EXPECT_EQ(parsed.push().step(), 1234567u);
  // And an ordinary protobuf library's bytes are the same.
  v1::ExchangeRequest whole = SomePush();
  whole.set_payload("tensor");
  EXPECT_EQ(wire, whole.SerializeAsString());
}

TEST(EncodeMessage, ReferencesThePayloadsMemory) {
  auto owner = std::make_shared<std::string>(100000, 'x');
  std::weak_ptr<std::string> watch = owner;
  const char* memory = owner->data();
  Payload payload(memory, owner->size(), owner);
  owner.reset();
  auto buffer = std::make_unique<grpc::ByteBuffer>(EncodeMessage(v1::ExchangeRequest(), payload));
  payload = Payload();
  ASSERT_FALSE(watch.expired());
  {
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(buffer->Dump(&slices).ok());
    EXPECT_EQ(reinterpret_cast<const char*>(slices.back().begin()), memory);
  }
  buffer.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(DecodeMessage, RoundTripInSlicesOfAnySize) {
  const std::string tensor(5000, 't');
  const std::string wire = Wire(EncodeMessage(SomePush(), Of(tensor)));
  for (size_t most : {1, 2, 3, 7, 64, 4096, 100000}) {
    v1::ExchangeRequest header;
    Payload payload;
    const absl::Status status = DecodeMessage(Slices(wire, most), &header, &payload);
    ASSERT_TRUE(status.ok()) << status << ", slices of " << most;
    EXPECT_EQ(header.SerializeAsString(), SomePush().SerializeAsString());
    EXPECT_EQ(Text(payload), tensor);
  }
}

TEST(DecodeMessage, HeaderAlone) {
  v1::ExchangeRequest header;
  Payload payload;
  ASSERT_TRUE(DecodeMessage(EncodeMessage(SomePush(), Payload()), &header, &payload).ok());
  EXPECT_EQ(header.SerializeAsString(), SomePush().SerializeAsString());
  EXPECT_EQ(payload.bytes(), 0u);
}

TEST(DecodeMessage, PayloadAlone) {
  v1::ExchangeRequest header;
  Payload payload;
  ASSERT_TRUE(
      DecodeMessage(EncodeMessage(v1::ExchangeRequest(), Of("xyz")), &header, &payload).ok());
  EXPECT_EQ(header.ByteSizeLong(), 0u);
  EXPECT_EQ(Text(payload), "xyz");
}

TEST(DecodeMessage, KeepsTheMessageAlive) {
  v1::ExchangeRequest header;
  Payload payload;
  {
    auto buffer =
        std::make_unique<grpc::ByteBuffer>(Slices(Wire(EncodeMessage(SomePush(), Of("abc"))), 2));
    ASSERT_TRUE(DecodeMessage(*buffer, &header, &payload).ok());
  }
  EXPECT_EQ(Text(payload), "abc");
}

absl::Status Decode(const std::string& wire) {
  v1::ExchangeRequest header;
  Payload payload;
  return DecodeMessage(Slices(wire, 1000), &header, &payload);
}

// Tags: push is field 1 and pull field 2, length-delimited (0x0a, 0x12); payload is field 15
// (0x7a).
TEST(DecodeMessage, RefusesAPayloadThatIsNotLast) {
  const absl::Status status = Decode(std::string("\x7a\x01x\x12\x00", 5));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("must be the message's last field"));
}

TEST(DecodeMessage, RefusesALengthThatIsNotThePayloads) {
  for (const char* wire : {"\x7a\x05xyz", "\x7a\x02xyz", "\x7a\xff\xff\xff\xff\x0fxyz"}) {
    const absl::Status status = Decode(wire);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), HasSubstr("but 3 follow"));
  }
}

TEST(DecodeMessage, RefusesAPayloadLongerThanAChunk) {
  v1::ExchangeRequest header;
  Payload payload;
  ASSERT_TRUE(
      DecodeMessage(EncodeMessage(header, Of(std::string(kMaxChunkBytes, 'x'))), &header, &payload)
          .ok());
  const absl::Status status = DecodeMessage(
      EncodeMessage(header, Of(std::string(kMaxChunkBytes + 1, 'x'))), &header, &payload);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("at most 16777216"));
}

TEST(DecodeMessage, RefusesWhatIsNotAMessage) {
  v1::ExchangeRequest header;
  Payload payload;
  EXPECT_EQ(DecodeMessage(grpc::ByteBuffer(), &header, &payload).code(),
            absl::StatusCode::kInvalidArgument);
  // An end-group tag, a tag of field 0, a push that is cut short, a length without its bytes.
  for (const std::string& wire : {std::string("\x0c"), std::string("\x00\x00", 2),
                                  std::string("\x0a\x05x"), std::string("\x7a")}) {
    EXPECT_EQ(Decode(wire).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(DecodeMessage, EveryTruncationIsAStatus) {
  const std::string wire = Wire(EncodeMessage(SomePush(), Of("tensor")));
  for (size_t size = 1; size < wire.size(); ++size) {
    const absl::Status status = Decode(wire.substr(0, size));
    v1::ExchangeRequest whole;
    // Cut between two fields it is a message, and nowhere else.
    EXPECT_EQ(status.ok(), whole.ParseFromString(wire.substr(0, size))) << size << ": " << status;
  }
}

TEST(DecodeMessage, GarbageIsAStatus) {
  std::mt19937 random(1);
  const std::string valid = Wire(EncodeMessage(SomePush(), Of("tensor")));
  for (int round = 0; round < 20000; ++round) {
    std::string wire;
    if (round % 2 == 0) {
      wire.resize(random() % 60);
      for (char& byte : wire) byte = static_cast<char>(random());
    } else {
      wire = valid;
      for (int flips = 0; flips < 3; ++flips) {
        wire[random() % wire.size()] = static_cast<char>(random());
      }
    }
    v1::ExchangeRequest header, whole;
    Payload payload;
    const absl::Status status = DecodeMessage(Slices(wire, 1 + random() % 30), &header, &payload);
    if (status.ok()) {  // Then protobuf reads the same.
      ASSERT_TRUE(whole.ParseFromString(wire));
      EXPECT_EQ(whole.payload(), Text(payload));
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace tandem
