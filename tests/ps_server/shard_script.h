// Shards of a small job, driven as scripts.
#ifndef TANDEM_TESTS_PS_SERVER_SHARD_SCRIPT_H_
#define TANDEM_TESTS_PS_SERVER_SHARD_SCRIPT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ps_server/shard.h"

namespace tandem {

// A model without layers: variables "b" of 1500 elements and "a" of 700; element e of variable v
// starts at 100 v + e. No operation of it is ever used by a shard.
struct ShardJobOptions {
  uint32_t replicas = 2;
  uint64_t steps = 10;
  uint64_t examples = 8;  // Of the dataset; the batch size is `batch`.
  uint32_t batch = 8;
  bool synchronous = true;
  std::string optimizer = "sgd";  // Learning rate 0.5; or "adam".
  bool skip = false;              // What is not finite.
  uint64_t checkpoint_every = 1000;
};

constexpr uint64_t kModelElements = 2200;

std::shared_ptr<const ShardJob> MakeShardJob(const ShardJobOptions& options);
// Epoch 1, 1 to 4 shards; the fourth of four is empty.
v1::ClusterMap MakeMap(int shards);

// Not thread-safe.
class ShardScript {
 public:
  ShardScript(std::shared_ptr<const ShardJob> job, const v1::ClusterMap& map, int number);

  // A push of this shard's part of a gradient of the whole model.
  v1::Push MakePush(uint64_t step, uint32_t level, uint64_t index) const;
  Payload Part(const std::vector<float>& gradient) const;
  // Its answer, which must come at once; others that come with it wait in `answers`.
  ShardAnswer Push(const v1::Push& push, const std::vector<float>& gradient);
  ShardAnswer Push(uint64_t step, uint32_t level, uint64_t index, float value);
  ShardAnswer PushSkipped(uint64_t step, uint32_t level, uint64_t index);
  // The call's number.
  uint64_t Pull(uint64_t version, uint64_t map_epoch = 1);
  // The answer of a pull, removed from `answers`.
  ShardAnswer Answer(uint64_t call);
  std::vector<float> Weights() const;  // What a pull of the current version brings.

  std::shared_ptr<const ShardJob> job;
  std::unique_ptr<Shard> shard;
  std::map<uint64_t, ShardAnswer> answers;
  size_t first = 0;  // Of the model's elements.

 private:
  void Take(std::vector<ShardAnswer>* out);

  v1::Shard place_;
  uint64_t next_call_ = 1;
};

}  // namespace tandem

#endif  // TANDEM_TESTS_PS_SERVER_SHARD_SCRIPT_H_
