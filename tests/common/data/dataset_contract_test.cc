// What dataset.h promises, of every format. A new format joins by one entry in Cases().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/data/dataset.h"
#include "tests/common/data/test_files.h"

namespace tandem {
namespace {

using testing::HasSubstr;

struct File {
  std::string name, bytes;
};

struct Case {
  std::string name;
  std::vector<File> files;
  std::function<v1::Dataset(const std::vector<std::string>&)> spec;
  size_t examples;
  size_t elements;
};

constexpr size_t kExamples = 23;

// `count` images of 2 x 3 from the `begin`th on, and labels.
std::string Images(size_t begin, size_t count) {
  std::vector<uint8_t> data;
  for (size_t i = begin * 6; i < (begin + count) * 6; ++i) data.push_back(i * 37 % 251);
  return IdxBytes({static_cast<uint32_t>(count), 2, 3}, data);
}
std::string Labels(size_t begin, size_t count) {
  std::vector<uint8_t> data;
  for (size_t i = begin; i < begin + count; ++i) data.push_back(i % 10);
  return IdxBytes({static_cast<uint32_t>(count)}, data);
}

std::string LibSvmText(size_t begin, size_t count) {
  std::string text;
  for (size_t i = begin; i < begin + count; ++i) {
    absl::StrAppend(&text, i % 2, " ", i % 4 + 1, ":0.", i + 1, " 5:", i, "\n");
  }
  return text;
}

v1::Dataset LibSvmSpec5(const std::vector<std::string>& files) { return LibSvmSpec(files, 5); }

std::vector<Case> Cases() {
  return {
      {"Idx", {{"i", Images(0, 23)}, {"l", Labels(0, 23)}}, IdxSpec, kExamples, 6},
      {"IdxGzip", {{"i", Gzip(Images(0, 23))}, {"l", Gzip(Labels(0, 23))}}, IdxSpec, kExamples, 6},
      {"IdxTwoPairs",
       {{"i1", Images(0, 9)}, {"l1", Labels(0, 9)}, {"i2", Images(9, 14)}, {"l2", Labels(9, 14)}},
       IdxSpec,
       kExamples,
       6},
      {"LibSvm", {{"x", LibSvmText(0, 23)}}, LibSvmSpec5, kExamples, 5},
      {"LibSvmGzip", {{"x", Gzip(LibSvmText(0, 23))}}, LibSvmSpec5, kExamples, 5},
      {"LibSvmTwoFiles",
       {{"x", LibSvmText(0, 9)}, {"y", Gzip(LibSvmText(9, 14))}},
       LibSvmSpec5,
       kExamples,
       5},
  };
}

class DatasetContractTest : public testing::TestWithParam<Case> {
 protected:
  DatasetContractTest() {
    for (const File& file : GetParam().files) {
      paths_.push_back(WriteFile(dir_, file.name, file.bytes));
    }
    spec_ = GetParam().spec(paths_);
  }

  std::unique_ptr<const Dataset> Open() {
    auto dataset = OpenDataset(spec_, Split::kTrain);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    return dataset.ok() ? *std::move(dataset) : nullptr;
  }

  // Open and Scan must agree on what the files hold, or on what is wrong with them: a message of
  // one line that names a file. Returns the status of both.
  absl::Status CheckAgreement() {
    const auto dataset = OpenDataset(spec_, Split::kTrain);
    const absl::StatusOr<DatasetInfo> scanned = ScanDataset(spec_, Split::kTrain);
    EXPECT_EQ(dataset.status(), scanned.status());
    if (dataset.ok() && scanned.ok()) {
      const DatasetInfo& opened = (*dataset)->info();
      EXPECT_EQ(opened.examples, scanned->examples);
      EXPECT_EQ(opened.example_shape, scanned->example_shape);
      EXPECT_EQ(opened.min_label, scanned->min_label);
      EXPECT_EQ(opened.max_label, scanned->max_label);
    } else {
      EXPECT_THAT(std::string(dataset.status().message()), HasSubstr(dir_ + "/"));
      EXPECT_FALSE(absl::StrContains(dataset.status().message(), "\n")) << dataset.status();
    }
    return dataset.status();
  }

