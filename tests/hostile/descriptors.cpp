// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <list>
#include <thread>
#include <vector>

#include "tests/hostile/cannot.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {
namespace {

constexpr std::size_t kMostDescriptors = 253;

struct Kind {
  std::string name;
  UniqueFd fd;
  bool good = false;  // memory that stpd may take
};

// A socket that is connected over the loopback interface, full of unread data, and set to linger
// when it is closed. Keeps its other end.
UniqueFd lingering(std::list<UniqueFd>& kept) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || !fd || ::bind(listener.get(), any, size) != 0 ||
      ::listen(listener.get(), 1) != 0 || ::getsockname(listener.get(), any, &size) != 0 ||
      ::connect(fd.get(), any, size) != 0)
    return {};
  kept.emplace_back(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const std::vector<std::byte> bytes(1U << 16);
  while (::send(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  const linger how{.l_onoff = 1, .l_linger = 4};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &how, sizeof how);
  return fd;
}

UniqueFd memory(unsigned flags, std::size_t size, int seals) {
  UniqueFd fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) return {};
  if (seals != 0) ::fcntl(fd.get(), F_ADD_SEALS, seals);
  return fd;
}

UniqueFd temporary_file() {
  std::string path = "/tmp/hostile-XXXXXX";
  UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));
  if (fd) ::unlink(path.c_str());
  if (fd && ::ftruncate(fd.get(), kBuffer) != 0) return {};
  return fd;
}

UniqueFd fifo() {
  std::string path = "/tmp/hostile-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return {};
  const auto name = path + "/fifo";
  UniqueFd fd;
  if (::mkfifo(name.c_str(), 0600) == 0) fd.reset(::open(name.c_str(), O_RDWR | O_CLOEXEC));
  ::unlink(name.c_str());
  ::rmdir(path.c_str());
  return fd;
}

// An epoll that watches an epoll that watches an epoll...
UniqueFd nested_epoll(std::list<UniqueFd>& kept) {
  UniqueFd inner(::eventfd(0, EFD_CLOEXEC));
  for (int depth = 0; depth < 4; ++depth) {
    UniqueFd outer(::epoll_create1(EPOLL_CLOEXEC));
    epoll_event event{};
    event.events = EPOLLIN;
    ::epoll_ctl(outer.get(), EPOLL_CTL_ADD, inner.get(), &event);
    kept.push_back(std::move(inner));
    inner = std::move(outer);
  }
  return inner;
}

std::vector<Kind> all_kinds(const Client& client, std::list<UniqueFd>& kept) {
  std::vector<Kind> kinds;
  const auto add = [&](const std::string& name, UniqueFd fd, bool good = false) {
    if (fd) kinds.push_back({name, std::move(fd), good});
  };
  std::array<int, 2> pair{};
  if (::pipe2(pair.data(), O_CLOEXEC) == 0) {
    add("a pipe's reading end", UniqueFd(pair[0]));
    add("a pipe's writing end", UniqueFd(pair[1]));
  }
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) == 0) {
    add("a socket", UniqueFd(pair[0]));
    kept.emplace_back(pair[1]);
  }
  add("a socket that lingers", lingering(kept));
  add("a FIFO", fifo());
  add("a directory", UniqueFd(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
  add("a path", UniqueFd(::open("/tmp", O_PATH | O_CLOEXEC)));
  add("a device", UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC)));
  add("a terminal", UniqueFd(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)));
  add("a file", temporary_file());
  add("a file of /proc", UniqueFd(::open("/proc/self/mem", O_RDWR | O_CLOEXEC)));
  add("an eventfd", UniqueFd(::eventfd(0, EFD_CLOEXEC)));
  add("a timer", UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)));
  add("an inotify", UniqueFd(::inotify_init1(IN_CLOEXEC)));
  sigset_t signals;
  sigemptyset(&signals);
  add("a signalfd", UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC)));
  add("an epoll of epolls", nested_epoll(kept));
  add("a pidfd", UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))));
  add("a userfaultfd",
      UniqueFd(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY))));
  add("stpd's own socket", UniqueFd(::dup(client.socket())));
  add("stpd's own bell", UniqueFd(::dup(client.bell())));
  add("memory without a seal", memory(0, kBuffer, 0));
  add("memory sealed against growing", memory(0, kBuffer, F_SEAL_GROW));
  add("memory that is too small", memory(0, kPage, F_SEAL_SHRINK));
  add("memory without a byte", memory(0, 0, F_SEAL_SHRINK));
  add("huge pages", memory(MFD_HUGETLB, std::size_t{2} << 20, F_SEAL_SHRINK));
  add("memory that cannot be written", memory(0, kBuffer, F_SEAL_SHRINK | F_SEAL_WRITE));
  add("good memory", shareable(kBuffer), true);
  return kinds;
}

