#include "common/data/idx.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/data/byte_rows.h"
#include "common/data/idx_file.h"

namespace tandem {
namespace {

using Consumer = absl::FunctionRef<void(absl::Span<const uint8_t>)>;

constexpr float kDefaultScale = 1.0f / 255;

struct Pair {
  IdxHeader images, labels;
};

absl::Status CheckPair(const Pair& pair, const IdxHeader& first) {
  const IdxHeader& images = pair.images;
  if (images.count() != pair.labels.count()) {
    return absl::InvalidArgumentError(
        absl::StrCat(pair.labels.path, ": holds ", pair.labels.count(), " labels: expected ",
                     images.count(), ", one an image of ", images.path));
  }
  if (images.example_shape() != first.example_shape()) {
    return absl::InvalidArgumentError(
        absl::StrCat(images.path, ": holds images of ", ShapeText(images.example_shape()),
                     ": expected ", ShapeText(first.example_shape()), ", as in ", first.path));
  }
  return absl::OkStatus();
}

// Reads the headers of all files and pairs images with labels. At least one pair.
absl::StatusOr<std::vector<Pair>> PairFiles(const std::vector<std::string>& files) {
  std::vector<IdxHeader> images, labels;
  for (const std::string& file : files) {
    TANDEM_ASSIGN_OR_RETURN(IdxHeader header, ReadIdxHeader(file));
    (header.is_labels() ? labels : images).push_back(std::move(header));
  }
  if (images.size() != labels.size()) {
    const bool more_images = images.size() > labels.size();
    const IdxHeader& alone = more_images ? images[labels.size()] : labels[images.size()];
    return absl::InvalidArgumentError(
        absl::StrCat(alone.path, ": no ", more_images ? "label" : "image",
                     " file belongs to it: expected as many label files as image files, found ",
                     images.size(), " of images and ", labels.size(), " of labels"));
  }
  std::vector<Pair> pairs;
  for (size_t i = 0; i < images.size(); ++i) {
    pairs.push_back({std::move(images[i]), std::move(labels[i])});
    TANDEM_RETURN_IF_ERROR(CheckPair(pairs.back(), pairs.front().images));
  }
  return pairs;
}

// The one pass over all data, which Open and Scan share.
absl::StatusOr<DatasetInfo> ReadPairs(const std::vector<Pair>& pairs, Consumer consume_images,
                                      Consumer consume_labels) {
  DatasetInfo info;
  info.example_shape = pairs.front().images.example_shape();
  uint8_t min_label = 255, max_label = 0;
  for (const Pair& pair : pairs) {
    TANDEM_RETURN_IF_ERROR(ReadIdxData(pair.images, consume_images));
    TANDEM_RETURN_IF_ERROR(ReadIdxData(pair.labels, [&](absl::Span<const uint8_t> block) {
      for (const uint8_t label : block) {
        min_label = std::min(min_label, label);
        max_label = std::max(max_label, label);
      }
      consume_labels(block);
    }));
    info.examples += pair.images.count();
  }
  info.min_label = min_label;
  info.max_label = max_label;
  return info;
}

class IdxDataset : public Dataset {
 public:
  IdxDataset(DatasetInfo info, float scale, ByteRows images, ByteRows labels)
      : info_(std::move(info)),
        elements_(ExampleElements(info_)),
        scale_(scale),
        images_(std::move(images)),
        labels_(std::move(labels)) {}

  const DatasetInfo& info() const override { return info_; }

  absl::Status Read(absl::Span<const uint64_t> indices, Batch* batch) const override {
    TANDEM_RETURN_IF_ERROR(PrepareBatch(info_, indices, batch));
    float* out = batch->features.data();
    for (size_t i = 0; i < indices.size(); ++i, out += elements_) {
      if (i + kPrefetchRows < indices.size()) Prefetch(images_.row(indices[i + kPrefetchRows]));
      batch->labels[i] = *labels_.row(indices[i]);
      const uint8_t* pixels = images_.row(indices[i]);
      for (uint64_t j = 0; j < elements_; ++j) out[j] = scale_ * static_cast<float>(pixels[j]);
    }
    return absl::OkStatus();
  }

 private:
  // In shuffled order every row is a miss of all caches, and the processor cannot guess the next.
  static constexpr size_t kPrefetchRows = 2;
  static constexpr size_t kMaxPrefetchBytes = 4096, kCacheLineBytes = 64;

  void Prefetch(const uint8_t* row) const {
    const size_t bytes = std::min<uint64_t>(elements_, kMaxPrefetchBytes);
    for (size_t i = 0; i < bytes; i += kCacheLineBytes) __builtin_prefetch(row + i);
  }

  const DatasetInfo info_;
  const uint64_t elements_;
  const float scale_;
  const ByteRows images_, labels_;
};

class IdxFormat : public Format {
 public:
  explicit IdxFormat(float scale) : scale_(scale) {}

  absl::StatusOr<std::unique_ptr<const Dataset>> Open(
      const std::vector<std::string>& files) const override {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, PairFiles(files));
    const IdxHeader& first = pairs.front().images;
    ByteRows images(first.data_bytes / first.count()), labels(1);
    TANDEM_ASSIGN_OR_RETURN(
        DatasetInfo info, ReadPairs(
                              pairs, [&](absl::Span<const uint8_t> block) { images.Append(block); },
                              [&](absl::Span<const uint8_t> block) { labels.Append(block); }));
    return std::make_unique<const IdxDataset>(std::move(info), scale_, std::move(images),
                                              std::move(labels));
  }

  absl::StatusOr<DatasetInfo> Scan(const std::vector<std::string>& files) const override {
    TANDEM_ASSIGN_OR_RETURN(const std::vector<Pair> pairs, PairFiles(files));
    const auto ignore = [](absl::Span<const uint8_t>) {};
    return ReadPairs(pairs, ignore, ignore);
  }

 private:
  const float scale_;
};

}  // namespace

std::unique_ptr<Format> MakeIdxFormat(const v1::Idx& options) {
  return std::make_unique<IdxFormat>(options.has_scale() ? options.scale() : kDefaultScale);
}

}  // namespace tandem