  const std::string dir_ = NewFolder();
  std::vector<std::string> paths_;
  v1::Dataset spec_;
};

TEST_P(DatasetContractTest, ScanAgreesWithOpen) {
  EXPECT_TRUE(CheckAgreement().ok());
  EXPECT_EQ(Open()->info().examples, GetParam().examples);
}

TEST_P(DatasetContractTest, AnyOrderReadsWhatOneByOneReads) {
  const auto dataset = Open();
  const size_t elements = GetParam().elements;
  std::vector<uint64_t> indices;
  for (size_t i = 0; i < 4 * kExamples; ++i) indices.push_back(i * i * 7 % kExamples);  // Repeats.
  Batch all, one;
  ASSERT_TRUE(dataset->Read(indices, &all).ok());
  ASSERT_EQ(all.size, indices.size());
  ASSERT_EQ(all.features.size(), indices.size() * elements);
  ASSERT_EQ(all.labels.size(), indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    ASSERT_TRUE(dataset->Read({indices[i]}, &one).ok());
    EXPECT_EQ(one.labels[0], all.labels[i]);
    for (size_t j = 0; j < elements; ++j) {
      EXPECT_EQ(one.features[j], all.features[i * elements + j]);
    }
  }
}

TEST_P(DatasetContractTest, ABatchMayShrinkAndGrow) {
  const auto dataset = Open();
  Batch batch, fresh;
  for (const std::vector<uint64_t>& indices :
       {std::vector<uint64_t>{1, 2, 3}, {}, {4}, {4, 3, 2, 1, 0}}) {
    ASSERT_TRUE(dataset->Read(indices, &batch).ok());
    fresh = Batch();
    ASSERT_TRUE(dataset->Read(indices, &fresh).ok());
    EXPECT_EQ(batch.size, indices.size());
    EXPECT_EQ(batch.features, fresh.features);
    EXPECT_EQ(batch.labels, fresh.labels);
  }
}

TEST_P(DatasetContractTest, AnIndexPastTheEndIsAnError) {
  const auto dataset = Open();
  Batch batch;
  for (const uint64_t index : {uint64_t{kExamples}, ~uint64_t{0}}) {
    EXPECT_EQ(dataset->Read({0, index}, &batch).code(), absl::StatusCode::kOutOfRange);
  }
}

TEST_P(DatasetContractTest, ThreadsMayReadAtOnce) {
  const auto dataset = Open();
  std::vector<uint64_t> all;
  for (uint64_t i = 0; i < kExamples; ++i) all.push_back(i);
  Batch expected;
  ASSERT_TRUE(dataset->Read(all, &expected).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Batch batch;
      for (int i = 0; i < 200; ++i) {
        EXPECT_TRUE(dataset->Read(all, &batch).ok());
        EXPECT_TRUE(batch.features == expected.features && batch.labels == expected.labels);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(DatasetContractTest, FilesMayBeAGlob) {
  const Batch expected = [&] {
    Batch batch;
    EXPECT_TRUE(Open()->Read({0, 10, 22}, &batch).ok());
    return batch;
  }();
  spec_.clear_train_files();
  spec_.add_train_files(dir_ + "/*");
  Batch batch;
  ASSERT_TRUE(Open()->Read({0, 10, 22}, &batch).ok());
  EXPECT_EQ(batch.features, expected.features);
  EXPECT_EQ(batch.labels, expected.labels);
}

TEST_P(DatasetContractTest, TestFilesAreAListOfTheirOwn) {
  const absl::StatusOr<DatasetInfo> none = ScanDataset(spec_, Split::kTest);
  EXPECT_EQ(none.status(),
            absl::InvalidArgumentError("dataset.test_files: expected at least one file"));
  spec_.mutable_test_files()->Swap(spec_.mutable_train_files());
  EXPECT_TRUE(ScanDataset(spec_, Split::kTest).ok());
  EXPECT_FALSE(OpenDataset(spec_, Split::kTrain).ok());
}

TEST_P(DatasetContractTest, WhatIsMissingOrNoFileIsNamed) {
  const std::string path = spec_.train_files(0);
  for (const std::string& wrong : {dir_ + "/none", dir_ + "/none*", path + "/x"}) {
    spec_.set_train_files(0, wrong);
    const absl::Status status = CheckAgreement();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(wrong + ": "));
  }
  for (const std::string& wrong : {dir_ + "/", WriteFile(dir_, "empty", "")}) {
    spec_.set_train_files(0, wrong);
    const absl::Status status = CheckAgreement();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(wrong + ": "));
  }
}

TEST_P(DatasetContractTest, EveryPrefixOfAFileGivesAStatus) {
  for (const File& file : GetParam().files) {
    const bool text = GetParam().name.find("LibSvm") == 0 && file.bytes[0] != '\x1f';
    for (size_t size = 0; size < file.bytes.size(); ++size) {
      WriteFile(dir_, file.name, file.bytes.substr(0, size));
      const absl::Status status = CheckAgreement();
      // A text may well end early; every other format knows its size.
      if (!text || size == 0) {
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << file.name << " " << size;
        EXPECT_THAT(std::string(status.message()), HasSubstr(dir_ + "/" + file.name + ":"));
      }
    }
    WriteFile(dir_, file.name, file.bytes);
  }
}

TEST_P(DatasetContractTest, EveryFlippedBitGivesAStatus) {
  for (const File& file : GetParam().files) {
    for (size_t i = 0; i < file.bytes.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = file.bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
        WriteFile(dir_, file.name, damaged);
        CheckAgreement().IgnoreError();  // Some damage cannot be told from data.
      }
    }
    WriteFile(dir_, file.name, file.bytes);
  }
}

TEST_P(DatasetContractTest, AppendedBytesAreFound) {
  for (const File& file : GetParam().files) {
    WriteFile(dir_, file.name, file.bytes + "x");
    EXPECT_EQ(CheckAgreement().code(), absl::StatusCode::kInvalidArgument);
    WriteFile(dir_, file.name, file.bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, DatasetContractTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(DatasetTest, AnEmptyPathIsNamedByItsField) {
  EXPECT_EQ(ScanDataset(IdxSpec({"x", ""}), Split::kTrain).status(),
            absl::InvalidArgumentError("dataset.train_files: expected paths, found \"\""));
}

TEST(DatasetTest, AMissingFormatIsNamed) {
  v1::Dataset spec;
  spec.add_train_files("/dev/null");
  const absl::Status status = OpenDataset(spec, Split::kTrain).status();
  EXPECT_EQ(status, absl::InvalidArgumentError(
                        "dataset: the format is missing: expected dataset.idx or dataset.libsvm"));
  EXPECT_EQ(ScanDataset(spec, Split::kTrain).status(), status);
}

}  // namespace
}  // namespace tandem
