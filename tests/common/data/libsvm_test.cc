#include "common/data/libsvm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/data/dataset.h"
#include "tests/common/data/test_files.h"

namespace tandem {
namespace {

using testing::ElementsAre;

constexpr uint32_t kFeatures = 3;

class LibSvmTest : public testing::Test {
 protected:
  v1::Dataset Spec(const std::string& text) {
    return LibSvmSpec({WriteFile(dir_, "x.svm", text)}, kFeatures);
  }

  // All examples of `text`, side by side.
  Batch ReadAll(const v1::Dataset& spec) {
    Batch batch;
    const auto dataset = OpenDataset(spec, Split::kTrain);
    EXPECT_TRUE(dataset.ok()) << dataset.status();
    if (!dataset.ok()) return batch;
    std::vector<uint64_t> all;
    for (uint64_t i = 0; i < (*dataset)->info().examples; ++i) all.push_back(i);
    EXPECT_TRUE((*dataset)->Read(all, &batch).ok());
    return batch;
  }

  // The message for `text`, without the path and its colon, and the same from Open and Scan.
  std::string ErrorOf(const std::string& text) {
    const absl::Status status = OpenDataset(Spec(text), Split::kTrain).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text << ": " << status;
    EXPECT_EQ(ScanDataset(Spec(text), Split::kTrain).status(), status);
    const std::string message(status.message()), path = dir_ + "/x.svm:";
    EXPECT_EQ(message.substr(0, path.size()), path);
    return message.size() < path.size() ? message : message.substr(path.size());
  }

  const std::string dir_ = NewFolder();
};

TEST_F(LibSvmTest, MakesDenseRows) {
  const Batch batch = ReadAll(Spec("1 1:0.5 3:-2e1\n0 2:7\n2\n"));
  EXPECT_EQ(batch.size, 3);
  EXPECT_THAT(batch.features, ElementsAre(0.5, 0, -20, 0, 7, 0, 0, 0, 0));
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 2));
}

TEST_F(LibSvmTest, TakesWhatRealFilesHave) {
  const Batch batch =
      ReadAll(Spec("# a comment\n"
                   "1 1:1 2:2 \r\n"      // A blank at the end, and CRLF.
                   "\n \t\n"             // Blank lines.
                   "\t0\t3:+.5  1:1e0#"  // Tabs, a plus sign, any order, a comment right after.
                   "2:9\n"
                   "2.5 2:1e-60 1:1e-400 # too small for a float, and for a double\n"
                   "3 3:1e-40"));  // No line end.
  EXPECT_THAT(batch.labels, ElementsAre(1, 0, 2.5, 3));
  EXPECT_THAT(batch.features, ElementsAre(1, 2, 0, 1, 0, 0.5f, 0, 0, 0, 0, 0, 1e-40f));
}

TEST_F(LibSvmTest, IndicesBeginAtTheBase) {
  v1::Dataset spec = Spec("1 0:1 2:3\n");
  spec.mutable_libsvm()->set_index_base(0);
  EXPECT_THAT(ReadAll(spec).features, ElementsAre(1, 0, 3));
  EXPECT_EQ(ErrorOf("1 0:1\n"), "1: \"0:1\": expected an index from 1 to 3");
}

TEST_F(LibSvmTest, SignsBecomeZeroAndOne) {
  const v1::Dataset spec = Spec("-1 1:1\n+1 2:1\n-1\n");
  EXPECT_THAT(ReadAll(spec).labels, ElementsAre(0, 1, 0));
  EXPECT_EQ(ScanDataset(spec, Split::kTrain)->min_label, 0);
  EXPECT_EQ(ScanDataset(spec, Split::kTrain)->max_label, 1);
  EXPECT_THAT(ReadAll(Spec("-1 1:1\n")).labels, ElementsAre(0));
  EXPECT_EQ(ScanDataset(Spec("-1\n"), Split::kTrain)->max_label, 0);
}

TEST_F(LibSvmTest, SignsAreOfAllFilesTogether) {
  const std::string plus = WriteFile(dir_, "plus", "+1\n"), minus = WriteFile(dir_, "minus", "-1");
  EXPECT_THAT(ReadAll(LibSvmSpec({plus, minus}, 1)).labels, ElementsAre(1, 0));
}

// -1 is a value like another in a regression.
TEST_F(LibSvmTest, OtherLabelsStayAsTheyAre) {
  const v1::Dataset spec = Spec("-1 1:1\n1 2:1\n2.5\n");
  EXPECT_THAT(ReadAll(spec).labels, ElementsAre(-1, 1, 2.5));
  EXPECT_EQ(ScanDataset(spec, Split::kTrain)->min_label, -1);
}

