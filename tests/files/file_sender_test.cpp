// SPDX-License-Identifier: BSD-3-Clause
// A sender, and a receiver that says just what the test wants, over the loop link.

#include "tools/files/send_all.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

#include "tests/temporary_directory.h"
#include "tools/files/failure.h"

namespace stp::files {
namespace {

class FileSenderTest : public ::testing::Test {
 protected:
  FileSenderTest() {
    ::setenv("STP_LINK", "loop", 1);
    link_.emplace();
    requests_.emplace(*link_, 1);
    EXPECT_EQ(::stm_listen(link_->domain(), ":3000", requests_->handle(), 0, 1, &listener_), 0);
  }
  ~FileSenderTest() override {
    channel_.reset();
    ::stm_listener_close(listener_);
  }

  // Sends files of those names in another thread, and accepts its connection.
  std::future<void> send(const std::vector<std::string>& names) {
    for (const auto& name : names) std::ofstream(directory_ / name) << "content";
    auto sending = std::async(std::launch::async, [this, names] {
      FileLink link;
      Channel channel(link, "localhost:3000", [] {}, {});
      Pace pace;
      FileSender sender(channel, stop_, progress_, pace, [](const Outcome&) {});
      for (const auto& name : names) sender.offer(FileReader::single((directory_ / name).string()));
      sender.finish();
    });
    std::optional<stm_event_t> event;
    while (!event) event = requests_->next(kAttention);
    channel_.emplace(*link_, event->connection, [] {});
    return sending;
  }
  // The next message that is not a note, or the note's kind.
  MessageTag next() {
    Message message;
    while (!channel_->receive(message, kAttention)) {
    }
    const auto tag = message.tag;
    last_note_ = tag == MessageTag::kNotes ? decode_notes(message.bytes).at(0).kind : NoteKind{};
    channel_->done_with(message);
    return tag;
  }
  void say(NoteKind kind, std::uint32_t file, std::uint64_t have = 0) {
    Note note;
    note.kind = kind;
    note.file = file;
    note.have = have;
    channel_->send(MessageTag::kNotes, encode(note));
  }

  test::TemporaryDirectory directory_;
  Progress progress_{"test", true};
  std::atomic<bool> stop_{false};
  std::optional<FileLink> link_;
  std::optional<Queue> requests_;
  stm_listener_t listener_ = nullptr;
  std::optional<Channel> channel_;
  NoteKind last_note_{};
};

// Each request to settle costs the receiver a sync of its disk.
TEST_F(FileSenderTest, asks_to_settle_only_when_no_file_can_follow) {
  auto sending = send({"one", "two", "three"});
  EXPECT_EQ(next(), MessageTag::kOffers);
  for (std::uint32_t number = 1; number <= 3; ++number) {
    say(NoteKind::kWanted, number);
    EXPECT_EQ(next(), MessageTag::kPack) << number;
  }
  EXPECT_EQ(next(), MessageTag::kNotes);
  EXPECT_EQ(last_note_, NoteKind::kSettle);
  say(NoteKind::kDone, 1, 3);
  sending.get();
}

TEST_F(FileSenderTest, does_not_go_on_with_a_receiver_that_says_that_no_file_is_done) {
  auto sending = send({"one"});
  EXPECT_EQ(next(), MessageTag::kOffers);
  say(NoteKind::kDone, 1, 0);
  EXPECT_THROW(sending.get(), LinkFailure);
}

// Any program of the managed API may accept whoever comes.
TEST_F(FileSenderTest, names_a_program_that_is_no_receiver) {
  auto connecting = std::async(std::launch::async, []() -> std::string {
    FileLink link;
    try {
      const Channel channel(link, "localhost:3000", [] {}, {});
    } catch (const LinkFailure& failure) {
      return failure.what();
    }
    return "";
  });
  std::optional<stm_event_t> event;
  while (!event) event = requests_->next(kAttention);
  const Queue events(*link_, 8);
  stm_connection_attr_t attr{};
  attr.size = sizeof attr;
  attr.events = events.handle();
  EXPECT_EQ(::stm_accept(event->connection, &attr, nullptr, 0), 0);
  EXPECT_EQ(connecting.get(), "the program on localhost:3000 is not an stp-recv of this version");
  ::stm_connection_close(event->connection);
}

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kRate = 1'000'000;
const Pace::Clock::time_point kStart(seconds(1'000));

// Connections that come about are no progress, nor is what was sent before.
TEST(Persistence, EndsWhenThereWasNoProgressForItsTime) {
  using std::chrono::seconds;
  const Persistence::Clock::time_point begin{};
  Persistence persistence(seconds(60));
  persistence.reached(5'000);
  EXPECT_TRUE(persistence.may_try_again(begin + seconds(3'600))) << "a long transfer";
  for (const auto again : {1'000U, 3'000U, 5'000U}) persistence.reached(again);
  EXPECT_TRUE(persistence.may_try_again(begin + seconds(3'659)));
  EXPECT_FALSE(persistence.may_try_again(begin + seconds(3'660)));
  persistence.reached(5'001);
  EXPECT_TRUE(persistence.may_try_again(begin + seconds(3'700)));
  persistence.begin_next();
  persistence.reached(1);
  EXPECT_TRUE(persistence.may_try_again(begin + seconds(3'800)));
  EXPECT_FALSE(Persistence(seconds(0)).may_try_again(begin));
}

// So that --retry 5 takes five seconds, not those and a whole try more.
TEST(Persistence, LeavesATryWhatIsLeftOfIt) {
  using std::chrono::milliseconds;
  const Persistence::Clock::time_point begin{};
  Persistence persistence(seconds(5));
  const Channel::Patience usual;
  EXPECT_EQ(within(persistence.left(begin), usual).host, usual.host) << "nothing was lost";
  EXPECT_TRUE(persistence.may_try_again(begin));
  EXPECT_EQ(persistence.left(begin + seconds(2)), seconds(3));
  const auto cut = within(persistence.left(begin + seconds(2)), usual);
  EXPECT_EQ(cut.receiver, seconds(3));
  EXPECT_EQ(cut.host, seconds(3));
  EXPECT_EQ(within(persistence.left(begin), {seconds(30), seconds(4)}).host, seconds(4));
  EXPECT_FALSE(persistence.may_try_again(begin + milliseconds(4'950))) << "too little for a try";
  EXPECT_EQ(persistence.left(begin + seconds(9)), seconds(0));
  persistence.reached(1);
  EXPECT_FALSE(persistence.left(begin + seconds(9))) << "progress";
}

TEST(Pace, WithoutALimitNothingWaits) {
  Pace pace;
  pace.spend(std::uint64_t{1} << 40, kStart);
  EXPECT_EQ(pace.to_wait(kStart), Duration::zero());
}

TEST(Pace, WaitsAsLongAsTheBytesTake) {
  Pace pace(kRate);
  EXPECT_EQ(pace.to_wait(kStart), Duration::zero());
  pace.spend(kRate / 2, kStart);
  pace.spend(kRate / 2, kStart);
  EXPECT_EQ(pace.to_wait(kStart), seconds(1));
  EXPECT_EQ(pace.to_wait(kStart + milliseconds(900)), milliseconds(100));
  EXPECT_EQ(pace.to_wait(kStart + seconds(2)), Duration::zero());
}

TEST(Pace, APauseAllowsNoBurst) {
  Pace pace(kRate);
  pace.spend(kRate, kStart);
  const auto later = kStart + seconds(100);
  pace.spend(kRate, later);
  EXPECT_EQ(pace.to_wait(later), seconds(1));
}

}  // namespace
}  // namespace stp::files
