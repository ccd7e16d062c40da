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
  const Membership::Next wait =
      member.OnHeartbeat(60000, absl::FailedPreconditionError("register again"));
  ASSERT_EQ(wait.kind, Membership::Next::kWait);
  EXPECT_FALSE(member.registered());
  EXPECT_EQ(member.OnTime(wait.at_ms).kind, Membership::Next::kRegister);
  member.OnRegistered(wait.at_ms, Registered(2));
  EXPECT_EQ(member.heartbeat().node(), 2u);
  EXPECT_EQ(member.heartbeat().seen(), 0u);  // Another life of the coordinator counts anew.
}

TEST(Membership, RegistersAgainWhenAnotherCallWasRefused) {
  Membership member(Worker(), 0);
  member.OnRegistered(0, Registered(5));
  member.Forget();  // While the heartbeat is in flight; its answer changes nothing about it.
  EXPECT_EQ(member.OnHeartbeat(1, News(1, v1::PHASE_WAITING)).kind, Membership::Next::kRegister);
}

}  // namespace
}  // namespace tandem
