// The files that must survive a crash, behind an interface: the real disk, or the simulator's,
// which loses what was not synced.
//
// Paths are absolute or relative to the working directory, with `/`. Errors name the path and the
// reason: NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED (no space), DATA_LOSS
// (the device cannot read), UNAVAILABLE otherwise.
#ifndef TANDEM_COMMON_CHECKPOINT_FILE_SYSTEM_H_
#define TANDEM_COMMON_CHECKPOINT_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tandem {

// Not thread-safe. Closes its file when it is destroyed.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  // Adds `size` bytes at the end. After an error the file's end is undefined.
  virtual absl::Status Append(const void* data, size_t size) = 0;
  // Returns once everything appended would survive a loss of power, and so would the file's size.
  virtual absl::Status Sync() = 0;
};

// Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual uint64_t size() const = 0;
  // Reads exactly `size` bytes from `offset` on. OUT_OF_RANGE past the end.
  virtual absl::Status Read(uint64_t offset, size_t size, void* out) const = 0;
};

// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  static constexpr uint64_t kWhole = UINT64_MAX;

  // A file that is open for writing is so in one process alone: ALREADY_EXISTS names it otherwise.

  // A new file, open for writing; ALREADY_EXISTS when there is one.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) = 0;
  // An existing file, cut to `size` bytes (kWhole: as it is) and open for adding at its end.
  virtual absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path,
                                                                      uint64_t size) = 0;
  virtual absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) = 0;
  // Makes a folder and those above it. It may be there already.
  virtual absl::Status MakeFolder(const std::string& path) = 0;
  // Names in a folder, sorted, without `.` and `..`.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& folder) = 0;
  // Replaces a file; a folder must not be there yet. Atomic: after a crash one of both stands.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Makes creations, renamings and removals in `folder` survive a loss of power.
  virtual absl::Status SyncFolder(const std::string& folder) = 0;
  // A file, or a folder with all that is in it. Not there: ok.
  virtual absl::Status Remove(const std::string& path) = 0;
};

// The real one. Never destroyed.
FileSystem* RealFileSystem();

// All of a file of at most `most` bytes. INVALID_ARGUMENT names it when it is larger.
absl::StatusOr<std::string> ReadWholeFile(FileSystem* files, const std::string& path,
                                          uint64_t most);

}  // namespace tandem

#endif  // TANDEM_COMMON_CHECKPOINT_FILE_SYSTEM_H_
