// SPDX-License-Identifier: BSD-3-Clause
// How the kernel shares a core between this thread and others.
#pragma once

#include <cstdint>
#include <optional>

namespace stp::service {

// The kernel's struct sched_attr, whose own header does not go together with the C library's.
struct Scheduling {
  std::uint32_t size = 0, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t slice = 0, deadline = 0, period = 0;  // nanoseconds
};

// Of the calling thread; nullopt: the kernel does not say.
std::optional<Scheduling> scheduling();

// Asks for little of a core at a time, and so, on a core that others keep busy, to be served soon
// (Linux 6.12). An older kernel goes on as it always did, and a policy that an operator has chosen
// stays as it is.
void ask_for_short_slices();
inline constexpr std::uint64_t kShortSlice = 100'000;

}  // namespace stp::service
