#include "common/data/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/data/dataset.h"
#include "tests/common/data/test_files.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class IdxTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::vector<uint32_t>& dimensions,
                    const std::vector<uint8_t>& data) {
    return WriteFile(dir_, name, IdxBytes(dimensions, data));
  }

  // The message of the INVALID_ARGUMENT that both OpenDataset and ScanDataset give for `files`.
  std::string ErrorOf(const std::vector<std::string>& files) {
    const absl::Status status = OpenDataset(IdxSpec(files), Split::kTrain).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(ScanDataset(IdxSpec(files), Split::kTrain).status(), status);
    return std::string(status.message());
  }

  const std::string dir_ = NewFolder();
  // Two images of 1 x 2 and their labels.
  const std::string images_ = Write("images", {2, 1, 2}, {0, 51, 102, 255});
  const std::string labels_ = Write("labels", {2}, {9, 3});
};

TEST_F(IdxTest, ScalesPixelsAndReadsLabels) {
  const auto dataset = OpenDataset(IdxSpec({images_, labels_}), Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->info().examples, 2);
  EXPECT_THAT((*dataset)->info().example_shape, ElementsAre(1, 2));
  EXPECT_EQ((*dataset)->info().min_label, 3);
  EXPECT_EQ((*dataset)->info().max_label, 9);
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({1, 0}, &batch).ok());
  EXPECT_THAT(batch.features, ElementsAre(102 * (1.0f / 255), 1, 0, 51 * (1.0f / 255)));
  EXPECT_THAT(batch.labels, ElementsAre(3, 9));
}

TEST_F(IdxTest, TheScaleIsTheJobs) {
  v1::Dataset spec = IdxSpec({images_, labels_});
  spec.mutable_idx()->set_scale(2);
  const auto dataset = OpenDataset(spec, Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0}, &batch).ok());
  EXPECT_THAT(batch.features, ElementsAre(0, 102));
}

TEST_F(IdxTest, FilesAreSortedApartByTheirContentsAndPairedInOrder) {
  const std::string more_images = Write("0-labels", {1, 1, 2}, {1, 2});
  const std::string more_labels = WriteFile(dir_, "0-images", Gzip(IdxBytes({1}, {200})));
  v1::Dataset spec = IdxSpec({labels_, more_labels, images_, more_images});
  spec.mutable_idx()->set_scale(1);
  const auto dataset = OpenDataset(spec, Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0, 1, 2}, &batch).ok());
  EXPECT_THAT(batch.features, ElementsAre(0, 51, 102, 255, 1, 2));
  EXPECT_THAT(batch.labels, ElementsAre(9, 3, 200));
}

