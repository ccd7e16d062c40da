// What CreateOptimizer refuses, and how it says so.
#include <string>

#include "common/optim/optimizer.h"
#include "gtest/gtest.h"
#include "tests/common/optim/plain_optimizer.h"

namespace tandem {
namespace {

std::string Error(const char* text) {
  const auto result = CreateOptimizer(ParseOptimizer(text));
  if (result.ok()) return "ok";
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

TEST(CreateOptimizer, NamesTheFieldAndWhatWasExpected) {
  EXPECT_EQ(Error(""), "optimizer: is not set; expected one of sgd, adam, adagrad");
  EXPECT_EQ(Error("adam { learning_rate: nan }"),
            "optimizer.adam.learning_rate: is nan; expected a finite number, at least 0");
  EXPECT_EQ(Error("sgd { learning_rate: -0.5 }"),
            "optimizer.sgd.learning_rate: is -0.5; expected a finite number, at least 0");
  EXPECT_EQ(Error("sgd { momentum: 1.5 }"),
            "optimizer.sgd.momentum: is 1.5; expected a number in [0, 1]");
  EXPECT_EQ(Error("adam { beta_1: 1 }"),
            "optimizer.adam.beta_1: is 1; expected a number in [0, 1)");
  EXPECT_EQ(Error("adam { beta_2: -nan }"),
            "optimizer.adam.beta_2: is nan; expected a number in [0, 1)");
  EXPECT_EQ(Error("adagrad { epsilon: inf }"),
            "optimizer.adagrad.epsilon: is inf; expected a finite number, at least 0");
}

TEST(CreateOptimizer, ChecksEveryField) {
  for (const char* field : {"sgd.learning_rate", "sgd.momentum", "adam.learning_rate",
                            "adam.beta_1", "adam.beta_2", "adam.epsilon", "adagrad.learning_rate",
                            "adagrad.initial_accumulator_value", "adagrad.epsilon"}) {
    const std::string path = field;
    const size_t dot = path.find('.');
    for (const char* value : {"nan", "inf", "-inf", "-1", "-1e-30"}) {
      const std::string text =
          path.substr(0, dot) + " { " + path.substr(dot + 1) + ": " + value + " }";
      EXPECT_EQ(Error(text.c_str()).find("optimizer." + path + ": is "), 0u) << text;
    }
  }
}

TEST(CreateOptimizer, TakesTheEndsOfTheRanges) {
  EXPECT_EQ(Error("sgd { learning_rate: 0 momentum: 0 }"), "ok");
  EXPECT_EQ(Error("sgd { momentum: 1 }"), "ok");
  EXPECT_EQ(Error("adam { learning_rate: 0 beta_1: 0 beta_2: 0 epsilon: 0 }"), "ok");
  EXPECT_EQ(Error("adam { beta_1: 0.99999994 beta_2: 0.99999994 }"), "ok");
  EXPECT_EQ(Error("adagrad { learning_rate: 0 initial_accumulator_value: 0 epsilon: 0 }"), "ok");
}

TEST(CreateOptimizer, SgdHasASlotOnlyForMomentum) {
  EXPECT_EQ(CreateOptimizer(ParseOptimizer("sgd { nesterov: true }")).value()->num_slots(), 0);
  EXPECT_EQ(CreateOptimizer(ParseOptimizer("sgd { momentum: 0.5 }")).value()->num_slots(), 1);
}

}  // namespace
}  // namespace tandem
