// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dpdk_port/link/owners.h"

namespace stp::port::memif {
namespace {

constexpr int kWaiting = 8;  // clients that have not been accepted yet

bool make_address(const std::string& path, sockaddr_un& address, std::string& error) {
  address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    error = "the path of its socket has " + std::to_string(path.size()) + " bytes, at most " +
            std::to_string(sizeof address.sun_path - 1) + " are possible";
    return false;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

FileDescriptor make_socket(std::string& error) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) error = std::string("no socket: ") + std::strerror(errno);
  return socket;
}

// Why there is no socket of ours at `path`, or nobody can be reached there.
std::string explain(const std::string& path, int error) {
  const auto fault =
      error == EADDRINUSE || error == ECONNREFUSED ? why_no_socket(path, "/run/memif.sock") : "";
  if (!fault.empty()) return fault;
  if (error == EADDRINUSE)
    return "another program serves it: end that, open this link with role=client, or name another "
           "socket";
  return std::strerror(error);
}

}  // namespace

FileDescriptor listen_at(const std::string& path, std::string& error) {
  sockaddr_un address{};
  if (!make_address(path, address, error)) return {};
  remove_stale_socket(path);
  FileDescriptor socket = make_socket(error);
  if (!socket) return {};
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  const bool bound = ::bind(socket.get(), at, sizeof address) == 0;
  if (bound && ::listen(socket.get(), kWaiting) == 0) return socket;
  error = "cannot make the socket " + path + ": " + explain(path, errno);
  if (bound) ::unlink(path.c_str());
  return {};
}

FileDescriptor connect_to(const std::string& path, std::string& error) {
  sockaddr_un address{};
  if (!make_address(path, address, error)) return {};
  FileDescriptor socket = make_socket(error);
  if (!socket) return {};
  const auto* const at = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), at, sizeof address) == 0) return socket;
  error = explain(path, errno);
  return {};
}

ControlSocket accept_from(const ControlSocket& listener) {
  constexpr int kFlags = SOCK_CLOEXEC | SOCK_NONBLOCK;
  return {FileDescriptor(::accept4(listener.get(), nullptr, nullptr, kFlags)), listener.closer()};
}

// There is room for as many descriptors as a message can have: the kernel closes those that have
// none, and makes the receiver wait for it.
Came receive_message(const ControlSocket& socket, Message& message, SharedDescriptor& attached) {
  constexpr std::size_t kMostDescriptors = 253;  // SCM_MAX_FD
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
  iovec part{&message, sizeof message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t length = ::recvmsg(socket.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return Came::kNothing;
  std::size_t descriptors = 0;
  for (auto* each = CMSG_FIRSTHDR(&header); length >= 0 && each != nullptr;
       each = CMSG_NXTHDR(&header, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= each->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(each) + at, sizeof fd);
      attached = SharedDescriptor(FileDescriptor(fd), socket.closer());
      ++descriptors;
    }
  }
  const bool cut = (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  const bool whole = length == static_cast<ssize_t>(sizeof message) && !cut && descriptors <= 1;
  return whole ? Came::kMessage : Came::kEnd;
}

bool send_message(const ControlSocket& socket, const Message& message, int attached) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  iovec part{const_cast<Message*>(&message), sizeof message};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (attached >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof control;
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof attached);
    std::memcpy(CMSG_DATA(rights), &attached, sizeof attached);
  }
  return ::sendmsg(socket.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof message);
}

void send_disconnect(const ControlSocket& socket, const std::string& reason) {
  Message message;
  message.type = MessageType::kDisconnect;
  reason.copy(message.body.disconnect.reason, kReasonSize - 1);
  send_message(socket, message);
}

std::string text_of(const char* field, std::size_t size) {
  std::string text(field, ::strnlen(field, size));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

}  // namespace stp::port::memif
