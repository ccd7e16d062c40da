// What a checkpoint holds of some blocks.
#ifndef TANDEM_COMMON_CHECKPOINT_SHARD_TENSORS_H_
#define TANDEM_COMMON_CHECKPOINT_SHARD_TENSORS_H_

#include <memory>
#include <vector>

#include "common/tensor/buffer.h"
#include "proto/parameter_server.pb.h"

namespace tandem {

// The tensors are the blocks laid end to end, in order.
struct ShardTensors {
  v1::ShardState state;
  std::vector<v1::Block> blocks;
  std::shared_ptr<const Buffer> weights;
  std::vector<std::shared_ptr<const Buffer>> slots;
};

}  // namespace tandem

#endif  // TANDEM_COMMON_CHECKPOINT_SHARD_TENSORS_H_
