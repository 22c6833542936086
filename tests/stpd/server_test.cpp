// SPDX-License-Identifier: BSD-3-Clause
// The daemon's socket among clients that behave and clients that do not.

#include "tools/stpd/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "libst/ipc/socket.h"
#include "tests/stpd/raw_client.h"
#include "tests/stpd/served_pair.h"
#include "tests/stpd/served_socket.h"

namespace stp::stpd {
namespace {

class ServerTest : public testing::Test, protected ServedSocket {
 protected:
  ServerTest() { start(); }
  // As far as `steps` goes, and then gone.
  void live_a_little(std::size_t steps) {
    RawClient client(path);
    if (steps == 0) return;
    ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
    const auto endpoint = client.reply.endpoint;
    if (steps == 1) return;
    const auto memory = made_memory(1 << 16);
    ASSERT_EQ(client.ask(map_request(endpoint, memory->size()), std::array{memory->fd()}), 0);
    if (steps == 2) return;
    ASSERT_EQ(client.ask(ipc::RequestKind::kConnect, endpoint), 0);
    if (steps == 3) return;
    // A request whose reply nobody waits for.
    ASSERT_EQ(send_request(client.socket.get(), host::request_for(ipc::RequestKind::kStats), {}),
              0);
  }
  static void accept_and_close_all(RawClient& client, EndpointId listener) {
    while (client.ask(ipc::RequestKind::kAccept, listener) == 0) {
      auto close = host::request_for(ipc::RequestKind::kClose);
      close.vc = client.reply.vc;
      ASSERT_EQ(client.ask(close), 0);
    }
    ASSERT_EQ(client.reply.result, -EAGAIN);
  }
  // kMap of one segment of `size` bytes.
  static host::Request map_request(EndpointId endpoint, std::size_t size) {
    auto request = host::request_for(ipc::RequestKind::kMap);
    request.endpoint = endpoint;
    request.direction = static_cast<std::uint32_t>(Direction::kReceive);
    request.piece_count = 1;
    request.pieces[0].length = size;
    request.segment_count = 1;
    request.segments[0].length = size;
    return request;
  }
};

TEST_F(ServerTest, HelloGivesThePageAndTheBell) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kHello), 0);
  ASSERT_EQ(client.fds.size(), 2U);
  const auto page = ipc::SharedMemory::adopt(client.fds[0].release(), 0, sizeof(ipc::ClientPage));
  ASSERT_NE(page, nullptr);
  const os::UniqueFd bell(std::move(client.fds[1]));
  ASSERT_EQ(client.say_mapped(), 0);
  EXPECT_EQ(reinterpret_cast<ipc::ClientPage*>(page->data())->magic, ipc::kClientPageMagic);
  std::uint64_t const one = 1;
  EXPECT_EQ(::write(bell.get(), &one, sizeof one), 8);
  EXPECT_EQ(client.ask(ipc::RequestKind::kHello), 0);  // as often as it likes
  EXPECT_EQ(client.fds.size(), 2U);
}

