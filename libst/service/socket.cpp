// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <type_traits>

namespace stp::service {
namespace {

// No padding: what a process sends is what it has set, and nothing of its stack.
static_assert(std::has_unique_object_representations_v<Request>);
static_assert(std::has_unique_object_representations_v<Reply>);

constexpr std::size_t kControlSpace = CMSG_SPACE(kMaxFds * sizeof(int));

int dont_wait(Wait wait) {
  return wait == Wait::kDontWait ? MSG_DONTWAIT : 0;
}

// EWOULDBLOCK is EAGAIN here; a peer that has gone has one name, too.
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
    // A datagram goes as a whole or not at all.
    if (::sendmsg(socket, &message, flags | MSG_NOSIGNAL) >= 0) return 0;
    if (errno != EINTR) return socket_error();
  }
}

// Takes over every descriptor first, so that none is left open whatever else is wrong.
void take_descriptors(msghdr& message, std::vector<UniqueFd>& fds) {
  for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    auto const count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
}

int receive_message(int socket, void* data, std::size_t size, std::vector<UniqueFd>& fds,
                    int flags) {
  fds.clear();
  fds.reserve(kMaxFds);
  alignas(cmsghdr) char control[kControlSpace];
  iovec part{.iov_base = data, .iov_len = size};
  msghdr message{};
  ssize_t got;
  do {
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    got = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return socket_error();
  take_descriptors(message, fds);
  if (got == 0 && fds.empty()) return -ECONNRESET;
  auto const whole =
      static_cast<std::size_t>(got) == size && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (whole) return 0;
  fds.clear();
  return -EPROTO;
}

int address_of(const std::string& path, sockaddr_un& out) {
  if (path.empty() || path.find('\0') != std::string::npos) return -EINVAL;
  if (path.size() >= sizeof out.sun_path) return -ENAMETOOLONG;
  out.sun_family = AF_UNIX;
  std::memcpy(out.sun_path, path.c_str(), path.size() + 1);
  return 0;
}

int connect_flags(const std::string& path, int flags, UniqueFd& out) {
  sockaddr_un address{};
  if (auto const error = address_of(path, address); error != 0) return error;
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!fd) return -errno;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return -errno;
  out = std::move(fd);
  return 0;
}

int bind_to(int socket, const sockaddr_un& address) {
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0
                                                                                          : -errno;
}

// What a daemon that was killed leaves behind. Anything that is not a socket, or that somebody
// answers on (a full backlog is an answer, too), stays.
bool remove_stale(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  UniqueFd probe;
  return connect_flags(path, SOCK_NONBLOCK, probe) == -ECONNREFUSED && ::unlink(path.c_str()) == 0;
}

}  // namespace

int send_request(int socket, const Request& request, std::span<const int> fds) {
  return send_message(socket, &request, sizeof request, fds, 0);
}

int receive_reply(int socket, Reply& reply, std::vector<UniqueFd>& fds) {
  return receive_message(socket, &reply, sizeof reply, fds, 0);
}

int receive_request(int socket, Request& request, std::vector<UniqueFd>& fds, Wait wait) {
  return receive_message(socket, &request, sizeof request, fds, dont_wait(wait));
}

int send_reply(int socket, const Reply& reply, std::span<const int> fds, Wait wait) {
  return send_message(socket, &reply, sizeof reply, fds, dont_wait(wait));
}

std::string socket_of(const std::string& target) {
  if (target.empty()) return kDefaultSocket;
  if (target.find('/') != std::string::npos) return target;
  return std::string(kSocketDirectory) + target + ".sock";
}

int connect_to(const std::string& path, UniqueFd& out) {
  return connect_flags(path, 0, out);
}

int listen_at(const std::string& path, UniqueFd& out, const SocketAccess& access) {
  sockaddr_un address{};
  if (auto const error = address_of(path, address); error != 0) return error;
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return -errno;
  auto error = bind_to(fd.get(), address);
  if (error == -EADDRINUSE && remove_stale(path)) error = bind_to(fd.get(), address);
  if (error != 0) return error;
  // Nobody connects before listen(): by then the file is whose it should be.
  auto const owner = access.owner.value_or(static_cast<uid_t>(-1));
  auto const group = access.group.value_or(static_cast<gid_t>(-1));
  if (::chown(path.c_str(), owner, group) != 0 || ::chmod(path.c_str(), access.mode) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    error = -errno;
    ::unlink(path.c_str());
    return error;
  }
  out = std::move(fd);
  return 0;
}

}  // namespace stp::service
