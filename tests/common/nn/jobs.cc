#include "tests/common/nn/jobs.h"

#include <google/protobuf/text_format.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

namespace tandem {

v1::JobSpec JobOf(const std::string& text) {
  v1::JobSpec job;
  if (!google::protobuf::TextFormat::ParseFromString(text, &job)) std::abort();
  return job;
}

std::unique_ptr<const Model> ModelOf(const v1::JobSpec& job, const std::vector<uint64_t>& shape) {
  auto model = Model::Create(job, shape);
  if (!model.ok()) {
    std::fprintf(stderr, "%s\n", model.status().ToString().c_str());
    std::abort();
  }
  return *std::move(model);
}

Batch RandomBatch(size_t size, size_t features, int classes, uint64_t seed) {
  std::mt19937_64 random(seed);
  Batch batch;
  batch.size = size;
  for (size_t i = 0; i < size * features; ++i) {
    batch.features.push_back(static_cast<float>(random() >> 40) * 0x1p-23f - 1);
  }
  for (size_t i = 0; i < size; ++i) batch.labels.push_back(static_cast<float>(random() % classes));
  return batch;
}

std::vector<float> InitialWeights(const Model& model, uint64_t seed) {
  std::vector<float> weights;
  for (size_t v = 0; v < model.variables().size(); ++v) {
    uint64_t size = 1;
    for (uint64_t n : model.variables()[v].shape()) size *= n;
    weights.resize(weights.size() + size);
    model.Initialize(seed, static_cast<int>(v), 0, size, &weights[weights.size() - size]);
  }
  return weights;
}

}  // namespace tandem
