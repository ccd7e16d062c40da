#include "common/base/hash.h"

#include <xxhash.h>

namespace tandem {

uint64_t Hash64(const void* data, size_t size) { return XXH3_64bits(data, size); }

std::string Hash128(const void* data, size_t size) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data, size));
  return std::string(reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest));
}

}  // namespace tandem
