#include "coordinator/job_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The least that a job needs.
constexpr char kSmallJob[] = R"(
dataset { train_files: "train" idx {} }
model { layers { dense { units: 1 } } }
loss { mean_squared_error {} }
optimizer { sgd {} }
training { global_batch_size: 8 steps: 10 }
)";

v1::JobSpec Parse(const std::string& text) {
  absl::StatusOr<v1::JobSpec> job = ParseJob("job.textproto", text);
  EXPECT_TRUE(job.ok()) << job.status();
  return job.ok() ? *std::move(job) : v1::JobSpec();
}

std::string ParseError(const std::string& text) {
  const absl::StatusOr<v1::JobSpec> job = ParseJob("job.textproto", text);
  EXPECT_TRUE(job.ok() || absl::IsInvalidArgument(job.status()));
  return std::string(job.status().message());
}

std::string OverrideError(const std::string& assignment, v1::JobSpec job = Parse(kSmallJob)) {
  const v1::JobSpec before = job;
  const absl::Status status = ApplyOverride(assignment, &job);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << assignment;
  EXPECT_TRUE(MessageDifferencer::Equals(job, before)) << assignment << " changed the job";
  return std::string(status.message());
}

// kSmallJob with `overrides`, finished.
absl::StatusOr<v1::JobSpec> Finish(const std::vector<std::string>& overrides,
                                   const std::string& text = kSmallJob) {
  v1::JobSpec job = Parse(text);
  for (const std::string& assignment : overrides) {
    const absl::Status status = ApplyOverride(assignment, &job);
    EXPECT_TRUE(status.ok()) << status;
  }
  const absl::Status status = FinishJob(&job);
  if (!status.ok()) return status;
  return job;
}

std::string FinishError(const std::vector<std::string>& overrides,
                        const std::string& text = kSmallJob) {
  const absl::StatusOr<v1::JobSpec> job = Finish(overrides, text);
  EXPECT_TRUE(job.ok() || absl::IsInvalidArgument(job.status()));
  return std::string(job.status().message());
}

TEST(ParseJob, NamesThePlaceAndTheNearMatch) {
  EXPECT_EQ(ParseError("nam: \"x\""),
            "job.textproto:1:1: JobSpec has no field \"nam\"; did you mean \"name\"?");
  EXPECT_EQ(ParseError("training {\n  replica: 4\n}"),
            "job.textproto:2:3: Training has no field \"replica\"; did you mean \"replicas\"?");
  EXPECT_EQ(
      ParseError("optimizer { adam { learning_rte: 1 } }"),
      "job.textproto:1:20: Adam has no field \"learning_rte\"; did you mean \"learning_rate\"?");
  EXPECT_EQ(ParseError("loss\n{ hinge\n {} }"),
            "job.textproto:2:3: Loss has no field \"hinge\"; expected one of "
            "sparse_categorical_crossentropy, binary_crossentropy, mean_squared_error");
  EXPECT_EQ(ParseError("model { layers { flatten { axis: 1 } } }"),
            "job.textproto:1:28: Flatten has no fields");
}

TEST(ParseJob, RefusesWhatIsNotAJob) {
  const std::pair<const char*, const char*> kCases[] = {
      {"training {", "1:11: Expected identifier, got: the end of the file"},
      {"training { epochs: abc }", "1:20: Expected integer, got: abc"},
      {"training { epochs: -3 }", "1:20: Expected integer, got: -"},
      {"training { epochs: 1.5 }", "1:20: Expected integer, got: 1.5"},
      {"training { epochs: 4294967296 }", "1:20: Integer out of range (4294967296)"},
      {"training { epochs: 1 epochs: 2 }",
       "1:28: Non-repeated field \"epochs\" is specified multiple times"},
      {"training { epochs: 1 steps: 2 }",
       "1:27: Field \"steps\" is specified along with field \"epochs\", another member of oneof "
       "\"length\""},
      {"name: \"a\nb\"", "1:9: String literals cannot cross line boundaries"},
      {"<html>", "1:1: Expected identifier, got: <"},
      {"\x7f\x45LF\x01", "1:1: Expected identifier, got:  "},
  };
  for (const auto& [text, error] : kCases) {
    EXPECT_EQ(ParseError(text), std::string("job.textproto:") + error) << text;
  }
}

