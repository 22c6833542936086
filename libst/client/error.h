// SPDX-License-Identifier: BSD-3-Clause
// How calls of the C API fail: a negative errno, and a text for st_strerror that says more.
#pragma once

#include <cerrno>
#include <new>
#include <string>
#include <system_error>

#include "libst/client/hooks.h"

namespace stp::client {

// Remembers `text` for this thread as what `error` was about; returns `error`.
int fail(int error, std::string text);
// -EINVAL: a pointer that the call needs.
int not_set(const char* argument);
// A new call begins: what the last one failed of is forgotten.
void clear_failure();
// The remembered text if it belongs to `error` (either sign), else the system's word for it.
const char* describe(int error);

// Puts what is remembered back at the end of a scope.
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

// The body of an API call, which it is named after: no exception gets past it, and who has asked
// learns what became of it.
template <typename Body>
int guarded(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  auto const result = caught(body);
  call_over(call, result, false);
  return result;
}

// As guarded, of a call that moves frames.
template <typename Body>
int guarded_per_frame(Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  auto const result = caught(body);
  if (result < 0) call_over(call, result, true);
  return result;
}

}  // namespace stp::client
