// SPDX-License-Identifier: BSD-3-Clause
// A clock for programs that count instructions. Under the tool a program is much slower, and not
// always by as much: with the system's clock its timers would run out now earlier, now later.
#pragma once

namespace stp::bench {

// From now on each reading of the system's clock by this thread is a step later than the one
// before; other threads see the same time and do not move it on. So how long something takes is how
// often this thread has asked.
void let_time_step_here();

}  // namespace stp::bench
