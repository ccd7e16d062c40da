#include "common/base/fault_point.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

// How a process ends that arms `points` and reaches "apply" `times` times; it exits with the number
// of those that returned an error.
int WaitStatus(const std::vector<std::string>& points, int times) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (!ArmFaultPoints(points).ok()) _exit(100);
    int errors = 0;
    for (int i = 0; i < times; ++i) errors += FaultPoint("apply").ok() ? 0 : 1;
    _exit(errors);
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  return status;
}

std::string ArmError(const std::string& point) {
  const absl::Status status = ArmFaultPoints({point});
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << point;
  return std::string(status.message());
}

TEST(FaultPoint, DoesNothingUnlessArmed) {
  EXPECT_TRUE(FaultPoint("apply").ok());
  const int status = WaitStatus({}, 3);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(FaultPoint, NamesAreSortedAndDifferent) {
  const std::vector<std::string>& names = FaultPointNames();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(FaultPoint, ReturnsAnErrorEachTime) {
  const int status = WaitStatus({"apply=error"}, 3);
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(FaultPoint, ActsTheNthTimeAlone) {
  EXPECT_EQ(WEXITSTATUS(WaitStatus({"apply@2=error"}, 1)), 0);
  EXPECT_EQ(WEXITSTATUS(WaitStatus({"apply@2=error"}, 3)), 1);
  EXPECT_EQ(WEXITSTATUS(WaitStatus({"apply@2=error", "apply@3=error"}, 3)), 2);
  EXPECT_EQ(WEXITSTATUS(WaitStatus({"push_sent=error"}, 3)), 0);  // Another point.
}

TEST(FaultPoint, KillsItsProcess) {
  const int status = WaitStatus({"apply@2=kill"}, 2);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
}

TEST(FaultPoint, StopsItsProcessAndGoesOn) {
  const pid_t pid = fork();
  if (pid == 0) {
    if (!ArmFaultPoints({"apply=stop"}).ok()) _exit(100);
    _exit(FaultPoint("apply").ok() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, WUNTRACED), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(WSTOPSIG(status), SIGSTOP);
  kill(pid, SIGCONT);
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(FaultPoint, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(ArmError("aply=kill"),
            "fault point \"aply=kill\": the name \"aply\" is unknown; did you mean \"apply\"?");
  EXPECT_THAT(ArmError("apply=explode"),
              HasSubstr("the action \"explode\" is unknown; expected one of error, kill, stop"));
  EXPECT_THAT(ArmError("apply"), HasSubstr("the action \"\" is unknown"));
  EXPECT_THAT(ArmError("apply@0=kill"), HasSubstr("expected a number from 1 after the @"));
  EXPECT_THAT(ArmError("apply@=kill"), HasSubstr("expected a number from 1 after the @"));
}

}  // namespace
}  // namespace tandem
