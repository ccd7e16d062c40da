#include "common/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/checkpoint/manifest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;

constexpr int kSlots = 2;

v1::Block MakeBlock(const std::string& variable, uint64_t begin, uint64_t end) {
  v1::Block block;
  block.set_variable(variable);
  block.set_begin(begin);
  block.set_end(end);
  return block;
}

v1::Variable MakeVariable(const std::string& name, std::vector<uint64_t> shape) {
  v1::Variable variable;
  variable.set_name(name);
  for (uint64_t axis : shape) variable.add_shape(axis);
  return variable;
}

// What element `i` of a variable holds in tensor `t` (0: weights) of the checkpoint of `step`.
float Value(const std::string& variable, uint64_t i, int t, uint64_t step) {
  return static_cast<float>(i) + 10000.0f * static_cast<float>(variable == "b") +
         100000.0f * static_cast<float>(t) + 0.5f * static_cast<float>(step % 2);
}

class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() {
    dir_ = ::testing::TempDir() + "/" +
           ::testing::UnitTest::GetInstance()->current_test_info()->name();
    EXPECT_TRUE(files_->Remove(dir_).ok());
  }

  ShardTensors Tensors(std::vector<v1::Block> blocks, uint64_t step) {
    ShardTensors out;
    out.blocks = std::move(blocks);
    out.state.set_version(step);
    out.state.set_duplicates_ignored(3);
    auto* epoch = out.state.add_epochs();
    epoch->set_examples(step * 10);
    epoch->set_loss(0.1 * static_cast<double>(step));
    size_t size = 0;
    for (const auto& block : out.blocks) size += block.end() - block.begin();
    for (int t = 0; t <= kSlots; ++t) {
      auto buffer = std::make_shared<Buffer>(size);
      size_t at = 0;
      for (const auto& block : out.blocks) {
        for (uint64_t i = block.begin(); i < block.end(); ++i) {
          buffer->data()[at++] = Value(block.variable(), i, t, step);
        }
      }
      if (t == 0) out.weights = buffer;
      if (t > 0) out.slots.push_back(buffer);
    }
    return out;
  }

  // Three shards, the last one empty.
  std::vector<std::vector<v1::Block>> Places() {
    return {{MakeBlock("a", 0, 2048)}, {MakeBlock("a", 2048, 3000), MakeBlock("b", 0, 7)}, {}};
  }

  v1::Manifest Save(uint64_t step, uint64_t began) {
    v1::Manifest manifest;
    *manifest.add_variables() = MakeVariable("a", {3, 1000});
    *manifest.add_variables() = MakeVariable("b", {7});
    manifest.set_step(step);
    manifest.set_slots(kSlots);
    for (int k = 0; k < 3; ++k) {
      const auto blocks = Places()[static_cast<size_t>(k)];
      auto saved = WriteShard(files_, dir_, AsideName(step, began), k, 3, Tensors(blocks, step));
      EXPECT_TRUE(saved.ok()) << saved.status();
      EXPECT_EQ(saved->step(), step);
      EXPECT_EQ(saved->folder(), AsideName(step, began));
      auto* file = manifest.add_files();
      file->set_name(saved->file());
      file->set_bytes(saved->bytes());
      file->set_checksum(absl::BytesToHexString(saved->checksum()));
      for (const auto& block : blocks) *file->add_blocks() = block;
    }
    return manifest;
  }

  absl::Status Commit(uint64_t step, uint64_t began = 1, uint32_t keep = 2) {
    const v1::Manifest manifest = Save(step, began);
    return CommitCheckpoint(files_, dir_, AsideName(step, began), manifest, keep);
  }

  std::vector<std::string> Names() {
    auto names = files_->List(dir_ + "/checkpoints");
    return names.ok() ? *names : std::vector<std::string>{};
  }

  std::string Path(uint64_t step, const std::string& file) {
    return absl::StrCat(dir_, "/checkpoints/", CheckpointName(step), "/", file);
  }

  void Rewrite(const std::string& path, const std::string& bytes) {
    EXPECT_TRUE(files_->Remove(path).ok());
    auto file = files_->Create(path);
    ASSERT_TRUE(file.ok());
    EXPECT_TRUE((*file)->Append(bytes.data(), bytes.size()).ok());
  }
  std::string Contents(const std::string& path) {
    auto bytes = ReadWholeFile(files_, path, 1 << 20);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    return bytes.ok() ? *bytes : "";
  }

  FileSystem* files_ = RealFileSystem();
  std::string dir_;
};

