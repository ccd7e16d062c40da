#include "common/checkpoint/file_system.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace tandem {
namespace {

absl::Status Error(absl::string_view doing, const std::string& path, int error) {
  const std::string message = absl::StrCat(path, ": cannot ", doing, ": ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(message);
    case EEXIST:
    case ENOTEMPTY:
      return absl::AlreadyExistsError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case EIO:
      return absl::DataLossError(message);
    default:
      return absl::UnavailableError(message);
  }
}

// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::StatusOr<Descriptor> OpenDescriptor(const std::string& path, int flags, const char* doing) {
  int fd;
  do {
    fd = open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return Error(doing, path, errno);
  return Descriptor(fd);
}

class RealWritableFile : public WritableFile {
 public:
  RealWritableFile(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  absl::Status Append(const void* data, size_t size) override {
    const char* from = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t n = write(fd_.get(), from, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Error("write", path_, errno);
      from += n;
      size -= static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (fdatasync(fd_.get()) != 0) return Error("sync", path_, errno);
    return absl::OkStatus();
  }

 private:
  std::string path_;
  Descriptor fd_;
};

class RealReadableFile : public ReadableFile {
 public:
  RealReadableFile(std::string path, Descriptor fd, uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  uint64_t size() const override { return size_; }

  absl::Status Read(uint64_t offset, size_t size, void* out) const override {
    char* to = static_cast<char*>(out);
    while (size > 0) {
      const ssize_t n = pread(fd_.get(), to, size, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Error("read", path_, errno);
      if (n == 0) {
        return absl::OutOfRangeError(absl::StrCat(path_, ": ends at byte ", offset));
      }
      to += n;
      offset += static_cast<uint64_t>(n);
      size -= static_cast<size_t>(n);
    }
    return absl::OkStatus();
  }

 private:
  std::string path_;
  Descriptor fd_;
  uint64_t size_;
};

class RealFiles : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    TANDEM_ASSIGN_OR_RETURN(Descriptor fd,
                            OpenDescriptor(path, O_WRONLY | O_CREAT | O_EXCL, "create"));
    return Lock(path, std::move(fd));
  }

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForAppend(const std::string& path,
                                                              uint64_t size) override {
    TANDEM_ASSIGN_OR_RETURN(Descriptor fd, OpenDescriptor(path, O_WRONLY | O_APPEND, "open"));
    const int descriptor = fd.get();
    TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, Lock(path, std::move(fd)));
    if (size != kWhole && ftruncate(descriptor, static_cast<off_t>(size)) != 0) {
      return Error("cut", path, errno);
    }
    return file;
  }

  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(const std::string& path) override {
    TANDEM_ASSIGN_OR_RETURN(Descriptor fd, OpenDescriptor(path, O_RDONLY | O_NONBLOCK, "open"));
    struct stat info;
    if (fstat(fd.get(), &info) != 0) return Error("read", path, errno);
    if (!S_ISREG(info.st_mode)) return absl::UnavailableError(absl::StrCat(path, ": is no file"));
    return std::make_unique<RealReadableFile>(path, std::move(fd),
                                              static_cast<uint64_t>(info.st_size));
  }

  absl::Status MakeFolder(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return Error("make", path, error.value());
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    std::filesystem::directory_iterator at(folder, error), end;
    while (!error && at != end) {
      names.push_back(at->path().filename().string());
      at.increment(error);
    }
    if (error) return Error("list", folder, error.value());
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) {
      return Error(absl::StrCat("rename to ", to), from, errno);
    }
    return absl::OkStatus();
  }

  absl::Status SyncFolder(const std::string& folder) override {
    TANDEM_ASSIGN_OR_RETURN(const Descriptor fd,
                            OpenDescriptor(folder, O_RDONLY | O_DIRECTORY, "open"));
    if (fsync(fd.get()) != 0) return Error("sync", folder, errno);
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) return Error("remove", path, error.value());
    return absl::OkStatus();
  }

 private:
  static absl::StatusOr<std::unique_ptr<WritableFile>> Lock(const std::string& path,
                                                            Descriptor fd) {
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return Error("lock", path, errno);
      return absl::AlreadyExistsError(
          absl::StrCat(path, ": another process has it open; end that one first"));
    }
    return std::make_unique<RealWritableFile>(path, std::move(fd));
  }
};

}  // namespace

FileSystem* RealFileSystem() {
  static FileSystem* const files = new RealFiles;
  return files;
}

absl::StatusOr<std::string> ReadWholeFile(FileSystem* files, const std::string& path,
                                          uint64_t most) {
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files->Open(path));
  if (file->size() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has ", file->size(), " bytes; expected at most ", most));
  }
  std::string bytes(file->size(), '\0');
  TANDEM_RETURN_IF_ERROR(file->Read(0, bytes.size(), bytes.data()));
  return bytes;
}

}  // namespace tandem
