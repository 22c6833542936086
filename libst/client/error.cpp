// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/error.h"

#include <cstdlib>
#include <cstring>

namespace stp::client {
namespace {

// The thread's last failure: its errno (positive) and its text. A new call clears only the number:
// touching the string would construct it in each thread.
constinit thread_local int last_error = 0;
thread_local std::string last_text;

}  // namespace

int fail(int error, std::string text) {
  last_error = std::abs(error);
  last_text = std::move(text);
  return error;
}

int not_set(const char* argument) {
  return fail(-EINVAL, std::string("argument '") + argument + "' is NULL");
}

KeepFailure::KeepFailure() : error_(last_error), text_(last_text) {}

KeepFailure::~KeepFailure() {
  last_error = error_;
  last_text = std::move(text_);
}

void clear_failure() {
  last_error = 0;
}

const char* describe(int error) {
  const auto number = std::abs(error);
  if (number != 0 && number == last_error && !last_text.empty()) return last_text.c_str();
  thread_local char text[128];
  return ::strerror_r(number, text, sizeof text);
}

}  // namespace stp::client
