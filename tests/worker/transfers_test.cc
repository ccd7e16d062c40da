#include "worker/transfers.h"

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::shared_ptr<const Gradient> Push(uint64_t step) {
  auto gradient = std::make_shared<Gradient>();
  gradient->step = step;
  return gradient;
}

// What came out since the last look: "0: push 5, push 6, pull 7" of shard 0.
std::vector<std::string> Sent(WorkerActions* actions) {
  std::vector<std::string> sent;
  for (const WorkerAction& action : *actions) {
    const auto* exchange = std::get_if<Exchange>(&action);
    if (exchange == nullptr) continue;
    std::string text = std::to_string(exchange->shard) + ":";
    for (const auto& push : exchange->pushes) text += " push " + std::to_string(push->step);
    if (exchange->pull_version.has_value()) {
      text += " pull " + std::to_string(*exchange->pull_version);
      EXPECT_NE(exchange->into, nullptr);
    }
    sent.push_back(text);
  }
  actions->clear();
  return sent;
}

std::vector<Transfers::Event::Kind> Kinds(Transfers::Events* events) {
  std::vector<Transfers::Event::Kind> kinds;
  for (const Transfers::Event& event : *events) kinds.push_back(event.kind);
  events->clear();
  return kinds;
}

int64_t WakeTime(const WorkerActions& actions) {
  for (const WorkerAction& action : actions) {
    if (const auto* wake = std::get_if<WakeAt>(&action)) return wake->at_ms;
  }
  ADD_FAILURE() << "no timer";
  return 0;
}

class TransfersTest : public testing::Test {
 protected:
  uint64_t Start(std::vector<std::shared_ptr<const Gradient>> pushes,
                 std::optional<uint64_t> pull) {
    return transfers_.Start(0, std::move(pushes), pull, std::make_shared<Buffer>(4), &actions_);
  }
  void Error(uint64_t id, int shard, const absl::Status& status, int64_t now_ms = 0) {
    transfers_.OnError(now_ms, id, shard, status, &actions_, &events_);
  }

  Transfers transfers_{2, 1};
  WorkerActions actions_;
  Transfers::Events events_;
};

