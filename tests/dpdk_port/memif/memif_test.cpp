// SPDX-License-Identifier: BSD-3-Clause
// A memif with peers that send arbitrary messages on its control socket.
#include "dpdk_port/memif/memif.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <thread>

#include "dpdk_port/link/engine.h"
#include "tests/held_file.h"
#include "tests/lingering_socket.h"
#include "tests/temporary_directory.h"
#include "tests/unprivileged.h"

namespace stp::port::memif {
namespace {

constexpr std::size_t kMemory = 64 * 1024;

bool await(const std::function<bool()>& done) {
  const Time end = now() + 30 * kSecond;
  while (!done())
    if (now() > end) return false;
  return true;
}

FileDescriptor make_file(std::size_t size, int seals) {
  FileDescriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(file.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(file.get(), F_ADD_SEALS, seals), 0);
  return file;
}

// Its owner has to permit it: waiting would not help.
TEST(MemifClient, IsToldAtOnceThatItsUserMayNotOpenTheSocket) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  const test::TemporaryDirectory directory;
  const auto path = directory.path() + "/memif.sock";
  std::string error;
  const auto server = Memif::open({.socket = path, .serves = true}, error);
  ASSERT_TRUE(server) << error;
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  const test::Unprivileged other(directory.path());
  EXPECT_FALSE(Memif::open({.socket = path}, error));
  EXPECT_NE(error.find("this user may not open " + path + ": "), std::string::npos) << error;
}

class MemifPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    server = Memif::open({.socket = path, .serves = true}, error);
    ASSERT_TRUE(server) << error;
    connect();
  }
  void TearDown() override {
    server.reset();
    ::unlink(path.c_str());
  }
  void connect() {
    std::string error;
    socket = ControlSocket(connect_to(path, error), closer);
    ASSERT_TRUE(socket) << error;
    ASSERT_EQ(hear().type, MessageType::kHello);
  }
  // The server's next message, or kNone if it has closed the socket.
  Message hear() {
    Message message;
    SharedDescriptor attached;
    Came came = Came::kNothing;
    EXPECT_TRUE(await([&] {
      server->tend(now());
      return (came = receive_message(socket, message, attached)) != Came::kNothing;
    }));
    return came == Came::kMessage ? message : Message{};
  }
  Message say(const Message& message, int attached = -1) {
    EXPECT_TRUE(send_message(socket, message, attached));
    return hear();
  }
  static std::string reason_in(const Message& message) {
    return message.type == MessageType::kDisconnect
               ? text_of(message.body.disconnect.reason, kReasonSize)
               : "type " + std::to_string(static_cast<int>(message.type));
  }
  static Message init(std::uint32_t id = 0) {
    Message message;
    message.type = MessageType::kInit;
    message.body.init.version = kVersion;
    message.body.init.id = id;
    return message;
  }
  static Message region(std::uint64_t size, std::uint16_t index = 0) {
    Message message;
    message.type = MessageType::kAddRegion;
    message.body.add_region.index = index;
    message.body.add_region.size = size;
    return message;
  }
  static Message ring(bool from_client, std::uint32_t offset, std::uint8_t log2_size = 4,
                      std::uint16_t in = 0) {
    Message message;
    message.type = MessageType::kAddRing;
    message.body.add_ring.flags = from_client ? AddRing::kFromClient : 0;
    message.body.add_ring.region = in;
    message.body.add_ring.offset = offset;
    message.body.add_ring.log2_size = log2_size;
    return message;
  }
  static Message plain(MessageType type) {
    Message message;
    message.type = type;
    return message;
  }

  const std::string path = "/tmp/stp-memif-test-" + std::to_string(getpid()) + ".sock";
  std::unique_ptr<Memif> server;
  const std::shared_ptr<Closer> closer = std::make_shared<Closer>();
  ControlSocket socket;
};

