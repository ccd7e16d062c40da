#include "common/checkpoint/checkpoint.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/fault_point.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/shard_file.h"

namespace tandem {
namespace {

constexpr char kManifest[] = "manifest.json";
constexpr char kAside[] = ".tmp";     // What is not whole, or on its way out.
constexpr char kGone[] = ".old.tmp";  // What is on its way out.
constexpr size_t kStepDigits = 12;

std::string Folder(const std::string& state_dir) { return absl::StrCat(state_dir, "/checkpoints"); }

std::string Path(const std::string& state_dir, const std::string& name, absl::string_view file) {
  return absl::StrCat(Folder(state_dir), "/", name, "/", file);
}

// Of a checkpoint's name, or the aside's; -1 when it is neither.
int64_t StepOf(absl::string_view name) {
  uint64_t step;
  if (!absl::ConsumePrefix(&name, "step-")) return -1;
  const absl::string_view digits = name.substr(0, name.find('.'));
  const bool good = digits.size() >= kStepDigits && digits[0] >= '0' && digits[0] <= '9' &&
                    absl::SimpleAtoi(digits, &step) && step < uint64_t{1} << 62;
  return good ? static_cast<int64_t>(step) : -1;
}

bool IsCheckpointName(const std::string& name) {
  const int64_t step = StepOf(name);
  return step >= 0 && name == CheckpointName(static_cast<uint64_t>(step));
}

absl::Status Prefixed(const std::string& path, const absl::Status& status) {
  return status.ok() ? status
                     : absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

absl::StatusOr<v1::Manifest> ReadManifest(FileSystem* files, const std::string& state_dir,
                                          const std::string& name) {
  const std::string path = Path(state_dir, name, kManifest);
  TANDEM_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path, kMaxManifestBytes));
  absl::StatusOr<v1::Manifest> manifest = DecodeManifest(text);
  if (!manifest.ok()) return Prefixed(path, manifest.status());
  if (CheckpointName(manifest->step()) != name) {
    return absl::DataLossError(
        absl::StrCat(path, ": is of step ", manifest->step(), ", and in another's folder"));
  }
  return manifest;
}

absl::Status CheckSizes(FileSystem* files, const std::string& state_dir, const std::string& name,
                        const v1::Manifest& manifest) {
  for (const v1::ManifestFile& entry : manifest.files()) {
    const std::string path = Path(state_dir, name, entry.name());
    TANDEM_ASSIGN_OR_RETURN(const auto file, files->Open(path));
    if (file->size() == entry.bytes()) continue;
    return absl::DataLossError(
        absl::StrCat(path, ": has ", file->size(), " bytes; the manifest says ", entry.bytes()));
  }
  return absl::OkStatus();
}

absl::Status WriteManifest(FileSystem* files, const std::string& state_dir, const std::string& name,
                           const v1::Manifest& manifest) {
  const std::string path = Path(state_dir, name, kManifest), aside = path + kAside;
  const std::string text = EncodeManifest(manifest);
  TANDEM_RETURN_IF_ERROR(files->Remove(aside));
  TANDEM_ASSIGN_OR_RETURN(auto file, files->Create(aside));
  TANDEM_RETURN_IF_ERROR(file->Append(text.data(), text.size()));
  TANDEM_RETURN_IF_ERROR(file->Sync());
  file.reset();
  TANDEM_RETURN_IF_ERROR(files->Rename(aside, path));
  return files->SyncFolder(absl::StrCat(Folder(state_dir), "/", name));
}

// A folder that a crash left behind between its renaming and its manifest. What cannot be read is
// none: it may be a good one.
bool IsLeftover(FileSystem* files, const std::string& state_dir, const std::string& name) {
  return absl::IsNotFound(files->Open(Path(state_dir, name, kManifest)).status());
}

// In two steps, so that no crash leaves half of a checkpoint under its name.
absl::Status Discard(FileSystem* files, const std::string& state_dir, const std::string& name) {
  const std::string path = absl::StrCat(Folder(state_dir), "/", name);
  TANDEM_RETURN_IF_ERROR(files->Remove(path + kGone));
  TANDEM_RETURN_IF_ERROR(files->Rename(path, path + kGone));
  return files->Remove(path + kGone);
}

// After the checkpoint of `step` was made from `aside`. Checkpoints of later steps are of a history
// that was given up: they are not counted and stay until they are made again.
absl::Status Prune(FileSystem* files, const std::string& state_dir, const std::string& aside,
                   int64_t step, uint32_t keep) {
  TANDEM_ASSIGN_OR_RETURN(std::vector<std::string> names, files->List(Folder(state_dir)));
  const std::string history = aside.substr(std::min(aside.find('.'), aside.size()));
  uint32_t kept = 0;
  for (auto name = names.rbegin(); name != names.rend(); ++name) {  // The newest first.
    const int64_t of = StepOf(*name);
    if (of < 0) continue;
    if (!IsCheckpointName(*name)) {
      // A file that is being written for a later step of this history stays.
      if (of > step && absl::StrCat(CheckpointName(static_cast<uint64_t>(of)), history) == *name) {
        continue;
      }
      TANDEM_RETURN_IF_ERROR(files->Remove(absl::StrCat(Folder(state_dir), "/", *name)));
    } else if (IsLeftover(files, state_dir, *name) || (of <= step && ++kept > keep)) {
      TANDEM_RETURN_IF_ERROR(Discard(files, state_dir, *name));
    }
  }
  return absl::OkStatus();
}

// What all files must agree on: sums of floats may differ in their last bits where the shards
// applied the same updates in different orders.
std::string Agreed(v1::ShardState state) {
  state.clear_duplicates_ignored();
  for (v1::Sums& sums : *state.mutable_epochs()) {
    sums.clear_loss();
    sums.clear_metrics();
  }
  return state.SerializeAsString();
}

// Where the values of `block` go: its weights and slots, from element `at` of `out` on.
void AddParts(const v1::Block& held, const v1::Block& wanted, size_t at,
              const std::vector<float*>& out, std::vector<TensorPart>* parts) {
  const uint64_t begin = std::max(held.begin(), wanted.begin());
  const uint64_t end = std::min(held.end(), wanted.end());
  if (held.variable() != wanted.variable() || begin >= end) return;
  for (size_t t = 0; t < out.size(); ++t) {
    parts->push_back({TensorName(held, static_cast<int>(t) - 1), begin - held.begin(), end - begin,
                      out[t] + at + (begin - wanted.begin())});
  }
}

absl::StatusOr<uint64_t> CountElements(const v1::Manifest& manifest,
                                       const std::vector<v1::Block>& blocks) {
  uint64_t elements = 0;
  for (const v1::Block& block : blocks) {
    uint64_t held = 0;
    for (const v1::Variable& variable : manifest.variables()) {
      if (variable.name() != block.variable()) continue;
      held = 1;
      for (uint64_t axis : variable.shape()) held *= axis;  // Checked with the manifest.
    }
    if (block.begin() >= block.end() || block.end() > held) {
      return absl::FailedPreconditionError(
          absl::StrCat("it has no ", block.variable(), "[", block.begin(), ", ", block.end(), ")"));
    }
    elements += block.end() - block.begin();
  }
  return elements;
}

// Reads the files that `parts` (one list a file) name something of, and the first in any case.
absl::StatusOr<v1::ShardState> ReadFiles(FileSystem* files, const std::string& state_dir,
                                         const std::string& name, const v1::Manifest& manifest,
                                         const std::vector<std::vector<TensorPart>>& parts,
                                         bool all) {
  v1::ShardState state;
  for (int f = 0; f < manifest.files_size(); ++f) {
    const auto& wanted = parts[static_cast<size_t>(f)];
    if (f > 0 && wanted.empty() && !all) continue;
    const std::string path = Path(state_dir, name, manifest.files(f).name());
    TANDEM_ASSIGN_OR_RETURN(v1::ShardState read, ReadShardFile(files, path, manifest.files(f),
                                                               manifest.slots(), wanted));
    if (f == 0) state = std::move(read);
    if (f > 0 && Agreed(read) != Agreed(state)) {
      return absl::DataLossError(
          absl::StrCat(path, ": is of another moment than ", manifest.files(0).name()));
    }
  }
  state.clear_duplicates_ignored();
  return state;
}

absl::Status VerifyFiles(FileSystem* files, const std::string& state_dir, const std::string& name,
                         const v1::Manifest& manifest) {
  const std::vector<std::vector<TensorPart>> nothing(static_cast<size_t>(manifest.files_size()));
  return ReadFiles(files, state_dir, name, manifest, nothing, true).status();
}

std::string Shape(const v1::Variable& variable) {
  return absl::StrCat("[", absl::StrJoin(variable.shape(), ", "), "]");
}

}  // namespace

