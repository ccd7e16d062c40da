#include "common/nn/loss_function.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/tensor/loss.h"
#include "common/tensor/softmax.h"

namespace tandem {
namespace {

using Kind = LossFunction::Kind;

constexpr absl::string_view kNames[] = {"sparse_categorical_crossentropy", "binary_crossentropy",
                                        "mean_squared_error"};

absl::string_view NameOf(Kind kind) { return kNames[static_cast<int>(kind)]; }

absl::Status CheckOutputs(Kind kind, absl::Span<const uint64_t> shape) {
  const bool fits = shape.size() == 1 && (kind == Kind::kSparseCategorical || shape[0] == 1);
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "loss: ", NameOf(kind), " needs ",
      kind == Kind::kSparseCategorical ? "one score for each class" : "1 output",
      " an example, but the model's output has the shape [", absl::StrJoin(shape, ", "), "]"));
}

absl::StatusOr<float> Smoothing(const v1::BinaryCrossentropy& spec) {
  const float smoothing = spec.label_smoothing();
  if (smoothing >= 0 && smoothing <= 1) return smoothing;
  return absl::InvalidArgumentError(absl::StrCat("loss.binary_crossentropy.label_smoothing: is ",
                                                 smoothing, "; expected a number from 0 to 1"));
}

bool IsClass(float label, size_t classes) {
  return label >= 0 && label < static_cast<float>(classes) && label == std::floor(label);
}

void Predict(const LossFunction& loss, size_t examples, const float* outputs, float* predictions) {
  if (loss.to_predictions == Activation::kSoftmax) {
    Softmax(examples, loss.outputs, outputs, predictions);
  } else {
    Activate(loss.to_predictions, examples * loss.outputs, outputs, predictions);
  }
}

}  // namespace

absl::StatusOr<LossFunction> ResolveLoss(const v1::Loss& spec,
                                         absl::Span<const uint64_t> output_shape, Activation last) {
  LossFunction loss;
  switch (spec.kind_case()) {
    case v1::Loss::kSparseCategoricalCrossentropy:
      loss.kind = Kind::kSparseCategorical;
      loss.from_logits = spec.sparse_categorical_crossentropy().from_logits();
      break;
    case v1::Loss::kBinaryCrossentropy: {
      loss.kind = Kind::kBinary;
      loss.from_logits = spec.binary_crossentropy().from_logits();
      const absl::StatusOr<float> smoothing = Smoothing(spec.binary_crossentropy());
      if (!smoothing.ok()) return smoothing.status();
      loss.label_smoothing = *smoothing;
      break;
    }
    case v1::Loss::kMeanSquaredError:
      loss.kind = Kind::kSquaredError;
      break;
    case v1::Loss::KIND_NOT_SET:
      return absl::InvalidArgumentError(
          absl::StrCat("loss: is not set; expected one of ", absl::StrJoin(kNames, ", ")));
  }
  if (absl::Status status = CheckOutputs(loss.kind, output_shape); !status.ok()) return status;
  loss.outputs = output_shape[0];
  const bool has_logits = last == Activation::kSoftmax || last == Activation::kSigmoid;
  if (has_logits && loss.kind != Kind::kSquaredError) {
    loss.from_logits = true;
    loss.to_predictions = last;
  }
  return loss;
}

absl::Status CheckLabelRange(const LossFunction& loss, float min_label, float max_label) {
  const auto error = [&](absl::string_view expected) {
    return absl::InvalidArgumentError(absl::StrCat("loss: ", NameOf(loss.kind), " needs ", expected,
                                                   ", but labels range from ", min_label, " to ",
                                                   max_label));
  };
  switch (loss.kind) {
    case Kind::kSparseCategorical:
      if (IsClass(min_label, loss.outputs) && IsClass(max_label, loss.outputs)) break;
      return error(absl::StrCat("class numbers from 0 to ", loss.outputs - 1,
                                ", for the model has ", loss.outputs, " outputs"));
    case Kind::kBinary:
      if (min_label >= 0 && max_label <= 1) break;
      return error("labels from 0 to 1");
    case Kind::kSquaredError:
      if (std::isfinite(min_label) && std::isfinite(max_label)) break;
      return error("finite labels");
  }
  return absl::OkStatus();
}

absl::Status CheckLabelsOfBatch(const LossFunction& loss, absl::Span<const float> labels) {
  if (loss.kind != Kind::kSparseCategorical) return absl::OkStatus();
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!IsClass(labels[i], loss.outputs)) {
      return absl::InvalidArgumentError(
          absl::StrCat("label ", labels[i], " of example ", i,
                       " of the batch: expected a class number below ", loss.outputs));
    }
  }
  return absl::OkStatus();
}

void ComputeLoss(const LossFunction& loss, size_t examples, float scale, const LossArrays& arrays) {
  switch (loss.kind) {
    case Kind::kSparseCategorical:
      if (loss.from_logits) {
        SoftmaxCrossEntropy(examples, loss.outputs, arrays.outputs, arrays.labels, scale,
                            arrays.losses, arrays.predictions, arrays.derivative);
        if (loss.to_predictions == Activation::kSoftmax) return;
      } else {
        SparseCrossEntropy(examples, loss.outputs, arrays.outputs, arrays.labels, scale,
                           arrays.losses, arrays.derivative);
      }
      break;
    case Kind::kBinary:
      (loss.from_logits ? LogisticCrossEntropy : BinaryCrossEntropy)(
          examples, arrays.outputs, arrays.labels, loss.label_smoothing, scale, arrays.losses,
          arrays.derivative);
      break;
    case Kind::kSquaredError:
      SquaredError(examples, arrays.outputs, arrays.labels, scale, arrays.losses,
                   arrays.derivative);
      break;
  }
  Predict(loss, examples, arrays.outputs, arrays.predictions);
}

}  // namespace tandem