TEST_F(MemifPeer, OneThatKeepsTheRulesIsConnected) {
  const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
  void* const memory = ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::span bytes(static_cast<std::byte*>(memory), kMemory);
  Ring(bytes.first(4096), 4).clear();
  Ring(bytes.subspan(4096, 4096), 4).clear();
  EXPECT_EQ(say(init()).type, MessageType::kAck);
  EXPECT_EQ(say(region(kMemory), file.get()).type, MessageType::kAck);
  EXPECT_EQ(say(ring(true, 0)).type, MessageType::kAck);
  EXPECT_EQ(say(ring(false, 4096)).type, MessageType::kAck);
  EXPECT_EQ(say(plain(MessageType::kConnect)).type, MessageType::kConnected);
  EXPECT_TRUE(server->connected());

  // It is disconnected when its ring breaks the rules.
  Ring(bytes.first(4096), 4).set_head(1000);
  EXPECT_FALSE(server->receivers()[0].waiting());
  EXPECT_NE(reason_in(hear()).find("breaks the rules"), std::string::npos);
  EXPECT_FALSE(server->connected());
  EXPECT_EQ(server->broken(), 1U);
  ::munmap(memory, kMemory);
}

TEST_F(MemifPeer, MemoryThatMayShrinkIsNotMapped) {
  say(init());
  EXPECT_NE(reason_in(say(region(kMemory), make_file(kMemory, F_SEAL_GROW).get())).find("sealed"),
            std::string::npos);
}

// Whether somebody can take a page away, so that whoever uses it has to wait meanwhile.
bool loses_pages(int file) {
  return ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096) == 0;
}

TEST_F(MemifPeer, MemoryThatIsMappedKeepsItsPages) {
  say(init());
  const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
  EXPECT_TRUE(loses_pages(file.get()));
  EXPECT_EQ(say(region(kMemory), file.get()).type, MessageType::kAck);
  EXPECT_FALSE(loses_pages(file.get()));
}

TEST_F(MemifPeer, MemoryThatCannotBeSealedIsNotMapped) {
  say(init());
  const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK | F_SEAL_SEAL);
  EXPECT_NE(reason_in(say(region(kMemory), file.get())).find("keeps its pages"), std::string::npos);
}

// The link goes on, and others are not taken until the thread that waits has ended.
TEST_F(MemifPeer, WhoWorksOnItsMemoryHoldsUpNobody) {
  say(init());
  const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
  test::HeldFile held(file.get());
  if (!held.held()) GTEST_SKIP() << "userfaultfd is not permitted";
  EXPECT_TRUE(send_message(socket, region(kMemory), file.get()));
  // Where the link does wait, it would wait for ever.
  std::promise<void> tended;
  auto rescue = std::async(std::launch::async, [&] {
    const auto waited = tended.get_future().wait_for(std::chrono::seconds(2));
    if (waited == std::future_status::timeout) held.release();
    return waited;
  });
  const Time began = now();
  for (int i = 0; i < 50; ++i) server->tend(began + i * kMillisecond);
  tended.set_value();
  EXPECT_EQ(rescue.get(), std::future_status::ready);
  EXPECT_FALSE(server->connected());
  held.release();
  EXPECT_EQ(hear().type, MessageType::kAck);
}

TEST_F(MemifPeer, AFileOfAnotherKindIsNotMapped) {
  say(init());
  const FileDescriptor file(::open("/etc/passwd", O_RDONLY | O_CLOEXEC));
  EXPECT_NE(reason_in(say(region(64), file.get())).find("sealed"), std::string::npos);
}

TEST_F(MemifPeer, MoreMemoryThanThereIsIsRefused) {
  say(init());
  const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
  EXPECT_NE(reason_in(say(region(kMemory + 1), file.get())).find("65537 bytes, and has 65536"),
            std::string::npos);
}

TEST_F(MemifPeer, MemoryWithoutADescriptorIsRefused) {
  say(init());
  EXPECT_NE(reason_in(say(region(kMemory))).find("descriptor"), std::string::npos);
}

