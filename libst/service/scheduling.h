// SPDX-License-Identifier: BSD-3-Clause
// How the kernel shares a core between this thread and others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace stp::service {

// The kernel's struct sched_attr. Its own header conflicts with the C library's.
struct Scheduling {
  std::uint32_t size = 0, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t slice = 0, deadline = 0, period = 0;  // nanoseconds
};

// Settings of a thread, 0: the calling one; nullopt: the kernel does not tell.
std::optional<Scheduling> scheduling(pid_t thread = 0);

// Asks for short time slices, so that the kernel schedules the thread soon on a busy core (Linux
// 6.12). Has no effect on older kernels. Leaves a policy that an operator has chosen as it is.
void ask_for_short_slices();
inline constexpr std::uint64_t kShortSlice = 100'000;

}  // namespace stp::service
