#include "coordinator/journal.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/fault_point.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

constexpr char kMagic[] = "tandem-journal ";
constexpr uint32_t kFormat = 1;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 30;
constexpr uint32_t kMaxRecordBytes = uint32_t{64} << 20;
// A record: its length, a check of that, the message, a check of that.
constexpr size_t kHeadBytes = 8, kTailBytes = 8;

std::string Header() { return absl::StrCat(kMagic, kFormat, "\n"); }

template <typename T>
T Load(absl::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

template <typename T>
void Store(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

uint32_t LengthCheck(uint32_t length) {
  return static_cast<uint32_t>(Hash64(&length, sizeof(length)));
}

std::string Frame(const std::string& message) {
  std::string out;
  const auto length = static_cast<uint32_t>(message.size());
  Store(length, &out);
  Store(LengthCheck(length), &out);
  out += message;
  Store(Hash64(message), &out);
  return out;
}

// The bytes of the whole record at the beginning of `bytes`; 0 when there is none.
size_t WholeRecord(absl::string_view bytes) {
  if (bytes.size() < kHeadBytes) return 0;
  const auto length = Load<uint32_t>(bytes);
  if (length == 0 || length > kMaxRecordBytes ||
      LengthCheck(length) != Load<uint32_t>(bytes.substr(4)) ||
      bytes.size() < kHeadBytes + length + kTailBytes) {
    return 0;
  }
  const absl::string_view message = bytes.substr(kHeadBytes, length);
  return Hash64(message) == Load<uint64_t>(bytes.substr(kHeadBytes + length))
             ? kHeadBytes + length + kTailBytes
             : 0;
}

// Only the last record can have been cut short, as each is synced before the next is begun: a whole
// one behind a bad one shows that the bad one was whole once.
bool HasWholeRecord(absl::string_view bytes) {
  for (size_t at = 1; at < bytes.size(); ++at) {
    if (WholeRecord(bytes.substr(at)) > 0) return true;
  }
  return false;
}

absl::Status CheckHeader(const std::string& path, absl::string_view bytes) {
  const std::string header = Header();
  if (absl::StartsWith(bytes, header) ||
      (bytes.size() < header.size() && absl::StartsWith(header, bytes))) {
    return absl::OkStatus();
  }
  const absl::string_view line = bytes.substr(0, bytes.find('\n'));
  absl::string_view number = line;
  uint32_t format = 0;
  if (absl::ConsumePrefix(&number, kMagic) && absl::SimpleAtoi(number, &format) &&
      format > kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": has format ", format, "; this version reads up to ", kFormat));
  }
  return absl::DataLossError(absl::StrCat(
      path, ": is no journal, or its first line is damaged; move it away to begin anew"));
}

// Sets *good to the bytes up to the end of the last whole record.
absl::Status ReadRecords(const std::string& path, absl::string_view bytes,
                         Journal::Contents* contents, uint64_t* good) {
  TANDEM_RETURN_IF_ERROR(CheckHeader(path, bytes));
  const size_t header = Header().size();
  *good = bytes.size() < header ? 0 : header;
  contents->torn = bytes.size() < header && !bytes.empty();
  while (*good > 0 && *good < bytes.size()) {
    const absl::string_view rest = bytes.substr(*good);
    const size_t size = WholeRecord(rest);
    if (size == 0 && !HasWholeRecord(rest)) {
      contents->torn = true;
      break;
    }
    v1::JournalRecord record;
    if (size == 0 || !record.ParseFromArray(rest.data() + kHeadBytes,
                                            static_cast<int>(size - kHeadBytes - kTailBytes))) {
      return absl::DataLossError(absl::StrCat(path, ": record ", contents->records.size() + 1,
                                              ", at byte ", *good,
                                              ", is damaged; move the journal away to begin "
                                              "from the last checkpoint"));
    }
    contents->records.push_back(std::move(record));
    *good += size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(FileSystem* files,
                                                       const std::string& state_dir,
                                                       Contents* contents) {
  const std::string path = absl::StrCat(state_dir, "/journal");
  TANDEM_RETURN_IF_ERROR(files->MakeFolder(state_dir));
  absl::StatusOr<std::unique_ptr<WritableFile>> file =
      files->OpenForAppend(path, FileSystem::kWhole);
  if (absl::IsNotFound(file.status())) {
    file = files->Create(path);
    if (file.ok()) TANDEM_RETURN_IF_ERROR(files->SyncFolder(state_dir));
  }
  if (!file.ok()) return file.status();
  TANDEM_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(files, path, kMaxFileBytes));
  *contents = Contents();
  uint64_t good = 0;
  TANDEM_RETURN_IF_ERROR(ReadRecords(path, bytes, contents, &good));
  std::unique_ptr<Journal> journal(new Journal(files, path, good));
  // Open from now on, which keeps others out; what has to be cut off is so by the first Append.
  journal->file_ = *std::move(file);
  journal->cut_ = good < bytes.size();
  return journal;
}

absl::Status Journal::Append(const v1::JournalRecord& record) {
  if (file_ == nullptr || cut_) {
    file_.reset();
    TANDEM_ASSIGN_OR_RETURN(file_, files_->OpenForAppend(path_, good_bytes_));
    cut_ = false;
  }
  std::string bytes = good_bytes_ == 0 ? Header() : "";
  bytes += Frame(record.SerializeAsString());
  cut_ = true;  // Until it is known to be whole.
  TANDEM_RETURN_IF_ERROR(file_->Append(bytes.data(), bytes.size()));
  TANDEM_RETURN_IF_ERROR(file_->Sync());
  cut_ = false;
  good_bytes_ += bytes.size();
  FaultPoint("journal_appended").IgnoreError();
  return absl::OkStatus();
}

}  // namespace tandem
