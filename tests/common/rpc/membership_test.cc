#include "common/rpc/membership.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::HasSubstr;

Membership::Options Worker() {
  Membership::Options options;
  options.registration.set_role(v1::ROLE_WORKER);
  options.registration.set_incarnation("life");
  options.give_up_ms = 10000;
  return options;
}

v1::RegisterResponse Registered(uint64_t node) {
  v1::RegisterResponse response;
  response.set_node(node);
  return response;
}

v1::HeartbeatResponse News(uint64_t sequence, v1::Phase phase) {
  v1::HeartbeatResponse response;
  response.mutable_state()->set_sequence(sequence);
  response.mutable_state()->set_phase(phase);
  return response;
}

TEST(Membership, RegistersThenKeepsAHeartbeatInFlight) {
  Membership member(Worker(), 0);
  EXPECT_EQ(member.Start().kind, Membership::Next::kRegister);
  EXPECT_EQ(member.registration().incarnation(), "life");
  EXPECT_FALSE(member.registered());

  EXPECT_EQ(member.OnRegistered(10, Registered(5)).kind, Membership::Next::kHeartbeat);
  EXPECT_TRUE(member.registered());
  EXPECT_EQ(member.heartbeat().node(), 5u);
  EXPECT_EQ(member.heartbeat().incarnation(), "life");
  EXPECT_EQ(member.heartbeat().seen(), 0u);

  EXPECT_EQ(member.OnHeartbeat(20, News(3, v1::PHASE_WAITING)).kind, Membership::Next::kHeartbeat);
  EXPECT_EQ(member.heartbeat().seen(), 3u);
  // Nothing new: the state stays.
  EXPECT_EQ(member.OnHeartbeat(1020, v1::HeartbeatResponse()).kind, Membership::Next::kHeartbeat);
  EXPECT_EQ(member.state().phase(), v1::PHASE_WAITING);
  EXPECT_EQ(member.heartbeat().seen(), 3u);
}

TEST(Membership, TriesAgainAfterAWhile) {
  Membership member(Worker(), 0);
  const Membership::Next next = member.OnRegistered(100, absl::UnavailableError("no route"));
  EXPECT_EQ(next.kind, Membership::Next::kWait);
  EXPECT_GT(next.at_ms, 100);
  EXPECT_LE(next.at_ms, 120);  // The first wait is at most 20 ms.
  EXPECT_EQ(member.trouble().message(), "no route");
  EXPECT_EQ(member.OnTime(next.at_ms).kind, Membership::Next::kRegister);

  member.OnRegistered(200, Registered(1));
  EXPECT_TRUE(member.trouble().ok());
  // A heartbeat that fails is repeated, under the same name.
  const Membership::Next wait = member.OnHeartbeat(300, absl::DeadlineExceededError("late"));
  EXPECT_EQ(wait.kind, Membership::Next::kWait);
  EXPECT_EQ(member.OnTime(wait.at_ms).kind, Membership::Next::kHeartbeat);
  EXPECT_EQ(member.heartbeat().node(), 1u);
}

TEST(Membership, WaitsLongerWithEachFailure) {
  Membership member(Worker(), 0);
  int64_t now = 0;
  for (int64_t whole : {20, 40, 80, 160, 320}) {
    const Membership::Next next = member.OnRegistered(now, absl::UnavailableError("no route"));
    ASSERT_EQ(next.kind, Membership::Next::kWait);
    EXPECT_GE(next.at_ms - now, whole / 2);
    EXPECT_LE(next.at_ms - now, whole);
    now = next.at_ms;
  }
  member.OnRegistered(now, Registered(1));  // A success begins anew.
  const Membership::Next next = member.OnHeartbeat(now, absl::UnavailableError("no route"));
  EXPECT_LE(next.at_ms - now, 20);
}

