// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include "tests/hostile/cannot.h"
#include "tests/hostile/many_mappings.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {
namespace {

// All processes that share an open file description share its flags.
void take_flags(int fd) {
  ::fcntl(fd, F_SETOWN, ::getpid());
  ::fcntl(fd, F_SETSIG, SIGURG);
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  ::fcntl(fd, F_SETFL, (::fcntl(fd, F_GETFL) | O_ASYNC) & ~O_NONBLOCK);
}

void lock(int fd) {
  ::flock(fd, LOCK_EX | LOCK_NB);
  struct flock range {};
  range.l_type = F_WRLCK;
  ::fcntl(fd, F_OFD_SETLK, &range);
  range.l_pid = 0;
  ::fcntl(fd, F_SETLK, &range);
  ::fcntl(fd, F_SETLEASE, F_WRLCK);
}

// Tries to shrink memory that stpd has also mapped, which must fail.
void cut(int fd, const char* what) {
  struct stat before {};
  if (::fstat(fd, &before) != 0) return;
  ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, before.st_size);
  if (::ftruncate(fd, 0) == 0) throw Breach(std::string("could shrink ") + what);
  ::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE);
  ::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SEAL);
}

// A bell that is always full, or always empty.
void disturb_bell(int bell, bool fill) {
  pollfd ready{.fd = bell, .events = POLLIN, .revents = 0};
  std::uint64_t count = ~std::uint64_t{1};
  if (fill) {
    ready.events = POLLOUT;
    if (::poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0) {
      ::fcntl(bell, F_SETFL, O_NONBLOCK);
      [[maybe_unused]] const auto put = ::write(bell, &count, sizeof count);
      ::fcntl(bell, F_SETFL, 0);
    }
  } else if (::poll(&ready, 1, 0) == 1) {
    ::fcntl(bell, F_SETFL, O_NONBLOCK);
    [[maybe_unused]] const auto got = ::read(bell, &count, sizeof count);
    ::fcntl(bell, F_SETFL, 0);
  }
}

}  // namespace

void sharing(Attack& attack) {
  std::signal(SIGURG, SIG_IGN);
  Client client(attack.socket);
  if (!client.ok()) throw Cannot("stpd does not take it");
  auto ends = client.connect_to_itself(attack.uport);
  if (!ends.out || !ends.in) throw Cannot("no connection with itself");
  const auto memory = shareable(64 * kPage);
  std::uint64_t region = 0;
  // Their Bufx are not in use: this tests the descriptor.
  if (client.map(ends.listener, Direction::kReceive, 0, memory.get(), 4 * kBuffer, region) != 0)
    throw Cannot("its memory is not taken");
  const auto all = {client.bell(),    client.page_fd(), ends.out.fd.get(),
                    ends.in.fd.get(), client.socket(),  memory.get()};
  for (const auto fd : all) take_flags(fd);
  for (const auto fd : all) lock(fd);
  // Restores its socket, because it could not send requests otherwise.
  ::fcntl(client.socket(), F_SETFL, 0);
  say_ready();
  std::uint64_t rounds = 0;
  while (!attack.over()) {
    for (const auto fd : all) take_flags(fd);
    disturb_bell(client.bell(), rounds / 1'000 % 2 == 0);
    client.page().bells.ring(ends.out.bell);
    if (rounds++ % 100 != 0) continue;
    // Also clears the flag in the page, as if stpd did not sleep.
    client.page().service_asleep.store(0);
    std::uint64_t const one = 1;
    ::fcntl(client.bell(), F_SETFL, O_NONBLOCK);
    [[maybe_unused]] const auto put = ::write(client.bell(), &one, sizeof one);
    ::fcntl(client.bell(), F_SETFL, 0);
  }
  cut(memory.get(), "memory that it has mapped");
  cut(ends.out.fd.get(), "a channel");
  cut(client.page_fd(), "its page");
  ::fcntl(client.bell(), F_SETFL, O_NONBLOCK);  // this program filled it itself
  client.ring(ends.out);
  say("rounds", rounds);
}

// The kernel goes through all mappings of a page that is taken away, and whoever touches it waits.
// In every other life it says meanwhile that it has mapped the page: then stpd is about to use it.
void punch(Attack& attack) {
  constexpr std::size_t kBytes = sizeof(ipc::ClientPage);
  std::uint64_t punches = 0, lives = 0;
  say_ready();
  for (; !attack.over(); ++lives) {
    Client client(attack.socket, false);
    if (!client.ok()) continue;
    const ManyMappings mapped(client.page_fd(), kBytes);
    std::thread says;
    if (lives % 2 == 1) says = std::thread([&] { client.say_mapped(0); });
    for (int i = 0; i < 100 && !attack.over(); ++i) {
      if (::fallocate(client.page_fd(), kPunch, 0, kBytes) != 0) break;
      ++punches;
    }
    if (says.joinable()) says.join();
  }
  say("punches", punches);
  say("lives", lives);
}

// The same while stpd maps the file for a region.
void contend(Attack& attack) {
  std::uint64_t regions = 0;
  say_ready();
  while (!attack.over()) {
    const auto file = shareable(kBuffer);
    const ManyMappings mapped(file.get(), kPage);
    Client client(attack.socket);
    const auto endpoint = client.ok() ? client.open_endpoint() : 0;
    if (endpoint == 0) continue;
    std::atomic<bool> stop{false};
    std::thread puncher([&] {
      while (!stop) ::fallocate(file.get(), kPunch, 0, kPage);
    });
    std::uint64_t region = 0;
    if (client.map(endpoint, Direction::kReceive, 0, file.get(), kBuffer, region) == 0) ++regions;
    stop = true;
    puncher.join();
  }
  say("regions", regions);
}

// The kernel takes pages out of all mappings in order to make a huge page of them.
void huge(Attack& attack) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack
  std::uint64_t lives = 0, made = 0;
  say_ready();
  for (; !attack.over(); ++lives) {
    Client client(attack.socket);
    if (!client.ok()) continue;
    const ManyMappings mapped(client.page_fd(), sizeof(ipc::ClientPage));
    auto* const room = static_cast<std::byte*>(
        ::mmap(nullptr, 2 * kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    auto* const at = room + (kHuge - reinterpret_cast<std::uintptr_t>(room) % kHuge);
    ::mmap(at, kHuge, PROT_READ, MAP_SHARED | MAP_FIXED, client.page_fd(), 0);
    for (int i = 0; i < 100 && !attack.over(); ++i)
      if (::madvise(at, kHuge, kCollapse) == 0) ++made;
    ::munmap(room, 2 * kHuge);
  }
  say("made", made);
  say("lives", lives);
}

}  // namespace stp::hostile