TEST(ApplyOverride, SetsScalarsOfEveryType) {
  v1::JobSpec job = Parse(kSmallJob);
  for (const char* assignment :
       {"name=a=b, c", "seed=18446744073709551615", "training.replicas=16", "dataset.shuffle=false",
        "optimizer.sgd.learning_rate=2.5e-1", "model.layers.0.dense.units=64"}) {
    EXPECT_TRUE(ApplyOverride(assignment, &job).ok()) << assignment;
  }
  EXPECT_EQ(job.name(), "a=b, c");
  EXPECT_EQ(job.seed(), 18446744073709551615u);
  EXPECT_EQ(job.training().replicas(), 16);
  EXPECT_TRUE(job.dataset().has_shuffle());
  EXPECT_FALSE(job.dataset().shuffle());
  EXPECT_EQ(job.optimizer().sgd().learning_rate(), 0.25f);
  EXPECT_EQ(job.model().layers(0).dense().units(), 64);
}

TEST(ApplyOverride, GivesPresenceToADefault) {
  v1::JobSpec job = Parse(kSmallJob);
  EXPECT_TRUE(ApplyOverride("training.replicas=0", &job).ok());
  EXPECT_TRUE(job.training().has_replicas());
}

TEST(ApplyOverride, ReplacesListsAsAWhole) {
  v1::JobSpec job = Parse(kSmallJob);
  EXPECT_TRUE(ApplyOverride("dataset.train_files=a,b", &job).ok());
  EXPECT_THAT(job.dataset().train_files(), ElementsAre("a", "b"));
  EXPECT_TRUE(ApplyOverride("dataset.train_files=c", &job).ok());
  EXPECT_THAT(job.dataset().train_files(), ElementsAre("c"));
  EXPECT_TRUE(ApplyOverride("dataset.train_files=", &job).ok());
  EXPECT_THAT(job.dataset().train_files(), IsEmpty());
}

TEST(ApplyOverride, TakesThePlaceOfTheOtherMemberOfAOneof) {
  v1::JobSpec job = Parse(kSmallJob);
  EXPECT_TRUE(ApplyOverride("training.epochs=3", &job).ok());
  EXPECT_FALSE(job.training().has_steps());
  EXPECT_EQ(job.training().epochs(), 3);
  EXPECT_TRUE(ApplyOverride("training.consistency.async={}", &job).ok());
  EXPECT_TRUE(job.training().consistency().has_async());
  EXPECT_TRUE(ApplyOverride("training.consistency.bounded.staleness=2", &job).ok());
  EXPECT_FALSE(job.training().consistency().has_async());
  EXPECT_EQ(job.training().consistency().bounded().staleness(), 2);
  EXPECT_TRUE(ApplyOverride("optimizer.adam.beta_1=0.5", &job).ok());
  EXPECT_FALSE(job.optimizer().has_sgd());
}

TEST(ApplyOverride, EmptiesAMessage) {
  v1::JobSpec job = Parse(kSmallJob);
  EXPECT_TRUE(ApplyOverride("training={}", &job).ok());
  EXPECT_TRUE(job.has_training());
  EXPECT_EQ(job.training().global_batch_size(), 0);
  EXPECT_TRUE(ApplyOverride("model.layers.0={}", &job).ok());
  EXPECT_EQ(job.model().layers_size(), 1);
  EXPECT_FALSE(job.model().layers(0).has_dense());
}

