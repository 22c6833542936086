// SPDX-License-Identifier: BSD-3-Clause
// How calls of the C API fail: a negative errno, and a text for st_strerror that says more.
#pragma once

#include <cerrno>
#include <new>
#include <string>
#include <system_error>

namespace stp::client {

// Remembers `text` for this thread as what `error` was about; returns `error`.
int fail(int error, std::string text);
// -EINVAL: a pointer that the call needs.
int not_set(const char* argument);
// A new call begins: what the last one failed of is forgotten.
void clear_failure();
// The remembered text if it belongs to `error` (either sign), else the system's word for it.
const char* describe(int error);

// The body of an API call: no exception gets past it.
template <typename Body>
int guarded(Body&& body) noexcept {
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

}  // namespace stp::client
