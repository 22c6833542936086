// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/owners.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "dpdk_port/link/link.h"
#include "stp/base/printable.h"

namespace stp::port {

namespace {

// Whether the thread has ended, or will as soon as it can: it is on its way out, or has been
// killed. `folder`: /proc/PID/task/TID.
bool is_ending(const std::filesystem::path& folder) {
  constexpr std::uint64_t kExiting = 4;  // PF_EXITING
  std::ifstream stat(folder / "stat"), status(folder / "status");
  std::string text;
  std::getline(stat, text);  // 4711 (stpd) S PPID PGRP SESSION TTY TPGID FLAGS ...
  std::istringstream fields(text.substr(std::min(text.rfind(')'), text.size() - 1) + 1));
  char state = 0;
  std::string skipped;
  std::uint64_t flags = 0, pending = 0;
  fields >> state >> skipped >> skipped >> skipped >> skipped >> skipped >> flags;
  while (status >> text)
    if (text == "SigPnd:") status >> std::hex >> pending >> std::dec;
  return text.empty() || state == 'Z' || state == 'X' || (flags & kExiting) != 0 ||
         (pending >> (SIGKILL - 1) & 1) != 0;
}

// A process whose first thread has ended by itself goes on as long as others do.
bool has_ended_but_for_a_thread(const std::string& folder) {
  std::ifstream stat(folder + "/stat");
  std::string status;
  std::getline(stat, status);  // 4711 (stpd) Z 1 ...
  const auto behind_name = status.rfind(')');
  if (behind_name == std::string::npos || status.compare(behind_name, 4, ") Z ") != 0) return false;
  std::error_code gone;
  for (std::filesystem::directory_iterator at(folder + "/task", gone), end; !gone && at != end;
       at.increment(gone))
    if (!is_ending(at->path())) return false;
  return true;
}

}  // namespace

std::string program_of(pid_t pid) {
  const auto folder = "/proc/" + std::to_string(pid);
  std::string name;
  std::ifstream comm(folder + "/comm");
  std::getline(comm, name);
  // Whoever runs it has chosen the name.
  return (name.empty() ? "a program" : printable(name)) + ", pid " + std::to_string(pid) +
         (has_ended_but_for_a_thread(folder)
              ? ", which has ended but for a thread that another program holds up"
              : "");
}

namespace {

struct Address {
  sockaddr_un name{};
  socklen_t size = 0;