TEST(ApplyOverride, RefusesWithOneLine) {
  const std::string u32 = "expected a whole number from 0 to 4294967295";
  const std::pair<std::string, std::string> kCases[] = {
      {"training.nope=1",
       "Training has no field \"nope\"; expected one of global_batch_size, replicas, epochs, "
       "steps, consistency, cpu_isa, prefetch, non_finite"},
      {"training.replica=1", "Training has no field \"replica\"; did you mean \"replicas\"?"},
      {"=1",
       "JobSpec has no field \"\"; expected one of name, seed, dataset, servers, model, loss, "
       "metrics, optimizer, training, evaluation, checkpoint"},
      {"training.replicas=-3", u32},
      {"training.replicas=abc", u32},
      {"training.replicas=1.5", u32},
      {"training.replicas=", u32},
      {"training.replicas= 4", u32},
      {"training.replicas=+4", u32},
      {"training.replicas=4294967296", u32},
      {"training.epochs=-1", u32},
      {"seed=18446744073709551616", "expected a whole number from 0 to 18446744073709551615"},
      {"optimizer.adam.learning_rate=abc", "expected a number"},
      {"optimizer.adam.learning_rate=0.1x", "expected a number"},
      {"optimizer.adam.learning_rate=", "expected a number"},
      {"dataset.shuffle=yes", "expected true or false"},
      {"dataset.train_files=a,,b", "expected a comma-separated list without empty elements"},
      {"training.epochs.x=1", "epochs has no fields"},
      {"training=5",
       "expected {}, or one of its fields: global_batch_size, replicas, epochs, steps, "
       "consistency, cpu_isa, prefetch, non_finite"},
      {"training.replicas={}", u32},
      {"model.layers={}", "expected an element's number after layers"},
      {"model.layers.1.dense.units=1",
       "\"1\" is no element of layers, which has 1, numbered from 0"},
      {"model.layers.x.dense.units=1",
       "\"x\" is no element of layers, which has 1, numbered from 0"},
      {"metrics.0.accuracy={}", "\"0\" is no element of metrics, which has 0"},
      {"model.layers.0.dense.unit=1", "Dense has no field \"unit\"; did you mean \"units\"?"},
      {"training.epochs", "expected path.to.field=value"},
      {"", "expected path.to.field=value"},
  };
  for (const auto& [assignment, error] : kCases) {
    EXPECT_EQ(OverrideError(assignment), "--set=" + assignment + ": " + error);
  }
  EXPECT_EQ(OverrideError("training.epochs=1\n2"), "--set=training.epochs=1 2: " + u32);
}

// Every scalar of JobSpec can be set, also those that are yet to be added.
void SetEveryField(const google::protobuf::Message& message, const std::string& path) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    std::string name = path + field.name();
    if (field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field.is_repeated()) name += ".0";
      SetEveryField(*google::protobuf::MessageFactory::generated_factory()->GetPrototype(
                        field.message_type()),
                    name + ".");
      continue;
    }
    v1::JobSpec job;
    job.add_metrics();
    job.mutable_model()->add_layers();
    const bool is_bool = field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_BOOL;
    const absl::Status status = ApplyOverride(name + (is_bool ? "=true" : "=1"), &job);
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(ApplyOverride, ReachesEveryField) { SetEveryField(v1::JobSpec::default_instance(), ""); }