TEST_F(Checkpoints, ReadsAnyBlocksFromAnyFiles) {
  ASSERT_TRUE(Commit(401).ok());
  const std::vector<std::vector<v1::Block>> wanted = {
      {MakeBlock("a", 0, 3000), MakeBlock("b", 0, 7)},
      {MakeBlock("a", 1024, 2900)},
      {MakeBlock("b", 3, 5), MakeBlock("a", 2047, 2049)},
      {}};
  for (const auto& blocks : wanted) {
    auto read = ReadShard(files_, dir_, CheckpointName(401), blocks);
    ASSERT_TRUE(read.ok()) << read.status();
    const ShardTensors expected = Tensors(blocks, 401);
    ASSERT_EQ(read->weights->size(), expected.weights->size());
    ASSERT_EQ(read->slots.size(), expected.slots.size());
    const size_t n = expected.weights->size();
    EXPECT_TRUE(
        std::equal(read->weights->data(), read->weights->data() + n, expected.weights->data()));
    for (size_t s = 0; s < expected.slots.size(); ++s) {
      EXPECT_TRUE(std::equal(read->slots[s]->data(), read->slots[s]->data() + n,
                             expected.slots[s]->data()));
    }
    EXPECT_EQ(read->state.version(), 401u);
    EXPECT_EQ(read->state.duplicates_ignored(), 0u);
    EXPECT_EQ(read->state.epochs(0).loss(), 0.1 * 401);  // To the last bit.
  }
  const absl::Status status =
      ReadShard(files_, dir_, CheckpointName(401), {MakeBlock("b", 3, 8)}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
}

TEST_F(Checkpoints, ListsTheOldestFirstAndKeepsTheNewest) {
  EXPECT_TRUE(ListCheckpoints(files_, dir_)->empty());
  for (uint64_t step : {100, 200, 300}) ASSERT_TRUE(Commit(step).ok());
  auto entries = ListCheckpoints(files_, dir_);
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, CheckpointName(200));
  EXPECT_EQ((*entries)[1].name, CheckpointName(300));
  EXPECT_EQ((*entries)[1].manifest.step(), 300u);
  EXPECT_TRUE((*entries)[1].status.ok());
  EXPECT_TRUE(VerifyCheckpoint(files_, dir_, CheckpointName(300)).ok());
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(200), CheckpointName(300)));
}

