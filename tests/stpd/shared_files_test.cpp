// SPDX-License-Identifier: BSD-3-Clause
// Memory files that a program shares with the daemon and works on at the same time: it takes pages
// away, or holds the file's lock. That costs the program itself, and nobody else.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/held_file.h"
#include "tests/stpd/huge_pages.h"
#include "tests/stpd/raw_client.h"
#include "tests/stpd/served_pair.h"
#include "tools/stpd/region_memory.h"

namespace stp::stpd {
namespace {

class SharedFiles : public testing::Test, protected StartedSocket {
 protected:
  SharedFiles() { open_directory(); }
  static void punch(int fd, std::size_t size) {
    EXPECT_EQ(
        ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)),
        0);
  }
  // What a well-behaved program does meanwhile.
  void others_work(std::uint32_t uport = 3'000) {
    Pair pair(path, 0, 0, uport);
    EXPECT_TRUE(pair.talks(1));
  }
  void send(RawClient& client, const host::Request& request, std::span<const int> fds = {}) {
    ASSERT_EQ(send_request(client.socket.get(), request, fds), 0);
  }
  static int reply_of(RawClient& client) {
    const auto error = receive_reply(client.socket.get(), client.reply, client.fds);
    return error != 0 ? error : client.reply.result;
  }
};

TEST_F(SharedFiles, APageThatIsNotMappedYetIsNotTouched) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kHello), 0);
  const os::UniqueFd file(std::move(client.fds[0]));
  punch(file.get(), sizeof(ipc::ClientPage));
  others_work();
  EXPECT_EQ(bytes_made(file.get()), 0);
  const auto page = ipc::SharedMemory::adopt(::dup(file.get()), 0, sizeof(ipc::ClientPage));
  ASSERT_NE(page, nullptr);
  ASSERT_EQ(client.say_mapped(), 0);
  EXPECT_GE(bytes_made(file.get()), static_cast<std::int64_t>(sizeof(ipc::ClientPage)));
  if (ipc::SharedMemory::can_keep_pages()) {
    EXPECT_EQ(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4'096), -1);
  }
  // From now on it is the page that the service uses.
  const auto& asleep = reinterpret_cast<ipc::ClientPage*>(page->data())->service_asleep;
  EXPECT_TRUE(host::eventually([&] { return asleep.load() != 0; }));
  EXPECT_EQ(client.say_mapped(), 0);  // as often as it likes
}

TEST_F(SharedFiles, AChannelThatIsNotMappedYetIsNotTouched) {
  Side listens(path);
  ASSERT_EQ(listens.client.ask(ipc::RequestKind::kListen, listens.endpoint), 0);
  Side calls(path);
  ASSERT_EQ(calls.client.ask(ipc::RequestKind::kConnect, calls.endpoint), 0);
  const auto vc = calls.client.reply.vc;
  const os::UniqueFd file(::dup(calls.client.fds[0].get()));
  const auto is_open = [&] {
    auto ask = host::request_for(ipc::RequestKind::kVcInfo);
    ask.vc = vc;
    EXPECT_EQ(calls.client.ask(ask), 0);
    return calls.client.reply.state == static_cast<std::uint32_t>(VcState::kOpen);
  };
  const auto made = calls.client.reply;
  auto fds = std::move(calls.client.fds);
  EXPECT_TRUE(host::eventually(is_open));
  EXPECT_EQ(bytes_made(file.get()), 0);
  calls.client.reply = made;
  calls.client.fds = std::move(fds);
  calls.take_channel();
  EXPECT_EQ(calls.channel.state(), ChannelState::kOpen);
  EXPECT_GE(bytes_made(file.get()), static_cast<std::int64_t>(made.channel_size));
  ASSERT_EQ(listens.client.ask(ipc::RequestKind::kAccept, listens.endpoint), 0);
  listens.take_channel();
  calls.send(42);
  ReceivedEntry received;
  EXPECT_TRUE(host::eventually([&] { return listens.channel.receive(received); }));
  EXPECT_EQ(received.header.sync, 42U);
}