std::string CheckpointName(uint64_t step) {
  const std::string digits = absl::StrCat(step);
  return absl::StrCat("step-", std::string(kStepDigits - std::min(kStepDigits, digits.size()), '0'),
                      digits);
}

std::string AsideName(uint64_t step, uint64_t began) {
  return absl::StrCat(CheckpointName(step), ".h", began, kAside);
}

absl::StatusOr<v1::SavedShard> WriteShard(FileSystem* files, const std::string& state_dir,
                                          const std::string& aside, int shard, int shards,
                                          const ShardTensors& tensors) {
  const std::string folder = absl::StrCat(Folder(state_dir), "/", aside);
  const std::string name = ShardFileName(shard, shards), path = absl::StrCat(folder, "/", name);
  TANDEM_RETURN_IF_ERROR(files->MakeFolder(folder));
  TANDEM_RETURN_IF_ERROR(files->Remove(path));
  absl::StatusOr<v1::ManifestFile> written = WriteShardFile(files, path, tensors);
  absl::Status status = written.status();
  if (status.ok()) status = FaultPoint("checkpoint_written");
  if (status.ok()) status = files->SyncFolder(folder);
  if (status.ok()) status = files->SyncFolder(Folder(state_dir));
  if (!status.ok()) {
    files->Remove(path).IgnoreError();  // The space may be needed; the first error is the reason.
    return status;
  }
  v1::SavedShard saved;
  saved.set_step(static_cast<uint64_t>(std::max<int64_t>(StepOf(aside), 0)));
  saved.set_folder(aside);
  saved.set_file(name);
  saved.set_bytes(written->bytes());
  saved.set_checksum(absl::HexStringToBytes(written->checksum()));
  return saved;
}