TEST_F(MemifPeer, RingsOutsideOfTheMemoryAreRefused) {
  for (const Message& bad :
       {ring(true, kMemory), ring(true, kMemory - 64), ring(true, 0, 14), ring(true, 0, 15),
        ring(true, 0, 0), ring(true, 8), ring(true, 0, 4, 1), ring(true, 0xffff'ffc0)}) {
    say(init());
    const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
    ASSERT_EQ(say(region(kMemory), file.get()).type, MessageType::kAck);
    EXPECT_EQ(say(bad).type, MessageType::kDisconnect);
    connect();
  }
}

TEST_F(MemifPeer, RingsBeyondWhatTheHelloSaidAreRefused) {
  say(init());
  const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
  ASSERT_EQ(say(region(kMemory), file.get()).type, MessageType::kAck);
  for (unsigned i = 0; i < most_rings(1); ++i) {
    Message more = ring(true, 0);
    more.body.add_ring.index = static_cast<std::uint16_t>(i);
    ASSERT_EQ(say(more).type, MessageType::kAck) << i;
  }
  Message beyond = ring(true, 0);
  beyond.body.add_ring.index = most_rings(1);
  EXPECT_NE(reason_in(say(beyond)).find("at most 16"), std::string::npos);
}

TEST_F(MemifPeer, RingsOutOfOrderAreRefused) {
  for (const unsigned index : {1U, 255U, 65'535U}) {
    say(init());
    const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
    ASSERT_EQ(say(region(kMemory), file.get()).type, MessageType::kAck);
    Message bad = ring(true, 0);
    bad.body.add_ring.index = static_cast<std::uint16_t>(index);
    EXPECT_EQ(say(bad).type, MessageType::kDisconnect);
    connect();
  }
}

// Of many rings, one that breaks the rules ends all.
TEST_F(MemifPeer, OneBadRingOfSeveralEndsTheConnection) {
  const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
  void* const memory = ::mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(memory, MAP_FAILED);
  const std::span bytes(static_cast<std::byte*>(memory), kMemory);
  say(init());
  say(region(kMemory), file.get());
  for (unsigned i = 0; i < 6; ++i) {
    Ring(bytes.subspan(i * 4096, 4096), 4).clear();
    Message more = ring(i < 3, i * 4096);
    more.body.add_ring.index = static_cast<std::uint16_t>(i % 3);
    ASSERT_EQ(say(more).type, MessageType::kAck) << i;
  }
  EXPECT_EQ(say(plain(MessageType::kConnect)).type, MessageType::kConnected);
  EXPECT_EQ(server->receivers().size(), 3U);
  EXPECT_EQ(server->senders().size(), 3U);
  Ring(bytes.subspan(2 * 4096, 4096), 4).set_head(1000);
  EXPECT_EQ(server->receivers()[0].waiting(), 0U);
  EXPECT_EQ(server->receivers()[2].waiting(), 0U);
  EXPECT_NE(reason_in(hear()).find("breaks the rules"), std::string::npos);
  EXPECT_FALSE(server->connected());
  ::munmap(memory, kMemory);
}

TEST_F(MemifPeer, ConnectingWithoutRingsIsRefused) {
  say(init());
  EXPECT_NE(reason_in(say(plain(MessageType::kConnect))).find("a ring each way"),
            std::string::npos);
}

TEST_F(MemifPeer, RingsWithoutACookieAreRefused) {
  say(init());
  const FileDescriptor file = make_file(kMemory, F_SEAL_SHRINK);
  say(region(kMemory), file.get());
  say(ring(true, 0));
  say(ring(false, 4096));
  EXPECT_NE(reason_in(say(plain(MessageType::kConnect))).find("cookie"), std::string::npos);
}

TEST_F(MemifPeer, AnIdThatNobodyServesIsNamed) {
  EXPECT_NE(reason_in(say(init(7))).find("id 7"), std::string::npos);
}

TEST_F(MemifPeer, MessagesOutOfTurnEndIt) {
  for (unsigned type = 0; type < 12; ++type) {
    if (type == static_cast<unsigned>(MessageType::kInit)) continue;
    const auto answer = say(plain(static_cast<MessageType>(type)));
    EXPECT_EQ(answer.type, MessageType::kDisconnect) << type;
    connect();
    say(init());
    if (type == static_cast<unsigned>(MessageType::kDisconnect)) {
      EXPECT_EQ(say(plain(static_cast<MessageType>(type))).type, MessageType::kNone);
    } else {
      EXPECT_EQ(say(plain(static_cast<MessageType>(type))).type, MessageType::kDisconnect) << type;
    }
    connect();
  }
}

TEST_F(MemifPeer, WhatIsNoMessageEndsIt) {
  const char byte = 1;
  ASSERT_EQ(::write(socket.get(), &byte, 1), 1);
  EXPECT_EQ(hear().type, MessageType::kNone);
  connect();
  EXPECT_EQ(say(init()).type, MessageType::kAck);
}

TEST_F(MemifPeer, SilentOnesDoNotKeepOthersOut) {
  std::vector<FileDescriptor> silent;
  std::string error;
  // The server handles eight new clients at a time, each for two seconds.
  for (int i = 0; i < 12; ++i)
    if (auto more = connect_to(path, error)) silent.push_back(std::move(more));
  const auto client = Memif::open({.socket = path}, error);
  EXPECT_TRUE(await([&] {
    server->tend(now());
    client->tend(now());
    return client->connected() && server->connected();
  }));
}

TEST_F(MemifPeer, MemoryWithHugePagesIsNotMapped) {
  const FileDescriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (!file || ::ftruncate(file.get(), 2 << 20) != 0) GTEST_SKIP() << "no huge pages here";
  ASSERT_EQ(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  say(init());
  EXPECT_NE(reason_in(say(region(2 << 20), file.get())).find("huge pages"), std::string::npos);
}

TEST_F(MemifPeer, AllItsRegionsTogetherAreLimited) {
  say(init());
  const FileDescriptor file = make_file(Region::kGreatest, F_SEAL_SHRINK);
  EXPECT_EQ(say(region(Region::kGreatest - 4096), file.get()).type, MessageType::kAck);
  EXPECT_NE(reason_in(say(region(8192, 1), file.get())).find("more than"), std::string::npos);
}

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

void send_with(const ControlSocket& socket, const Message& message, const std::vector<int>& files) {
  const std::size_t bytes = files.size() * sizeof(int);
  std::vector<char> control(CMSG_SPACE(bytes));
  iovec part{const_cast<Message*>(&message), sizeof message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(rights), files.data(), bytes);
  ASSERT_GT(::sendmsg(socket.get(), &header, 0), 0);
}

TEST_F(MemifPeer, DescriptorsThatComeUnaskedAreClosed) {
  const int before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    send_with(socket, init(), {0, 0, 0});
    EXPECT_EQ(hear().type, MessageType::kNone) << "hung up";
    connect();
  }
  EXPECT_TRUE(await([&] { return open_descriptors() <= before; }));
}

// The socket is full of data that nobody takes, so that whoever closes it last waits for a minute.
TEST_F(MemifPeer, DescriptorsThatBlockHoldUpNobody) {
  test::LingeringSocket blocks;
  send_with(socket, init(), {blocks.fd.get()});
  EXPECT_EQ(hear().type, MessageType::kAck);
  send_with(socket, region(kMemory), {blocks.fd.get()});
  ::close(blocks.fd.release());
  EXPECT_NE(reason_in(hear()).find("no memfd"), std::string::npos);
  EXPECT_GT(server->closing(), 0U);
  connect();
  EXPECT_EQ(say(init()).type, MessageType::kAck) << "another one is served meanwhile";
  EXPECT_GT(server->closing(), 0U);
}

TEST_F(MemifPeer, MoreDescriptorsThanAMessageMayHaveHoldUpNobody) {
  test::LingeringSocket blocks;
  std::vector<int> files(252, 0);
  files.push_back(blocks.fd.get());
  send_with(socket, init(), files);
  ::close(blocks.fd.release());
  EXPECT_EQ(hear().type, MessageType::kNone) << "hung up";
  connect();
  EXPECT_EQ(say(init()).type, MessageType::kAck);
  EXPECT_GE(server->closing(), 2U) << "the descriptor, and the socket that brought it";
}

// They stay in the socket, which is closed when the link goes.
TEST_F(MemifPeer, DescriptorsThatNobodyReadsHoldUpNobody) {
  test::LingeringSocket blocks;
  for (int i = 0; i < 3; ++i) send_with(socket, init(7), {blocks.fd.get()});
  ::close(blocks.fd.release());
  EXPECT_NE(reason_in(hear()).find("no interface with id 7"), std::string::npos);
  EXPECT_GE(server->closing(), 1U);
}

TEST_F(MemifPeer, SendsNoMoreDescriptorsThanAreClosed) {
  {
    test::LingeringSocket blocks;
    send_with(socket, init(7), {blocks.fd.get()});
    ::close(blocks.fd.release());
    hear();
    std::string error;
    const ControlSocket second(connect_to(path, error), closer);
    send_with(second, init(), std::vector<int>(253, 0));
    ASSERT_TRUE(await([&] {
      server->tend(now());
      return server->closing() > Closer::kMost;
    }));
    socket = ControlSocket(connect_to(path, error), closer);
    for (int i = 0; i < 5; ++i) server->tend(now() + i * 2 * Memif::kLook);
    Message message;
    SharedDescriptor attached;
    EXPECT_EQ(receive_message(socket, message, attached), Came::kNothing) << "nobody is accepted";
  }
  EXPECT_EQ(hear().type, MessageType::kHello) << "it is when they have been closed";
}

// A peer that disconnects while this side sends and receives removes no memory that is still in
// use.
TEST_F(MemifPeer, ComesAndGoesWhileTheOtherSideIsBusy) {
  socket = {};
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    std::array<std::byte, 2048> room;
    const Bytes frame = Bytes(room).first(60);
    while (!stop) {
      server->tend(now());
      for (int i = 0; i < 100 && server->connected(); ++i) {
        std::size_t length = 0;
        if (server->senders()[0].put(std::span(&frame, 1))) server->senders()[0].publish();
        if (server->receivers()[0].waiting()) server->receivers()[0].take(room, length);
        server->receivers()[0].release();
      }
      std::this_thread::yield();
    }
  });
  std::string error;
  for (int round = 0; round < 20; ++round) {
    const auto client = Memif::open({.socket = path}, error);
    EXPECT_TRUE(await([&] {
      client->tend(now());
      std::this_thread::yield();
      return client->connected() && client->receivers()[0].waiting();
    }));
  }
  stop = true;
  busy.join();
}

// ---- how many rings there are

struct Numbers {
  unsigned of_server, of_client;
};

TEST(MemifRings, ThereIsOneForEachPairOfShards) {
  const std::string path = "/tmp/stp-memif-rings-" + std::to_string(getpid()) + ".sock";
  for (const Numbers n : {Numbers{1, 1}, Numbers{4, 3}, Numbers{16, 16}}) {
    std::string error;
    const auto server = Memif::open({.socket = path, .serves = true, .shards = n.of_server}, error);
    ASSERT_TRUE(server) << error;
    const auto client = Memif::open({.socket = path, .buffer = 9088, .shards = n.of_client}, error);
    ASSERT_TRUE(await([&] {
      server->tend(now());
      client->tend(now());
      return server->connected() && client->connected();
    }));
    for (Memif* const side : {server.get(), client.get()}) {
      EXPECT_EQ(side->senders().size(), n.of_server * n.of_client);
      EXPECT_EQ(side->receivers().size(), n.of_server * n.of_client);
    }
  }
}

// The hello comes before the server knows which link a client wants, and so speaks of the one with
// most shards.
TEST(MemifRings, AServerOfSeveralLinksIsReachedThoughItPromisesTooMany) {
  const std::string path = "/tmp/stp-memif-links-" + std::to_string(getpid()) + ".sock";
  std::string error;
  const auto wide = Memif::open({.socket = path, .serves = true, .shards = 4}, error);
  const auto narrow = Memif::open({.socket = path, .serves = true, .id = 1}, error);
  const auto client = Memif::open({.socket = path, .id = 1, .shards = 16}, error);
  ASSERT_TRUE(wide && narrow && client) << error;
  ASSERT_TRUE(await([&] {
    wide->tend(now());
    narrow->tend(now());
    client->tend(now());
    return narrow->connected() && client->connected();
  })) << client->obstacle();
  EXPECT_EQ(client->senders().size(), 16U) << "one for each of its shards";
}

// ---- where no socket can be

TEST(MemifSocket, AClientWaitsForNoneWhereSomethingElseIs) {
  const test::TemporaryDirectory directory;
  Settings settings{};
  settings.socket = directory.path();
  std::string error;
  EXPECT_EQ(Memif::open(settings, error), nullptr);
  EXPECT_NE(error.find("it is a directory: name a file in it"), std::string::npos) << error;
  settings.socket = directory.path() + "/memif.sock";
  EXPECT_NE(Memif::open(settings, error), nullptr) << "its server may come later: " << error;
}

TEST(MemifSocket, WhatIsNoSocketIsNamedWithTheRemedy) {
  const test::TemporaryDirectory directory;
  const auto reason = [](const std::string& at,
                         FileDescriptor (*open)(const std::string&, std::string&)) {
    std::string error;
    EXPECT_FALSE(open(at, error));
    return error;
  };
  for (auto* const open : {listen_at, connect_to}) {
    const auto text = reason(directory.path(), open);
    EXPECT_NE(text.find("it is a directory: name a file in it, as " + directory.path() + "/"),
              std::string::npos)
        << text;
  }
  const std::string file = directory.path() + "/file";
  std::ofstream(file) << "text";
  for (auto* const open : {listen_at, connect_to}) {
    const auto text = reason(file, open);
    EXPECT_NE(text.find("a file that is no socket is there"), std::string::npos) << text;
  }
}

// ---- a client with a server that sends arbitrary messages

class MemifServer : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    listener = ControlSocket(listen_at(path, error), std::make_shared<Closer>());
    ASSERT_TRUE(listener) << error;
    client = Memif::open({.socket = path}, error);
    accept();
  }
  void TearDown() override {
    client.reset();
    ::unlink(path.c_str());
  }
  void accept() {
    EXPECT_TRUE(await([&] {
      client->tend(now());
      socket = accept_from(listener);
      return static_cast<bool>(socket);
    }));
  }
  void say(MessageType type) {
    Message message;
    message.type = type;
    if (type == MessageType::kHello) {
      message.body.hello.least_version = message.body.hello.greatest_version = kVersion;
      message.body.hello.greatest_log2_ring = 4;
    }
    EXPECT_TRUE(send_message(socket, message));
  }
  // Whether the client closes the socket with a reason.
  bool hangs_up() {
    Message message;
    SharedDescriptor attached;
    Came came = Came::kNothing;
    EXPECT_TRUE(await([&] {
      client->tend(now());
      came = receive_message(socket, message, attached);
      return came == Came::kEnd || message.type == MessageType::kDisconnect;
    }));
    return message.type == MessageType::kDisconnect;
  }

  const std::string path = "/tmp/stp-memif-server-" + std::to_string(getpid()) + ".sock";
  ControlSocket listener, socket;
  std::unique_ptr<Memif> client;
};

