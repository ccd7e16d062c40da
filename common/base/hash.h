// Hashes of bytes (XXH3 of the xxHash library). Not cryptographic.
#ifndef TANDEM_COMMON_BASE_HASH_H_
#define TANDEM_COMMON_BASE_HASH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace tandem {

constexpr size_t kHash128Bytes = 16;

// XXH3-64 of `size` bytes at `data`.
uint64_t Hash64(const void* data, size_t size);
inline uint64_t Hash64(absl::string_view text) { return Hash64(text.data(), text.size()); }

// XXH3-128 of `size` bytes at `data`, as kHash128Bytes big-endian bytes.
std::string Hash128(const void* data, size_t size);

// Hash128 of bytes that come in pieces. Not thread-safe.
class Hasher128 {
 public:
  Hasher128();
  ~Hasher128();
  void Add(const void* data, size_t size);
  // Of everything so far.
  std::string Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_BASE_HASH_H_
