// SPDX-License-Identifier: BSD-3-Clause
// Assertions: conditions that must hold at the border of a mechanism, whatever peers, clients and
// users do.
//
//     STP_ASSERT(open_ > 0, "a Block that completes was open");
//
// A failed assertion is an error of this code, never of a peer or user: outside input is checked
// and counted in every build. The process prints the place, the condition and the text, and aborts.
//
// On in debug and sanitizer builds, together with the work meter, and wherever the build defines
// STP_ASSERTIONS (CMake: -DSTP_ASSERTIONS=ON). Off elsewhere: the compiler checks the condition but
// generates no code, so names stay used. Therefore conditions have no side effects, and those on
// the path of a frame take only a few instructions.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "stp/base/work_meter.h"

#if defined(STP_WORK_METER) || defined(STP_ASSERTIONS)
#define STP_ASSERTIONS_ON 1
#endif

// STP_ASSERT(condition) or STP_ASSERT(condition, "in plain words what must hold").
#define STP_ASSERT(...) STP_ASSERT_IN_WORDS(__VA_ARGS__, "", )

namespace stp {

#ifdef STP_ASSERTIONS_ON
inline constexpr bool kAsserts = true;
#else
inline constexpr bool kAsserts = false;
#endif

[[noreturn, gnu::cold, gnu::noinline]] inline void assertion_failed(const char* file, int line,
                                                                    const char* condition,
                                                                    const char* words) {
  std::fprintf(stderr, "%s:%d: assertion violated: %s%s%s\n", file, line, condition,
               *words == '\0' ? "" : ": ", words);
  std::abort();
}

}  // namespace stp

#ifdef STP_ASSERTIONS_ON
#define STP_ASSERT_IN_WORDS(condition, words, ...) \
  (static_cast<bool>(condition)                    \
       ? static_cast<void>(0)                      \
       : ::stp::assertion_failed(__FILE__, __LINE__, #condition, "" words))
#else
#define STP_ASSERT_IN_WORDS(condition, words, ...) \
  static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