TEST_F(IdxTest, ExamplesMayHaveAnyShapeOfUpToSevenDimensions) {
  const std::string vectors = Write("vectors", {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(ScanDataset(IdxSpec({vectors, labels_}), Split::kTrain)->example_shape,
              ElementsAre(3));
  const std::string deep = Write("deep", {2, 1, 1, 1, 1, 1, 2, 1}, {1, 2, 3, 4});
  EXPECT_THAT(ScanDataset(IdxSpec({deep, labels_}), Split::kTrain)->example_shape,
              ElementsAre(1, 1, 1, 1, 1, 2, 1));
}

TEST_F(IdxTest, RowsLargerThanAChunkAreKeptWhole) {
  std::vector<uint8_t> data(2 * 1500 * 1000);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7 + i / 1000);
  const std::string large = Write("large", {2, 1500, 1000}, data);
  v1::Dataset spec = IdxSpec({large, labels_});
  spec.mutable_idx()->set_scale(1);
  const auto dataset = OpenDataset(spec, Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Batch batch;
  ASSERT_TRUE((*dataset)->Read({0, 1}, &batch).ok());
  EXPECT_TRUE(std::vector<uint8_t>(batch.features.begin(), batch.features.end()) == data);
}

TEST_F(IdxTest, CountsThatDifferAreRefused) {
  const std::string three = Write("three", {3}, {1, 2, 3});
  EXPECT_EQ(ErrorOf({images_, three}),
            three + ": holds 3 labels: expected 2, one an image of " + images_);
}

TEST_F(IdxTest, ShapesThatDifferAreRefused) {
  const std::string other = Write("other", {2, 2, 1}, {1, 2, 3, 4});
  EXPECT_EQ(ErrorOf({images_, labels_, other, labels_}),
            other + ": holds images of 2 x 1: expected 1 x 2, as in " + images_);
}

TEST_F(IdxTest, AFileWithoutItsPartnerIsRefused) {
  EXPECT_THAT(ErrorOf({images_}), HasSubstr(images_ + ": no label file belongs to it"));
  EXPECT_THAT(ErrorOf({labels_}), HasSubstr(labels_ + ": no image file belongs to it"));
}

TEST_F(IdxTest, OtherMagicNumbersAreRefused) {
  const std::string png = WriteFile(dir_, "png", "\x89PNG\r\n\x1a\n");
  EXPECT_THAT(ErrorOf({png, labels_}), HasSubstr(png + ": begins with 0x89504e47: expected"));
  std::string floats = IdxBytes({1, 1}, {0, 0, 0, 0});
  floats[2] = 0x0D;
  EXPECT_THAT(ErrorOf({WriteFile(dir_, "floats", floats)}), HasSubstr("0x00000d02"));
  EXPECT_THAT(ErrorOf({Write("none", {}, {1})}), HasSubstr("0x00000800"));
  EXPECT_THAT(ErrorOf({Write("nine", std::vector<uint32_t>(9, 1), {1})}), HasSubstr("0x00000809"));
}

TEST_F(IdxTest, EmptyFilesAndDimensionsAreRefused) {
  const std::string empty = WriteFile(dir_, "empty", "");
  EXPECT_EQ(ErrorOf({images_, empty}), empty + ": empty: expected an IDX file");
  const std::string no_images = Write("no_images", {0, 1, 2}, {});
  EXPECT_EQ(ErrorOf({no_images}),
            no_images + ": declares 0 x 1 x 2: expected dimensions of at least 1");
}

TEST_F(IdxTest, ACountLargerThanTheFileTakesNoMemory) {
  for (const bool gzip : {false, true}) {
    const std::string bytes = IdxBytes({4294967295, 65535, 65535}, {1, 2, 3});
    const std::string huge = WriteFile(dir_, "huge", gzip ? Gzip(bytes) : bytes);
    // Labels of as many, so that only the data itself can tell.
    const std::string labels = Write("many", {4294967295}, {1});
    EXPECT_EQ(ErrorOf({huge, labels}), huge +
                                           ": cut short: expected 4294967295 x 65535 x 65535 "
                                           "bytes after the 16 of the header, found 3");
  }
  const std::string overflow = Write("overflow", {4294967295, 4294967295, 2}, {1});
  EXPECT_EQ(ErrorOf({overflow}), overflow +
                                     ": declares 4294967295 x 4294967295 x 2 bytes: "
                                     "expected a size below 2^64");
}

TEST_F(IdxTest, BytesPastTheDeclaredCountAreRefused) {
  const std::string longer = Write("longer", {2, 1, 2}, {1, 2, 3, 4, 5});
  EXPECT_EQ(ErrorOf({longer, labels_}), longer +
                                            ": expected its end after the declared 2 x 1 x 2 "
                                            "bytes, at offset 20, found more bytes");
}

TEST_F(IdxTest, ABatchTooLargeToBeMeantIsRefused) {
  // One example of 4 MiB, asked for often enough to make 8 GiB of floats.
  const std::string wide = Write("wide", {1, 1 << 22}, std::vector<uint8_t>(1 << 22));
  const auto dataset = OpenDataset(IdxSpec({wide, Write("one", {1}, {1})}), Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Batch batch;
  const absl::Status status = (*dataset)->Read(std::vector<uint64_t>(513, 0), &batch);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

}  // namespace
}  // namespace tandem
