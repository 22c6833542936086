// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/room.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <thread>

namespace stp::perf {
namespace {

constexpr std::int64_t kLongestSleep = 100'000;  // us

}  // namespace

Events::Events(stm_queue_t queue, bool sleeps, bool crowded)
    : queue_(queue), sleeps_(sleeps), crowded_(crowded) {}

int Events::take() {
  const auto most = static_cast<int>(batch_.size());
  if (sleeps_) {
    const auto count = stm_queue_wait(queue_, 1, batch_.data(), most, kLongestSleep);
    if (count == -EWOULDBLOCK || count == -EINTR) return 0;
    return checked(count, "waiting for events");
  }
  const auto count = checked(stm_queue_poll(queue_, batch_.data(), most), "polling for events");
  if (count == 0 && crowded_) ::sched_yield();
  return count;
}

namespace {

constexpr unsigned kPageLog2 = 12;
constexpr unsigned kAccess = STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC;

std::size_t round_up(std::size_t length, std::size_t unit) {
  return (std::max<std::size_t>(length, 1) + unit - 1) / unit * unit;
}

}  // namespace

int checked_usage(int result, const std::string& what) {
  if (result == -EINVAL) throw WrongUsage(what + ": " + st_strerror(result));
  return checked(result, what.c_str());
}

Domain open_link(const Setup& setup) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = setup.link.empty() ? nullptr : setup.link.c_str();
  attr.buffer_log2 = setup.buffer_log2;
  stm_domain_t domain = nullptr;
  checked_usage(stm_domain_open(&attr, &domain), "opening the link");
  return Domain(domain);
}

std::uint32_t rate_of_link(stm_domain_t domain) {
  stm_link_info_t info{};
  info.size = sizeof info;
  return stm_link_query(domain, &info) == 0 ? info.megabits : 0;
}

bool is_crowded(const Setup& setup) {
  constexpr unsigned kCoresToSpin = 4;
  return setup.link.starts_with("stpd:") && std::thread::hardware_concurrency() < kCoresToSpin;
}

Room::Room(stm_domain_t domain, unsigned buffer_log2, const Plan& plan) : domain_(domain) {
  const auto unit = std::size_t{1} << std::max(buffer_log2, kPageLog2);
  part_ = round_up(plan.size, unit);
  const auto length = 2 * part_ + unit;
  bytes_.reset(static_cast<unsigned char*>(std::aligned_alloc(unit, length)));
  if (!bytes_) throw std::bad_alloc();
  std::memset(bytes_.get(), 0, length);  // so that no page fault falls into the measurement
  queue_ = make_queue(domain, places_for_events(plan));
  memory_ = register_memory(domain, bytes_.get(), length, kAccess);
  region_ = open_region(memory_, target(), part_, kAccess);
}

}  // namespace stp::perf
