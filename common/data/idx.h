// The IDX format of MNIST. All numbers are big-endian:
//
//   2 bytes 0 | 1 byte type | 1 byte D | D x 4 bytes: dimensions | data, the last dimension fastest
//
// The type is 0x08 (unsigned bytes); D = 1 makes a label file, D >= 2 a file of images, or of any
// other tensors of bytes, whose first dimension counts them.
#ifndef TANDEM_COMMON_DATA_IDX_H_
#define TANDEM_COMMON_DATA_IDX_H_

#include <memory>

#include "common/data/format.h"
#include "proto/job.pb.h"

namespace tandem {

// Files are sorted into images and labels by what they hold; the i-th of each belong together. The
// dataset keeps pixels as bytes, and Read multiplies them by `options.scale`.
std::unique_ptr<Format> MakeIdxFormat(const v1::Idx& options);

}  // namespace tandem

#endif  // TANDEM_COMMON_DATA_IDX_H_
