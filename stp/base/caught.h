// SPDX-License-Identifier: BSD-3-Clause
// Keeps exceptions out of programs, whose calls are those of C.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>

namespace stp {

inline constexpr const char* kNoMemoryLeft =
    "no memory is left: see ulimit -v, MemoryMax of the unit, and what else runs here";

// What people are told of an exception.
inline const char* what_of(const std::exception& failure) {
  return dynamic_cast<const std::bad_alloc*>(&failure) == nullptr ? failure.what() : kNoMemoryLeft;
}

// What `call` returns; or, if it throws, what `failed` makes of an errno.
template <typename Call, typename Failed>
auto caught(Call&& call, Failed&& failed) noexcept -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return failed(ENOMEM);
  } catch (const std::system_error& error) {
    return failed(error.code().value() > 0 ? error.code().value() : EIO);
  } catch (...) {
    return failed(EIO);
  }
}

}  // namespace stp
