// SPDX-License-Identifier: BSD-3-Clause
// Errors of the C API: a negative errno, and a detailed text for st_strerror.
#pragma once

#include <cerrno>
#include <new>
#include <string>
#include <system_error>

#include "libst/client/hooks.h"

namespace stp::client {

// Stores `text` for this thread as the description of `error`. Returns `error`.
int fail(int error, std::string text);
// Fails with -EINVAL: a required pointer is NULL.
int not_set(const char* argument);
// Call when a call of the API begins: the stored text is no longer valid.
void clear_failure();
// Returns the stored text if it belongs to `error` (either sign), else the system's text.
const char* describe(int error);

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
int caught(Body&& body) noexcept {
  try {
    clear_failure();
    return body();
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  } catch (const std::system_error& error) {
    return error.code().value() > 0 ? -error.code().value() : -EIO;
  } catch (...) {
    return -EIO;
  }
}

// Wraps the body of the API call `call`: turns exceptions into errors, and reports the result to
// the program's hooks.
template <typename Body>
int guarded(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  const auto result = caught(body);
  call_over(call, result, false);
  return result;
}

// The same for a call that moves frames: only its errors are reported to the hooks.
template <typename Body>
int guarded_per_frame(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  const auto result = caught(body);
  if (result < 0) call_over(call, result, true);
  return result;
}

}  // namespace stp::client