  Address(int index, const MacAddr& mac) {
    const std::string text = "stp-link:" + std::to_string(index) + ':' + to_string(mac);
    name.sun_family = AF_UNIX;
    text.copy(name.sun_path + 1, sizeof name.sun_path - 1);  // a leading zero: abstract
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

int unix_socket() {
  return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

struct Holder {
  pid_t pid = 0;
  uid_t user = 0;
};

// The process that listens at that name; nullopt: none that shows itself.
std::optional<Holder> listener_at(const Address& address) {
  const int fd = unix_socket();
  if (fd < 0) return std::nullopt;
  ucred owner{};
  socklen_t size = sizeof owner;
  std::optional<Holder> holder;
  if (::connect(fd, address.get(), address.size) == 0 &&
      ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &size) == 0 && owner.pid != 0)
    holder = Holder{owner.pid, owner.uid};
  ::close(fd);
  return holder;
}

// Anybody may listen at a name, but not open a packet socket on an interface. So each owner has one
// more, the mark, which tells the address by the protocol that it asks for and receives nothing.
constexpr int kMarkType = SOCK_DGRAM;

std::uint16_t protocol_of_mark(const MacAddr& mac) {
  constexpr std::uint64_t kMixer = 0x9e3779b97f4a7c15;
  constexpr unsigned kLeast = 0x600;  // what is below is no protocol but a length
  const auto mixed = static_cast<unsigned>(mac.to_u64() * kMixer >> 40);
  return static_cast<std::uint16_t>(kLeast + mixed % (0x10000 - kLeast));
}

// -1: no packet socket can be opened.
int open_mark(int index, const MacAddr& mac) {
  const int fd = ::socket(AF_PACKET, kMarkType | SOCK_CLOEXEC, 0);
  sock_filter nothing[] = {{BPF_RET | BPF_K, 0, 0, 0}};
  const sock_fprog filter{.len = 1, .filter = nothing};
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(protocol_of_mark(mac));
  address.sll_ifindex = index;
  if (fd >= 0 && ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0 &&
      ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

struct PacketSocketEntry {
  int type = 0, index = 0;
  unsigned protocol = 0;
  uid_t user = 0;
};

// Those of this network namespace.
std::vector<PacketSocketEntry> packet_sockets() {
  std::ifstream table("/proc/self/net/packet");
  std::string line;
  std::getline(table, line);  // sk RefCnt Type Proto Iface R Rmem User Inode
  std::vector<PacketSocketEntry> all;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string skipped;
    PacketSocketEntry each;
    fields >> skipped >> skipped >> each.type >> std::hex >> each.protocol >> std::dec >>
        each.index >> skipped >> skipped >> each.user;
    if (fields) all.push_back(each);
  }
  return all;
}

std::size_t marks_at(int index, const MacAddr& mac) {
  const auto all = packet_sockets();
  return static_cast<std::size_t>(std::ranges::count_if(all, [&](const auto& each) {
    return each.index == index && each.type == kMarkType && each.protocol == protocol_of_mark(mac);
  }));
}

bool has_packet_socket(uid_t user, int index) {
  for (const auto& each : packet_sockets())
    if (each.index == index && each.user == user) return true;
  return false;
}

// Whoever owns that address; "": nobody, or only a name with neither behind it. One that has given
// up its rights before the interface came has no mark.
std::string owner_of(int index, const MacAddr& mac) {
  const auto holder = listener_at(Address(index, mac));
  if (marks_at(index, mac) == 0 && !(holder && has_packet_socket(holder->user, index))) return {};
  return holder ? program_of(holder->pid) : "another program";
}

}  // namespace

std::string InterfaceOwner::find(int index, const MacAddr& mac) {
  return owner_of(index, mac);
}

std::unique_ptr<InterfaceOwner> InterfaceOwner::claim(const std::string& interface, int index,
                                                      const MacAddr& mac, std::string& error) {
  const Address address(index, mac);
  const int fd = unix_socket();
  std::unique_ptr<InterfaceOwner> owner(new InterfaceOwner(fd));
  const auto failed = [&](const std::string& why) {
    error = why;
    return nullptr;
  };
  const auto owned_by = [&](const std::string& other) {
    return failed("interface " + interface + " has an owner: " + other +
                  "; end it, reach its link (stpd:) instead, or take another address here (mac=)");
  };
  if (const auto other = owner_of(index, mac); !other.empty()) return owned_by(other);
  owner->mark_ = open_mark(index, mac);
  if (fd < 0)
    return failed(std::string("no socket to say who owns the interface: ") + std::strerror(errno));
  if (::bind(fd, address.get(), address.size) == 0 && ::listen(fd, 1) == 0) return owner;
  if (errno != EADDRINUSE)
    return failed(std::string("no name to say who owns the interface: ") + std::strerror(errno));
  // Of two that begin at once the one with the name is the owner.
  if (marks_at(index, mac) > 1) return owned_by("another program");
  return owner;
}

void InterfaceOwner::tend() const {
  constexpr unsigned kAtOnce = 16;
  for (unsigned i = 0; fd_ >= 0 && i < kAtOnce; ++i) {
    const int asker = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (asker < 0) return;
    ::close(asker);
  }
}

InterfaceOwner::~InterfaceOwner() {
  if (fd_ >= 0) ::close(fd_);
  if (mark_ >= 0) ::close(mark_);
}

namespace {

// The process that has locked the file; 0: none that is visible from here.
pid_t locker_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return 0;
  std::ifstream table("/proc/locks");
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);  // 1: FLOCK ADVISORY WRITE 4711 00:05:99 0 EOF
    std::string skipped, kind, file;
    pid_t pid = 0;
    fields >> skipped >> kind >> skipped >> skipped >> pid >> file;
    if (fields && kind == "FLOCK" && file.ends_with(':' + std::to_string(status.st_ino)))
      return pid;
  }
  return 0;
}

}  // namespace

std::unique_ptr<PciOwner> PciOwner::claim(const std::string& address, const std::string& file,
                                          std::string& error) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  std::unique_ptr<PciOwner> owner(new PciOwner(fd));
  if (fd < 0) {
    error = file + " does not open: " + std::strerror(errno) +
            (errno == EACCES || errno == EPERM ? "; only root can use a NIC under uio" : "");
    return nullptr;
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return owner;
  if (errno != EWOULDBLOCK) {
    error = file + " cannot be locked: " + std::strerror(errno);
    return nullptr;
  }
  error = "NIC " + address + " has an owner: ";
  const pid_t other = locker_of(fd);
  error += other == 0 ? "another program" : program_of(other);
  error += "; end it, or reach its link (stpd:) instead";
  return nullptr;
}

PciOwner::~PciOwner() {
  if (fd_ >= 0) ::close(fd_);
}

// The probe has another type than the servers' sockets (SOCK_SEQPACKET, SOCK_STREAM). So the kernel
// finds the process, but connects nobody: a client that comes and leaves would disturb the server,
// and DPDK's memif does not survive it.
int probe_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.find('\0') != std::string::npos) return EINVAL;
  if (path.size() >= sizeof address.sun_path) return ENAMETOOLONG;
  path.copy(address.sun_path, path.size());
  const int probe = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return errno;
  const bool connected =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int error = connected || errno == EPROTOTYPE ? 0 : errno;
  ::close(probe);
  return error;
}

std::string why_no_socket(const std::string& path, const std::string& usual) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    return ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)
               ? "a symbolic link that leads nowhere is there: remove it, or name another path"
               : "";
  if (S_ISSOCK(status.st_mode)) return "";
  if (!S_ISDIR(status.st_mode))
    return "a file that is no socket is there: name another path, as " + usual;
  return "it is a directory: name a file in it, as " + path + (path.ends_with('/') ? "" : "/") +
         usual.substr(usual.rfind('/') + 1);
}

void remove_stale_socket(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  if (probe_socket(path) == ECONNREFUSED) ::unlink(path.c_str());
}

}  // namespace stp::port