// What has arrived before the listener has mapped its channel is in it.
TEST_F(SharedFiles, AnAcceptedChannelHoldsWhatHasArrived) {
  Side listens(path), calls(path);
  ASSERT_EQ(listens.client.ask(ipc::RequestKind::kListen, listens.endpoint), 0);
  ASSERT_EQ(calls.client.ask(ipc::RequestKind::kConnect, calls.endpoint), 0);
  calls.take_channel();
  ASSERT_TRUE(host::eventually([&] { return calls.channel.state() == ChannelState::kOpen; }));
  for (std::uint32_t i = 1; i <= 3; ++i) calls.send(i);
  ASSERT_TRUE(host::eventually(
      [&] { return listens.client.ask(ipc::RequestKind::kAccept, listens.endpoint) == 0; }));
  listens.take_channel();
  for (std::uint32_t i = 1; i <= 3; ++i) {
    ReceivedEntry received;
    ASSERT_TRUE(host::eventually([&] { return listens.channel.receive(received); }));
    EXPECT_EQ(received.header.sync, i);
  }
}

// Neither the client page, nor a channel, nor memory that it lends, for sending or receiving,
// whether or not it was sealed before.
TEST_F(SharedFiles, NoPageThatIsInUseIsMoved) {
  if (!test::makes_huge_pages()) GTEST_SKIP() << "the kernel makes no huge pages";
  if (!PagePins::possible()) GTEST_SKIP() << "the system permits no io_uring";
  constexpr std::size_t kSize = 16'384;
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kHello), 0);
  const os::UniqueFd page(std::move(client.fds[0]));
  make_pages(page.get(), sizeof(ipc::ClientPage));
  ASSERT_EQ(client.say_mapped(), 0);
  EXPECT_FALSE(test::becomes_huge(page.get()));
  ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto endpoint = client.reply.endpoint;
  ASSERT_EQ(client.ask(ipc::RequestKind::kConnect, endpoint), 0);
  const os::UniqueFd channel(std::move(client.fds[0]));
  make_pages(channel.get(), client.reply.channel_size);
  ASSERT_EQ(client.say_mapped(client.reply.vc), 0);
  EXPECT_FALSE(test::becomes_huge(channel.get()));
  for (const auto direction : {Direction::kTransmit, Direction::kReceive})
    for (const auto sealed : {false, true}) {
      if (sealed && direction == Direction::kReceive) continue;
      const auto memory = made_memory(kSize);
      if (sealed) {
        ASSERT_EQ(::fcntl(memory->fd(), F_ADD_SEALS, ipc::kSealFutureWrite), 0);
      }
      auto request = host::request_for(ipc::RequestKind::kMap);
      request.endpoint = endpoint;
      request.direction = static_cast<std::uint32_t>(direction);
      request.segment_count = request.piece_count = 1;
      request.segments[0].length = request.pieces[0].length = kSize;
      ASSERT_EQ(client.ask(request, std::array{memory->fd()}), 0);
      EXPECT_FALSE(test::becomes_huge(memory->fd())) << static_cast<int>(direction) << sealed;
      request.kind = ipc::RequestKind::kUnmap;
      request.region = client.reply.region;
      request.segment_count = 0;
      ASSERT_TRUE(host::eventually([&] { return client.ask(request) == 0; }));
      EXPECT_TRUE(host::eventually([&] { return test::becomes_huge(memory->fd()); }));
    }
}

TEST_F(SharedFiles, OneThatIsLockedHoldsUpItsProgramAndNobodyElse) {
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kHello), 0);
  make_pages(client.fds[0].get(), sizeof(ipc::ClientPage));
  test::HeldFile held(client.fds[0].get());
  if (!held.held()) GTEST_SKIP() << "this user may not handle faults of the kernel";
  send(client, host::request_for(ipc::RequestKind::kMapped));
  others_work();
  held.release();
  EXPECT_EQ(reply_of(client), 0);
}

