// SPDX-License-Identifier: BSD-3-Clause
// Plays many runs, several at the same time.
#pragma once

#include "tools/sim/simulation.h"

namespace stp::sim {

struct Campaign {
  std::uint64_t first_seed = 0, last_seed = 0;
  const Profile* profile = nullptr;  // nullptr: all of them, in turn
  unsigned jobs = 1;
  unsigned nodes = 1;
};

// The profile of a seed in a campaign of all profiles.
const Profile& profile_of(std::uint64_t seed);

// The command that plays a failed run again.
std::string replay_command(const Profile& profile, std::uint64_t seed, unsigned nodes);

// Plays the runs. Prints each failure with its replay command, and a summary line at the end.
// Returns the number of failed runs.
std::uint64_t play(const Campaign& campaign);

// Prints the replay command if a run crashes the program.
void name_run_on_crash();
// Sets the run that this thread plays.
void set_current_run(const Profile& profile, std::uint64_t seed, unsigned nodes);

}  // namespace stp::sim
