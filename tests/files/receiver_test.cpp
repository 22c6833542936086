// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/receiver.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <future>

#include "libst/managed/host_of_peer.h"
#include "libst/os/unique_fd.h"
#include "tests/files/transfer_fixture.h"

namespace stp::files {
namespace {

TEST(Host, AllUdpPortsOfAnAddressAreOneHost) {
  EXPECT_EQ(managed::host_of_station("10.0.0.5/8181"), managed::host_of_station("10.0.0.5/40000"));
  EXPECT_NE(managed::host_of_station("10.0.0.5/8181"), managed::host_of_station("10.0.0.6/8181"));
}

TEST(Host, AllAddressesOfAnIpv6NetworkAreOneHost) {
  EXPECT_EQ(managed::host_of_station("[2001:db8:0:1::5]/8181"),
            managed::host_of_station("[2001:db8:0:1:ffff::7]/9"));
  EXPECT_NE(managed::host_of_station("[2001:db8:0:1::5]/8181"),
            managed::host_of_station("[2001:db8:0:2::5]/8181"));
  EXPECT_NE(managed::host_of_station("[fe80::1%eth0]/8181"),
            managed::host_of_station("[fe80::2%eth0]/8181"))
      << "all begin alike";
}

TEST(Host, AStationOnEthernetIsAHost) {
  EXPECT_EQ(managed::host_of_station("[02:00:00:00:00:01]"), "[02:00:00:00:00:01]");
}

TEST(Places, OfAHostAreMoreThanItsShareOnlyIfOthersHaveLess) {
  const std::vector<std::string> two{"a", "a", "a", "a", "b", "b", "b", "b"};
  EXPECT_TRUE(has_more_than_its_share(two, "a", "newcomer"));
  EXPECT_TRUE(has_more_than_its_share(two, "b", "newcomer"));
  EXPECT_FALSE(has_more_than_its_share(two, "a", "b"));
  const std::vector<std::string> many{"a", "a", "a", "a", "a", "a", "b", "c"};
  EXPECT_TRUE(has_more_than_its_share(many, "a", "newcomer"));
  EXPECT_FALSE(has_more_than_its_share(many, "b", "newcomer"));
  EXPECT_FALSE(has_more_than_its_share({"a", "b"}, "a", "newcomer"));
  EXPECT_FALSE(has_more_than_its_share({"a", "a"}, "a", "a"));
}

constexpr Duration kPatience = std::chrono::seconds(5);

// It sends something every second.
Placed slow_one(const std::string& host, std::uint64_t bytes) {
  return {host, std::chrono::seconds(1), std::chrono::seconds(1), std::chrono::minutes(5), bytes};
}

TEST(Places, OfAHostAboveItsShareTheSlowestGivesWay) {
  const std::vector<Placed> two_hosts{slow_one("a", 300), slow_one("b", 100), slow_one("a", 200),
                                      slow_one("b", 400)};
  EXPECT_EQ(who_gives_way(two_hosts, {"c", 2 * kPatience}, kPatience), (Leaver{1, Leave::kSlow}));
  EXPECT_EQ(who_gives_way(two_hosts, {"c", kPatience}, kPatience), std::nullopt) << "not yet";
  EXPECT_EQ(who_gives_way(two_hosts, {"a", 2 * kPatience}, kPatience), std::nullopt)
      << "who has as much as others waits";
  auto anew = two_hosts;
  anew[1].age = std::chrono::seconds(1);
  EXPECT_EQ(who_gives_way(anew, {"c", 2 * kPatience}, kPatience), (Leaver{2, Leave::kSlow}));
  anew[3].silence = anew[3].idleness = 2 * kPatience;
  EXPECT_EQ(who_gives_way(anew, {"c", kPatience}, kPatience), (Leaver{3, Leave::kSilent}))
      << "first who is silent";
  anew[3].idleness = std::chrono::seconds(1);
  EXPECT_EQ(who_gives_way(anew, {"c", kPatience}, kPatience), (Leaver{3, Leave::kCompares}));
  const std::vector<Placed> four_hosts{slow_one("a", 1), slow_one("b", 1), slow_one("c", 1),
                                       slow_one("d", 1)};
  EXPECT_EQ(who_gives_way(four_hosts, {"e", 2 * kPatience}, kPatience), std::nullopt)
      << "none has more than its share";
}

TEST(Places, AreNotTakenFromEachOtherForEver) {
  const std::vector<Placed> three{slow_one("a", 300), slow_one("a", 200), slow_one("b", 100)};
  EXPECT_EQ(who_gives_way(three, {"b", 2 * kPatience}, kPatience), std::nullopt)
      << "then it would be the turn of the other host";
  EXPECT_EQ(who_gives_way(three, {"c", 2 * kPatience}, kPatience), (Leaver{1, Leave::kSlow}));
}

TEST(Places, AreForThoseHostsFirstThatHaveFewest) {
  EXPECT_EQ(next_of({"a", "a", "b", "c"}, {"a", "b"}), 3U);
  EXPECT_EQ(next_of({"a", "a", "b"}, {"a", "b"}), 0U);
}

TEST(Places, WhenTooManyWaitTheNewestOfTheHostWithMostHasToGo) {
  EXPECT_EQ(one_too_many({"a", "b", "b", "c", "a"}, {"a", "c"}), 4U);
  EXPECT_EQ(one_too_many({"a", "b", "b", "c"}, {}), 2U);
}

TEST(Presence, WhoWaitsForOurWorkIsSilentAndNotIdle) {
  Presence sender;
  sender.heard = (Presence::now() - std::chrono::minutes(5)).count();
  sender.worked = sender.heard.load();
  EXPECT_GE(sender.idleness(), std::chrono::minutes(5));
  sender.work();
  EXPECT_LT(sender.idleness(), std::chrono::minutes(1));
  EXPECT_GE(sender.silence(), std::chrono::minutes(5));
}

// Senders that connect, send nothing and stay.
class SilentSendersTest : public TransferTest {
 protected:
  explicit SilentSendersTest(const std::function<void(ReceiverContext&)>& adapt)
      : TransferTest(false, adapt) {}
  void connect_silently(std::size_t count) {
    while (count-- > 0) silent_.push_back(std::make_unique<Client>(stop_sender_));
  }
  void send_and_stop() {
    {
      Client client(stop_sender_);
      client.send(FileReader::single(make_file("file", 100'000)));
    }
    stop_receiver_ = true;
    thread_.join();
    EXPECT_TRUE(arrived("file"));
  }
  std::vector<std::unique_ptr<Client>> silent_;
};

class PressedReceiverTest : public SilentSendersTest {
 protected:
  PressedReceiverTest()
      : SilentSendersTest([](ReceiverContext& context) {
          context.most_senders = 3;
          context.most_per_peer = 100;
          context.idle_under_pressure = std::chrono::milliseconds(50);
        }) {}
};

TEST_F(PressedReceiverTest, a_silent_sender_makes_room_for_one_that_waits) {
  ErrorLog log(directory_.path() + "/log");
  connect_silently(3);
  send_and_stop();
  EXPECT_TRUE(log.says("from [02:00:00:00:00:01]: it was silent while others waited")) << "who?";
}

// Of its file, which seems to be there already, so much is to be read that it takes many minutes.
class LongFileTest : public SilentSendersTest {
 protected:
  static constexpr std::uint64_t kHole = std::uint64_t{4} << 40;
  explicit LongFileTest(const std::function<void(ReceiverContext&)>& adapt)
      : SilentSendersTest(adapt) {
    std::ofstream(directory_ / "out/long") << "";
    std::filesystem::resize_file(directory_ / "out/long", kHole);
  }
  static void offer_long_file(Client& client) {
    Metadata metadata;
    metadata.path = "long";
    metadata.size = kHole;
    metadata.resume = metadata.checksum = true;
    std::vector<std::byte> offers;
    append_offer(offers, metadata);
    client.channel.send(MessageTag::kOffers, offers);
  }
};

class LongFileAtTheOnlyPlaceTest : public LongFileTest {
 protected:
  LongFileAtTheOnlyPlaceTest()
      : LongFileTest([](ReceiverContext& context) {
          context.most_senders = 1;
          context.idle_under_pressure = std::chrono::hours(1);
        }) {}
};

TEST_F(LongFileAtTheOnlyPlaceTest, is_read_for_nobody_when_its_sender_has_gone) {
  offer_long_file(*std::make_unique<Client>(stop_sender_));
  send_and_stop();
}

class PressedByLongFilesTest : public LongFileTest {
 protected:
  PressedByLongFilesTest()
      : LongFileTest([](ReceiverContext& context) {
          context.most_senders = 3;
          context.most_per_peer = 100;
          // Longer than a pause of the scheduler before it begins to read.
          context.idle_under_pressure = std::chrono::milliseconds(200);
        }) {}
};

// The receiver hears nothing of it, but works for it.
TEST_F(PressedByLongFilesTest, a_sender_whose_file_is_read_keeps_its_place) {
  Client long_one(stop_sender_);
  offer_long_file(long_one);
  connect_silently(2);
  {
    Client client(stop_sender_);
    client.send(FileReader::single(make_file("file", 100'000)));
  }
  EXPECT_NO_THROW(long_one.channel.look());
  stop_receiver_ = true;
  thread_.join();
  EXPECT_TRUE(arrived("file"));
}

class ImpatientReceiverTest : public SilentSendersTest {
 protected:
  ImpatientReceiverTest()
      : SilentSendersTest([](ReceiverContext& context) {
          context.idle_timeout = std::chrono::seconds(1);  // longer than a pause of the scheduler
        }) {}
};

// One has said nothing, one does not listen, and of one nothing comes from standard input. They are
// told, also where the end of the connection comes together with the receiver's last word.
TEST_F(ImpatientReceiverTest, a_silent_sender_is_let_go) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const os::UniqueFd out(pipe[0]), in(pipe[1]);
  auto told = std::async(std::launch::async, [&] {
    Client client(stop_sender_);
    // Whether it learns of the end of the connection, too, depends on what comes first.
    EXPECT_THROW(client.send(FileReader::stream(out.get(), "stream")), std::runtime_error);
    return client.failure;
  });
  Client deaf(stop_sender_);
  Metadata metadata;
  metadata.path = "deaf";
  metadata.stream = true;
  std::vector<std::byte> offers;
  append_offer(offers, metadata);
  deaf.channel.send(MessageTag::kOffers, offers);
  connect_silently(1);
  Message message;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  EXPECT_THROW(while (std::chrono::steady_clock::now() < until) silent_[0]->channel.receive(
                   message, kAttention),
               LinkFailure);
  EXPECT_NO_THROW(while (!deaf.channel.content_buffer(Duration::zero()).empty())
                      std::this_thread::sleep_for(std::chrono::milliseconds(1)));
  EXPECT_TRUE(deaf.channel.receive(message, Duration::zero())) << "what was unread";
  EXPECT_EQ(told.get(),
            "nothing came from standard input for as long as the receiver waits; start stp-recv "
            "there with a longer --idle-timeout");
  send_and_stop();
}

class HeldFileTest : public SilentSendersTest {
 protected:
  HeldFileTest() : SilentSendersTest([](ReceiverContext&) {}) {
    sending_.paths = {make_file("file", kMostPacked + 1)};
    sending_.destination = "localhost:3000";
    Directory out;
    const auto root = directory_.path() + "/out";
    EXPECT_EQ(DirectoriesBelow(root).open({}, out), 0);
    const auto metadata = FileReader::single(sending_.paths[0]).metadata();
    EXPECT_EQ(holder_.emplace().open(std::move(out), "file", metadata), 0);
  }
  std::size_t send() { return send_all(sending_, stop_sender_, progress_); }

  Sending sending_;
  std::optional<FileWriter> holder_;  // of another transfer
};

TEST_F(HeldFileTest, a_file_that_another_transfer_writes_fails_without_retry) {
  EXPECT_EQ(send(), 1U);
  holder_.reset();
  send_and_stop();
}

TEST_F(HeldFileTest, a_file_that_another_transfer_writes_is_tried_until_that_has_ended) {
  sending_.retry = std::chrono::hours(1);
  ErrorLog log(directory_.path() + "/log");
  std::thread other([&] {
    while (!log.says("trying again")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    holder_.reset();
  });
  EXPECT_EQ(send(), 0U);
  other.join();
  EXPECT_TRUE(arrived("file"));
  EXPECT_TRUE(log.says("file: another transfer writes this file"));
  send_and_stop();
}

TEST_F(HeldFileTest, a_file_that_another_transfer_keeps_is_given_up_in_the_end) {
  sending_.retry = std::chrono::seconds(1);
  EXPECT_EQ(send(), 1U);
  holder_.reset();
  send_and_stop();
}

class RestartedReceiverTest : public SilentSendersTest {
 protected:
  RestartedReceiverTest() : SilentSendersTest([](ReceiverContext&) {}) {
    sending_.paths = {make_file("file", 3'000'000)};
    sending_.destination = "localhost:3000";
    sending_.bytes_per_second = 10'000'000;
  }
  // Returns in the middle of the file.
  std::future<std::size_t> begin_to_send() {
    auto failures =
        std::async(std::launch::async, [&] { return send_all(sending_, stop_sender_, progress_); });
    while (std::filesystem::is_empty(directory_ / "out"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return failures;
  }

  Sending sending_;
};

// The file has not failed with the receiver that began to write it.
TEST_F(RestartedReceiverTest, gets_the_rest_with_retry_and_the_sender_counts_no_failure) {
  sending_.retry = std::chrono::hours(1);
  auto failures = begin_to_send();
  stop_receiver_ = true;
  thread_.join();
  stop_receiver_ = false;
  serve(false);
  EXPECT_EQ(failures.get(), 0U);
  EXPECT_TRUE(arrived("file"));
}

// Who, and why, at either end.
TEST_F(RestartedReceiverTest, tells_the_sender_that_it_was_stopped_and_names_that_in_its_own_line) {
  ErrorLog log(directory_.path() + "/log");
  auto failures = begin_to_send();
  stop_receiver_ = true;
  try {
    failures.get();
    ADD_FAILURE() << "it arrived";
  } catch (const LinkFailure& failure) {
    EXPECT_EQ(failure.what(),
              sending_.paths[0] +
                  " to localhost:3000: the receiver was stopped by a signal; send it again when it "
                  "runs");
  }
  thread_.join();
  EXPECT_TRUE(log.says(": file: stopped here, by a signal, before all of it had come; its sender"));
  EXPECT_TRUE(log.says("test: from "));
}

TEST_F(RestartedReceiverTest, names_a_sender_that_was_stopped_and_says_so) {
  ErrorLog log(directory_.path() + "/log");
  auto failures = begin_to_send();
  stop_sender_ = true;
  EXPECT_THROW(failures.get(), Stopped);
  while (!log.says("test: from ")) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(log.says(": file: the sender was stopped by a signal before all had come"));
  stop_receiver_ = true;
  thread_.join();
  EXPECT_FALSE(complete_);
}

// No content is under way.
TEST_F(RestartedReceiverTest, tells_the_sender_of_what_was_offered_that_it_was_stopped) {
  Client client(stop_sender_);
  Metadata metadata;
  metadata.path = "file";
  metadata.size = 10;
  std::vector<std::byte> offers;
  append_offer(offers, metadata);
  client.channel.send(MessageTag::kOffers, offers);
  Message message;
  const auto next = [&] {
    while (!client.channel.receive(message, kAttention)) {
    }
    return decode_notes(message.bytes).at(0);
  };
  EXPECT_EQ(next().kind, NoteKind::kWanted);
  stop_receiver_ = true;
  const auto last = next();
  EXPECT_EQ(last.kind, NoteKind::kFailed);
  EXPECT_EQ(last.reason, Reason::kStopped);
  thread_.join();
  EXPECT_FALSE(complete_);
}

class FewPerPeerTest : public SilentSendersTest {
 protected:
  FewPerPeerTest()
      : SilentSendersTest([](ReceiverContext& context) { context.most_per_peer = 2; }) {}
};

TEST_F(FewPerPeerTest, one_more_of_the_same_host_is_refused_until_another_has_gone) {
  connect_silently(2);
  try {
    Client one_more(stop_sender_);
    ADD_FAILURE() << "it was taken";
  } catch (const LinkFailure& failure) {
    EXPECT_NE(std::string(failure.what()).find("--per-peer"), std::string::npos) << failure.what();
  }
  silent_.pop_back();
  // The receiver notices its end a moment later.
  for (int tries = 0;; ++tries) {
    try {
      Client client(stop_sender_);
      break;
    } catch (const LinkFailure&) {
      ASSERT_LT(tries, 1'000);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

// One sender has the only place, and keeps it.
class OnePlaceTest : public SilentSendersTest {
 protected:
  OnePlaceTest()
      : SilentSendersTest([](ReceiverContext& context) {
          context.most_senders = 1;
          context.most_per_peer = 2;
          context.idle_under_pressure = std::chrono::hours(1);
        }) {
    connect_silently(1);
  }
  // Why a sender that does not wait long gets no place.
  static std::string ask_and_go() {
    FileLink link;
    try {
      const Channel channel(link, "localhost:3000", [] {},
                            {.receiver = std::chrono::milliseconds(50)});
    } catch (const LinkFailure& failure) {
      return failure.what();
    }
    return "";
  }
};

TEST_F(OnePlaceTest, who_asks_and_goes_does_not_count_when_it_asks_again) {
  EXPECT_EQ(ask_and_go().find("--per-peer"), std::string::npos);
  // The receiver notices its end a moment later.
  for (int tries = 0; ask_and_go().find("--per-peer") != std::string::npos; ++tries) {
    ASSERT_LT(tries, 100);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

TEST_F(OnePlaceTest, who_asks_and_goes_gets_no_place) {
  ask_and_go();
  silent_.clear();
  send_and_stop();
  EXPECT_TRUE(complete_) << "one that had gone was served";
}

// A receiver of one sender, without those that assign the places.
TEST(Presence, WhoIsToLeaveIsToldTheReasonThatItHas) {
  ::setenv("STP_LINK", "loop", 1);
  const test::TemporaryDirectory directory;
  Progress progress{"test", true};
  const std::atomic<bool> stop{false};
  ReceiverContext context{directory.path(), progress, stop};
  FileLink link;
  Queue requests(link, 1);
  stm_listener_t listener = nullptr;
  ASSERT_EQ(::stm_listen(link.domain(), ":3000", requests.handle(), 0, 1, &listener), 0);
  std::atomic<bool> done{false};
  std::thread sender([&] {
    try {
      FileLink its_link;
      Channel channel(its_link, "localhost:3000", [] {}, {});
      while (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } catch (const LinkFailure& failure) {
      ADD_FAILURE() << failure.what();
    }
  });
  if (const auto event = requests.next(std::chrono::seconds(30)); event) {
    Presence presence;
    presence.leave = Leave::kSlow;
    Channel channel(link, event->connection, [] {});
    FileReceiver receiver(channel, context, presence, "host");
    try {
      receiver.serve();
      ADD_FAILURE() << "it stays";
    } catch (const LinkFailure& failure) {
      EXPECT_EQ(failure.what(), text_of(Leave::kSlow));
    }
  } else {
    ADD_FAILURE() << "nobody asks";
  }
  done = true;
  sender.join();
  ::stm_listener_close(listener);
}

// The sender offers files and reads no answer: the receiver must not wait for it for ever.
TEST_F(ImpatientReceiverTest, a_sender_that_takes_no_answers_does_not_keep_the_receiver) {
  Client client(stop_sender_);
  Metadata metadata;
  metadata.kind = FileKind::kDirectory;
  metadata.mode = 0755;
  const auto announce_without_end = [&] {
    for (int i = 0; i < 1'000; ++i) {
      metadata.path = "d" + std::to_string(i);
      std::vector<std::byte> offers;
      append_offer(offers, metadata);
      client.channel.send(MessageTag::kOffers, offers);
    }
  };
  EXPECT_THROW(announce_without_end(), LinkFailure);
  stop_receiver_ = true;
  thread_.join();
  EXPECT_FALSE(std::filesystem::exists(directory_ / "out/d999"));
}

}  // namespace
}  // namespace stp::files
