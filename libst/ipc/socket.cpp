// SPDX-License-Identifier: BSD-3-Clause
#include "libst/ipc/socket.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <type_traits>
#include <utility>
#include <vector>

#include "dpdk_port/link/owners.h"
#include "libst/ipc/requests.h"
#include "libst/os/unique_fd.h"

// Older kernel headers lack them.
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
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

bool SocketFile::is_there() const {
  struct stat status {};
  return inode_ != 0 &&
         ::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         status.st_dev == device_ && status.st_ino == inode_;
}

bool SocketFile::is_gone() const {
  struct stat status {};
  if (inode_ == 0) return true;
  if (::fstatat(directory_.get(), name_.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT;
  return status.st_dev != device_ || status.st_ino != inode_;
}

void SocketFile::remove() {
  if (is_there()) ::unlinkat(directory_.get(), name_.c_str(), 0);
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

// ---- who is at the other end

namespace {

// Returns the peer's primary group, then its supplementary groups, as they were when it connected.
std::vector<gid_t> groups_of(int socket, gid_t own) {
  std::vector<gid_t> groups(64);
  for (;;) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const auto result = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
    if (result != 0 && errno != ERANGE) return {own};
    groups.resize(size / sizeof(gid_t));
    if (result != 0) continue;
    groups.insert(groups.begin(), own);
    return groups;
  }
}

// For kernels before 6.5. A small race remains: if the process ends after connect(), its number may
// belong to another process by now.
int open_by_number(pid_t pid, os::UniqueFd& out) {
  if (pid <= 0) return 0;
  out.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return out || errno == ENOSYS || errno == EPERM ? 0 : -errno;
}

int open_by_socket(int socket, pid_t pid, os::UniqueFd& out) {
  int descriptor = -1;
  socklen_t size = sizeof descriptor;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &descriptor, &size) == 0) {
    out.reset(descriptor);
    return 0;
  }
  if (errno == ENOPROTOOPT) return open_by_number(pid, out);
  return errno == EINVAL ? -ESRCH : -errno;  // some kernels report an ended process by EINVAL
}

bool has_ended(int process) {
  pollfd look{.fd = process, .events = POLLIN, .revents = 0};
  return ::poll(&look, 1, 0) == 1;
}

}  // namespace

std::optional<ClientIdentity> identify_peer(int socket) {
  ucred who{};
  socklen_t length = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &length) != 0) return std::nullopt;
  return ClientIdentity{
      .pid = who.pid, .uid = who.uid, .groups = {who.gid}, .administrator = is_trusted(who.uid)};
}

void find_groups(int socket, std::optional<gid_t> admin_group, ClientIdentity& who) {
  who.groups = groups_of(socket, who.groups.front());
  if (!admin_group) return;
  if (std::find(who.groups.begin(), who.groups.end(), *admin_group) != who.groups.end())
    who.administrator = true;
}

int open_process(int socket, pid_t pid, os::UniqueFd& out) {
  if (const auto error = open_by_socket(socket, pid, out); error != 0) return error;
  return out && has_ended(out.get()) ? -ESRCH : 0;
}

// ---- whether whoever serves a socket is to be trusted

namespace {

namespace fs = std::filesystem;

// The kernel shows all users that a user namespace does not have by one number, which one that it
// has may have as well.
bool is_one_user(uid_t user) {
  constexpr std::uint64_t kAll = 0xffff'ffff;
  uid_t unknown = 65'534;
  std::ifstream("/proc/sys/kernel/overflowuid") >> unknown;
  if (user != unknown) return true;
  std::ifstream map("/proc/self/uid_map");
  std::uint64_t first = 0, outside = 0, count = 0;
  return map >> first >> outside >> count && count == kAll;
}

bool is_root_or_self(uid_t user) {
  return user == 0 || (user == ::geteuid() && is_one_user(user));
}

// Follows a path from directory to directory, through each link, and says who else than root, this
// user and `server` could have led it elsewhere.
class Way {
 public:
  Way(const std::string& path, uid_t server) : server_(server) { put_before(fs::absolute(path)); }

