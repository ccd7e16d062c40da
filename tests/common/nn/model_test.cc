#include "common/nn/model.h"

#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/nn/jobs.h"

namespace tandem {
namespace {

using testing::ElementsAre;

constexpr char kMlp[] = R"pb(
  model {
    layers { flatten {} }
    layers { dense { units: 8 activation: "relu" } }
    layers { dense { units: 3 activation: "softmax" } }
  }
  loss { sparse_categorical_crossentropy {} }
  metrics { accuracy {} }
)pb";

std::string ErrorOf(const v1::JobSpec& job, const std::vector<uint64_t>& shape = {4, 5}) {
  const auto model = Model::Create(job, shape);
  if (model.ok()) return "";
  EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(model.status().message());
}

// The MLP with one change.
template <typename Change>
std::string ErrorAfter(Change change) {
  v1::JobSpec job = JobOf(kMlp);
  change(&job);
  return ErrorOf(job);
}

TEST(Model, VariablesInTheOrderOfTheLayers) {
  const auto model = ModelOf(JobOf(kMlp), {4, 5});
  std::vector<std::string> names;
  for (const v1::Variable& variable : model->variables()) names.push_back(variable.name());
  EXPECT_THAT(names, ElementsAre("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"));
  EXPECT_THAT(model->variables()[0].shape(), ElementsAre(20, 8));
  EXPECT_THAT(model->variables()[1].shape(), ElementsAre(8));
  EXPECT_THAT(model->variables()[2].shape(), ElementsAre(8, 3));
  EXPECT_EQ(model->num_elements(), 20u * 8 + 8 + 8 * 3 + 3);
  EXPECT_EQ(model->num_metrics(), 1);
  EXPECT_THAT(MetricNames(JobOf(kMlp)), ElementsAre("accuracy"));
}

TEST(Model, DenseWorksOnTheLastAxis) {
  const auto model = ModelOf(JobOf(R"pb(model {
                                          layers {
                                            name: "rows"
                                            dense { units: 2 use_bias: false }
                                          }
                                          layers { flatten {} }
                                          layers { dense { units: 3 } }
                                        }
                                        loss { sparse_categorical_crossentropy {} })pb"),
                             {4, 5});
  EXPECT_EQ(model->variables()[0].name(), "rows/kernel");
  EXPECT_THAT(model->variables()[0].shape(), ElementsAre(5, 2));
  EXPECT_EQ(model->variables()[1].name(), "dense/kernel");
  EXPECT_THAT(model->variables()[1].shape(), ElementsAre(8, 3));
}

TEST(Model, ErrorsNameTheField) {
  EXPECT_EQ(ErrorAfter([](auto* job) { job->clear_model(); }),
            "model.layers: is empty; expected at least 1 layer");
  EXPECT_EQ(ErrorAfter([](auto* job) {
              job->mutable_model()->mutable_layers(2)->mutable_dense()->set_units(0);
            }),
            "model.layers[2].dense.units: is 0; expected at least 1");
  EXPECT_EQ(ErrorAfter([](auto* job) { job->mutable_model()->mutable_layers(1)->clear_dense(); }),
            "model.layers[1]: has no kind; expected one of flatten, dense, activation");
  EXPECT_EQ(
      ErrorAfter([](auto* job) {
        job->mutable_model()->mutable_layers(1)->mutable_dense()->set_activation("rleu");
      }),
      "model.layers[1].dense.activation: is \"rleu\"; expected one of linear, relu, sigmoid, "
      "tanh, softmax, elu, selu, softplus, softsign, silu, swish, gelu, leaky_relu, exponential, "
      "hard_sigmoid, relu6");
  EXPECT_THAT(
      ErrorAfter([](auto* job) { job->mutable_model()->mutable_layers(2)->mutable_activation(); }),
      testing::StartsWith("model.layers[2].activation.activation: is \"\"; expected"));
  EXPECT_EQ(
      ErrorAfter([](auto* job) { job->mutable_model()->mutable_layers(2)->set_name("dense"); }),
      "model.layers[2].name: \"dense\" is the name of model.layers[1] too; expected another");
  EXPECT_EQ(ErrorAfter([](auto* job) { job->mutable_model()->mutable_layers(2)->set_name("a/b"); }),
            "model.layers[2].name: is \"a/b\"; expected no \"/\"");
  EXPECT_EQ(
      ErrorAfter([](auto* job) { job->mutable_model()->mutable_layers()->DeleteSubrange(1, 2); }),
      "model.layers: nothing to train; expected at least one dense layer");
}

