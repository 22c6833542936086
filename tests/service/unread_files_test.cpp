// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/unread_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "libst/service/socket.h"

namespace stp::service {
namespace {

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
    const auto files = has_unread_files(here.get());
    EXPECT_EQ(next_free(), open_before) << "no descriptor is taken";
    return files;
  }

  UniqueFd here, client;
  const UniqueFd file{::eventfd(0, EFD_CLOEXEC)};

 private:
  static int next_free() {
    const UniqueFd next(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
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
  permit_files(here.get(), false);
  const std::array fds{file.get()};
  const auto sent = send_request(client.get(), Request{}, fds);
  if (sent == 0) GTEST_SKIP() << "this kernel cannot forbid them (Linux before 6.16)";
  EXPECT_EQ(sent, -EPERM);
  EXPECT_TRUE(refuses_files(here.get()));
  EXPECT_EQ(send_request(client.get(), Request{}, {}), 0);
  permit_files(here.get(), true);
  EXPECT_FALSE(refuses_files(here.get()));
  EXPECT_EQ(send_request(client.get(), Request{}, fds), 0);
}

}  // namespace
}  // namespace stp::service
