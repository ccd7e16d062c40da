#include "common/checkpoint/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

class RealFiles : public ::testing::Test {
 protected:
  RealFiles() {
    dir_ = ::testing::TempDir() + "/" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    EXPECT_TRUE(files_->Remove(dir_).ok());
    EXPECT_TRUE(files_->MakeFolder(dir_ + "/a/b").ok());
  }

  void Write(const std::string& name, const std::string& text) {
    auto file = files_->Create(dir_ + "/" + name);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE((*file)->Append(text.data(), text.size()).ok());
    EXPECT_TRUE((*file)->Sync().ok());
  }
  std::string Read(const std::string& name) {
    auto text = ReadWholeFile(files_, dir_ + "/" + name, 1000);
    return text.ok() ? *text : std::string(text.status().message());
  }

  FileSystem* files_ = RealFileSystem();
  std::string dir_;
};

TEST_F(RealFiles, WritesAndReads) {
  Write("a/x", "hello");
  EXPECT_EQ(Read("a/x"), "hello");
  auto file = files_->Open(dir_ + "/a/x");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 5u);
  std::string two(2, ' ');
  EXPECT_TRUE((*file)->Read(3, 2, two.data()).ok());
  EXPECT_EQ(two, "lo");
  EXPECT_TRUE(absl::IsOutOfRange((*file)->Read(4, 2, two.data())));
  EXPECT_TRUE(absl::IsInvalidArgument(ReadWholeFile(files_, dir_ + "/a/x", 4).status()));
}

TEST_F(RealFiles, AppendsAfterCutting) {
  Write("x", "hello");
  auto file = files_->OpenForAppend(dir_ + "/x", 2);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->Append("y", 1).ok());
  EXPECT_EQ(Read("x"), "hey");
  file->reset();
  file = files_->OpenForAppend(dir_ + "/x", FileSystem::kWhole);
  EXPECT_TRUE((*file)->Append("!", 1).ok());
  EXPECT_EQ(Read("x"), "hey!");
}

TEST_F(RealFiles, KeepsASecondWriterOut) {
  Write("x", "hello");
  auto file = files_->OpenForAppend(dir_ + "/x", FileSystem::kWhole);
  ASSERT_TRUE(file.ok());
  const absl::Status second = files_->OpenForAppend(dir_ + "/x", 0).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  EXPECT_TRUE(absl::StrContains(second.message(), "another process has it open")) << second;
  EXPECT_EQ(Read("x"), "hello");
}

TEST_F(RealFiles, ListsRenamesAndRemoves) {
  Write("a/x", "1");
  Write("y", "2");
  auto names = files_->List(dir_);
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("a", "y"));
  EXPECT_TRUE(files_->Rename(dir_ + "/y", dir_ + "/a/x").ok());
  EXPECT_EQ(Read("a/x"), "2");
  EXPECT_TRUE(files_->Rename(dir_ + "/a", dir_ + "/c").ok());
  EXPECT_EQ(Read("c/x"), "2");
  EXPECT_TRUE(files_->SyncFolder(dir_).ok());
  EXPECT_TRUE(files_->Remove(dir_ + "/c").ok());
  EXPECT_TRUE(files_->Remove(dir_ + "/c").ok());  // Not there: nothing to do.
  EXPECT_TRUE(files_->List(dir_)->empty());
}

TEST_F(RealFiles, NamesThePathAndTheReason) {
  const std::string path = dir_ + "/none";
  for (const absl::Status& status :
       {files_->Open(path).status(), files_->List(path).status(), files_->Rename(path, dir_ + "/x"),
        files_->OpenForAppend(path, 0).status(), files_->SyncFolder(path)}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "No such file")) << status;
  }
  Write("x", "");
  EXPECT_TRUE(absl::IsAlreadyExists(files_->Create(dir_ + "/x").status()));
  EXPECT_FALSE(files_->Open(dir_ + "/a").ok());  // A folder is no file.
  EXPECT_FALSE(files_->MakeFolder(dir_ + "/x/y").ok());
}

}  // namespace
}  // namespace tandem