TEST(Model, ErrorsOfLossAndMetrics) {
  EXPECT_EQ(ErrorAfter([](auto* job) { job->clear_loss(); }),
            "loss: is not set; expected one of sparse_categorical_crossentropy, "
            "binary_crossentropy, mean_squared_error");
  EXPECT_EQ(ErrorAfter([](auto* job) { job->mutable_loss()->mutable_binary_crossentropy(); }),
            "loss: binary_crossentropy needs 1 output an example, but the model's output has the "
            "shape [3]");
  EXPECT_EQ(
      ErrorAfter([](auto* job) { job->mutable_model()->mutable_layers()->DeleteSubrange(0, 1); }),
      "loss: sparse_categorical_crossentropy needs one score for each class an example, but "
      "the model's output has the shape [4, 3]");
  EXPECT_EQ(ErrorAfter([](auto* job) { job->add_metrics()->mutable_mean_squared_error(); }),
            "metrics[1]: mean_squared_error needs 1 output an example, but the model has 3");
  EXPECT_EQ(ErrorAfter([](auto* job) { job->add_metrics(); }),
            "metrics[1]: has no kind; expected one of accuracy, mean_squared_error");
  EXPECT_EQ(ErrorAfter([](auto* job) { job->add_metrics()->mutable_accuracy(); }),
            "metrics[1]: accuracy is given twice");
  EXPECT_EQ(ErrorAfter([](auto* job) {
              job->mutable_model()->mutable_layers(2)->mutable_dense()->set_units(1);
              job->mutable_loss()->mutable_binary_crossentropy()->set_label_smoothing(1.5);
            }),
            "loss.binary_crossentropy.label_smoothing: is 1.5; expected a number from 0 to 1");
}

TEST(Model, ErrorsOfInitializers) {
  EXPECT_EQ(ErrorAfter([](auto* job) {
              job->mutable_model()
                  ->mutable_layers(1)
                  ->mutable_dense()
                  ->mutable_kernel_initializer()
                  ->mutable_random_normal()
                  ->set_stddev(-1);
            }),
            "model.layers[1].dense.kernel_initializer.random_normal.stddev: is -1; expected a "
            "finite number, at least 0");
  EXPECT_EQ(ErrorAfter([](auto* job) {
              auto* bias = job->mutable_model()->mutable_layers(1)->mutable_dense();
              bias->mutable_bias_initializer()->mutable_random_uniform()->set_minval(1);
            }),
            "model.layers[1].dense.bias_initializer.random_uniform.maxval: is 0.05; expected a "
            "finite number, at least minval, 1");
}

TEST(Model, AbsurdSizesAreRefusedBeforeMemoryIsTaken) {
  const uint32_t most = std::numeric_limits<uint32_t>::max();
  const auto with_units = [](uint32_t units) {
    return [units](v1::JobSpec* job) {
      job->mutable_model()->mutable_layers(1)->mutable_dense()->set_units(units);
    };
  };
  EXPECT_EQ(ErrorAfter(with_units(most)),
            "model.layers[1].dense.units: is 4294967295, with 20 inputs; expected a model of at "
            "most 8589934592 elements in all");
  EXPECT_EQ(ErrorAfter(with_units(300'000'000)), "");
  EXPECT_NE(ErrorAfter(with_units(400'000'000)), "");
  const uint64_t huge = uint64_t{1} << 40;
  EXPECT_EQ(ErrorOf(JobOf(kMlp), {huge, huge}),
            "dataset: examples have the shape [1099511627776, 1099511627776]; expected from 1 to "
            "8589934592 elements");
  EXPECT_NE(ErrorOf(JobOf(kMlp), {28, 0}), "");
}

TEST(Model, ChecksLabelsAgainstTheLoss) {
  const auto mlp = ModelOf(JobOf(kMlp), {4, 5});
  EXPECT_TRUE(mlp->CheckLabels(0, 2).ok());
  EXPECT_EQ(mlp->CheckLabels(0, 3).message(),
            "loss: sparse_categorical_crossentropy needs class numbers from 0 to 2, for the model "
            "has 3 outputs, but labels range from 0 to 3");
  EXPECT_FALSE(mlp->CheckLabels(-1, 2).ok());
  EXPECT_FALSE(mlp->CheckLabels(0.5, 2).ok());

  v1::JobSpec job =
      JobOf("model { layers { dense { units: 1 } } } loss { binary_crossentropy {} }");
  const auto binary = ModelOf(job, {5});
  EXPECT_TRUE(binary->CheckLabels(0, 1).ok());
  EXPECT_EQ(binary->CheckLabels(-1, 1).message(),
            "loss: binary_crossentropy needs labels from 0 to 1, but labels range from -1 to 1");
  job.mutable_loss()->mutable_mean_squared_error();
  const auto regression = ModelOf(job, {5});
  EXPECT_TRUE(regression->CheckLabels(-1e30f, 1e30f).ok());
  EXPECT_FALSE(regression->CheckLabels(0, std::numeric_limits<float>::infinity()).ok());
}

TEST(Model, InitialValuesDoNotDependOnTheCut) {
  const auto model = ModelOf(JobOf(kMlp), {4, 5});
  std::vector<float> whole(160), parts(160);
  model->Initialize(7, 0, 0, 160, whole.data());
  model->Initialize(7, 0, 100, 160, parts.data() + 100);
  model->Initialize(7, 0, 0, 100, parts.data());
  EXPECT_EQ(whole, parts);
  model->Initialize(8, 0, 0, 160, parts.data());
  EXPECT_NE(whole, parts);
  // Glorot uniform by default, and zeros for the bias.
  for (float value : whole) EXPECT_LE(std::abs(value), std::sqrt(6.0 / 28));
  model->Initialize(7, 1, 0, 8, parts.data());
  EXPECT_THAT(std::vector<float>(parts.begin(), parts.begin() + 8), testing::Each(0.0f));
}

}  // namespace
}  // namespace tandem
