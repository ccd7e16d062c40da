// The bits of Keras: short traces, readable here, and the ten-step runs of tests/golden/optim.json.
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "common/optim/optimizer.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/common/optim/plain_optimizer.h"

namespace tandem {
namespace {

// One variable that takes updates in place.
class Trained {
 public:
  Trained(const std::string& optimizer, std::vector<float> weights)
      : optimizer_(CreateOptimizer(ParseOptimizer(optimizer)).value()),
        weights_(std::move(weights)) {
    for (int k = 0; k < optimizer_->num_slots(); ++k) {
      slots_.emplace_back(weights_.size(), optimizer_->initial_slot_value(k));
    }
  }

  const std::vector<float>& Update(uint64_t step, const std::vector<float>& gradient) {
    std::vector<float*> slots;
    for (auto& slot : slots_) slots.push_back(slot.data());
    optimizer_->Apply(step, weights_.size(), gradient.data(), weights_.data(), weights_.data(),
                      slots.data());
    return weights_;
  }

  const std::vector<std::vector<float>>& slots() const { return slots_; }

 private:
  std::unique_ptr<const Optimizer> optimizer_;
  std::vector<float> weights_;
  std::vector<std::vector<float>> slots_;
};

void ExpectSameBits(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << testing::PrintToString(got[i]) << ", want " << testing::PrintToString(want[i]) << " at "
        << i;
  }
}

// Keras 3.15.1: the weights [1, -2, 0.5] after each of three updates, as printed with %.9g.
struct Trace {
  const char* optimizer;
  std::vector<float> weights[3];
};

TEST(Keras, ShortTraces) {
  const std::vector<float> gradients[3] = {
      {0.1f, -0.2f, 0.3f}, {0.05f, 0.1f, -0.4f}, {-0.3f, 0.0f, 0.2f}};
  const Trace traces[] = {
      {"sgd {}",
       {{.999000013f, -1.99800003f, .497000009f},
        {.99849999f, -1.99900007f, .500999987f},
        {1.00150001f, -1.99900007f, .498999983f}}},
      {"sgd { momentum: 0.9 }",
       {{.999000013f, -1.99800003f, .497000009f},
        {.997600019f, -1.99720001f, .498300016f},
        {.999339998f, -1.99647999f, .497470021f}}},
      {"sgd { momentum: 0.9 nesterov: true }",
       {{.998099983f, -1.99619997f, .494300008f},
        {.996339977f, -1.99647999f, .499469995f},
        {1.00090599f, -1.99583197f, .496722996f}}},
      {"adam {}",
       {{.999000013f, -1.99900007f, .499000013f},
        {.998067856f, -1.99873376f, .499193519f},
        {.998415053f, -1.99852788f, .499094993f}}},
      {"adagrad {}",
       {{.99969846f, -1.99946547f, .499311745f},
        {.999549389f, -1.99972367f, .49998787f},
        {1.00021601f, -1.99972367f, .499667615f}}},
  };
  for (const Trace& trace : traces) {
    SCOPED_TRACE(trace.optimizer);
    Trained variable(trace.optimizer, {1.0f, -2.0f, 0.5f});
    for (int t = 0; t < 3; ++t) {
      ExpectSameBits(variable.Update(t + 1, gradients[t]), trace.weights[t]);
    }
  }
}

// Writing a default out changes nothing: 0.9 in a job file is Keras's 0.9.
TEST(Keras, ADefaultWrittenOutIsTheDefault) {
  Trained implicit("adam {}", {1.0f, -2.0f});
  Trained written("adam { learning_rate: 0.001 beta_1: 0.9 beta_2: 0.999 epsilon: 1e-7 }",
                  {1.0f, -2.0f});
  for (int t = 1; t <= 20; ++t) {
    const std::vector<float> gradient = {0.3f / t, -0.7f};
    ExpectSameBits(written.Update(t, gradient), implicit.Update(t, gradient));
  }
}

void ExpectGolden(const nlohmann::json& golden) {
  const uint64_t before = golden["steps_before"];
  for (size_t v = 0; v < golden["initial"].size(); ++v) {
    SCOPED_TRACE("variable " + std::to_string(v));
    Trained variable(golden["optimizer"], golden["initial"][v]);
    uint64_t step = before;
    for (const auto& update : golden["updates"]) {
      SCOPED_TRACE("step " + std::to_string(step + 1));
      ExpectSameBits(variable.Update(++step, update["gradients"][v]), update["weights"][v]);
    }
    const auto& slots = golden["slots"][v];
    ASSERT_EQ(variable.slots().size(), slots.size());
    for (size_t k = 0; k < slots.size(); ++k) ExpectSameBits(variable.slots()[k], slots[k]);
  }
}

TEST(Keras, GoldenRuns) {
  std::ifstream file("tests/golden/optim.json");
  ASSERT_TRUE(file) << "tests/golden/optim.json cannot be read";
  const auto document = nlohmann::json::parse(file);
  ASSERT_EQ(document["cases"].size(), 10u);
  for (const auto& [name, golden] : document["cases"].items()) {
    SCOPED_TRACE(name);
    ExpectGolden(golden);
  }
}

}  // namespace
}  // namespace tandem
