// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that come along with requests, and what it may mean to let go of them: each kind that
// makes whoever closes it wait holds up nobody.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "libst/ipc/socket.h"
#include "libst/os/file_limit.h"
#include "tests/lingering_socket.h"
#include "tests/stpd/fuse_file.h"
#include "tests/stpd/raw_client.h"
#include "tests/stpd/served_socket.h"

namespace stp::stpd {
namespace {

void send_all(int socket, const void* data, std::size_t size, const std::vector<int>& fds) {
  ASSERT_EQ(send_with(socket, data, size, fds), static_cast<ssize_t>(size)) << std::strerror(errno);
}

// Lets clients attach descriptors before they are admitted, as Linux before 6.16 always does.
void permit_early_files(const std::string& path) {
  constexpr int kHighest = 1'024;
  for (int fd = 0; fd < kHighest; ++fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0) continue;
    sockaddr_un name{};
    size = sizeof name;
    if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 && path == name.sun_path)
      ipc::permit_files(fd, true);
  }
}

// What is sent before start() waits in the socket, so that the daemon is the last to have it.
class Foreign : public testing::Test, protected ServedSocket {
 protected:
  Foreign() {
    open_directory();
    EXPECT_EQ(server.listen(), 0);
    permit_early_files(path);
    loop.start();
  }
  // Well before any of these sockets has waited as long as it would.
  static bool answers(RawClient& client) {
    const timeval patience{.tv_sec = test::LingeringSocket::kSeconds / 3, .tv_usec = 0};
    ::setsockopt(client.socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return client.ask(ipc::RequestKind::kHello) == 0;
  }
  bool others_are_served() {
    RawClient other(path);
    return answers(other);
  }
  static host::Request map_request() {
    auto request = host::request_for(ipc::RequestKind::kMap);
    request.endpoint = 1;
    request.segment_count = 1;
    request.segments[0].length = 4'096;
    request.piece_count = 1;
    request.pieces[0].length = 4'096;
    return request;
  }
  void send_lingering(int socket, ipc::RequestKind kind, std::size_t count) {
    const auto bytes =
        host::bytes_of(kind == ipc::RequestKind::kMap ? map_request() : host::request_for(kind));
    send_bytes_with_lingering(socket, bytes.data(), bytes.size(), count);
  }
  // The daemon is the only one to have it then.
  void send_bytes_with_lingering(int socket, const void* data, std::size_t size,
                                 std::size_t count) {
    auto& lingering = lingering_.emplace_back();
    send_all(socket, data, size, std::vector<int>(count, lingering.fd.get()));
    ::close(lingering.fd.release());
  }
  std::size_t client_count() { return service.drive()->client_count(); }

 private:
  std::vector<test::LingeringSocket> lingering_;
};

TEST_F(Foreign, ALingeringSocketInARequest) {
  RawClient maps(path), greets(path);
  send_lingering(maps.socket.get(), ipc::RequestKind::kMap, 1);
  send_lingering(greets.socket.get(), ipc::RequestKind::kHello, 1);
  ASSERT_EQ(server.start(), 0);
  EXPECT_TRUE(others_are_served());
  EXPECT_TRUE(greets.disconnected());
  // The other has no endpoint to map it for: what came along is not looked at.
  EXPECT_EQ(receive_reply(maps.socket.get(), maps.reply, maps.fds), 0);
  EXPECT_EQ(maps.reply.result, -EBADF);
}

TEST_F(Foreign, AsManyAsAMessageCanHave) {
  RawClient client(path);
  send_lingering(client.socket.get(), ipc::RequestKind::kMap, ipc::kMostFds);
  ASSERT_EQ(server.start(), 0);
  EXPECT_TRUE(others_are_served());
}

TEST_F(Foreign, AMessageThatIsTooLongOrTooShort) {
  RawClient client(path), second(path);
  auto bytes = host::bytes_of(map_request());
  bytes.emplace_back();
  send_bytes_with_lingering(client.socket.get(), bytes.data(), 1, 5);
  send_bytes_with_lingering(second.socket.get(), bytes.data(), bytes.size(), 5);
  ASSERT_EQ(server.start(), 0);
  EXPECT_TRUE(others_are_served());
  EXPECT_TRUE(client.disconnected());
  EXPECT_TRUE(second.disconnected());
}

TEST_F(Foreign, MessagesThatNobodyReadsAnyMore) {
  std::optional<RawClient> client(path);
  client->send_bytes(1);
  for (int i = 0; i < 5; ++i) send_lingering(client->socket.get(), ipc::RequestKind::kMap, 2);
  client.reset();
  ASSERT_EQ(server.start(), 0);
  EXPECT_TRUE(others_are_served());
  EXPECT_TRUE(host::eventually([&] { return client_count() == 0; }));
}

TEST_F(Foreign, ThoseOfClientsThatAreTurnedAway) {
  server.set_quotas({.clients = 0});
  RawClient client(path);
  send_lingering(client.socket.get(), ipc::RequestKind::kMap, 2);
  ASSERT_EQ(server.start(), 0);
  RawClient administrator(path);
  const timeval patience{.tv_sec = test::LingeringSocket::kSeconds / 3, .tv_usec = 0};
  ::setsockopt(administrator.socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  EXPECT_EQ(administrator.ask(ipc::RequestKind::kAdminLink), 0);
}

TEST_F(Foreign, ThoseOfClientsThatWereNeverAccepted) {
  RawClient client(path);
  send_lingering(client.socket.get(), ipc::RequestKind::kMap, 2);
  client.socket.reset();
  ASSERT_EQ(server.start(), 0);
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::seconds(test::LingeringSocket::kSeconds / 3));
}

// The kernel gives as many as there is room for, and lets go of the others in the thread that asks.
TEST_F(Foreign, ThoseThatThereIsNoRoomFor) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "UBSan needs a descriptor to look at a type: without any it sees faults";
#endif
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  std::vector<test::LingeringSocket> sockets(3);
  std::vector<int> fds;
  for (int i = 0; i < 60; ++i) fds.push_back(sockets[static_cast<std::size_t>(i) % 3].fd.get());
  rlimit few = usual;
  few.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  ASSERT_EQ(server.start(), 0);
  RawClient earlier(path), client(path);
  ASSERT_EQ(client.ask(ipc::RequestKind::kHello), 0);
  // The last: the daemon may still look for another request of the one that it has answered last.
  ASSERT_EQ(earlier.ask(ipc::RequestKind::kHello), 0);
  const auto greeting = host::request_for(ipc::RequestKind::kHello);
  const auto request = host::bytes_of(map_request());
  std::vector<os::UniqueFd> used_up;
  {
    // The daemon waits for the Service with the earlier request until no descriptors are left.
    const auto turn = service.drive();
    ASSERT_EQ(send_request(earlier.socket.get(), greeting, {}), 0);
    send_all(client.socket.get(), request.data(), request.size(), fds);
    for (auto& socket : sockets) ::close(socket.fd.release());
    while (used_up.empty() || used_up.back().get() < 230)
      used_up.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  }
  EXPECT_EQ(receive_reply(client.socket.get(), client.reply, client.fds), 0);
  EXPECT_EQ(client.reply.result, -EMFILE);
  used_up.clear();
  EXPECT_TRUE(others_are_served());
  ::setrlimit(RLIMIT_NOFILE, &usual);
}

