// SPDX-License-Identifier: BSD-3-Clause
#include "libst/ipc/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <type_traits>

#include "dpdk_port/link/owners.h"

// Older kernel headers lack it.
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

namespace stp::ipc {
namespace {

std::string directory_of(const std::string& path) {
  const auto directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

bool is_safe(const struct stat& directory) {
  return (directory.st_mode & S_IWOTH) == 0 || (directory.st_mode & S_ISVTX) != 0;
}

int bind_to(int socket, const std::string& path) {
  sockaddr_un address{};
  if (const auto error = address_of(path, address); error != 0) return error;
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0
                                                                                          : -errno;
}

// Changes the mode of an O_PATH descriptor, through its link in /proc.
int set_mode(int file, mode_t mode) {
  return ::chmod(("/proc/self/fd/" + std::to_string(file)).c_str(), mode) == 0 ? 0 : -errno;
}

}  // namespace

int SocketFile::open_directory(const std::string& path) {
  directory_.reset(::open(directory_of(path).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!directory_ || ::fstat(directory_.get(), &status) != 0) return -errno;
  name_ = std::filesystem::path(path).filename().string();
  return is_safe(status) ? 0 : -EPERM;
}

int SocketFile::bind(int socket, const std::string& path, const SocketAccess& access) {
  sockaddr_un address{};
  if (const auto error = address_of(path, address); error != 0) return error;
  if (const auto error = open_directory(path); error != 0) return error;
  auto error = bind_to(socket, path);
  if (error == -EADDRINUSE && remove_stale(path)) error = bind_to(socket, path);
  if (error != 0) return error;
  error = give(access);
  if (error != 0) remove();
  return error;
}

// Sets owner and mode, after checking that the file is the one that bind(2) has made: a socket of
// this user with no other name.
int SocketFile::give(const SocketAccess& access) {
  const os::UniqueFd file(
      ::openat(directory_.get(), name_.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) return -errno;
  if (!S_ISSOCK(status.st_mode) || status.st_uid != ::geteuid() || status.st_nlink != 1)
    return -EPERM;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  const auto owner = access.owner.value_or(static_cast<uid_t>(-1));
  const auto group = access.group.value_or(static_cast<gid_t>(-1));
  if ((access.owner || access.group) &&
      ::fchownat(file.get(), "", owner, group, AT_EMPTY_PATH) != 0)
    return -errno;
  return set_mode(file.get(), access.mode);
}

void SocketFile::remove() {
  struct stat status {};
  if (inode_ != 0 &&
      ::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_dev == device_ && status.st_ino == inode_)
    ::unlinkat(directory_.get(), name_.c_str(), 0);
  inode_ = 0;
}

// Removes the file that a killed daemon has left behind. Keeps a file that is not a socket, and a
// socket that a process has.
bool SocketFile::remove_stale(const std::string& path) {
  struct stat status {};
  if (::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISSOCK(status.st_mode) || port::probe_socket(path) != ECONNREFUSED)
    return false;
  return ::unlinkat(directory_.get(), name_.c_str(), 0) == 0;
}

bool directory_is_safe(const std::string& path) {
  struct stat status {};
  return ::stat(directory_of(path).c_str(), &status) == 0 && is_safe(status);
}

int make_directory_of(const std::string& path, std::optional<uid_t> owner) {
  const auto directory = directory_of(path);
  if (::mkdir(directory.c_str(), 0755) != 0) return errno == EEXIST ? 0 : -errno;
  const os::UniqueFd made(
      ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!made || ::fstat(made.get(), &status) != 0) return -errno;
  if (status.st_uid != ::geteuid()) return -EPERM;  // somebody has put another one in its place
  if (::fchmod(made.get(), 0755) != 0) return -errno;
  return owner && ::fchown(made.get(), *owner, static_cast<gid_t>(-1)) != 0 ? -errno : 0;
}

namespace {

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

void take_descriptors(msghdr& message, std::vector<os::UniqueFd>& fds) {
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

// `Message`: a head, which tells the size of the whole, and a body.
template <typename Message>
int receive_message(int socket, Message& out, std::vector<os::UniqueFd>& fds, int flags,
                    Descriptors descriptors) {
  static_assert(std::is_standard_layout_v<Message> && offsetof(Message, head) == 0 &&
                offsetof(Message, body) == sizeof out.head);
  fds.clear();
  alignas(cmsghdr) char control[kReceiveSpace];
  iovec part{.iov_base = &out, .iov_len = sizeof out};
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
  const auto size = static_cast<std::size_t>(got);
  if (size < sizeof out.head || (message.msg_flags & MSG_TRUNC) != 0) return -EPROTO;
  if (out.head.version == kProtocolVersion && size != size_of(out.head)) return -EPROTO;
  return lost_some ? -EMFILE : 0;
}

}  // namespace

int send_request(int socket, const RequestMessage& request, std::span<const int> fds) {
  return send_message(socket, &request, size_of(request.head), fds, 0);
}

int receive_reply(int socket, ReplyMessage& reply, std::vector<os::UniqueFd>& fds) {
  const auto error = receive_message(socket, reply, fds, 0, Descriptors::kTake);
  if (error == 0 && reply.head.version != kProtocolVersion) reply.refuse(-EPROTONOSUPPORT);
  return error;
}

// The kernel tells first, and once, that stpd has not read the request.
int receive_refusal(int socket, ReplyMessage& reply) {
  std::vector<os::UniqueFd> none;
  auto error = receive_reply(socket, reply, none);
  if (error == -ECONNRESET) error = receive_reply(socket, reply, none);
  return error == 0 && reply.head.result == 0 ? -ECONNRESET : error;
}

int receive_request(int socket, RequestMessage& request, std::vector<os::UniqueFd>& fds, Wait wait,
                    Descriptors descriptors) {
  return receive_message(socket, request, fds, dont_wait(wait), descriptors);
}

int send_reply(int socket, const ReplyMessage& reply, std::span<const int> fds, Wait wait) {
  return send_message(socket, &reply, size_of(reply.head), fds, dont_wait(wait));
}

bool has_unread_by_peer(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes != 0;
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

int connect_to(const std::string& path, os::UniqueFd& out, timeval patience, std::string* why) {
  sockaddr_un address{};
  if (const auto error = address_of(path, address); error != 0) return error;
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return -errno;
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
    return -errno;
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return -errno;
  if (auto stranger = why_distrust_server(path, fd.get()); !stranger.empty()) {
    if (why != nullptr) *why = std::move(stranger);
    return -EPERM;
  }
  out = std::move(fd);
  return 0;
}

std::string operators_socket_of(const std::string& path) {
  return path + ".admin";
}

// A stranger's could keep this program waiting with a full backlog.
int connect_to_watch(const std::string& path, os::UniqueFd& out, timeval patience,
                     std::string* why) {
  const auto beside = operators_socket_of(path);
  struct stat status {};
  if (::lstat(beside.c_str(), &status) == 0 && why_distrust(beside, status.st_uid).empty() &&
      connect_to(beside, out, patience) == 0)
    return 0;
  return connect_to(path, out, patience, why);
}

int listen_at(const std::string& path, os::UniqueFd& out, SocketFile& file,
              const SocketAccess& access) {
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
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

namespace {

enum class Unread { kNothing, kError, kBytes, kFiles, kUnknown };

// Looks at the first unread message. The credentials that the kernel adds to each tell a message
// without bytes from the end. There is room for them alone, so the kernel hands out no descriptor
// and reports those that it left out.
Unread first_unread(int socket) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
  msghdr message{};
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT) < 0)
    return errno == ECONNRESET ? Unread::kError : Unread::kUnknown;  // reported once
  if ((message.msg_flags & MSG_CTRUNC) != 0) return Unread::kFiles;
  return CMSG_FIRSTHDR(&message) == nullptr ? Unread::kNothing : Unread::kBytes;
}

}  // namespace

bool has_unread_files(int socket) {
  constexpr int kMostMessages = 16, kOn = 1;
  if (::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn) != 0) return true;
  for (int i = 0; i < kMostMessages; ++i) {
    const auto first = first_unread(socket);
    if (first == Unread::kError) continue;
    if (first != Unread::kBytes) return first != Unread::kNothing;
    msghdr message{};
    [[maybe_unused]] const auto read = ::recvmsg(socket, &message, MSG_DONTWAIT);
  }
  return true;
}

void permit_files(int socket, bool permitted) {
  const int value = permitted ? 1 : 0;
  ::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof value);
}

bool refuses_files(int socket) {
  int value = 1;
  socklen_t size = sizeof value;
  return ::getsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, &size) == 0 && value == 0;
}

}  // namespace stp::ipc
