#include "common/base/hash.h"

#include <xxhash.h>

namespace tandem {

uint64_t Hash64(const void* data, size_t size) { return XXH3_64bits(data, size); }

namespace {

std::string Canonical(const XXH128_hash_t& hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  return std::string(reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest));
}

}  // namespace

std::string Hash128(const void* data, size_t size) { return Canonical(XXH3_128bits(data, size)); }

struct Hasher128::State {
  State() : xxh(XXH3_createState()) { XXH3_128bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
  XXH3_state_t* xxh;
};

Hasher128::Hasher128() : state_(std::make_unique<State>()) {}
Hasher128::~Hasher128() = default;

void Hasher128::Add(const void* data, size_t size) { XXH3_128bits_update(state_->xxh, data, size); }

std::string Hasher128::Finish() const { return Canonical(XXH3_128bits_digest(state_->xxh)); }

}  // namespace tandem