// Takes the file of any trace, and does nothing.
class StubControl final : public TraceControl {
 public:
  int start(const ipc::TraceOrder&, host::ClientId, os::UniqueFd& file) override {
    taken = std::move(file);
    return 0;
  }
  int stop() override { return 0; }
  int status(ipc::TraceState&) override { return -ENOENT; }
  void client_gone(host::ClientId) override {}

  os::UniqueFd taken;
};

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                       std::filesystem::directory_iterator());
}

class ForeignFuse : public Foreign {
 protected:
  ForeignFuse() { server.set_admin(std::nullopt, &control); }
  void SetUp() override {
    if (!fuse.why_not().empty()) GTEST_SKIP() << fuse.why_not();
    ASSERT_EQ(server.start(), 0);
  }
  // It asks `control` as long as it runs.
  void TearDown() override { server.stop(); }
  // A client of a user whom nobody has named an administrator.
  std::unique_ptr<RawClient> stranger() { return client_of(::getpwnam("nobody")->pw_uid); }
  bool beats() {
    const auto before = server.heartbeat().beats();
    return host::eventually([&] { return server.heartbeat().beats() > before; });
  }

  StubControl control;
  test::FuseFile fuse;
};

TEST_F(ForeignFuse, AFileThatNeverAnswersCostsItsUserAndNobodyElse) {
  const auto hostile = stranger(), accomplice = stranger();
  RawClient honest(path);
  ASSERT_TRUE(answers(*hostile) && answers(*accomplice) && answers(honest));
  auto mapping = map_request();
  ASSERT_EQ(hostile->ask(ipc::RequestKind::kOpenEndpoint), 0);
  mapping.endpoint = hostile->reply.endpoint;
  const auto request = host::bytes_of(mapping);
  send_all(hostile->socket.get(), request.data(), request.size(), std::vector<int>(10, fuse.fd()));
  EXPECT_EQ(receive_reply(hostile->socket.get(), hostile->reply, hostile->fds), 0);
  EXPECT_EQ(hostile->reply.result, -EINVAL);
  ASSERT_TRUE(host::eventually([&] { return fuse.flushes() == Closer::kThreadsPerUser; }));
  // Nobody else notices.
  EXPECT_TRUE(answers(honest) && others_are_served());
  ASSERT_TRUE(host::eventually([&] { return server.counts().stuck_descriptors != 0; }));
  EXPECT_EQ(fuse.flushes(), Closer::kThreadsPerUser);
  // This user gets no more descriptors in, and no more programs.
  EXPECT_TRUE(stranger()->disconnected());
  EXPECT_EQ(server.counts().refused, 1U);
  // However often it comes back, nothing of it stays open.
  const auto open = open_files();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(stranger()->disconnected()) << i;
  EXPECT_TRUE(host::eventually([&] { return open_files() <= open; })) << open_files();
  EXPECT_TRUE(answers(*accomplice));
  send_all(accomplice->socket.get(), request.data(), request.size(), {fuse.fd()});
  EXPECT_TRUE(accomplice->disconnected());
  EXPECT_TRUE(beats());
  // Memory of others goes along as before.
  EXPECT_EQ(honest.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto memory = made_memory(1 << 16);
  auto map = map_request();
  map.endpoint = honest.reply.endpoint;
  map.segments[0].length = map.pieces[0].length = memory->size();
  EXPECT_EQ(honest.ask(map, std::array{memory->fd()}), 0);
}

TEST_F(ForeignFuse, TheDaemonLeavesWithoutIt) {
  RawClient client(path);
  const auto request = host::bytes_of(map_request());
  send_all(client.socket.get(), request.data(), request.size(), {fuse.fd()});
  ASSERT_TRUE(host::eventually([&] { return fuse.flushes() != 0; }));
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

// Whoever closes the last descriptor of a file waits for each epoll that watches it. This one waits
// for the answer to a POLL, for ever.
TEST_F(ForeignFuse, ABellThatAnEpollWatchesWhichIsHeldUp) {
  RawClient hostile(path), honest(path);
  ASSERT_TRUE(answers(hostile) && answers(honest));
  const os::UniqueFd watches(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{.events = EPOLLIN, .data = {}};
  ASSERT_EQ(::epoll_ctl(watches.get(), EPOLL_CTL_ADD, hostile.fds.at(1).get(), &event), 0);
  std::thread holds([&] { ::epoll_ctl(watches.get(), EPOLL_CTL_ADD, fuse.fd(), &event); });
  EXPECT_TRUE(host::eventually([&] { return fuse.polls() == 1; }));
  hostile.fds.clear();
  hostile.socket.reset();
  EXPECT_TRUE(answers(honest) && others_are_served() && beats());
  fuse.end();
  holds.join();
}

// Not even a question about it reaches whoever serves the file.
TEST_F(ForeignFuse, OneThatIsLookedAtIsAskedNothing) {
  fuse.fall_silent();
  RawClient client(path), other(path);
  const auto request = host::bytes_of(map_request());
  send_all(client.socket.get(), request.data(), request.size(), {fuse.fd()});
  EXPECT_TRUE(answers(other));
  EXPECT_EQ(receive_reply(client.socket.get(), client.reply, client.fds), 0);
  const auto trace = host::bytes_of(host::request_for(ipc::RequestKind::kTraceStart));
  send_all(client.socket.get(), trace.data(), trace.size(), {fuse.fd()});
  EXPECT_TRUE(answers(other));
  EXPECT_EQ(receive_reply(client.socket.get(), client.reply, client.fds), 0);
  EXPECT_EQ(client.reply.result, 0);
}

// A program that connects, then forks: its child has the socket as well.
class Forked : public Foreign {
 protected:
  ~Forked() override {
    hold_.reset();  // ends the child
    if (program_ > 0) ::waitpid(program_, nullptr, 0);
  }
  // Only calls that a child of a program with threads may make.
  void start_program(bool with_child) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    std::array<int, 2> hold{}, said{};
    ASSERT_EQ(::pipe2(hold.data(), O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(said.data(), O_CLOEXEC), 0);
    const os::UniqueFd hears(hold[0]), says(said[1]), told(said[0]);
    hold_.reset(hold[1]);
    socket_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    program_ = ::fork();
    if (program_ == 0) {
      ::close(hold[1]);
      char byte = 'x';
      if (::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        ::_exit(1);
      if (with_child && ::fork() == 0) {
        while (::read(hold[0], &byte, 1) > 0) {
        }
        ::_exit(0);
      }
      [[maybe_unused]] const auto put = ::write(said[1], &byte, 1);
      while (::read(hold[0], &byte, 1) > 0) {
      }
      ::_exit(0);
    }
    char byte;
    ASSERT_EQ(::read(told.get(), &byte, 1), 1);
  }
  void kill_program() {
    ::kill(program_, SIGKILL);
    ASSERT_EQ(::waitpid(program_, nullptr, 0), program_);
    program_ = -1;
  }

  pid_t program_ = -1;
  os::UniqueFd socket_, hold_;
};

TEST_F(Forked, AChildDoesNotKeepWhatItsProgramHad) {
  ASSERT_EQ(server.start(), 0);
  start_program(true);
  socket_.reset();
  ASSERT_TRUE(host::eventually([&] { return client_count() == 1; }));
  kill_program();
  EXPECT_TRUE(host::eventually([&] { return client_count() == 0; }));
}

TEST_F(Forked, OneThatHasEndedBeforeItWasAcceptedIsRefused) {
  start_program(true);
  kill_program();
  ASSERT_EQ(server.start(), 0);
  EXPECT_TRUE(host::eventually([&] { return server.counts().refused == 1; }));
  EXPECT_EQ(client_count(), 0U);
}

}  // namespace
}  // namespace stp::stpd