  std::string who_could_change_it() {
    while (!left_.empty()) {
      const auto name = left_.front();
      left_.pop_front();
      if (auto who = step(name); !who.empty()) return who;
    }
    return {};
  }

 private:
  static constexpr int kMostLinks = 40;  // as the kernel

  void put_before(const fs::path& path) {
    if (path.is_absolute()) {
      here_.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
      open_error_ = errno;
      here_text_ = "/";
    }
    std::vector<fs::path> names;
    for (const auto& name : path.relative_path())
      if (!name.empty()) names.push_back(name);  // what ends in / has an empty one
    left_.insert(left_.begin(), names.begin(), names.end());
  }

  std::string step(const fs::path& name) {
    struct stat directory {
    }, entry{};
    if (!here_) return std::string("/ cannot be looked at: ") + std::strerror(open_error_);
    const auto there = (here_text_ / name).string();
    if (::fstat(here_.get(), &directory) != 0 ||
        ::fstatat(here_.get(), name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) != 0)
      return there + " cannot be looked at: " + std::strerror(errno);
    if (auto who = who_else_could_make(directory, entry); !who.empty()) return who;
    if (S_ISLNK(entry.st_mode) && !is_of_proc()) return follow(name, there);
    if (left_.empty()) return {};  // the socket
    os::UniqueFd next(::openat(here_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!next) return there + " cannot be looked at: " + std::strerror(errno);
    here_ = std::move(next);
    here_text_ = there;
    return {};
  }

  std::string who_else_could_make(const struct stat& directory, const struct stat& entry) const {
    // Of a directory whose owner this namespace does not have, the owner may be the host's root.
    const auto owner = directory.st_uid;
    if (!is_root_or_self(owner) && owner != server_ && is_one_user(owner))
      return "user " + std::to_string(owner) + " may make files in " + here_text_.string();
    const auto others_write = (directory.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    // A user may mount there what tells false owners (FUSE), and move a link or a socket of
    // another user there from a directory of its own, but no directory.
    const auto stays = (directory.st_mode & S_ISVTX) != 0 && is_root_or_self(entry.st_uid) &&
                       S_ISDIR(entry.st_mode) && entry.st_dev == directory.st_dev;
    return others_write && !stays ? "others may make files in " + here_text_.string() : "";
  }

  std::string follow(const fs::path& name, const std::string& link) {
    std::array<char, PATH_MAX> target;
    const auto length = ::readlinkat(here_.get(), name.c_str(), target.data(), target.size());
    if (length <= 0 || ++links_ > kMostLinks) return link + " is a link that leads nowhere";
    put_before(std::string(target.data(), static_cast<std::size_t>(length)));
    return {};
  }

  // Its links (/proc/PID/root) lead where no text does. Nobody can make any there.
  [[nodiscard]] bool is_of_proc() const {
    struct statfs system {};
    return ::fstatfs(here_.get(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
  }

  const uid_t server_;
  os::UniqueFd here_;
  int open_error_ = 0;
  fs::path here_text_;
  std::deque<fs::path> left_;  // the rest of the way
  int links_ = 0;
};

}  // namespace

std::string why_distrust(const std::string& path, uid_t server) {
  if (is_root_or_self(server)) return {};
  std::string who;
  try {
    who = Way(path, server).who_could_change_it();
  } catch (const fs::filesystem_error& error) {  // it changes meanwhile
    who = error.what();
  }
  if (who.empty()) return {};
  const auto self = ::geteuid();
  return "user " + std::to_string(server) + " serves this socket, and " + who +
         ": a program lends its memory to who serves its socket. Let root" +
         (self == 0 ? "" : " or user " + std::to_string(self)) + " run stpd, or user " +
         std::to_string(server) +
         " this program, or put the socket where only root, this user or that of stpd may make "
         "files, as " +
         kDefaultSocket;
}

std::string why_distrust_server(const std::string& path, int connected) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0)
    return std::string("the kernel does not tell who serves this socket: ") + std::strerror(errno);
  return why_distrust(path, who.uid);
}

}  // namespace stp::ipc
