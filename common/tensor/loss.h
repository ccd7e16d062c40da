// Losses of single examples and their derivatives, as Keras 3 defines them. The same bits on every
// processor. In all of them `losses` has one element an example, and the derivative with respect to
// the predictions, times `scale`, is written where its array is not null.
#ifndef TANDEM_COMMON_TENSOR_LOSS_H_
#define TANDEM_COMMON_TENSOR_LOSS_H_

#include <cstddef>

namespace tandem {

// Predicted probabilities are clipped to [kProbabilityMargin, 1 - kProbabilityMargin] before their
// logarithm is taken: keras.config.epsilon(). Where the clip acts, the derivative is 0.
constexpr float kProbabilityMargin = 1e-7f;

// labels[r] is a class number, whole and below `classes`; the other arrays are [examples, classes].

// log(sum of exp(logits)) - logits[label]. Also writes softmax(logits).
void SoftmaxCrossEntropy(size_t examples, size_t classes, const float* logits, const float* labels,
                         float scale, float* losses, float* softmax, float* derivative);
// -log(c[label] / sum of c), where c are the clipped probabilities: Keras renormalises after the
// clip.
void SparseCrossEntropy(size_t examples, size_t classes, const float* probabilities,
                        const float* labels, float scale, float* losses, float* derivative);

// One prediction an example. The target is label (1 - smoothing) + smoothing / 2.

// log(1 + exp(logit)) - target logit.
void LogisticCrossEntropy(size_t examples, const float* logits, const float* labels,
                          float smoothing, float scale, float* losses, float* derivative);
// -(target log p + (1 - target) log(1 - p)).
void BinaryCrossEntropy(size_t examples, const float* probabilities, const float* labels,
                        float smoothing, float scale, float* losses, float* derivative);

// (prediction - label)^2, one prediction an example.
void SquaredError(size_t examples, const float* predictions, const float* labels, float scale,
                  float* losses, float* derivative);

}  // namespace tandem

#endif  // TANDEM_COMMON_TENSOR_LOSS_H_
