// SPDX-License-Identifier: BSD-3-Clause
// Errors of the C API: a negative errno, and a detailed text for st_strerror.
#pragma once

#include <atomic>
#include <cerrno>
#include <string>

#include "dpdk_port/link/start_thread.h"
#include "libst/include/stp/st.h"
#include "stp/base/caught.h"

#if defined(__SANITIZE_THREAD__)
#define STP_SEES_ITS_LOCKS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STP_SEES_ITS_LOCKS 1
#endif
#endif
#ifndef STP_SEES_ITS_LOCKS
#define STP_SEES_ITS_LOCKS 0
// Of ThreadSanitizer, in programs that have it. (Go's race detector has __tsan_acquire as well, but
// with other arguments.)
extern "C" {
[[gnu::weak]] void AnnotateHappensBefore(const char* file, int line, const volatile void* address);
[[gnu::weak]] void AnnotateHappensAfter(const char* file, int line, const volatile void* address);
}
#endif

namespace stp::client {

#if STP_SEES_ITS_LOCKS
struct TellsThreadSanitizer {
  TellsThreadSanitizer() {}
};
#else
// ThreadSanitizer in a program sees no lock of a library that was compiled without it. So each call
// tells it that what a thread has written before the call, another one may use after its own.
class TellsThreadSanitizer {
 public:
  TellsThreadSanitizer() {
    if (AnnotateHappensBefore != nullptr) [[unlikely]]
      AnnotateHappensBefore("", 0, &any_call_);
  }
  ~TellsThreadSanitizer() {
    if (AnnotateHappensAfter != nullptr) [[unlikely]]
      AnnotateHappensAfter("", 0, &any_call_);
  }
  TellsThreadSanitizer(const TellsThreadSanitizer&) = delete;
  TellsThreadSanitizer& operator=(const TellsThreadSanitizer&) = delete;

 private:
  static inline constinit char any_call_ = 0;
};
#endif

// The functions that a program sets to observe its calls: st_set_error_handler, st_set_log.
struct Hook {
  st_hook_t* function = nullptr;
  void* context = nullptr;
};

enum class HookKind { kError, kLog };

void set_hook(HookKind kind, Hook hook);
// Whether one is set.
extern constinit std::atomic<bool> any_hook;
// Reports the end of a call. `per_frame`: a call that moves frames; only its errors are reported,
// except results that a loop around such calls expects.
void tell_hooks(const char* call, int result, bool per_frame);
inline void call_over(const char* call, int result, bool per_frame) {
  if (any_hook.load(std::memory_order_relaxed)) tell_hooks(call, result, per_frame);
}

// Stores `text` for this thread as the description of `error`. It may quote names that others have
// chosen: what could control a terminal becomes '?'. Returns `error`.
int fail(int error, const std::string& text);
// Fails with -EINVAL: a required pointer is NULL.
int not_set(const char* argument);
// The thread's last failure: its errno (positive). A new call clears only this: touching the text
// would construct it in each thread.
extern constinit thread_local int last_error;
// Call when a call of the API begins: the stored text is no longer valid.
inline void clear_failure() {
  last_error = 0;
}
// Returns the stored text if it belongs to `error` (either sign), else the system's text.
const char* describe(int error);
// The same for users: behind the system's text stands what it means here.
const char* full_text(int error);

// Saves the stored failure and restores it at the end of the scope.
class KeepFailure {
 public:
  KeepFailure();
  ~KeepFailure();
  KeepFailure(const KeepFailure&) = delete;
  KeepFailure& operator=(const KeepFailure&) = delete;

 private:
  int error_;
  std::string text_;
};

// Runs `body` and turns exceptions into a negative errno.
template <typename Body>
int run(Body&& body) noexcept {
  clear_failure();
  const auto or_no_thread = [&body]() -> int {
    try {
      return body();
    } catch (const NoThread& none) {
      return fail(-none.code().value(), none.what());
    }
  };
  return caught(or_no_thread, [](int error) { return -error; });
}

// Wraps the body of the API call `call`: turns exceptions into errors, and reports the result to
// the program's hooks.
template <typename Body>
int guarded(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  const TellsThreadSanitizer telling;
  const auto result = run(body);
  call_over(call, result, false);
  return result;
}

// The same for a call that moves frames: only its errors are reported to the hooks.
template <typename Body>
int guarded_per_frame(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  const TellsThreadSanitizer telling;
  const auto result = run(body);
  if (result < 0) call_over(call, result, true);
  return result;
}

}  // namespace stp::client