TEST(FinishJob, FillsInTheDefaults) {
  const absl::StatusOr<v1::JobSpec> job = Finish({});
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::JobSpec expected = Parse(R"(
    name: "job"
    dataset { train_files: "train" idx { scale: 0.003921569 } shuffle: true }
    model {
      layers {
        name: "dense"
        dense {
          units: 1
          activation: "linear"
          use_bias: true
          kernel_initializer { glorot_uniform {} }
          bias_initializer { zeros {} }
        }
      }
    }
    loss { mean_squared_error {} }
    optimizer { sgd { learning_rate: 0.01 momentum: 0 nesterov: false } }
    training {
      global_batch_size: 8
      replicas: 4
      steps: 10
      consistency { sync {} }
      prefetch: 1
      non_finite: "stop"
    }
    evaluation { batch_size: 1000 }
    checkpoint { every_steps: 1000 keep: 3 }
  )");
  EXPECT_EQ(job->DebugString(), expected.DebugString());

  v1::JobSpec again = *job;
  EXPECT_TRUE(FinishJob(&again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(again, *job));
}

TEST(FinishJob, FillsInTheDefaultsOfWhatWasChosen) {
  const absl::StatusOr<v1::JobSpec> job =
      Finish({"optimizer.adam={}", "loss.binary_crossentropy={}", "dataset.libsvm.num_features=3",
              "model.layers.0.dense.kernel_initializer.random_uniform={}",
              "model.layers.0.dense.bias_initializer.random_normal={}"});
  ASSERT_TRUE(job.ok()) << job.status();
  const v1::Adam& adam = job->optimizer().adam();
  EXPECT_EQ(adam.learning_rate(), 0.001f);
  EXPECT_EQ(adam.beta_1(), 0.9f);
  EXPECT_EQ(adam.beta_2(), 0.999f);
  EXPECT_EQ(adam.epsilon(), 1e-7f);
  EXPECT_TRUE(job->loss().binary_crossentropy().has_label_smoothing());
  EXPECT_EQ(job->dataset().libsvm().index_base(), 1);
  const v1::Dense& dense = job->model().layers(0).dense();
  EXPECT_EQ(dense.kernel_initializer().random_uniform().minval(), -0.05f);
  EXPECT_EQ(dense.kernel_initializer().random_uniform().maxval(), 0.05f);
  EXPECT_EQ(dense.bias_initializer().random_normal().stddev(), 0.05f);

  const absl::StatusOr<v1::JobSpec> adagrad = Finish({"optimizer.adagrad={}"});
  ASSERT_TRUE(adagrad.ok()) << adagrad.status();
  EXPECT_EQ(adagrad->optimizer().adagrad().initial_accumulator_value(), 0.1f);
}

TEST(FinishJob, KeepsWhatWasSetToZero) {
  const absl::StatusOr<v1::JobSpec> job =
      Finish({"optimizer.sgd.learning_rate=0", "dataset.libsvm.index_base=0",
              "dataset.libsvm.num_features=3", "model.layers.0.dense.use_bias=false"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->optimizer().sgd().learning_rate(), 0);
  EXPECT_EQ(job->dataset().libsvm().index_base(), 0);
  EXPECT_FALSE(job->model().layers(0).dense().use_bias());
}

// As Keras counts: by kind, without the layers that have names of their own.
TEST(FinishJob, NamesLayers) {
  v1::JobSpec job = Parse(kSmallJob);
  *job.mutable_model() = Parse(R"(model {
    layers { flatten {} }
    layers { dense { units: 2 } }
    layers { name: "head" dense { units: 2 } }
    layers { activation { activation: "relu" } }
    layers { dense { units: 2 } }
  })")
                             .model();
  ASSERT_TRUE(FinishJob(&job).ok());
  std::vector<std::string> names;
  for (const v1::Layer& layer : job.model().layers()) names.push_back(layer.name());
  EXPECT_THAT(names, ElementsAre("flatten", "dense", "head", "activation", "dense_1"));

  job.mutable_model()->mutable_layers(2)->set_name("dense_1");
  EXPECT_EQ(FinishJob(&job).message(),
            "model.layers[4].name: \"dense_1\" is the name of model.layers[2] too");
}

TEST(FinishJob, RefusesWhatIsMissing) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "dataset.train_files: is required"},
      {"dataset { train_files: \"a\" }", "dataset: has no format; expected one of idx, libsvm"},
      {"dataset { train_files: \"a\" idx {} }", "model.layers: is required; expected at least 1"},
      {"dataset { train_files: \"a\" idx {} } model { layers {} }",
       "model.layers[0]: has no kind; expected one of flatten, dense, activation"},
      {"dataset { train_files: \"a\" idx {} } model { layers { flatten {} } }",
       "loss: is required; expected one of sparse_categorical_crossentropy, binary_crossentropy, "
       "mean_squared_error"},
      {"dataset { train_files: \"a\" idx {} } model { layers { flatten {} } } "
       "loss { mean_squared_error {} }",
       "optimizer: is required; expected one of sgd, adam, adagrad"},
      {"dataset { train_files: \"a\" idx {} } model { layers { flatten {} } } "
       "loss { mean_squared_error {} } optimizer { sgd {} }",
       "training.global_batch_size: is 0; expected at least 1"},
      {"dataset { train_files: \"a\" idx {} } model { layers { flatten {} } } "
       "loss { mean_squared_error {} } optimizer { sgd {} } training { global_batch_size: 1 }",
       "training: has no length; expected one of epochs, steps"},
  };
  for (const auto& [text, error] : kCases) EXPECT_EQ(FinishError({}, text), error);
}