TEST_F(MemifServer, MessagesOutOfTurnEndIt) {
  for (unsigned type = 0; type < 12; ++type) {
    const auto bad = static_cast<MessageType>(type);
    if (bad == MessageType::kHello || bad == MessageType::kDisconnect) continue;
    say(bad);
    EXPECT_TRUE(hangs_up()) << type;
    accept();
    if (bad == MessageType::kAck) continue;
    say(MessageType::kHello);
    say(bad);
    EXPECT_TRUE(hangs_up()) << type << " after the hello";
    accept();
  }
}

TEST_F(MemifServer, MoreAcknowledgementsThanMessagesEndIt) {
  say(MessageType::kHello);
  for (int i = 0; i < 5; ++i) say(MessageType::kAck);
  EXPECT_TRUE(hangs_up());
}

TEST_F(MemifServer, TakesNoPageAwayThatItsClientUses) {
  say(MessageType::kHello);
  SharedDescriptor memory;
  for (int messages = 0; messages < 5; ++messages) {
    Message message;
    SharedDescriptor attached;
    ASSERT_TRUE(await([&] {
      client->tend(now());
      return receive_message(socket, message, attached) == Came::kMessage;
    }));
    if (message.type == MessageType::kAddRegion) memory = std::move(attached);
    if (message.type != MessageType::kConnect) say(MessageType::kAck);
  }
  EXPECT_TRUE(loses_pages(memory.get()));
  say(MessageType::kConnected);
  EXPECT_TRUE(await([&] {
    client->tend(now());
    return client->connected();
  }));
  EXPECT_FALSE(loses_pages(memory.get()));
}

TEST_F(MemifServer, ASecondHelloEndsIt) {
  say(MessageType::kHello);
  say(MessageType::kHello);
  EXPECT_TRUE(hangs_up());
}

}  // namespace
}  // namespace stp::port::memif
