// STATE_DIR/journal: what the coordinator must know after a restart. Append-only, each record
// checksummed and synced before the next. docs/checkpoints.md has the bytes.
#ifndef TANDEM_COORDINATOR_JOURNAL_H_
#define TANDEM_COORDINATOR_JOURNAL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/file_system.h"
#include "proto/state.pb.h"

namespace tandem {

// Not thread-safe.
class Journal {
 public:
  struct Contents {
    std::vector<v1::JournalRecord> records;
    // The last record was not wholly written when the process died (nobody was told of it): it is
    // cut off by the next Append.
    bool torn = false;
  };

  // Opens STATE_DIR/journal, and makes both where they are not there. Changes nothing that is
  // there. DATA_LOSS names the file, the record and the byte when a record before the last is
  // damaged or the file is no journal; FAILED_PRECONDITION when it is of a newer format;
  // ALREADY_EXISTS when another process has it open.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(FileSystem* files,
                                                       const std::string& state_dir,
                                                       Contents* contents);

  // Adds a record and syncs. After an error the journal is as before it (what was written is cut
  // off by the next Append), and Append may be tried again.
  absl::Status Append(const v1::JournalRecord& record);

 private:
  Journal(FileSystem* files, std::string path, uint64_t good_bytes)
      : files_(files), path_(std::move(path)), good_bytes_(good_bytes) {}

  FileSystem* files_;
  std::string path_;
  uint64_t good_bytes_;                 // Whole records, synced.
  std::unique_ptr<WritableFile> file_;  // Null after an error.
  bool cut_ = false;                    // There may be more in it than good_bytes_.
};

}  // namespace tandem

#endif  // TANDEM_COORDINATOR_JOURNAL_H_