TEST(Membership, GivesUpWhenTheCoordinatorStaysAway) {
  Membership member(Worker(), 1000);
  EXPECT_EQ(member.OnRegistered(10999, absl::UnavailableError("no route")).kind,
            Membership::Next::kWait);
  const Membership::Next next = member.OnRegistered(11000, absl::UnavailableError("no route"));
  ASSERT_EQ(next.kind, Membership::Next::kGiveUp);
  EXPECT_EQ(next.status.code(), absl::StatusCode::kUnavailable);  // A restart may cure it.
  EXPECT_THAT(next.status.message(), HasSubstr("has not answered for 10 s: no route"));
}

TEST(Membership, AnyAnswerBeginsTheDeadlineAnew) {
  Membership member(Worker(), 0);
  member.OnRegistered(9000, Registered(1));
  EXPECT_EQ(member.heard_ms(), 9000);
  EXPECT_EQ(member.OnHeartbeat(18999, absl::UnavailableError("x")).kind, Membership::Next::kWait);
  member.OnHeartbeat(18999, v1::HeartbeatResponse());
  EXPECT_EQ(member.OnHeartbeat(28998, absl::UnavailableError("x")).kind, Membership::Next::kWait);
  EXPECT_EQ(member.OnHeartbeat(28999, absl::UnavailableError("x")).kind, Membership::Next::kGiveUp);
}

TEST(Membership, GivesUpAtOnceWhenItCanNeverTakePart) {
  Membership member(Worker(), 0);
  const Membership::Next next =
      member.OnRegistered(1, absl::PermissionDeniedError("the job's instruction set is avx512"));
  ASSERT_EQ(next.kind, Membership::Next::kGiveUp);
  EXPECT_EQ(next.status.code(), absl::StatusCode::kPermissionDenied);
}

TEST(Membership, RegistersAgainWhenItIsNotKnown) {
  Membership member(Worker(), 0);
  member.OnRegistered(0, Registered(5));
  member.OnHeartbeat(1, News(9, v1::PHASE_TRAINING));
  // A coordinator that came back after longer than the deadline is there all the same.
  EXPECT_EQ(member.OnHeartbeat(60000, absl::FailedPreconditionError("register again")).kind,
            Membership::Next::kRegister);  // At once.
  EXPECT_FALSE(member.registered());
  member.OnRegistered(60010, Registered(2));
  EXPECT_EQ(member.heartbeat().node(), 2u);
  EXPECT_EQ(member.heartbeat().seen(), 0u);  // Another life of the coordinator counts anew.
  member.OnHeartbeat(60020, News(1, v1::PHASE_WAITING));
  EXPECT_EQ(member.state().phase(), v1::PHASE_WAITING);
}

// A coordinator that takes it in and does not know it then is not asked in a tight loop.
TEST(Membership, WaitsWhenItIsForgottenAgainAndAgain) {
  Membership member(Worker(), 0);
  member.OnRegistered(0, Registered(5));
  EXPECT_EQ(member.OnHeartbeat(1, absl::FailedPreconditionError("register again")).kind,
            Membership::Next::kWait);
}

TEST(Membership, GivesUpWhenTheCoordinatorCameBackWithAnotherJob) {
  Membership member(Worker(), 0);
  v1::RegisterResponse response = Registered(5);
  response.mutable_job()->set_name("a");
  response.set_train_examples(100);
  member.OnRegistered(0, response);
  member.OnHeartbeat(1, absl::FailedPreconditionError("register again"));
  response.set_node(1);
  response.set_state_dir("elsewhere");
  EXPECT_EQ(member.OnRegistered(2, response).kind, Membership::Next::kHeartbeat);

  member.OnHeartbeat(3, absl::FailedPreconditionError("register again"));
  v1::RegisterResponse other = response;
  other.mutable_job()->set_name("b");
  const Membership::Next next = member.OnRegistered(4, other);
  ASSERT_EQ(next.kind, Membership::Next::kGiveUp);
  EXPECT_EQ(next.status.code(), absl::StatusCode::kUnavailable);  // A restart cures it.
  EXPECT_THAT(next.status.message(), HasSubstr("another job (\"b\")"));

  response.set_train_examples(99);
  EXPECT_EQ(member.OnRegistered(5, response).kind, Membership::Next::kGiveUp);
}