TEST_F(ServerTest, TwoClientsConnectThroughTheirChannels) {
  RawClient alice(path), bob(path);
  ASSERT_EQ(bob.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto listener = bob.reply.endpoint;
  ASSERT_EQ(bob.ask(ipc::RequestKind::kListen, listener), 0);
  ASSERT_EQ(alice.ask(ipc::RequestKind::kOpenEndpoint), 0);
  ASSERT_EQ(alice.ask(ipc::RequestKind::kConnect, alice.reply.endpoint), 0);
  ASSERT_EQ(alice.fds.size(), 1U);
  const auto memory = ipc::SharedMemory::adopt(alice.fds[0].release(), 0, alice.reply.channel_size);
  ASSERT_NE(memory, nullptr);
  ASSERT_EQ(alice.say_mapped(alice.reply.vc), 0);
  const UserChannel channel(memory->data());
  ASSERT_TRUE(host::eventually([&] { return channel.state() == ChannelState::kOpen; }));
  ASSERT_EQ(bob.ask(ipc::RequestKind::kAccept, listener), 0);
  EXPECT_EQ(bob.fds.size(), 1U);
  // Its connection closes as bob goes.
  bob.socket.reset();
  EXPECT_TRUE(host::eventually([&] { return channel.state() == ChannelState::kPeerClosed; }));
  EXPECT_TRUE(clients_become(1));
}

// They are more than stpd copies while the link waits.
TEST_F(ServerTest, HeadersThatCameBeforeAChannelIsMappedAreAllThere) {
  constexpr std::uint32_t kCount = 2 * NodeChannel::kCopied + 1;
  Side late(path), sender(path);
  auto open = host::request_for(ipc::RequestKind::kOpenEndpoint);
  open.config = host::usual_config();
  open.config.slots = kCount;
  ASSERT_EQ(late.client.ask(open), 0);
  const auto endpoint = late.client.reply.endpoint;
  ASSERT_EQ(sender.client.ask(ipc::RequestKind::kListen, sender.endpoint), 0);
  ASSERT_EQ(late.client.ask(ipc::RequestKind::kConnect, endpoint), 0);
  ASSERT_TRUE(host::eventually(
      [&] { return sender.client.ask(ipc::RequestKind::kAccept, sender.endpoint) == 0; }));
  sender.take_channel();
  for (std::uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(host::eventually([&] { return sender.channel.writable(); }));
    sender.send(i);
  }
  ASSERT_TRUE(host::eventually([&] { return sender.channel.taken() == kCount; }));
  late.take_channel();
  ReceivedEntry entry;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    ASSERT_TRUE(host::eventually([&] { return late.channel.receive(entry); }));
    ASSERT_EQ(entry.header.sync, i);
  }
}

TEST_F(ServerTest, MemoryGoesAlongAndComesBack) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto memory = made_memory(1 << 16);
  const std::array<int, 1> fd{memory->fd()};
  auto request = map_request(client.reply.endpoint, memory->size());
  ASSERT_EQ(client.ask(request, fd), 0);
  auto unmap = host::request_for(ipc::RequestKind::kUnmap);
  unmap.region = client.reply.region;
  EXPECT_EQ(client.ask(unmap), 0);
  EXPECT_EQ(client.ask(unmap), -EBADF);
}