absl::Status CommitCheckpoint(FileSystem* files, const std::string& state_dir,
                              const std::string& aside, const v1::Manifest& manifest,
                              uint32_t keep) {
  const std::string name = CheckpointName(manifest.step()), folder = Folder(state_dir);
  TANDEM_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List(folder));
  const auto is_there = [&names](const std::string& n) {
    return std::find(names.begin(), names.end(), n) != names.end();
  };
  if (is_there(name) && !is_there(aside)) {
    // Renamed already, by a coordinator that died over it: if the bytes are those.
    TANDEM_RETURN_IF_ERROR(VerifyFiles(files, state_dir, name, manifest));
  } else {
    TANDEM_RETURN_IF_ERROR(CheckSizes(files, state_dir, aside, manifest));
    if (is_there(name)) TANDEM_RETURN_IF_ERROR(Discard(files, state_dir, name));
    TANDEM_RETURN_IF_ERROR(
        files->Rename(absl::StrCat(folder, "/", aside), absl::StrCat(folder, "/", name)));
    TANDEM_RETURN_IF_ERROR(files->SyncFolder(folder));
  }
  TANDEM_RETURN_IF_ERROR(FaultPoint("checkpoint_renamed"));
  TANDEM_RETURN_IF_ERROR(WriteManifest(files, state_dir, name, manifest));
  TANDEM_RETURN_IF_ERROR(FaultPoint("manifest_written"));
  // The checkpoint stands. What cannot be removed now is tried again with the next.
  const absl::Status pruned =
      Prune(files, state_dir, aside, static_cast<int64_t>(manifest.step()), keep);
  if (!pruned.ok()) Log(absl::StrCat("old checkpoints: ", std::string(pruned.message())));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<CheckpointEntry>> ListCheckpoints(FileSystem* files,
                                                             const std::string& state_dir) {
  std::vector<CheckpointEntry> entries;
  const absl::StatusOr<std::vector<std::string>> names = files->List(Folder(state_dir));
  if (absl::IsNotFound(names.status())) return entries;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (!IsCheckpointName(name)) continue;
    absl::StatusOr<v1::Manifest> manifest = ReadManifest(files, state_dir, name);
    if (absl::IsNotFound(manifest.status())) continue;
    CheckpointEntry entry{name, {}, manifest.status()};
    if (manifest.ok()) {
      entry.manifest = *std::move(manifest);
      entry.status = CheckSizes(files, state_dir, name, entry.manifest);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::Status CheckModel(const v1::Manifest& manifest, const std::vector<v1::Variable>& variables) {
  const std::string of = absl::StrCat("checkpoint ", CheckpointName(manifest.step()));
  for (size_t v = 0; v < variables.size(); ++v) {
    const v1::Variable& ours = variables[v];
    if (static_cast<int>(v) >= manifest.variables_size()) {
      return absl::FailedPreconditionError(absl::StrCat(
          of, " is of another model: it has no variable \"", ours.name(), "\" ", Shape(ours)));
    }
    const v1::Variable& theirs = manifest.variables(static_cast<int>(v));
    if (theirs.name() == ours.name() && Shape(theirs) == Shape(ours)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(of, " is of another model: variable ", v, " is \"", theirs.name(), "\" ",
                     Shape(theirs), "; the job's is \"", ours.name(), "\" ", Shape(ours)));
  }
  if (manifest.variables_size() == static_cast<int>(variables.size())) return absl::OkStatus();
  const v1::Variable& extra = manifest.variables(static_cast<int>(variables.size()));
  return absl::FailedPreconditionError(absl::StrCat(
      of, " is of another model: the job has no variable \"", extra.name(), "\" ", Shape(extra)));
}

absl::StatusOr<ShardTensors> ReadShard(FileSystem* files, const std::string& state_dir,
                                       const std::string& name,
                                       const std::vector<v1::Block>& blocks) {
  TANDEM_ASSIGN_OR_RETURN(const v1::Manifest manifest, ReadManifest(files, state_dir, name));
  absl::StatusOr<uint64_t> elements = CountElements(manifest, blocks);
  if (!elements.ok()) return Prefixed(absl::StrCat("checkpoint ", name), elements.status());
  // The files' sizes stand for the manifest's: what is not there needs no memory.
  TANDEM_RETURN_IF_ERROR(CheckSizes(files, state_dir, name, manifest));
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<float*> out;
  for (uint32_t t = 0; t < manifest.slots() + 1; ++t) {
    buffers.push_back(std::make_shared<Buffer>(*elements));
    out.push_back(buffers.back()->data());
  }
  std::vector<std::vector<TensorPart>> parts(static_cast<size_t>(manifest.files_size()));
  size_t at = 0;
  for (const v1::Block& wanted : blocks) {
    for (size_t f = 0; f < parts.size(); ++f) {
      for (const v1::Block& held : manifest.files(static_cast<int>(f)).blocks()) {
        AddParts(held, wanted, at, out, &parts[f]);
      }
    }
    at += wanted.end() - wanted.begin();
  }
  ShardTensors tensors;
  TANDEM_ASSIGN_OR_RETURN(tensors.state, ReadFiles(files, state_dir, name, manifest, parts, false));
  tensors.blocks = blocks;
  tensors.weights = buffers[0];
  tensors.slots.assign(buffers.begin() + 1, buffers.end());
  return tensors;
}

absl::Status VerifyCheckpoint(FileSystem* files, const std::string& state_dir,
                              const std::string& name) {
  TANDEM_ASSIGN_OR_RETURN(const v1::Manifest manifest, ReadManifest(files, state_dir, name));
  return VerifyFiles(files, state_dir, name, manifest);
}

}  // namespace tandem