TEST_F(SharedFiles, WhoGoesWhileItsFileIsLockedLeavesNothing) {
  RawClient other(path);
  {
    RawClient client(path);
    ASSERT_EQ(client.ask(ipc::RequestKind::kHello), 0);
    make_pages(client.fds[0].get(), sizeof(ipc::ClientPage));
    test::HeldFile held(client.fds[0].get());
    if (!held.held()) GTEST_SKIP() << "this user may not handle faults of the kernel";
    send(client, host::request_for(ipc::RequestKind::kMapped));
    client.socket.reset();
    EXPECT_TRUE(clients_become(1));
    others_work();
  }
  EXPECT_TRUE(clients_become(1));
}

TEST_F(SharedFiles, ARegionWhoseFileIsLockedHoldsUpItsProgramAndNobodyElse) {
  constexpr std::size_t kSize = 16'384;
  RawClient client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const os::UniqueFd file(::memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), kSize), 0);
  make_pages(file.get(), kSize);
  auto request = host::request_for(ipc::RequestKind::kMap);
  request.endpoint = client.reply.endpoint;
  request.direction = static_cast<std::uint32_t>(Direction::kTransmit);
  request.segment_count = request.piece_count = 1;
  request.segments[0].length = request.pieces[0].length = kSize;
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  test::HeldFile held(file.get());
  if (!held.held()) GTEST_SKIP() << "this user may not handle faults of the kernel";
  send(client, request, std::array{file.get()});
  others_work();
  held.release();
  EXPECT_EQ(reply_of(client), 0);
}

// While it waited to map the file, this process could map nothing.
TEST_F(SharedFiles, ARegionWhoseFileIsLockedIsNotMappedMeanwhile) {
  constexpr std::size_t kSize = 16'384;
  const os::UniqueFd file(::memfd_create("locked", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), kSize), 0);
  test::HeldFile held(file.get());
  if (!held.held()) GTEST_SKIP() << "this user may not handle faults of the kernel";
  std::atomic<pid_t> thread{0};
  int result = -1;
  std::shared_ptr<FileMapping> mapping;
  std::thread maps([&] {
    thread = ::gettid();
    result = FileMapping::of(file.get(), kSize, true, mapping);
  });
  EXPECT_TRUE(host::eventually([&] {
    std::ifstream in("/proc/self/task/" + std::to_string(thread.load()) + "/stat");
    const std::string stat(std::istreambuf_iterator<char>(in), {});
    return stat.find(") D ") != std::string::npos;  // it waits for the lock
  }));
  std::ifstream in("/proc/self/maps");
  const std::string maps_now(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(maps_now.find("memfd:locked"), std::string::npos);
  held.release();
  maps.join();
  EXPECT_EQ(result, 0);
}

TEST_F(SharedFiles, WhoKeepsItsFileLockedLongIsServedNoMore) {
  constexpr std::size_t kSize = 16'384;
  constexpr uid_t kLocks = 47'110, kOther = 47'111;
  const auto client = client_of(kLocks);
  if (client == nullptr) GTEST_SKIP() << "only root can connect as somebody else";
  ASSERT_EQ(client->ask(ipc::RequestKind::kOpenEndpoint), 0);
  const os::UniqueFd file(::memfd_create("lent", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(file.get(), kSize), 0);
  make_pages(file.get(), kSize);
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  auto request = host::request_for(ipc::RequestKind::kMap);
  request.endpoint = client->reply.endpoint;
  request.segment_count = request.piece_count = 1;
  request.segments[0].length = request.pieces[0].length = kSize;
  test::HeldFile held(file.get());
  if (!held.held()) GTEST_SKIP() << "this user may not handle faults of the kernel";
  send(*client, request, std::array{file.get()});
  // The daemon may get to it late, and replies before it has counted how long that took.
  std::this_thread::sleep_for(UserWorkers::kMostSlept * 3 / 2);
  held.release();
  EXPECT_EQ(reply_of(*client), 0);
  EXPECT_TRUE(
      host::eventually([&] { return client->ask(request, std::array{file.get()}) == -EBUSY; }));
  // The request may be refused for another reason: the first one is not over yet.
  EXPECT_TRUE(
      host::eventually([&] { return client_of(kLocks)->ask(ipc::RequestKind::kHello) == -EBUSY; }));
  EXPECT_EQ(client_of(kOther)->ask(ipc::RequestKind::kHello), 0);
  others_work();
}

}  // namespace
}  // namespace stp::stpd
