#include "common/data/libsvm.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/data/libsvm_line.h"
#include "common/data/line_reader.h"
#include "common/data/sparse_rows.h"

namespace tandem {
namespace {

using RowConsumer = absl::FunctionRef<void(const LibSvmRow&)>;

struct Summary {
  DatasetInfo info;
  bool all_signs = true;  // All labels are -1 or +1.
};

absl::Status ReadFile(const std::string& path, const LibSvmLimits& limits, RowConsumer consume,
                      Summary* summary) {
  TANDEM_ASSIGN_OR_RETURN(std::unique_ptr<GzipReader> source, GzipReader::Open(path));
  LineReader lines(std::move(source));
  const uint64_t examples_before = summary->info.examples;
  absl::string_view line;
  LibSvmRow row;
  while (true) {
    TANDEM_ASSIGN_OR_RETURN(const bool more, lines.Next(&line));
    if (!more) break;
    const absl::StatusOr<bool> is_row = ParseLibSvmLine(line, limits, &row);
    if (!is_row.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(lines.Place(), ": ", is_row.status().message()));
    }
    if (!*is_row) continue;
    AddLabel(row.label, &summary->info);
    summary->all_signs &= row.label == 1 || row.label == -1;
    ++summary->info.examples;
    consume(row);
  }
  if (summary->info.examples == examples_before) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": empty: expected lines `label index:value ...`"));
  }
  return absl::OkStatus();
}

// The one pass over all files, which Open and Scan share.
absl::StatusOr<Summary> ReadFiles(const std::vector<std::string>& files, const LibSvmLimits& limits,
                                  RowConsumer consume) {
  Summary summary;
  summary.info.example_shape = {limits.num_features};
  for (const std::string& file : files) {
    TANDEM_RETURN_IF_ERROR(ReadFile(file, limits, consume, &summary));
  }
  if (summary.all_signs) {
    summary.info.min_label = std::max(summary.info.min_label, 0.0f);
    summary.info.max_label = std::max(summary.info.max_label, 0.0f);
  }
  return summary;
}

class LibSvmDataset : public Dataset {
 public:
  LibSvmDataset(DatasetInfo info, SparseRows rows)
      : info_(std::move(info)), rows_(std::move(rows)) {}

  const DatasetInfo& info() const override { return info_; }

  absl::Status Read(absl::Span<const uint64_t> indices, Batch* batch) const override {
    TANDEM_RETURN_IF_ERROR(PrepareBatch(info_, indices, batch));
    std::fill(batch->features.begin(), batch->features.end(), 0.0f);
    float* out = batch->features.data();
    for (size_t i = 0; i < indices.size(); ++i, out += info_.example_shape[0]) {
      const SparseRows::Row row = rows_.row(indices[i]);
      batch->labels[i] = row.label;
      for (size_t j = 0; j < row.columns.size(); ++j) out[row.columns[j]] = row.values[j];
    }
    return absl::OkStatus();
  }

 private:
  const DatasetInfo info_;
  const SparseRows rows_;
};

class LibSvmFormat : public Format {
 public:
  explicit LibSvmFormat(LibSvmLimits limits) : limits_(limits) {}

  absl::StatusOr<std::unique_ptr<const Dataset>> Open(
      const std::vector<std::string>& files) const override {
    SparseRows rows;
    TANDEM_ASSIGN_OR_RETURN(Summary summary,
                            ReadFiles(files, limits_, [&rows](const LibSvmRow& row) {
                              rows.Append(row.label, row.columns, row.values);
                            }));
    if (summary.all_signs) rows.ReplaceLabel(-1, 0);
    return std::make_unique<const LibSvmDataset>(std::move(summary.info), std::move(rows));
  }

  absl::StatusOr<DatasetInfo> Scan(const std::vector<std::string>& files) const override {
    TANDEM_ASSIGN_OR_RETURN(Summary summary, ReadFiles(files, limits_, [](const LibSvmRow&) {}));
    return std::move(summary.info);
  }

 private:
  const LibSvmLimits limits_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Format>> MakeLibSvmFormat(const v1::LibSvm& options) {
  if (options.num_features() == 0) {
    return absl::InvalidArgumentError(
        "dataset.libsvm.num_features: expected the width of a row, at least 1");
  }
  return std::make_unique<LibSvmFormat>(
      LibSvmLimits{.num_features = options.num_features(),
                   .index_base = options.has_index_base() ? options.index_base() : 1});
}

}  // namespace tandem
