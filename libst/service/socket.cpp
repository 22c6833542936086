// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/socket.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <type_traits>

#include "libst/service/unread_files.h"

namespace stp::service {
namespace {

// Messages have no padding, which would send bytes of the sender's stack.
static_assert(std::has_unique_object_representations_v<Request>);
static_assert(std::has_unique_object_representations_v<Reply>);

constexpr std::size_t kControlSpace = CMSG_SPACE(kMaxFds * sizeof(int));
constexpr std::size_t kReceiveSpace = CMSG_SPACE(kMostFds * sizeof(int));

int dont_wait(Wait wait) {
  return wait == Wait::kDontWait ? MSG_DONTWAIT : 0;
}

// Reports a peer that has gone by one error, -ECONNRESET. EWOULDBLOCK equals EAGAIN on Linux.
int socket_error() {
  return errno == EPIPE ? -ECONNRESET : -errno;
}

int send_message(int socket, const void* data, std::size_t size, std::span<const int> fds,
                 int flags) {
  if (fds.size() > kMaxFds) return -EINVAL;
  alignas(cmsghdr) char control[kControlSpace] = {};
  iovec part{.iov_base = const_cast<void*>(data), .iov_len = size};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    auto* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  for (;;) {
    // A message is sent as a whole or not at all.
    if (::sendmsg(socket, &message, flags | MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return socket_error();
  }
}

void take_descriptors(msghdr& message, std::vector<UniqueFd>& fds) {
  for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    fds.reserve(fds.size() + count);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

int receive_message(int socket, void* data, std::size_t size, std::vector<UniqueFd>& fds, int flags,
                    Descriptors descriptors) {
  fds.clear();
  alignas(cmsghdr) char control[kReceiveSpace];
  iovec part{.iov_base = data, .iov_len = size};
  msghdr message{};
  ssize_t got;
  do {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = descriptors == Descriptors::kTake ? control : nullptr;
    message.msg_controllen = descriptors == Descriptors::kTake ? sizeof control : 0;
    got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return socket_error();
  take_descriptors(message, fds);
  const auto lost_some = (message.msg_flags & MSG_CTRUNC) != 0;
  if (got == 0 && fds.empty() && !lost_some) return -ECONNRESET;
  if (static_cast<std::size_t>(got) != size || (message.msg_flags & MSG_TRUNC) != 0) return -EPROTO;
  return lost_some ? -EMFILE : 0;
}

}  // namespace

int send_request(int socket, const Request& request, std::span<const int> fds) {
  return send_message(socket, &request, sizeof request, fds, 0);
}

int receive_reply(int socket, Reply& reply, std::vector<UniqueFd>& fds) {
  return receive_message(socket, &reply, sizeof reply, fds, 0, Descriptors::kTake);
}

int receive_request(int socket, Request& request, std::vector<UniqueFd>& fds, Wait wait,
                    Descriptors descriptors) {
  return receive_message(socket, &request, sizeof request, fds, dont_wait(wait), descriptors);
}

int send_reply(int socket, const Reply& reply, std::span<const int> fds, Wait wait) {
  return send_message(socket, &reply, sizeof reply, fds, dont_wait(wait));
}

int address_of(const std::string& path, sockaddr_un& out) {
  if (path.empty() || path.find('\0') != std::string::npos) return -EINVAL;
  if (path.size() >= sizeof out.sun_path) return -ENAMETOOLONG;
  out.sun_family = AF_UNIX;
  std::memcpy(out.sun_path, path.c_str(), path.size() + 1);
  return 0;
}

std::string socket_of(const std::string& target) {
  if (target.empty()) return kDefaultSocket;
  if (target.find('/') != std::string::npos) return target;
  return std::string(kSocketDirectory) + target + ".sock";
}

int connect_to(const std::string& path, UniqueFd& out, timeval patience) {
  sockaddr_un address{};
  if (const auto error = address_of(path, address); error != 0) return error;
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return -errno;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
    return -errno;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return -errno;
  out = std::move(fd);
  return 0;
}

std::string operators_socket_of(const std::string& path) {
  return path + ".admin";
}

int connect_to_watch(const std::string& path, UniqueFd& out, timeval patience) {
  const auto beside = operators_socket_of(path);
  if (is_made_by_owner_of(path, beside) && connect_to(beside, out, patience) == 0 &&
      is_served_by_owner_of(path, out.get()))
    return 0;
  return connect_to(path, out, patience);
}

int listen_at(const std::string& path, UniqueFd& out, SocketFile& file,
              const SocketAccess& access) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return -errno;
  permit_files(fd.get(), false);  // until the Server admits who connects
  // Nobody can connect before listen(), and by then the file has its owner and mode.
  if (const auto error = file.bind(fd.get(), path, access); error != 0) return error;
  if (::listen(fd.get(), SOMAXCONN) != 0) {
    const auto error = -errno;
    file.remove();
    return error;
  }
  out = std::move(fd);
  return 0;
}

}  // namespace stp::service
