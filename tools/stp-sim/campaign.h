// SPDX-License-Identifier: BSD-3-Clause
// Many runs, several at a time.
#pragma once

#include "tools/sim/simulation.h"

namespace stp::sim {

struct Campaign {
  std::uint64_t first_seed = 0, last_seed = 0;
  const Profile* profile = nullptr;  // nullptr: all of them, in turn
  unsigned jobs = 1;
};

// The profile of a seed in a campaign of all profiles.
const Profile& profile_of(std::uint64_t seed);

// How to see a failed run again.
std::string replay_command(const Profile& profile, std::uint64_t seed);

// Plays them, prints each failure with its replay command, and one line at the end. The number of
// runs that failed.
std::uint64_t play(const Campaign& campaign);

// Should a run bring the program down, its replay command is printed.
void name_run_on_crash();
// The run that this thread plays now.
void set_current_run(const Profile& profile, std::uint64_t seed);

}  // namespace stp::sim