Request map_request(std::uint64_t endpoint) {
  auto order = Client::request(RequestKind::kMap, endpoint);
  order.direction = static_cast<std::uint32_t>(Direction::kReceive);
  order.segment_count = order.piece_count = 1;
  order.segments[0] = {.fd_index = 0, .reserved = 0, .offset = 0, .length = kBuffer};
  order.pieces[0] = {.at = 0, .length = kBuffer};
  return order;
}

bool administers(Client& client) {
  return client.ask(RequestKind::kAdminLink) == 0 && client.reply().admin.administrator == 1;
}

// Sends the descriptor with a map request, which is answered, and with all requests that take none.
std::uint64_t try_kind(const std::string& socket, const Kind& kind) {
  std::uint64_t sent = 0;
  const auto fd = kind.fd.get();
  for (const auto request :
       {RequestKind::kMap, RequestKind::kTraceStart, RequestKind::kHello, RequestKind::kListen}) {
    Client client(socket);
    if (!client.ok()) continue;
    const auto endpoint = client.open_endpoint();
    auto order =
        request == RequestKind::kMap ? map_request(endpoint) : Client::request(request, endpoint);
    const auto result = client.ask(order, std::span(&fd, 1));
    ++sent;
    // An administrator may write a trace to a file.
    if (request == RequestKind::kTraceStart && kind.name == "a file" && administers(client))
      continue;
    if (result == 0 && !kind.good) throw Breach("stpd took " + kind.name);
  }
  return sent;
}

// Sends as many as the kernel permits, in messages that are complete, too short, too long and
// empty.
std::uint64_t try_many(const std::string& socket, std::span<const int> some) {
  std::vector<int> fds;
  while (fds.size() < kMostDescriptors) fds.push_back(some[fds.size() % some.size()]);
  std::uint64_t sent = 0;
  const auto whole = host::bytes_of(Client::request(RequestKind::kMap)).size();
  for (const std::size_t size : {whole, whole - 1, whole + 100, std::size_t{1}, std::size_t{0}}) {
    Client client(socket);
    if (!client.ok()) continue;
    auto bytes = host::bytes_of(map_request(client.open_endpoint()));
    bytes.resize(size);
    sent += client.send_raw(bytes, fds) ? 1 : 0;
  }
  return sent;
}

// Leaves messages with descriptors unread when the socket is closed.
std::uint64_t leave_unread(const std::string& socket, std::span<const int> fds) {
  Client client(socket);
  if (!client.ok()) return 0;
  const auto order = map_request(client.open_endpoint());
  std::uint64_t sent = 0;
  while (sent < 64 && client.send_raw(host::bytes_of(order), fds)) ++sent;
  return sent;
}

// Makes stpd hold the last reference: closes its own before stpd has read the message.
std::uint64_t give_away_lingering(const std::string& socket, std::list<UniqueFd>& kept) {
  std::uint64_t sent = 0;
  for (int i = 0; i < 6; ++i) {
    Client client(socket);
    if (!client.ok()) continue;
    const auto order =
        i % 2 == 0 ? map_request(client.open_endpoint()) : Client::request(RequestKind::kHello);
    auto file = lingering(kept);
    const auto fd = file.get();
    sent += client.send_raw(host::bytes_of(order), std::span(&fd, 1)) ? 1 : 0;
    // If it is the last reference after all, its close blocks that thread and not this one.
    std::thread([last = std::move(file)]() mutable { last.reset(); }).detach();
  }
  return sent;
}

}  // namespace

void descriptors(Attack& attack) {
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  std::list<UniqueFd> kept;
  auto kinds = all_kinds(client, kept);
  say("kinds", kinds.size());
  say_ready();
  std::uint64_t sent = 0;
  for (const auto& kind : kinds) {
    sent += try_kind(attack.socket, kind);
    const auto fd = kind.fd.get();
    sent += try_many(attack.socket, std::span(&fd, 1));
    sent += leave_unread(attack.socket, std::span(&fd, 1));
  }
  sent += give_away_lingering(attack.socket, kept);
  std::vector<int> all;
  for (const auto& kind : kinds) all.push_back(kind.fd.get());
  sent += try_many(attack.socket, all);
  sent += leave_unread(attack.socket, all);
  say("sent", sent);
  rest(attack);
}

void deaf(Attack& attack) {
  constexpr std::size_t kClients = 8;
  std::list<Client> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.emplace_back(attack.socket);
    if (!clients.back().ok()) throw Cannot("stpd does not take it");
  }
  say_ready();
  const auto order = Client::request(RequestKind::kHello);
  std::uint64_t sent = 0;
  while (!attack.over())
    for (const auto& client : clients)
      for (int i = 0; i < 64; ++i) sent += client.send_raw(host::bytes_of(order), {}) ? 1 : 0;
  say("sent", sent);
}

}  // namespace stp::hostile
