// The weights a worker holds or is fetching, by version, and the memory they live in.
#ifndef TANDEM_WORKER_WEIGHTS_CACHE_H_
#define TANDEM_WORKER_WEIGHTS_CACHE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "common/tensor/buffer_pool.h"

namespace tandem {

// Not thread-safe.
class WeightsCache {
 public:
  explicit WeightsCache(uint64_t elements) : pool_(elements) {}

  // A buffer for weights that nobody uses.
  std::shared_ptr<Buffer> NewBuffer() { return pool_.Take(); }

  // Version `version` is being fetched into `buffer`, by transfer `transfer`.
  void Fetching(uint64_t version, uint64_t transfer, std::shared_ptr<Buffer> buffer) {
    fetching_[version] = {transfer, std::move(buffer)};
  }
  bool IsFetching(uint64_t version) const { return fetching_.count(version) > 0; }

  // Transfer `transfer` is through: the version it fetched, now to be had. False when none.
  bool Fetched(uint64_t transfer, uint64_t* version) {
    for (auto it = fetching_.begin(); it != fetching_.end(); ++it) {
      if (it->second.first != transfer) continue;
      *version = it->first;
      have_[it->first] = std::move(it->second.second);
      fetching_.erase(it);
      return true;
    }
    return false;
  }
  // Transfer `transfer` will not bring its version. False when it was fetching none.
  bool Failed(uint64_t transfer, uint64_t* version) {
    for (auto it = fetching_.begin(); it != fetching_.end(); ++it) {
      if (it->second.first != transfer) continue;
      *version = it->first;
      fetching_.erase(it);
      return true;
    }
    return false;
  }

  // Null when version `version` is not there.
  std::shared_ptr<const Buffer> Find(uint64_t version) const {
    auto it = have_.find(version);
    return it == have_.end() ? nullptr : it->second;
  }
  // Forgets versions below `version`.
  void DropBelow(uint64_t version) { have_.erase(have_.begin(), have_.lower_bound(version)); }
  void Drop(uint64_t version) { have_.erase(version); }

 private:
  BufferPool pool_;
  std::map<uint64_t, std::shared_ptr<Buffer>> have_;
  std::map<uint64_t, std::pair<uint64_t, std::shared_ptr<Buffer>>> fetching_;
};

}  // namespace tandem

#endif  // TANDEM_WORKER_WEIGHTS_CACHE_H_