TEST(FinishJob, RefusesValuesOutOfRange) {
  const std::pair<const char*, const char*> kCases[] = {
      {"dataset.libsvm.num_features=0", "dataset.libsvm.num_features: is 0; expected at least 1"},
      {"dataset.libsvm.num_features=16777217",
       "dataset.libsvm.num_features: is 16777217; expected at most 16777216"},
      {"dataset.idx.scale=nan", "dataset.idx.scale: is nan; expected a finite number"},
      {"model.layers.0.dense.units=0", "model.layers[0].dense.units: is 0; expected at least 1"},
      {"model.layers.0.dense.units=16777217",
       "model.layers[0].dense.units: is 16777217; expected at most 16777216"},
      {"model.layers.0.dense.activation=rleu",
       "model.layers[0].dense.activation: \"rleu\" is unknown; did you mean \"relu\"?"},
      {"model.layers.0.activation={}", "model.layers[0].activation.activation: is required"},
      {"model.layers.0.activation.activation=softmx",
       "model.layers[0].activation.activation: \"softmx\" is unknown; did you mean \"softmax\"?"},
      {"model.layers.0.name=a/b",
       "model.layers[0].name: \"a/b\" has a / in it, which parts the layer's name from the "
       "variable's"},
      {"model.layers.0.dense.kernel_initializer.constant.value=inf",
       "model.layers[0].dense.kernel_initializer.constant.value: is inf; expected a finite number"},
      {"model.layers.0.dense.kernel_initializer.random_uniform.minval=1",
       "model.layers[0].dense.kernel_initializer.random_uniform.minval: is 1; expected at most "
       "maxval, 0.05"},
      {"model.layers.0.dense.bias_initializer.random_normal.stddev=-1",
       "model.layers[0].dense.bias_initializer.random_normal.stddev: is -1; expected at least 0"},
      {"loss.binary_crossentropy.label_smoothing=1.5",
       "loss.binary_crossentropy.label_smoothing: is 1.5; expected at most 1"},
      {"optimizer.sgd.learning_rate=-0.1",
       "optimizer.sgd.learning_rate: is -0.1; expected at least 0"},
      {"optimizer.sgd.learning_rate=1e50",
       "optimizer.sgd.learning_rate: is inf; expected a finite number"},
      {"optimizer.sgd.momentum=1.5", "optimizer.sgd.momentum: is 1.5; expected at most 1"},
      {"optimizer.adam.learning_rate=nan",
       "optimizer.adam.learning_rate: is nan; expected a finite number"},
      {"optimizer.adam.learning_rate=-inf",
       "optimizer.adam.learning_rate: is -inf; expected a finite number"},
      {"optimizer.adam.beta_1=1", "optimizer.adam.beta_1: is 1; expected a number in [0, 1)"},
      {"optimizer.adam.beta_2=-0.5", "optimizer.adam.beta_2: is -0.5; expected a number in [0, 1)"},
      {"optimizer.adam.epsilon=0", "optimizer.adam.epsilon: is 0; expected a number above 0"},
      {"optimizer.adagrad.learning_rate=-1",
       "optimizer.adagrad.learning_rate: is -1; expected at least 0"},
      {"optimizer.adagrad.initial_accumulator_value=-1",
       "optimizer.adagrad.initial_accumulator_value: is -1; expected at least 0"},
      {"optimizer.adagrad.epsilon=-1",
       "optimizer.adagrad.epsilon: is -1; expected a number above 0"},
      {"training.global_batch_size=0", "training.global_batch_size: is 0; expected at least 1"},
      {"training.global_batch_size=16777217",
       "training.global_batch_size: is 16777217; expected at most 16777216"},
      {"training.replicas=0", "training.replicas: is 0; expected at least 1"},
      {"training.prefetch=17", "training.prefetch: is 17; expected at most 16"},
      {"training.non_finite=skp",
       "training.non_finite: \"skp\" is unknown; did you mean \"skip\"?"},
      {"servers.standby=2", "servers.standby: is 2; expected at most 1"},
      {"checkpoint.every_steps=0", "checkpoint.every_steps: is 0; expected at least 1"},
      {"checkpoint.keep=0", "checkpoint.keep: is 0; expected at least 1"},
      {"optimizer.learning_rate_schedule={}",
       "optimizer.learning_rate_schedule: has no kind; expected one of polynomial_decay"},
      {"optimizer.learning_rate_schedule.polynomial_decay={}",
       "optimizer.learning_rate_schedule.polynomial_decay.decay_steps: is 0; expected at least 1"},
      {"training.replicas=65537", "training.replicas: is 65537; expected at most 65536"},
      {"training.epochs=0", "training.epochs: is 0; expected at least 1"},
      {"training.epochs=268435457", "training.epochs: is 268435457; expected at most 268435456"},
      {"training.steps=0", "training.steps: is 0; expected at least 1"},
      {"training.steps=1152921504606846977",
       "training.steps: is 1152921504606846977; expected at most 1152921504606846976"},
      {"training.consistency.bounded.staleness=1048577",
       "training.consistency.bounded.staleness: is 1048577; expected at most 1048576"},
      {"training.cpu_isa=avx", "training.cpu_isa: \"avx\" is unknown; did you mean \"avx2\"?"},
      {"evaluation.batch_size=0", "evaluation.batch_size: is 0; expected at least 1"},
      {"evaluation.every_epochs=2",
       "evaluation.every_epochs: is 2, but there are no dataset.test_files"},
      {"name=\xff", "name: is not UTF-8"},
      {"name=\xc0\x80", "name: is not UTF-8"},      // Longer than needed.
      {"name=\xed\xa0\x80", "name: is not UTF-8"},  // Half a surrogate pair.
      {"name=a\tb", "name: has a control character in it"},
  };
  for (const auto& [assignment, error] : kCases) EXPECT_EQ(FinishError({assignment}), error);
  EXPECT_EQ(FinishError({"name=" + std::string(4097, 'x')}),
            "name: has 4097 bytes; expected at most 4096");
}