TEST_F(TransfersTest, APushIsDoneWhenEveryShardHasIt) {
  const uint64_t id = Start({Push(5)}, {});
  EXPECT_THAT(Sent(&actions_), ElementsAre("0: push 5", "1: push 5"));
  transfers_.OnPushed(id, 1, 1, &events_);
  EXPECT_THAT(events_, IsEmpty());
  transfers_.OnPushed(id, 1, 1, &events_);  // Said twice.
  EXPECT_THAT(events_, IsEmpty());
  transfers_.OnPushed(id, 0, 1, &events_);
  EXPECT_THAT(Kinds(&events_), ElementsAre(Transfers::Event::kPushed));
  transfers_.OnPushed(id, 0, 1, &events_);  // It is over.
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(TransfersTest, APullIsDoneWhenEveryPartIsThere) {
  const uint64_t id = Start({}, 3);
  EXPECT_THAT(Sent(&actions_), ElementsAre("0: pull 3", "1: pull 3"));
  transfers_.OnPulled(id, 0, &events_);
  transfers_.OnPulled(id, 0, &events_);
  EXPECT_THAT(events_, IsEmpty());
  transfers_.OnPulled(id, 1, &events_);
  EXPECT_THAT(Kinds(&events_), ElementsAre(Transfers::Event::kPulled));
}

TEST_F(TransfersTest, PushAndPullInOne) {
  const uint64_t id = Start({Push(5), Push(5)}, 6);
  EXPECT_THAT(Sent(&actions_), ElementsAre("0: push 5 push 5 pull 6", "1: push 5 push 5 pull 6"));
  transfers_.OnPushed(id, 0, 2, &events_);
  transfers_.OnPushed(id, 1, 1, &events_);
  EXPECT_THAT(events_, IsEmpty());
  transfers_.OnPushed(id, 1, 1, &events_);
  EXPECT_THAT(Kinds(&events_), ElementsAre(Transfers::Event::kPushed));
  transfers_.OnPulled(id, 0, &events_);
  transfers_.OnPulled(id, 1, &events_);
  EXPECT_THAT(Kinds(&events_), ElementsAre(Transfers::Event::kPulled));
}

TEST_F(TransfersTest, ARetrySendsOnlyWhatIsNotAcknowledged) {
  const uint64_t id = Start({Push(5), Push(6), Push(7)}, 8);
  Sent(&actions_);
  transfers_.OnPushed(id, 1, 2, &events_);
  Error(id, 1, absl::UnavailableError("connection reset"), 100);
  const int64_t at = WakeTime(actions_);
  EXPECT_GT(at, 100);
  EXPECT_THAT(Sent(&actions_), IsEmpty());
  transfers_.OnTime(at - 1, &actions_);
  EXPECT_THAT(Sent(&actions_), IsEmpty());
  transfers_.OnTime(at, &actions_);
  EXPECT_THAT(Sent(&actions_), ElementsAre("1: push 7 pull 8"));
  transfers_.OnTime(at + 1000, &actions_);  // Once.
  EXPECT_THAT(Sent(&actions_), IsEmpty());
  EXPECT_EQ(transfers_.retries(), 1u);

  transfers_.OnPushed(id, 1, 1, &events_);
  Error(id, 1, absl::UnavailableError("connection reset"), at);
  transfers_.OnTime(at + 5000, &actions_);
  EXPECT_THAT(Sent(&actions_), ElementsAre("1: pull 8"));
}

TEST_F(TransfersTest, AFullQueueAndAStaleMapAreTriedAgain) {
  for (const absl::Status& status :
       {absl::ResourceExhaustedError("queue"), absl::FailedPreconditionError("map epoch"),
        absl::DeadlineExceededError("late")}) {
    const uint64_t id = Start({Push(5)}, {});
    Sent(&actions_);
    Error(id, 0, status);
    EXPECT_THAT(events_, IsEmpty());
    transfers_.OnTime(1000, &actions_);
    EXPECT_THAT(Sent(&actions_), ElementsAre("0: push 5"));
  }
}

TEST_F(TransfersTest, ARefusalIsFinal) {
  const uint64_t id = Start({Push(5)}, {});
  Error(id, 0, absl::InvalidArgumentError("not finite"));
  ASSERT_THAT(events_, SizeIs(1));
  EXPECT_EQ(events_[0].kind, Transfers::Event::kFailed);
  EXPECT_EQ(events_[0].status.message(), "not finite");
  events_.clear();
  transfers_.OnPushed(id, 1, 1, &events_);
  EXPECT_THAT(events_, IsEmpty());
}

TEST_F(TransfersTest, OneShardPastTheVersionIsEnough) {
  const uint64_t id = Start({}, 3);
  Error(id, 1, absl::OutOfRangeError("every shard is past it"));
  EXPECT_THAT(Kinds(&events_), ElementsAre(Transfers::Event::kPast));
  transfers_.OnPulled(id, 0, &events_);
  EXPECT_THAT(events_, IsEmpty());
}

// The status of the pull ends the call, and with it an acknowledgement that was still on its way.
// The push has to be sent again, or nobody would ever hear of it.
TEST_F(TransfersTest, OutOfRangeBeforeTheAcknowledgementOfThePush) {
  const uint64_t id = Start({Push(5)}, 6);
  Sent(&actions_);
  transfers_.OnPushed(id, 0, 1, &events_);
  Error(id, 1, absl::OutOfRangeError("every shard is past it"));
  EXPECT_THAT(Kinds(&events_), ElementsAre(Transfers::Event::kPast));
  transfers_.OnTime(1000, &actions_);
  EXPECT_THAT(Sent(&actions_), ElementsAre("1: push 5"));
  transfers_.OnPushed(id, 1, 1, &events_);
  EXPECT_THAT(Kinds(&events_), ElementsAre(Transfers::Event::kPushed));
}

// Shard 0 waits to be asked for the weights again when shard 1 says that they are past.
TEST_F(TransfersTest, APartThatIsThroughIsNotTriedAgain) {
  const uint64_t id = Start({Push(5)}, 6);
  transfers_.OnPushed(id, 0, 1, &events_);
  Error(id, 0, absl::UnavailableError("connection reset"));
  Error(id, 1, absl::OutOfRangeError("every shard is past it"));
  Sent(&actions_);
  transfers_.OnTime(1000, &actions_);
  EXPECT_THAT(Sent(&actions_), ElementsAre("1: push 5"));
  // And one that breaks after all it had to do is no trouble.
  Error(id, 0, absl::UnavailableError("connection reset"));
  transfers_.OnTime(5000, &actions_);
  EXPECT_THAT(Sent(&actions_), IsEmpty());
}

TEST_F(TransfersTest, SaysWhomItWaitsFor) {
  const uint64_t id = Start({}, 3);
  EXPECT_EQ(transfers_.Waiting(4999, 5000), "");
  transfers_.OnPulled(id, 0, &events_);
  EXPECT_EQ(transfers_.Waiting(5000, 5000), "shard 1 for 5 s (version 3)");
  Error(id, 1, absl::UnavailableError("no route"));
  EXPECT_THAT(transfers_.Waiting(7000, 5000), HasSubstr("shard 1 for 7 s (version 3): no route"));
  transfers_.OnPulled(id, 1, &events_);
  EXPECT_EQ(transfers_.Waiting(9000, 5000), "");
}

}  // namespace
}  // namespace tandem
