#include "common/base/flags.h"

#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The flags of a small executable, and what they were set to.
class FlagsTest : public testing::Test {
 protected:
  FlagsTest() {
    flags_.Add("listen", &listen_, "Where to listen, HOST:PORT.");
    flags_.Add("servers", &servers_, "How many servers.");
    flags_.Add("verbose", &verbose_, "Says more.");
    flags_.Add("set", &set_, "A field of the job.");
  }
  ~FlagsTest() override {
    for (const char* name : {"LISTEN", "SERVERS", "VERBOSE", "SET"}) {
      unsetenv((std::string("TANDEM_") + name).c_str());
    }
  }

  // "" when all is well, else the error.
  std::string Parse(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "program");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    return std::string(flags_.Parse(static_cast<int>(argv.size()), argv.data()).message());
  }

  std::string listen_ = "127.0.0.1:0";
  int servers_ = 1;
  bool verbose_ = false;
  std::vector<std::string> set_;
  FlagSet flags_{"program: does a thing."};
};

TEST_F(FlagsTest, KeepsDefaults) {
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(listen_, "127.0.0.1:0");
  EXPECT_EQ(servers_, 1);
  EXPECT_FALSE(verbose_);
  EXPECT_THAT(set_, IsEmpty());
}

TEST_F(FlagsTest, TakesValuesAfterEqualsAndAfterSpace) {
  EXPECT_EQ(Parse({"--listen=a=b:1", "--servers", "3", "--verbose", "--set=x=1", "--set", "y={}"}),
            "");
  EXPECT_EQ(listen_, "a=b:1");
  EXPECT_EQ(servers_, 3);
  EXPECT_TRUE(verbose_);
  EXPECT_THAT(set_, ElementsAre("x=1", "y={}"));
}

TEST_F(FlagsTest, TakesTheLastOfSeveral) {
  EXPECT_EQ(Parse({"--servers=3", "--servers=0", "--verbose", "--verbose=false", "--listen="}), "");
  EXPECT_EQ(servers_, 0);
  EXPECT_FALSE(verbose_);
  EXPECT_EQ(listen_, "");
}

TEST_F(FlagsTest, TakesTheEnvironmentWhereTheCommandLineIsSilent) {
  setenv("TANDEM_LISTEN", "host:1", 1);
  setenv("TANDEM_SERVERS", "5", 1);
  setenv("TANDEM_VERBOSE", "true", 1);
  setenv("TANDEM_SET", "files=a,b\nsteps=3\n", 1);
  EXPECT_EQ(Parse({"--servers=2"}), "");
  EXPECT_EQ(listen_, "host:1");
  EXPECT_EQ(servers_, 2);
  EXPECT_TRUE(verbose_);
  EXPECT_THAT(set_, ElementsAre("files=a,b", "steps=3"));
}

TEST_F(FlagsTest, CountsAnEmptyVariableAsNotSet) {
  setenv("TANDEM_SERVERS", "", 1);
  EXPECT_EQ(Parse({}), "");
  EXPECT_EQ(servers_, 1);
}

TEST_F(FlagsTest, NamesTheVariableThatIsMalformed) {
  setenv("TANDEM_SERVERS", "many", 1);
  EXPECT_EQ(Parse({}), "TANDEM_SERVERS=many: expected a whole number from 0 to 2147483647");
}

TEST_F(FlagsTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(Parse({"--servrs=2"}), "unknown flag --servrs; did you mean --servers?");
  EXPECT_EQ(Parse({"--bogus"}), "unknown flag --bogus; --help lists all");
  EXPECT_EQ(Parse({"--=2"}), "unknown flag --; --help lists all");
  EXPECT_EQ(Parse({"word"}), "unexpected argument \"word\"; flags begin with --");
  EXPECT_EQ(Parse({"-servers=2"}), "unexpected argument \"-servers=2\"; flags begin with --");
  EXPECT_EQ(Parse({"--"}), "unexpected argument \"--\"; flags begin with --");
  EXPECT_EQ(Parse({"--verbose", "false"}), "unexpected argument \"false\"; flags begin with --");
}

TEST_F(FlagsTest, RefusesMalformedValues) {
  const std::string expected = ": expected a whole number from 0 to 2147483647";
  for (const char* text : {"", "abc", "-1", "+1", " 1", "1.5", "0x1", "2147483648"}) {
    const std::string argument = std::string("--servers=") + text;
    EXPECT_EQ(Parse({argument}), argument + expected);
  }
  EXPECT_EQ(Parse({"--servers", "-1"}), "--servers=-1" + expected);
  EXPECT_EQ(Parse({"--verbose=maybe"}), "--verbose=maybe: expected true or false");
}

TEST_F(FlagsTest, KeepsAnErrorOnOneLine) {
  EXPECT_EQ(Parse({"--verbose=a\nb"}), "--verbose=a b: expected true or false");
}

TEST_F(FlagsTest, RefusesAFlagWithoutItsValue) {
  EXPECT_EQ(Parse({"--servers"}), "--servers: expected a value");
  EXPECT_EQ(Parse({"--listen", "--servers=2"}), "--listen: expected a value");
}

TEST_F(FlagsTest, HelpIsNotAnErrorAndIsComplete) {
  EXPECT_FALSE(flags_.help_requested());
  EXPECT_EQ(Parse({"--servers=2", "--help", "--bogus"}), "");
  EXPECT_TRUE(flags_.help_requested());
  EXPECT_EQ(flags_.Help(),
            "program: does a thing.\n\n"
            "Flags, with the variables that set them too:\n"
            "  --listen=VALUE  (TANDEM_LISTEN)\n"
            "      Where to listen, HOST:PORT. Default: 127.0.0.1:0\n"
            "  --servers=VALUE  (TANDEM_SERVERS)\n"
            "      How many servers. Default: 1\n"
            "  --verbose  (TANDEM_VERBOSE)\n"
            "      Says more. Default: false\n"
            "  --set=VALUE  (TANDEM_SET)\n"
            "      A field of the job. May be given several times. No default.\n"
            "  --help\n"
            "      Prints this.\n");
}

}  // namespace
}  // namespace tandem
