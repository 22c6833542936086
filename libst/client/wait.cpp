// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/wait.h"

#include <algorithm>
#include <ctime>
#include <limits>

#include "dpdk_port/port.h"
#include "libst/client/error.h"
#include "libst/os/futex.h"

namespace stp::client {
namespace {

// The longest sleep: a sleeper notices at most this much later that stpd has gone.
constexpr Time kSlice = 100 * kMillisecond;

}  // namespace

Time now() {
  return port::now();
}

int deadline_of(const timeval* timeout, Time& out) {
  out = kNever;
  if (timeout == nullptr) return 0;
  constexpr long kMicrosecondsOfSecond = 1'000'000;
  if (timeout->tv_sec < 0 || timeout->tv_usec < 0 || timeout->tv_usec >= kMicrosecondsOfSecond)
    return fail(-EINVAL, "timeout must have tv_sec from 0 and tv_usec from 0 to 999999");
  if (timeout->tv_sec == 0 && timeout->tv_usec == 0) {
    out = 0;
    return 0;
  }
  const auto seconds = static_cast<Time>(timeout->tv_sec);
  constexpr auto kLongest = std::numeric_limits<std::int64_t>::max() / kSecond;
  if (seconds < kLongest)
    out = now() + seconds * kSecond + static_cast<Time>(timeout->tv_usec) * kMicrosecond;
  return 0;
}

int sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, Time deadline) {
  const auto present = now();
  if (deadline <= present) return 0;
  const auto length = std::min(kSlice, deadline - present);
  const timespec timeout{.tv_sec = 0, .tv_nsec = static_cast<long>(length)};
  const auto slept = ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen,
                               &timeout, nullptr, 0);
  if (slept == 0) return kWoken;
  return errno == EINTR ? -EINTR : 0;
}

void wake_others(std::atomic<std::uint32_t>& word) {
  os::futex_wake(word, std::numeric_limits<int>::max());
}

void wake_all(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1);
  wake_others(word);
}

void pause(Backend& backend, Time time) {
  PageEvents events(backend.page());
  const auto deadline = now() + time;
  const auto over = [deadline] { return now() >= deadline; };
  while (wait_until(backend, events, deadline, over) == -EINTR) {
  }
}

}  // namespace stp::client
