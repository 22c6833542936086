// SPDX-License-Identifier: BSD-3-Clause
// Requests and replies as datagrams: whole, or not at all.
#include "libst/ipc/socket.h"

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/host/any_message.h"
#include "tests/temporary_directory.h"

namespace stp::host {
namespace {

std::size_t open_descriptors() {
  namespace fs = std::filesystem;
  const auto all = fs::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(fs::begin(all), fs::end(all)));
}

class SocketTest : public testing::Test {
 protected:
  SocketTest() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
    client.reset(pair[0]);
    server.reset(pair[1]);
  }
  int receive() { return ipc::receive_request(server.get(), received, fds, ipc::Wait::kDontWait); }
  // Bytes of a request, with zeros after them, and descriptors, as no client library would send
  // them.
  void send_raw(std::size_t size, std::size_t fd_count) {
    auto data = bytes_of(ipc::RequestMessage(ask::Stats{.index = 42}));
    data.resize(size);
    const std::vector<int> copies(fd_count, client.get());
    std::vector<std::byte> control(CMSG_SPACE(fd_count * sizeof(int)));
    iovec part{data.data(), size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd_count != 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      auto* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
      std::memcpy(CMSG_DATA(header), copies.data(), fd_count * sizeof(int));
    }
    ASSERT_GE(::sendmsg(client.get(), &message, 0), 0);
  }

  os::UniqueFd client, server;
  static constexpr std::size_t kSize = sizeof(ipc::RequestHead) + sizeof(ask::Stats);
  ipc::RequestMessage received;
  std::vector<os::UniqueFd> fds;
};