TEST_F(LibSvmTest, NamesTheLineAndTheWord) {
  const std::string pair = ": expected index:value with a whole number before the colon";
  EXPECT_EQ(ErrorOf("1 1:1\n0 x:1\n"), "2: \"x:1\"" + pair);
  EXPECT_EQ(ErrorOf("1 qid:3 1:1\n"), "1: \"qid:3\"" + pair);
  EXPECT_EQ(ErrorOf("1 1.5:1\n"), "1: \"1.5:1\"" + pair);
  EXPECT_EQ(ErrorOf("1 -1:1\n"), "1: \"-1:1\"" + pair);
  EXPECT_EQ(ErrorOf("1 7\n"), "1: \"7\"" + pair);
  EXPECT_EQ(ErrorOf("1 :7\n"), "1: \":7\"" + pair);
  EXPECT_EQ(ErrorOf("1 1 :7\n"), "1: \"1\"" + pair);
  const std::string word(100, 'w');
  EXPECT_EQ(ErrorOf("1 " + word), "1: \"" + word.substr(60) + "...\"" + pair);
  EXPECT_EQ(ErrorOf(absl::StrCat("1 a\x01", "\xff\"")), "1: \"a\\x01\\xff\\\"\"" + pair);
}

TEST_F(LibSvmTest, ValuesAreFiniteNumbers) {
  for (const std::string value : {"nan", "inf", "-inf", "1e39", "-1e39", "1e400", "", "x", "1x",
                                  "1:1", "--1", "+-1", "+", "-", "0x10", "1,5", ".", "1e"}) {
    EXPECT_EQ(ErrorOf("\n1 2:" + value + " 3:1\n"),
              "2: \"2:" + value + "\": expected index:value with a finite number after the colon");
  }
}

TEST_F(LibSvmTest, LabelsAreFiniteNumbers) {
  for (const std::string label : {"nan", "inf", "x", "1:1", "1e39", "+-1", "1,2"}) {
    EXPECT_EQ(ErrorOf("1 1:1\n\n" + label + " 1:1\n"),
              "3: \"" + label + "\": expected a finite number as the label");
  }
}

TEST_F(LibSvmTest, IndicesAreInRangeAndThereOnce) {
  EXPECT_EQ(ErrorOf("1 4:1\n"), "1: \"4:1\": expected an index from 1 to 3");
  EXPECT_EQ(ErrorOf("1 4294967297:1\n"), "1: \"4294967297:1\": expected an index from 1 to 3");
  EXPECT_EQ(ErrorOf("1 99999999999999999999:1\n"),
            "1: \"99999999999999999999:1\": expected an index from 1 to 3");
  EXPECT_EQ(ErrorOf("1 2:1 2:1\n"), "1: index 2 is there twice: expected each index once");
  EXPECT_EQ(ErrorOf("1 3:1 1:1 3:0\n"), "1: index 3 is there twice: expected each index once");
}

TEST_F(LibSvmTest, AFileWithoutExamplesIsRefused) {
  EXPECT_EQ(ErrorOf(""), " empty: expected lines `label index:value ...`");
  EXPECT_EQ(ErrorOf("\n# only words\n"), " empty: expected lines `label index:value ...`");
}

TEST_F(LibSvmTest, TheWidthIsRequired) {
  EXPECT_EQ(OpenDataset(LibSvmSpec({dir_}, 0), Split::kTrain).status(),
            absl::InvalidArgumentError("dataset.libsvm.num_features: expected the width of a row, "
                                       "at least 1"));
}

TEST_F(LibSvmTest, TheWidestRowsAreTooLargeToReadButNotToOpen) {
  const auto dataset = OpenDataset(
      LibSvmSpec({WriteFile(dir_, "wide", "1 4294967295:1\n")}, 4294967295), Split::kTrain);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  Batch batch;
  EXPECT_EQ((*dataset)->Read({0}, &batch).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(LibSvmTest, KeepsManyRowsInOrder) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    absl::StrAppend(&text, i, i % 3 == 0 ? "" : absl::StrCat(" ", i % 3, ":", i), "\n");
  }
  const Batch batch = ReadAll(Spec(text));
  ASSERT_EQ(batch.size, 20000);
  for (int i = 0; i < 20000; ++i) {
    ASSERT_EQ(batch.labels[i], i);
    for (int j = 0; j < 3; ++j) {
      ASSERT_EQ(batch.features[i * 3 + j], i % 3 != 0 && j == i % 3 - 1 ? i : 0) << i;
    }
  }
}

}  // namespace
}  // namespace tandem