TEST_F(Checkpoints, GoesOnWithACommitThatStoppedAfterTheRenaming) {
  const std::string folder = dir_ + "/checkpoints/";
  const v1::Manifest manifest = Save(100, 1);
  ASSERT_TRUE(files_->Rename(folder + AsideName(100, 1), folder + CheckpointName(100)).ok());
  ASSERT_TRUE(CommitCheckpoint(files_, dir_, AsideName(100, 1), manifest, 2).ok());
  EXPECT_TRUE(VerifyCheckpoint(files_, dir_, CheckpointName(100)).ok());
  // And with one that stands already.
  EXPECT_TRUE(CommitCheckpoint(files_, dir_, AsideName(100, 1), manifest, 2).ok());

  // Files of another history are not taken for those that were saved.
  v1::Manifest other = Save(200, 1);
  ASSERT_TRUE(files_->Rename(folder + AsideName(200, 1), folder + CheckpointName(200)).ok());
  other.mutable_files(1)->set_checksum(other.files(0).checksum());
  EXPECT_EQ(CommitCheckpoint(files_, dir_, AsideName(200, 1), other, 2).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(ListCheckpoints(files_, dir_)->size(), 1u);
}

TEST_F(Checkpoints, ClearsWhatCrashesLeft) {
  Save(100, 1);  // Never committed; of an older history.
  Save(500, 2);  // Being written for a later step of this one.
  Save(600, 1);
  ASSERT_TRUE(files_->MakeFolder(absl::StrCat(dir_, "/checkpoints/", CheckpointName(50))).ok());
  ASSERT_TRUE(files_->MakeFolder(dir_ + "/checkpoints/mine").ok());
  ASSERT_TRUE(Commit(200, 2).ok());
  EXPECT_THAT(Names(), ElementsAre("mine", CheckpointName(200), AsideName(500, 2)));
}

TEST_F(Checkpoints, MakesACheckpointOfTheSameStepAgain) {
  ASSERT_TRUE(Commit(200).ok());
  ASSERT_TRUE(Commit(300).ok());
  const std::string path = Path(200, "shard-0-of-3.safetensors");
  Rewrite(path, "rubbish");
  ASSERT_TRUE(Commit(200, 5, 1).ok());
  EXPECT_TRUE(VerifyCheckpoint(files_, dir_, CheckpointName(200)).ok());
  // The one of a later step is of a history that was given up.
  EXPECT_THAT(Names(), ElementsAre(CheckpointName(200), CheckpointName(300)));
}

TEST_F(Checkpoints, DoesNotCommitWhatIsNotThere) {
  v1::Manifest manifest = Save(100, 1);
  manifest.mutable_files(1)->set_bytes(manifest.files(1).bytes() + 1);
  const absl::Status status = CommitCheckpoint(files_, dir_, AsideName(100, 1), manifest, 1);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_TRUE(ListCheckpoints(files_, dir_)->empty());
}

TEST_F(Checkpoints, NamesTheFileThatIsDamagedCutMissingOrSwapped) {
  ASSERT_TRUE(Commit(100).ok());
  ASSERT_TRUE(Commit(200).ok());
  const std::string name = CheckpointName(200);
  const std::string path = Path(200, "shard-1-of-3.safetensors");
  const std::string good = Contents(path);
  const auto refused = [&](const std::string& expected) {
    const absl::Status status = VerifyCheckpoint(files_, dir_, name);
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsNotFound(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), expected)) << status;
    EXPECT_FALSE(ReadShard(files_, dir_, name, {MakeBlock("b", 0, 7)}).ok());
  };
  for (size_t byte : {size_t{3}, size_t{40}, size_t{300}, good.size() - 1}) {
    std::string bytes = good;
    bytes[byte] = static_cast<char>(bytes[byte] ^ 1);
    Rewrite(path, bytes);
    refused("");
  }
  Rewrite(path, good.substr(0, good.size() - 1));
  refused("the manifest says");
  EXPECT_FALSE(ListCheckpoints(files_, dir_)->back().status.ok());
  Rewrite(path, Contents(Path(100, "shard-1-of-3.safetensors")));
  refused("is damaged: its checksum is");
  EXPECT_TRUE(ListCheckpoints(files_, dir_)->back().status.ok());  // Looks at sizes alone.
  EXPECT_TRUE(files_->Remove(path).ok());
  refused("No such file");
  Rewrite(path, good);
  EXPECT_TRUE(VerifyCheckpoint(files_, dir_, name).ok());
}

TEST_F(Checkpoints, KnowsAManifestFromAnothersFolder) {
  ASSERT_TRUE(Commit(100).ok());
  ASSERT_TRUE(Commit(200).ok());
  Rewrite(Path(200, "manifest.json"), Contents(Path(100, "manifest.json")));
  const auto entries = ListCheckpoints(files_, dir_);
  EXPECT_TRUE(absl::StrContains(entries->back().status.message(), "is of step 100"))
      << entries->back().status;
}

TEST_F(Checkpoints, NamesTheFirstVariableThatDiffers) {
  v1::Manifest manifest;
  *manifest.add_variables() = MakeVariable("a", {3, 1000});
  *manifest.add_variables() = MakeVariable("b", {7});
  const auto check = [&](std::vector<v1::Variable> variables) {
    return std::string(CheckModel(manifest, variables).message());
  };
  EXPECT_EQ(check({MakeVariable("a", {3, 1000}), MakeVariable("b", {7})}), "");
  EXPECT_EQ(check({MakeVariable("a", {3, 1000}), MakeVariable("b", {8})}),
            "checkpoint step-000000000000 is of another model: variable 1 is \"b\" [7]; the job's "
            "is \"b\" [8]");
  EXPECT_THAT(check({MakeVariable("a", {3, 1000})}), ::testing::HasSubstr("no variable \"b\" [7]"));
  EXPECT_THAT(check({MakeVariable("a", {3, 1000}), MakeVariable("b", {7}), MakeVariable("c", {1})}),
              ::testing::HasSubstr("it has no variable \"c\" [1]"));
}

}  // namespace
}  // namespace tandem
