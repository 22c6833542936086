// SPDX-License-Identifier: BSD-3-Clause
// A socket whose last close() blocks, because its peer does not take the data in it.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include "libst/os/unique_fd.h"

namespace stp::test {

class LingeringSocket {
 public:
  static constexpr int kSeconds = 60;

  LingeringSocket() {
    os::UniqueFd const listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener.get(), any, sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener.get(), any, &length), 0);
    fd.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(fd.get(), any, sizeof address), 0);
    peer_.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::array<char, 65'536> bytes{};
    while (::send(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    const linger wait{.l_onoff = 1, .l_linger = kSeconds};
    EXPECT_EQ(::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof wait), 0);
  }
  LingeringSocket(LingeringSocket&&) = default;
  LingeringSocket& operator=(LingeringSocket&&) = default;
  // Does not block itself, even if it is the last one.
  ~LingeringSocket() {
    if (!fd) return;
    const linger none{};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }

  os::UniqueFd fd;

 private:
  os::UniqueFd peer_;
};

}  // namespace stp::test
