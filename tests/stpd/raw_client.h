// SPDX-License-Identifier: BSD-3-Clause
// A client of a daemon's socket that can do what libst never does.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "libst/ipc/socket.h"
#include "tests/host/service_fixture.h"

namespace stp::stpd {

// Allocates the pages, as libst does before it shares memory.
inline void make_pages(int fd, std::size_t size) {
  const std::vector<std::byte> zeros(size);
  EXPECT_EQ(::pwrite(fd, zeros.data(), size, 0), static_cast<ssize_t>(size));
}
inline std::shared_ptr<ipc::SharedMemory> made_memory(std::size_t size) {
  auto memory = ipc::SharedMemory::lend("test", size);
  make_pages(memory->fd(), size);
  return memory;
}
// The bytes of its allocated pages.
inline std::int64_t bytes_made(int fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_blocks * 512;
}

// One message of any size with any descriptors. Returns what sendmsg() does.
inline ssize_t send_with(int socket, const void* data, std::size_t size,
                         const std::vector<int>& fds, int flags = 0) {
  std::vector<std::byte> control(CMSG_SPACE(fds.size() * sizeof(int)));
  iovec part{const_cast<void*>(data), size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  auto* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | flags);
}

// A client that can behave like libst or not.
class RawClient {
 public:
  explicit RawClient(const std::string& path) { connected = ipc::connect_to(path, socket) == 0; }

  // Returns the reply's result, or -ECONNRESET if the daemon has disconnected without a word.
  int ask(const host::Request& request, std::span<const int> request_fds = {}) {
    auto error = send_request(socket.get(), request, request_fds);
    if (error == 0) error = receive_reply(socket.get(), reply, fds);
    for (int i = 0; i < 2 && error == -ECONNRESET; ++i)
      error = receive_reply(socket.get(), reply, fds);
    return error != 0 ? error : reply.result;
  }
  int ask(ipc::RequestKind kind, EndpointId endpoint = kNoneId) {
    auto request = host::request_for(kind);
    request.shard = shard;
    request.endpoint = endpoint;
    request.uport = uport;
    request.mac = 0x020000000001;
    request.config = host::usual_config();
    return ask(request);
  }
  // After mapping the page, or the channel of the connection. Keeps the reply before.
  int say_mapped(VcId vc = kNoneId) {
    auto request = host::request_for(ipc::RequestKind::kMapped);
    request.shard = shard;
    request.vc = vc;
    const auto before = reply;
    const auto result = ask(request);
    reply = before;
    return result;
  }
  void send_bytes(std::size_t size) {
    const std::vector<std::byte> bytes(size, std::byte{0xa5});
    ASSERT_EQ(::send(socket.get(), bytes.data(), size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
  }
  bool disconnected() {
    std::byte one;
    ssize_t got;
    do got = ::recv(socket.get(), &one, 1, 0);
    while (got > 0);  // why it was refused
    return got <= 0;
  }

  bool connected = false;
  std::uint32_t shard = 0, uport = 3'000;  // of the requests that it makes itself
  os::UniqueFd socket;
  host::Reply reply{};
  std::vector<os::UniqueFd> fds;
};

}  // namespace stp::stpd