TEST_F(SocketTest, ARequestArrivesWithItsDescriptors) {
  const std::array<int, 2> two{client.get(), server.get()};
  ASSERT_EQ(send_request(client.get(), ipc::RequestMessage(ask::Stats{.index = 42}), two), 0);
  ASSERT_EQ(receive(), 0);
  EXPECT_EQ(received.as<ask::Stats>().index, 42U);
  ASSERT_EQ(fds.size(), 2U);
  for (const auto& fd : fds) EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(SocketTest, AReplyArrivesWithItsDescriptors) {
  ipc::ReplyMessage reply, got;
  reply.begin<ask::Backlog>().waiting = 5;
  const std::array<int, 1> one{server.get()};
  ASSERT_EQ(ipc::send_reply(server.get(), reply, one, ipc::Wait::kWait), 0);
  ASSERT_EQ(receive_reply(client.get(), got, fds), 0);
  EXPECT_EQ(got.as<ask::Backlog>().waiting, 5U);
  EXPECT_EQ(fds.size(), 1U);
}

TEST_F(SocketTest, ARefusalArrivesWithItsReason) {
  ipc::ReplyMessage reply, got;
  reply.begin<ask::AdminLink>();
  reply.refuse(-EDQUOT, "enough");
  ASSERT_EQ(ipc::send_reply(server.get(), reply, {}, ipc::Wait::kWait), 0);
  ASSERT_EQ(receive_reply(client.get(), got, fds), 0);
  EXPECT_EQ(got.head.result, -EDQUOT);
  EXPECT_EQ(got.why(), "enough");
}

TEST_F(SocketTest, NothingThereIsNoError) {
  EXPECT_EQ(receive(), -EAGAIN);
}

TEST_F(SocketTest, APeerThatHasGoneIsNoticedBothWays) {
  client.reset();
  EXPECT_EQ(receive(), -ECONNRESET);
  ipc::ReplyMessage refusal;
  refusal.refuse(-EBUSY);
  EXPECT_EQ(ipc::send_reply(server.get(), refusal, {}, ipc::Wait::kDontWait), -ECONNRESET);
}

TEST_F(SocketTest, OneWhoDoesNotReadDoesNotStopTheSender) {
  ipc::ReplyMessage refusal;
  refusal.refuse(-EBUSY);
  int result = 0;
  while (result == 0) result = ipc::send_reply(server.get(), refusal, {}, ipc::Wait::kDontWait);
  EXPECT_EQ(result, -EAGAIN);
}

TEST_F(SocketTest, MessagesOfAnotherSizeAreRefused) {
  for (const auto size :
       {std::size_t{1}, sizeof(ipc::RequestHead) - 1, sizeof(ipc::RequestHead), kSize - 1,
        kSize + 1, sizeof(ipc::RequestMessage) + 1, std::size_t{65'536}}) {
    send_raw(size, 0);
    EXPECT_EQ(receive(), -EPROTO) << size;
  }
  send_raw(kSize, 0);
  EXPECT_EQ(receive(), 0);
}

TEST_F(SocketTest, ARequestOfEachKindHasItsSizeAndNoOther) {
  for (const auto& rule : ipc::kRequests) {
    const ipc::RequestHead head{.kind = rule.kind};
    const auto size = sizeof head + rule.size;
    for (const auto wrong : {size - 1, size, size + 1}) {
      std::vector<std::byte> bytes(wrong);
      std::memcpy(bytes.data(), &head, std::min(wrong, sizeof head));
      ASSERT_EQ(::send(client.get(), bytes.data(), bytes.size(), 0),
                static_cast<ssize_t>(bytes.size()));
      EXPECT_EQ(receive(), wrong == size ? 0 : -EPROTO) << rule.name << ", " << wrong;
    }
  }
}

TEST_F(SocketTest, OfAMessageOfAnotherVersionOnlyTheHeadCounts) {
  constexpr std::size_t kBody = 100;
  const ipc::RequestHead head{.version = ipc::kProtocolVersion + 1};
  std::array<std::byte, sizeof head + kBody> bytes{};
  std::memcpy(bytes.data(), &head, sizeof head);
  ASSERT_GT(::send(client.get(), bytes.data(), bytes.size(), 0), 0);
  EXPECT_EQ(receive(), 0);
  EXPECT_EQ(received.head.version, ipc::kProtocolVersion + 1);
  const ipc::ReplyHead answer{.version = ipc::kProtocolVersion + 1};
  std::memcpy(bytes.data(), &answer, sizeof answer);
  ASSERT_GT(::send(server.get(), bytes.data(), bytes.size(), 0), 0);
  ipc::ReplyMessage got;
  EXPECT_EQ(receive_reply(client.get(), got, fds), 0);
  EXPECT_EQ(got.head.result, -EPROTONOSUPPORT);
}

TEST_F(SocketTest, DescriptorsOfAMessageAreTakenWhateverIsWrongWithIt) {
  const auto before = open_descriptors();
  for (const auto& [size, count] : std::vector<std::pair<std::size_t, std::size_t>>{
           {1, 3}, {kSize + 1, ipc::kMaxFds + 1}, {1, ipc::kMostFds}, {0, 2}}) {
    send_raw(size, count);
    EXPECT_EQ(receive(), -EPROTO) << size << " bytes, " << count << " descriptors";
    EXPECT_EQ(fds.size(), count);
    fds.clear();
    EXPECT_EQ(open_descriptors(), before);
  }
}

TEST_F(SocketTest, AsManyDescriptorsAsAMessageCanHaveAreTaken) {
  for (const auto count : {ipc::kMaxFds, ipc::kMostFds}) {
    send_raw(kSize, count);
    ASSERT_EQ(receive(), 0);
    EXPECT_EQ(fds.size(), count);
  }
}

TEST_F(SocketTest, DescriptorsThatAreNotWantedDoNotGetIn) {
  const auto before = open_descriptors();
  send_raw(kSize, 2);
  EXPECT_EQ(ipc::receive_request(server.get(), received, fds, ipc::Wait::kDontWait,
                                 ipc::Descriptors::kRefuse),
            -EMFILE);
  EXPECT_TRUE(fds.empty());
  EXPECT_EQ(open_descriptors(), before);
  send_raw(kSize, 0);
  EXPECT_EQ(ipc::receive_request(server.get(), received, fds, ipc::Wait::kDontWait,
                                 ipc::Descriptors::kRefuse),
            0);
}

class SocketPath : public testing::Test {
 protected:
  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/socket";
  ipc::SocketFile file;
  os::UniqueFd listener, client;
};

TEST_F(SocketPath, ClientsFindTheListener) {
  ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  EXPECT_EQ(ipc::connect_to(path, client), 0);
}

TEST_F(SocketPath, NobodyThereIsTold) {
  EXPECT_EQ(ipc::connect_to(path, client), -ENOENT);
  ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  listener.reset();
  EXPECT_EQ(ipc::connect_to(path, client), -ECONNREFUSED);
  EXPECT_EQ(ipc::connect_to(std::string(200, 'x'), client), -ENAMETOOLONG);
  EXPECT_EQ(ipc::connect_to("", client), -EINVAL);
}

TEST_F(SocketPath, AStaleSocketIsReplaced) {
  ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  listener.reset();
  EXPECT_EQ(ipc::listen_at(path, listener, file), 0);
  EXPECT_EQ(ipc::connect_to(path, client), 0);
}

TEST_F(SocketPath, ALiveOneIsNot) {
  ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  os::UniqueFd second;
  ipc::SocketFile its_file;
  EXPECT_EQ(ipc::listen_at(path, second, its_file), -EADDRINUSE);
  EXPECT_EQ(ipc::connect_to(path, client), 0);
}

TEST_F(SocketPath, OneThatIsAboutToListenKeepsItsFile) {
  const os::UniqueFd first(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(file.bind(first.get(), path, {}), 0);
  ipc::SocketFile its_file;
  EXPECT_EQ(ipc::listen_at(path, listener, its_file), -EADDRINUSE);
  ASSERT_EQ(::listen(first.get(), 1), 0);
  EXPECT_EQ(ipc::connect_to(path, client), 0);
}

TEST_F(SocketPath, AnotherKindOfFileIsLeftAlone) {
  std::ofstream(path) << "precious";
  EXPECT_EQ(ipc::listen_at(path, listener, file), -EADDRINUSE);
  EXPECT_EQ(std::filesystem::file_size(path), 8U);
}

TEST_F(SocketPath, AnyUserMayConnect) {
  ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666U);
}

TEST_F(SocketPath, ADirectoryThatAnybodyMayChangeIsRefused) {
  ASSERT_EQ(::chmod(directory.path().c_str(), 0777), 0);
  EXPECT_EQ(ipc::listen_at(path, listener, file), -EPERM);
  EXPECT_FALSE(ipc::directory_is_safe(path));
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_EQ(::chmod(directory.path().c_str(), 01777), 0);
  EXPECT_TRUE(ipc::directory_is_safe(path));
  EXPECT_EQ(ipc::listen_at(path, listener, file), 0);
}

// As the owner of the directory can do it between any two calls: what stands there now is his.
TEST_F(SocketPath, WhatHasTakenItsPlaceIsNotRemoved) {
  ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  std::filesystem::rename(path, path + ".away");
  std::ofstream(path) << "precious";
  file.remove();
  EXPECT_EQ(std::filesystem::file_size(path), 8U);
}

TEST_F(SocketPath, NothingElseIsGivenAway) {
  const auto victim = directory.path() + "/victim";
  std::ofstream(victim) << "precious";
  ASSERT_EQ(::chmod(victim.c_str(), 0600), 0);
  const auto mode_of_victim = [&] {
    struct stat status {};
    ::stat(victim.c_str(), &status);
    return status.st_mode & 0777;
  };
  // Somebody who swaps the name back and forth while a daemon starts again and again.
  std::atomic<bool> done{false};
  std::thread swapping([&] {
    while (!done) {
      if (::rename(path.c_str(), (path + ".away").c_str()) == 0) {
        [[maybe_unused]] const auto made = ::symlink(victim.c_str(), path.c_str());
      }
      ::unlink(path.c_str());
      ::unlink((path + ".away").c_str());
    }
  });
  for (int i = 0; i < 300; ++i) {
    os::UniqueFd socket;
    ipc::SocketFile its_file;
    if (ipc::listen_at(path, socket, its_file) == 0) its_file.remove();
  }
  done = true;
  swapping.join();
  EXPECT_EQ(mode_of_victim(), 0600U);
}

TEST_F(SocketPath, ADirectoryOfItsOwnIsMadeForAllToEnter) {
  const auto deeper = directory.path() + "/made/socket";
  const auto usual = ::umask(0077);
  EXPECT_EQ(ipc::make_directory_of(deeper, std::nullopt), 0);
  ::umask(usual);
  struct stat status {};
  ASSERT_EQ(::stat((directory.path() + "/made").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0755U);
  ASSERT_EQ(::chmod((directory.path() + "/made").c_str(), 0700), 0);
  EXPECT_EQ(ipc::make_directory_of(deeper, std::nullopt), 0);
  ASSERT_EQ(::stat((directory.path() + "/made").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U) << "one that was there already is left as it is";
}

TEST(SocketFile, AFullBacklogIsWaitedForAsLongAsAsked) {
  const test::TemporaryDirectory directory;
  const auto path = directory.path() + "/full.sock";
  sockaddr_un address{};
  ASSERT_EQ(ipc::address_of(path, address), 0);
  const os::UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  constexpr timeval kPatience{.tv_sec = 0, .tv_usec = 10'000};
  os::UniqueFd first, second;
  ASSERT_EQ(ipc::connect_to(path, first, kPatience), 0);
  EXPECT_EQ(ipc::connect_to(path, second, kPatience), -EAGAIN);
}

class UnreadFiles : public testing::Test {
 protected:
  UnreadFiles() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()),
              0);
    here.reset(pair[0]);
    client.reset(pair[1]);
  }
  void send(std::size_t size) const {
    const std::array<char, 64> bytes{};
    EXPECT_EQ(::send(client.get(), bytes.data(), size, 0), static_cast<ssize_t>(size));
  }
  // A message with `count` descriptors and perhaps no bytes.
  void send_files(std::size_t count, std::size_t size) const {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
    std::array<char, 64> bytes{};
    iovec part{.iov_base = bytes.data(), .iov_len = size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    auto* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    for (std::size_t i = 0; i < count; ++i)
      reinterpret_cast<int*>(CMSG_DATA(header))[i] = file.get();
    EXPECT_EQ(::sendmsg(client.get(), &message, 0), static_cast<ssize_t>(size));
  }
  bool found() const {
    ::shutdown(here.get(), SHUT_RDWR);
    const auto open_before = next_free();
    const auto files = ipc::has_unread_files(here.get());
    EXPECT_EQ(next_free(), open_before) << "no descriptor is taken";
    return files;
  }

  os::UniqueFd here, client;
  const os::UniqueFd file{::eventfd(0, EFD_CLOEXEC)};

 private:
  static int next_free() {
    const os::UniqueFd next(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    return next.get();
  }
};

TEST_F(UnreadFiles, AreNotInASocketWithoutMessages) {
  EXPECT_FALSE(found());
}

TEST_F(UnreadFiles, AreNotInMessagesOfBytesOnly) {
  send(64);
  send(0);
  send(1);
  EXPECT_FALSE(found());
}

TEST_F(UnreadFiles, AreInAMessageWithDescriptors) {
  send_files(1, 64);
  EXPECT_TRUE(found());
}

TEST_F(UnreadFiles, AreFoundBehindOtherMessages) {
  send(64);
  send(0);
  send_files(4, 0);
  EXPECT_TRUE(found());
}

TEST_F(UnreadFiles, AreFoundIfTheClientHasGone) {
  ::send(here.get(), "", 1, 0);  // unread at the client: then its end is reported as an error
  send(1);
  send_files(1, 1);
  client.reset();
  EXPECT_TRUE(found());
}

TEST_F(UnreadFiles, AreNotFoundIfTheClientHasGoneAndSentNone) {
  ::send(here.get(), "", 1, 0);
  send(1);
  client.reset();
  EXPECT_FALSE(found());
}

TEST_F(UnreadFiles, MayBeBehindMoreMessagesThanAreReadAtOnce) {
  for (int i = 0; i < 100; ++i) send(1);
  EXPECT_TRUE(found());
}

TEST_F(UnreadFiles, AreNotSentWhereTheyAreNotPermitted) {
  ipc::permit_files(here.get(), false);
  const std::array fds{file.get()};
  const auto sent = send_request(client.get(), ipc::RequestMessage(ask::Hello{}), fds);
  if (sent == 0) GTEST_SKIP() << "this kernel cannot forbid them (Linux before 6.16)";
  EXPECT_EQ(sent, -EPERM);
  EXPECT_TRUE(ipc::refuses_files(here.get()));
  EXPECT_EQ(send_request(client.get(), ipc::RequestMessage(ask::Hello{}), {}), 0);
  ipc::permit_files(here.get(), true);
  EXPECT_FALSE(ipc::refuses_files(here.get()));
  EXPECT_EQ(send_request(client.get(), ipc::RequestMessage(ask::Hello{}), fds), 0);
}

// ---- who is at the other end

constexpr uid_t kProgramUser = 4'711;
constexpr gid_t kOwnGroup = 4'712, kSecondGroup = 4'713, kOtherGroup = 4'714;

bool has_ended(const os::UniqueFd& process, int milliseconds) {
  pollfd look{.fd = process.get(), .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, milliseconds) == 1;
}

// A listener, and a program that connects to it: a child of this process, which ends with the test.
class IdentityTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
    ::chmod(directory.path().c_str(), 0755);
  }
  ~IdentityTest() override {
    if (program > 0) end_program();
  }
  // Connects as this user, or as kProgramUser with two groups.
  void start_program(bool as_other) {
    program = ::fork();
    if (program == 0) {
      if (as_other) {
        const std::array groups{kSecondGroup};
        if (::setgroups(groups.size(), groups.data()) != 0 || ::setgid(kOwnGroup) != 0 ||
            ::setuid(kProgramUser) != 0)
          ::_exit(1);
      }
      os::UniqueFd own;
      if (ipc::connect_to(path, own) != 0) ::_exit(1);
      for (;;) ::pause();
    }
    pollfd look{.fd = listener.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&look, 1, 30'000), 1);
    socket.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(socket);
  }
  void end_program() {
    ::kill(program, SIGKILL);
    EXPECT_EQ(::waitpid(program, nullptr, 0), program);
    program = -1;
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stpd.sock";
  os::UniqueFd listener, socket;
  ipc::SocketFile file;
  pid_t program = -1;
};

TEST_F(IdentityTest, AProgramOfTheSameUserIsAnAdministrator) {
  start_program(false);
  const auto who = ipc::identify_peer(socket.get());
  ASSERT_TRUE(who);
  EXPECT_EQ(who->pid, program);
  EXPECT_EQ(who->uid, ::geteuid());
  EXPECT_TRUE(who->administrator);
}

TEST_F(IdentityTest, AProgramOfAnotherUserIsOneOnlyInTheGroupOfAdministrators) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  start_program(true);
  const auto who = ipc::identify_peer(socket.get());
  ASSERT_TRUE(who);
  EXPECT_EQ(who->uid, kProgramUser);
  // What a connection takes before it has its turn does not depend on the number of its groups.
  EXPECT_EQ(who->groups, (std::vector<gid_t>{kOwnGroup}));
  const auto in = [&](std::optional<gid_t> group) {
    auto with_groups = *who;
    ipc::find_groups(socket.get(), group, with_groups);
    EXPECT_EQ(with_groups.groups, (std::vector<gid_t>{kOwnGroup, kSecondGroup}));
    return with_groups.administrator;
  };
  EXPECT_FALSE(in(std::nullopt));
  EXPECT_FALSE(in(kOtherGroup));
  EXPECT_TRUE(in(kOwnGroup));
  EXPECT_TRUE(in(kSecondGroup));
}

TEST_F(IdentityTest, TheEndOfAProgramIsSeen) {
  start_program(false);
  os::UniqueFd process;
  ASSERT_EQ(ipc::open_process(socket.get(), program, process), 0);
  if (!process) GTEST_SKIP() << "this kernel has no descriptors of processes";
  EXPECT_FALSE(has_ended(process, 0));
  const auto pid = program;
  end_program();
  EXPECT_TRUE(has_ended(process, 30'000));
  EXPECT_EQ(ipc::open_process(socket.get(), pid, process), -ESRCH);
}

}  // namespace
}  // namespace stp::host