TEST(FinishJob, AcceptsTheLimitsThemselves) {
  EXPECT_EQ(
      FinishError({"training.replicas=65536", "training.steps=70368744177664",
                   "training.global_batch_size=16777216", "model.layers.0.dense.units=16777216",
                   "optimizer.sgd.momentum=1", "training.consistency.bounded.staleness=1048576",
                   "training.cpu_isa=avx512", "name=\xc3\xa9t\xc3\xa9 \xf0\x9f\x8c\x9e"}),
      "");
  EXPECT_EQ(FinishError({"training.replicas=1", "training.steps=4611686018427387904"}), "");
  EXPECT_EQ(FinishError({"training.replicas=1", "training.epochs=1073741824"}), "");
}

TEST(FinishJob, RefusesWhatIsThereTwice) {
  EXPECT_EQ(FinishError({}, std::string(kSmallJob) + "metrics { accuracy {} } metrics {}"),
            "metrics[1]: has no kind; expected one of accuracy, mean_squared_error");
  EXPECT_EQ(
      FinishError({}, std::string(kSmallJob) + "metrics { accuracy {} } metrics { accuracy {} }"),
      "metrics[1]: is the same as metrics[0]");
}

TEST(FinishJob, RefusesAnEmptyPath) {
  v1::JobSpec job = Parse(kSmallJob);
  job.mutable_dataset()->add_test_files("");
  EXPECT_EQ(FinishJob(&job).message(), "dataset.test_files[0]: is empty; expected a path");
}

class ReadJobFileTest : public testing::Test {
 protected:
  // A file of the test's own folder with `text`.
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
};

TEST_F(ReadJobFileTest, ReadsOverridesAndFinishes) {
  const std::string path = Write("good.textproto", kSmallJob);
  const absl::StatusOr<v1::JobSpec> job = ReadJobFile(path, {"training.epochs=2", "name=mine"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(job->name(), "mine");
  EXPECT_EQ(job->training().epochs(), 2);
  EXPECT_EQ(job->training().replicas(), 4);
}

TEST_F(ReadJobFileTest, NamesTheFileThatIsBad) {
  const std::string empty = Write("empty.textproto", " \n");
  const std::string misspelt = Write("misspelt.textproto", "\nnam: \"x\"");
  const std::string folder = testing::TempDir() + "folder";
  mkdir(folder.c_str(), 0755);
  const std::string long_one = Write("long.textproto", std::string((16 << 20) + 1, '#'));
  const std::pair<std::string, std::string> kCases[] = {
      {empty, ": is empty; expected a JobSpec in text form"},
      {misspelt, ":2:1: JobSpec has no field \"nam\"; did you mean \"name\"?"},
      {folder, ": is a folder; expected a job file"},
      {long_one, ": is longer than 16777216 bytes; expected a job file"},
  };
  for (const auto& [path, error] : kCases) {
    const absl::Status status = ReadJobFile(path, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(), path + error);
  }
  const absl::Status missing = ReadJobFile("/nonexistent", {}).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_EQ(missing.message(), "/nonexistent: cannot be read: No such file or directory");
}

TEST_F(ReadJobFileTest, NamesAFileThatMayNotBeRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  const std::string path = Write("secret.textproto", kSmallJob);
  chmod(path.c_str(), 0);
  EXPECT_EQ(ReadJobFile(path, {}).status().message(), path + ": cannot be read: Permission denied");
}

TEST_F(ReadJobFileTest, ReadsTheExamples) {
  for (const char* name : {"fashion_mnist", "a9a"}) {
    const absl::StatusOr<v1::JobSpec> job =
        ReadJobFile(std::string("examples/") + name + "/job.textproto", {});
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->name(), name);
  }
}

}  // namespace
}  // namespace tandem