TEST(Membership, SaysNewsWithASecondHeartbeat) {
  Membership member(Worker(), 0);
  EXPECT_EQ(member.OnNews().kind, Membership::Next::kNothing);  // Not registered yet.
  member.OnRegistered(0, Registered(5));
  EXPECT_EQ(member.OnNews().kind, Membership::Next::kHeartbeat);
  EXPECT_EQ(member.OnNews().kind, Membership::Next::kNothing);  // Two are in flight.
  // The coordinator answers the older one, and there are news that the newer does not have.
  EXPECT_EQ(member.OnHeartbeat(1, v1::HeartbeatResponse()).kind, Membership::Next::kHeartbeat);
  EXPECT_EQ(member.OnHeartbeat(2, v1::HeartbeatResponse()).kind, Membership::Next::kNothing);
  EXPECT_EQ(member.OnHeartbeat(3, v1::HeartbeatResponse()).kind, Membership::Next::kHeartbeat);
}

TEST(Membership, SaysNewsWhenItTriesAgain) {
  Membership member(Worker(), 0);
  member.OnRegistered(0, Registered(5));
  const Membership::Next wait = member.OnHeartbeat(1, absl::UnavailableError("no route"));
  EXPECT_EQ(member.OnNews().kind, Membership::Next::kNothing);
  EXPECT_EQ(member.OnTime(wait.at_ms).kind, Membership::Next::kHeartbeat);
}

TEST(Membership, OneOfTwoHeartbeatsMayFail) {
  Membership member(Worker(), 0);
  member.OnRegistered(0, Registered(5));
  member.OnNews();
  EXPECT_EQ(member.OnHeartbeat(1, absl::UnavailableError("no route")).kind,
            Membership::Next::kNothing);
  EXPECT_EQ(member.OnHeartbeat(2, News(4, v1::PHASE_TRAINING)).kind, Membership::Next::kHeartbeat);
  member.OnNews();
  EXPECT_EQ(member.OnHeartbeat(3, absl::FailedPreconditionError("register again")).kind,
            Membership::Next::kNothing);  // Not while the other may be answered.
  EXPECT_EQ(member.OnHeartbeat(4, absl::FailedPreconditionError("register again")).kind,
            Membership::Next::kRegister);
}

TEST(Membership, KeepsTheNewestStateInWhateverOrderItComes) {
  Membership member(Worker(), 0);
  member.OnRegistered(0, Registered(5));
  member.OnNews();
  member.OnHeartbeat(1, News(7, v1::PHASE_TRAINING));
  member.OnHeartbeat(2, News(6, v1::PHASE_WAITING));
  EXPECT_EQ(member.state().sequence(), 7u);
  EXPECT_EQ(member.state().phase(), v1::PHASE_TRAINING);
}

TEST(Membership, SaysThatItIsRefused) {
  Membership member(Worker(), 0);
  EXPECT_EQ(member.OnRegistered(9999, absl::InvalidArgumentError("role: expected")).kind,
            Membership::Next::kWait);
  const Membership::Next next = member.OnRegistered(10000, absl::InvalidArgumentError("role: bad"));
  ASSERT_EQ(next.kind, Membership::Next::kGiveUp);
  EXPECT_EQ(next.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(next.status.message(), HasSubstr("refused this process's calls for 10 s: role: bad"));
}

TEST(Membership, RegistersAgainWhenAnotherCallWasRefused) {
  Membership member(Worker(), 0);
  member.OnRegistered(0, Registered(5));
  member.Forget();  // While the heartbeat is in flight; its answer changes nothing about it.
  EXPECT_EQ(member.OnHeartbeat(1, News(1, v1::PHASE_WAITING)).kind, Membership::Next::kRegister);
}

}  // namespace
}  // namespace tandem
