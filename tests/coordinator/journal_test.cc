#include "coordinator/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"

namespace tandem {
namespace {

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    dir_ = ::testing::TempDir() + "/" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    EXPECT_TRUE(files_->Remove(dir_).ok());
  }

  static v1::JournalRecord Record(uint64_t epoch) {
    v1::JournalRecord record;
    record.mutable_map()->mutable_map()->set_epoch(epoch);
    return record;
  }

  std::unique_ptr<Journal> Open() {
    auto journal = Journal::Open(files_, dir_, &contents_);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return journal.ok() ? *std::move(journal) : nullptr;
  }
  absl::Status Refusal() { return Journal::Open(files_, dir_, &contents_).status(); }
  std::vector<uint64_t> Epochs() const {
    std::vector<uint64_t> epochs;
    for (const auto& record : contents_.records) epochs.push_back(record.map().map().epoch());
    return epochs;
  }
  void Write(int records) {
    auto journal = Open();
    for (int i = 1; i <= records; ++i) EXPECT_TRUE(journal->Append(Record(i)).ok());
  }
  std::string Bytes() { return *ReadWholeFile(files_, dir_ + "/journal", 1 << 20); }
  void Rewrite(const std::string& bytes) {
    EXPECT_TRUE(files_->Remove(dir_ + "/journal").ok());
    auto file = files_->Create(dir_ + "/journal");
    EXPECT_TRUE((*file)->Append(bytes.data(), bytes.size()).ok());
  }

  FileSystem* files_ = RealFileSystem();
  std::string dir_;
  Journal::Contents contents_;
};

TEST_F(JournalTest, ReadsWhatWasAppendedOverSeveralLives) {
  EXPECT_NE(Open(), nullptr);
  EXPECT_THAT(Epochs(), ::testing::IsEmpty());
  Write(2);
  Open()->Append(Record(3)).IgnoreError();
  Open();
  EXPECT_THAT(Epochs(), ::testing::ElementsAre(1, 2, 3));
  EXPECT_FALSE(contents_.torn);
}

TEST_F(JournalTest, CutAnywhereItKeepsTheWholeRecords) {
  Write(3);
  const std::string all = Bytes();
  for (size_t size = 0; size < all.size(); ++size) {
    Rewrite(all.substr(0, size));
    auto journal = Open();
    ASSERT_NE(journal, nullptr) << size;
    const size_t kept = contents_.records.size();
    EXPECT_LT(kept, 3u);
    EXPECT_EQ(Bytes().size(), size);  // Nothing is changed before something is added.
    EXPECT_TRUE(journal->Append(Record(9)).ok());
    journal.reset();
    Open();
    ASSERT_EQ(contents_.records.size(), kept + 1) << size;
    EXPECT_EQ(Epochs().back(), 9u);
    EXPECT_FALSE(contents_.torn);
  }
}

TEST_F(JournalTest, SaysThatARecordWasBegun) {
  Write(2);
  const std::string all = Bytes();
  Rewrite(all.substr(0, all.size() - 1));
  Open();
  EXPECT_TRUE(contents_.torn);
  Rewrite(all + std::string(100, '\0'));  // A file that grew before its data were written.
  Open();
  EXPECT_TRUE(contents_.torn);
  EXPECT_THAT(Epochs(), ::testing::ElementsAre(1, 2));
}

TEST_F(JournalTest, NoticesEveryFlippedBit) {
  Write(3);
  const std::string all = Bytes();
  for (size_t bit = 0; bit < 8 * all.size(); ++bit) {
    std::string bytes = all;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    Rewrite(bytes);
    auto journal = Journal::Open(files_, dir_, &contents_);
    if (journal.ok()) {  // In the last record it looks like a torn write.
      EXPECT_TRUE(contents_.torn) << bit;
      EXPECT_THAT(Epochs(), ::testing::ElementsAre(1, 2)) << bit;
    } else {
      EXPECT_TRUE(absl::StrContains(journal.status().message(), dir_ + "/journal"));
    }
  }
}

TEST_F(JournalTest, NamesTheRecordThatIsDamaged) {
  Write(3);
  std::string bytes = Bytes();
  bytes[20] = static_cast<char>(bytes[20] ^ 1);  // In the first record's length.
  Rewrite(bytes);
  const absl::Status status = Refusal();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "record 1, at byte 17, is damaged")) << status;
  EXPECT_EQ(Bytes(), bytes);
}

TEST_F(JournalTest, RefusesAForeignFileAndANewerFormat) {
  ASSERT_TRUE(files_->MakeFolder(dir_).ok());
  Rewrite("a letter to my aunt\n");
  EXPECT_TRUE(absl::IsDataLoss(Refusal())) << Refusal();
  Rewrite("tandem-journal 2\nwhatever");
  EXPECT_TRUE(absl::IsFailedPrecondition(Refusal())) << Refusal();
  EXPECT_TRUE(absl::StrContains(Refusal().message(), "format 2")) << Refusal();
}

TEST_F(JournalTest, IsOpenInOneProcessAlone) {
  auto journal = Open();
  EXPECT_TRUE(absl::IsAlreadyExists(Refusal())) << Refusal();
  journal.reset();
  EXPECT_NE(Open(), nullptr);
}

}  // namespace
}  // namespace tandem