TEST_F(ServerTest, MemoryThatCouldFaultIsRefusedButTheClientStays) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto request = map_request(client.reply.endpoint, 1 << 16);
  const os::UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 1 << 16), 0);
  EXPECT_EQ(client.ask(request, std::array{unsealed.get()}), -EINVAL);
  ASSERT_EQ(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(client.ask(request, std::array{unsealed.get()}), -EFAULT);  // nobody has made its pages
  EXPECT_EQ(client.ask(request, std::array{made_memory(1 << 16)->fd()}), 0);
  const os::UniqueFd folder(::open("/", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(client.ask(request, std::array{folder.get()}), -EINVAL);
  EXPECT_EQ(client.ask(request, std::array{client.socket.get()}), -EINVAL);
}

TEST_F(ServerTest, OnlyRootsClientsChooseKeys) {
  RawClient client(path);
  auto request = host::request_for(ipc::RequestKind::kOpenEndpoint);
  request.config = host::usual_config();
  request.config.key = 7;
  EXPECT_EQ(client.ask(request), ::geteuid() == 0 ? 0 : -EPERM);
}

TEST_F(ServerTest, GarbageDisconnects) {
  for (const auto size : {std::size_t{1}, sizeof(ipc::RequestHead) - 1,
                          sizeof(ipc::RequestMessage) + 1, std::size_t{20'000}}) {
    RawClient client(path);
    client.send_bytes(size);
    EXPECT_TRUE(client.disconnected()) << size;
  }
  {
    RawClient client(path);
    client.send_bytes(sizeof(ipc::RequestMessage));  // of a version nobody has
    std::vector<os::UniqueFd> fds;
    EXPECT_EQ(receive_reply(client.socket.get(), client.reply, fds), 0);
    EXPECT_EQ(client.reply.result, -EPROTONOSUPPORT);
  }
  EXPECT_TRUE(clients_become(0));
  EXPECT_EQ(server.counts().bad_messages, 4U);
}

TEST_F(ServerTest, RequestsThatNoClientMakesDisconnect) {
  const auto disconnects = [this](const host::Request& request, std::span<const int> fds) {
    RawClient client(path);
    EXPECT_EQ(client.ask(ipc::RequestKind::kHello), 0);  // it is admitted: it may send descriptors
    return client.ask(request, fds) == -ECONNRESET;
  };
  const auto memory = made_memory(1 << 16);
  const std::array<int, 1> fd{memory->fd()};
  EXPECT_TRUE(disconnects(host::request_for(ipc::RequestKind::kHello), fd));
  EXPECT_TRUE(disconnects(host::request_for(static_cast<ipc::RequestKind>(0)), {}));
  EXPECT_TRUE(disconnects(host::request_for(static_cast<ipc::RequestKind>(1'000)), {}));
  auto request = host::request_for(ipc::RequestKind::kStats);
  request.reserved = 1;
  EXPECT_TRUE(disconnects(request, {}));
  EXPECT_TRUE(disconnects(host::request_for(ipc::RequestKind::kTraceStart), {}));
  EXPECT_EQ(server.counts().bad_messages, 5U);
}

// A request without the descriptors that its row in the table asks for, with others, or with bits
// in its holes.
TEST(RequestTable, SaysWhatMakesSense) {
  for (const auto& rule : ipc::kRequests) {
    host::Request request{};
    request.version = ipc::kProtocolVersion;
    request.kind = rule.kind;
    const auto message = host::message_of(request);
    for (const auto count : {std::size_t{0}, std::size_t{1}, ipc::kMaxFds, ipc::kMaxFds + 1})
      EXPECT_EQ(ipc::makes_sense(message, count),
                count >= rule.least_files && count <= rule.most_files)
          << rule.name << ", " << count;
    auto spoilt = message;
    spoilt.head.reserved = 1;
    EXPECT_FALSE(ipc::makes_sense(spoilt, rule.least_files)) << rule.name;
  }
  const ask::Listen listen{.endpoint = 1, .uport = 2, .reserved = 3};
  EXPECT_FALSE(ipc::makes_sense(ipc::RequestMessage(listen), 0));
  EXPECT_FALSE(ipc::makes_sense({}, 0));
}

TEST_F(ServerTest, OneWhoDoesNotReadIsDisconnectedAndOthersAreServed) {
  RawClient silent(path), other(path);
  const auto request = host::bytes_of(host::request_for(ipc::RequestKind::kStats));
  // Until the server gives up on it; should the way there fill up first, that is the server's turn.
  ASSERT_TRUE(host::eventually([&] {
    for (int i = 0; i < 100; ++i)
      if (::send(silent.socket.get(), request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT) <
          0)
        break;
    return server.counts().slow_readers == 1;
  }));
  EXPECT_EQ(other.ask(ipc::RequestKind::kHello), 0);
}

TEST_F(ServerTest, ClientsThatCloseAtRandomMomentsLeaveNothing) {
  std::minstd_rand random(1);
  RawClient steady(path);
  ASSERT_EQ(steady.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto listener = steady.reply.endpoint;
  ASSERT_EQ(steady.ask(ipc::RequestKind::kListen, listener), 0);
  for (int i = 0; i < 150; ++i) {
    live_a_little(random() % 5);
    if (i % 8 == 7) accept_and_close_all(steady, listener);
  }
  EXPECT_TRUE(clients_become(1));
  EXPECT_EQ(steady.ask(ipc::RequestKind::kHello), 0);
}

TEST_F(ServerTest, ALargeRegionIsMappedWhileOthersAreServed) {
  RawClient large(path), other(path);
  ASSERT_EQ(large.ask(ipc::RequestKind::kOpenEndpoint), 0);
  constexpr auto kSize = std::size_t{8} << 20;
  const auto request = map_request(large.reply.endpoint, kSize);
  for (int i = 0; i < 3; ++i) {
    const auto memory = made_memory(kSize);
    ASSERT_EQ(send_request(large.socket.get(), request, std::array{memory->fd()}), 0);
    EXPECT_EQ(other.ask(ipc::RequestKind::kHello), 0);
    ASSERT_EQ(receive_reply(large.socket.get(), large.reply, large.fds), 0);
    ASSERT_EQ(large.reply.result, 0);
    auto unmap = host::request_for(ipc::RequestKind::kUnmap);
    unmap.region = large.reply.region;
    EXPECT_EQ(large.ask(unmap), 0);
  }
}

TEST_F(ServerTest, OneWhoGoesWhileItsPagesAreMadeLeavesNothing) {
  const auto memory = made_memory(std::size_t{64} << 20);
  for (int i = 0; i < 5; ++i) {
    RawClient client(path);
    ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
    const auto request = map_request(client.reply.endpoint, memory->size());
    ASSERT_EQ(send_request(client.socket.get(), request, std::array{memory->fd()}), 0);
  }
  EXPECT_TRUE(clients_become(0));
}

TEST_F(ServerTest, TheSocketBelongsToWhomItShould) {
  server.stop();
  ASSERT_EQ(server.listen({.mode = 0640, .owner = ::geteuid(), .group = ::getegid()}), 0);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
  EXPECT_EQ(server.start(), 0);
}

TEST_F(ServerTest, ASecondServerIsRefusedAndTheFirstGoesOn) {
  host::Service other_service(std::make_unique<test::TestPort>());
  Server second(other_service, path);
  EXPECT_EQ(second.start(), -EADDRINUSE);
  second.stop();
  RawClient client(path);
  EXPECT_EQ(client.ask(ipc::RequestKind::kHello), 0);
}

TEST_F(ServerTest, AnotherServerTakesItsSocketOver) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kHello), 0);
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  Listener kept = server.stop_and_keep_listening();
  EXPECT_TRUE(client.disconnected());
  EXPECT_TRUE(clients_become(0));
  RawClient early(path);  // waits for the next one
  host::Service next_service(std::make_unique<test::TestPort>());
  Server next(next_service, path);
  next.take_over(std::move(kept));
  server.stop();
  ASSERT_EQ(::stat(path.c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
  ASSERT_EQ(next.start(), 0);
  EXPECT_EQ(early.ask(ipc::RequestKind::kHello), 0);
  next.stop();
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ServerTest, StoppingDisconnectsEverybodyAndRemovesTheSocket) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kHello), 0);
  server.stop();
  EXPECT_TRUE(client.disconnected());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(clients_become(0));
  ASSERT_EQ(server.start(), 0);
  RawClient again(path);
  EXPECT_EQ(again.ask(ipc::RequestKind::kHello), 0);
}

using std::chrono::milliseconds;

constexpr uid_t kSlowUser = 47'111, kAnother = 47'112;

class SlowSocketsTest : public testing::Test {
 protected:
  const SlowSockets::Clock::time_point begin = SlowSockets::Clock::now();
  SlowSockets slow;
};

TEST_F(SlowSocketsTest, WhoCostsTooMuchIsForgivenAHundredTimesLater) {
  slow.took(kSlowUser, milliseconds(4), begin);
  EXPECT_FALSE(slow.costs_too_much(kSlowUser, begin));
  slow.took(kSlowUser, milliseconds(4), begin);
  EXPECT_TRUE(slow.costs_too_much(kSlowUser, begin));
  EXPECT_FALSE(slow.costs_too_much(kAnother, begin));
  EXPECT_TRUE(slow.costs_too_much(kSlowUser, begin + milliseconds(290)));
  EXPECT_FALSE(slow.costs_too_much(kSlowUser, begin + milliseconds(310)));
}

TEST_F(SlowSocketsTest, OneSlowReplyIsNotTheFaultOfItsUser) {
  SlowSockets::Time socket{0};
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(slow.replied(kSlowUser, milliseconds(50), socket, begin));
    EXPECT_FALSE(slow.replied(kSlowUser, std::chrono::microseconds(10), socket, begin));
  }
}

TEST_F(SlowSocketsTest, TwoSlowRepliesInARowAre) {
  SlowSockets::Time one{0}, another{0};
  EXPECT_FALSE(slow.replied(kSlowUser, milliseconds(50), one, begin));
  EXPECT_TRUE(slow.replied(kSlowUser, milliseconds(50), another, begin)) << "of one user";
  EXPECT_FALSE(slow.replied(kAnother, milliseconds(50), one = {}, begin));
  another = {};
  EXPECT_FALSE(slow.replied(kAnother, std::chrono::microseconds(10), another, begin));
  EXPECT_TRUE(slow.replied(kAnother, milliseconds(50), one, begin)) << "of one socket";
}

TEST_F(SlowSocketsTest, UsualCallsDoNotCount) {
  for (int i = 0; i < 1'000; ++i)
    slow.took(kSlowUser, SlowSockets::kSlow - SlowSockets::Time(1), begin);
  EXPECT_FALSE(slow.costs_too_much(kSlowUser, begin));
}

TEST_F(SlowSocketsTest, OperatorsCostNothing) {
  for (const auto user : {uid_t{0}, ::geteuid()}) {
    slow.took(user, milliseconds(1'000), begin);
    EXPECT_FALSE(slow.costs_too_much(user, begin));
  }
}

// Waits for a socket 80,000 times with few descriptors.
class Watchers {
 public:
  explicit Watchers(int socket) {
    for (int i = 0; i < kCopies; ++i) copies_.emplace_back(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    for (int i = 0; i < kSets; ++i) {
      sets_.emplace_back(::epoll_create1(EPOLL_CLOEXEC));
      for (const auto& copy : copies_) {
        epoll_event event{};
        event.events = EPOLLIN;
        count_ += ::epoll_ctl(sets_.back().get(), EPOLL_CTL_ADD, copy.get(), &event) == 0 ? 1 : 0;
      }
    }
  }
  [[nodiscard]] bool all() const { return count_ == kCopies * kSets; }

 private:
  static constexpr int kCopies = 200, kSets = 400;
  std::vector<os::UniqueFd> copies_, sets_;
  int count_ = 0;
};

class SlowSocketsOfAServer : public testing::Test, protected ServedSocket {};

TEST_F(SlowSocketsOfAServer, ItsUserIsServedNoMoreAndOthersAre) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  open_directory();
  start();
  const auto client = client_of(kSlowUser);
  ASSERT_EQ(client->ask(ipc::RequestKind::kHello), 0);
  const Watchers watchers(client->socket.get());
  ASSERT_TRUE(watchers.all());
  int result = 0, asked = 0;
  for (; result == 0 && asked < 1'000; ++asked) result = client->ask(ipc::RequestKind::kLinkState);
  EXPECT_EQ(result, -ECONNRESET);
  EXPECT_EQ(server.counts().slow_sockets, 1U);
  EXPECT_NE(client_of(kSlowUser)->ask(ipc::RequestKind::kHello), 0);
  EXPECT_EQ(client_of(kAnother)->ask(ipc::RequestKind::kHello), 0);
  EXPECT_EQ(RawClient(path).ask(ipc::RequestKind::kHello), 0);
}

// They are closed at once, without a turn, and all who wait for them are woken then.
TEST_F(SlowSocketsOfAServer, OnesThatHaveGoneAgainCostTheirUserAsMuch) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  open_directory();
  ASSERT_EQ(server.listen(), 0);
  std::vector<std::unique_ptr<RawClient>> clients;
  std::vector<Watchers> watchers;
  for (int i = 0; i < 2; ++i) {
    const auto socket = clients.emplace_back(client_of(kSlowUser))->socket.get();
    EXPECT_TRUE(watchers.emplace_back(socket).all());
    EXPECT_EQ(::shutdown(socket, SHUT_RDWR), 0);
  }
  start();
  EXPECT_NE(client_of(kSlowUser)->ask(ipc::RequestKind::kHello), 0);
  EXPECT_EQ(client_of(kAnother)->ask(ipc::RequestKind::kHello), 0);
}

}  // namespace
}  // namespace stp::stpd
