#include "common/tensor/loss.h"

#include "common/tensor/row_math.h"

namespace tandem {
namespace {

constexpr float kLowest = kProbabilityMargin, kHighest = 1.0f - kProbabilityMargin;

float Clip(float p) { return AtMost(AtLeast(p, kLowest), kHighest); }
bool Inside(float p) { return p >= kLowest && p <= kHighest; }
float Smooth(float label, float smoothing) { return label * (1.0f - smoothing) + 0.5f * smoothing; }

}  // namespace

void SoftmaxCrossEntropy(size_t examples, size_t classes, const float* logits, const float* labels,
                         float scale, float* losses, float* softmax, float* derivative) {
  ExpOfShiftedRows(examples, classes, logits, softmax);
  for (size_t r = 0; r < examples; ++r) {
    const float* row = logits + r * classes;
    float* p = softmax + r * classes;
    const size_t label = static_cast<size_t>(labels[r]);
    const float sum = RowSum(classes, p);
    losses[r] = LogOf(sum) - (row[label] - RowMax(classes, row));
    for (size_t c = 0; c < classes; ++c) p[c] = p[c] / sum;
    if (derivative == nullptr) continue;
    float* d = derivative + r * classes;
    for (size_t c = 0; c < classes; ++c) d[c] = p[c] * scale;
    d[label] = (p[label] - 1.0f) * scale;
  }
}

void SparseCrossEntropy(size_t examples, size_t classes, const float* probabilities,
                        const float* labels, float scale, float* losses, float* derivative) {
  for (size_t r = 0; r < examples; ++r) {
    const float* p = probabilities + r * classes;
    const size_t label = static_cast<size_t>(labels[r]);
    // As RowSum, of the clipped probabilities.
    float lane[kLanes] = {};
    for (size_t c = 0; c < classes; ++c) lane[c % kLanes] += Clip(p[c]);
    const float sum = Fold(lane);
    losses[r] = LogOf(sum) - LogOf(Clip(p[label]));
    if (derivative == nullptr) continue;
    float* d = derivative + r * classes;
    const float common = scale / sum;
    for (size_t c = 0; c < classes; ++c) d[c] = Inside(p[c]) ? common : 0.0f;
    if (Inside(p[label])) d[label] = (1.0f / sum - 1.0f / p[label]) * scale;
  }
}

void LogisticCrossEntropy(size_t examples, const float* logits, const float* labels,
                          float smoothing, float scale, float* losses, float* derivative) {
  for (size_t r = 0; r < examples; ++r) {
    const float z = logits[r], target = Smooth(labels[r], smoothing);
    // max(z, 0) - z t + log1p(exp(-|z|)), TensorFlow's form, which cannot overflow.
    losses[r] = AtLeast(z, 0.0f) - z * target + Log1pOf(ExpOf(-Abs(z)));
  }
  if (derivative == nullptr) return;
  for (size_t r = 0; r < examples; ++r) {
    derivative[r] = (SigmoidOf(logits[r]) - Smooth(labels[r], smoothing)) * scale;
  }
}

void BinaryCrossEntropy(size_t examples, const float* probabilities, const float* labels,
                        float smoothing, float scale, float* losses, float* derivative) {
  for (size_t r = 0; r < examples; ++r) {
    const float p = Clip(probabilities[r]), target = Smooth(labels[r], smoothing);
    losses[r] = -(target * LogOf(p) + (1.0f - target) * LogOf(1.0f - p));
  }
  if (derivative == nullptr) return;
  for (size_t r = 0; r < examples; ++r) {
    const float p = Clip(probabilities[r]), target = Smooth(labels[r], smoothing);
    const float slope = (1.0f - target) / (1.0f - p) - target / p;
    derivative[r] = Inside(probabilities[r]) ? slope * scale : 0.0f;
  }
}

void SquaredError(size_t examples, const float* predictions, const float* labels, float scale,
                  float* losses, float* derivative) {
  for (size_t r = 0; r < examples; ++r) {
    const float error = predictions[r] - labels[r];
    losses[r] = error * error;
    if (derivative != nullptr) derivative[r] = 2.0f * error * scale;
  }
}

}  // namespace tandem
