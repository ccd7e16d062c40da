#include "common/base/suggest.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

TEST(EditDistance, CountsSingleLetterEdits) {
  EXPECT_EQ(EditDistance("", ""), 0);
  EXPECT_EQ(EditDistance("relu", "relu"), 0);
  EXPECT_EQ(EditDistance("rel", "relu"), 1);    // One put in.
  EXPECT_EQ(EditDistance("reluu", "relu"), 1);  // One left out.
  EXPECT_EQ(EditDistance("rely", "relu"), 1);   // One replaced.
  EXPECT_EQ(EditDistance("rleu", "relu"), 1);   // Two neighbours swapped.
  EXPECT_EQ(EditDistance("", "relu"), 4);
  EXPECT_EQ(EditDistance("relu", ""), 4);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> names = {"learning_rate", "momentum", "nesterov"};
  EXPECT_EQ(Nearest("learning_rte", names), "learning_rate");
  EXPECT_EQ(Nearest("learning-rate", names), "learning_rate");
  EXPECT_EQ(Nearest("Momentum", names), "momentum");  // Case does not count.
  EXPECT_EQ(Nearest("decay", names), "");
  EXPECT_EQ(Nearest("", names), "");
  EXPECT_EQ(Nearest(std::string(1000000, 'x'), names), "");
}

TEST(Nearest, TakesTheFirstOfSeveral) {
  EXPECT_EQ(Nearest("beta_3", {"beta_1", "beta_2"}), "beta_1");
  EXPECT_EQ(Nearest("beta_2", {"beta_1", "beta_2"}), "beta_2");
}

TEST(DidYouMean, NamesTheNearestOrAll) {
  EXPECT_EQ(DidYouMean("adm", {"sgd", "adam"}), "; did you mean \"adam\"?");
  EXPECT_EQ(DidYouMean("rmsprop", {"sgd", "adam"}), "; expected one of sgd, adam");
}

}  // namespace
}  // namespace tandem
