// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/error.h"

#include <cstdlib>
#include <cstring>

namespace stp::client {
namespace {

struct Failure {
  int error = 0;  // positive
  std::string text;
};
thread_local Failure last;

}  // namespace

int fail(int error, std::string text) {
  last.error = std::abs(error);
  last.text = std::move(text);
  return error;
}

int not_set(const char* argument) {
  return fail(-EINVAL, std::string("argument '") + argument + "' is NULL");
}

KeepFailure::KeepFailure() : error_(last.error), text_(last.text) {}

KeepFailure::~KeepFailure() {
  last.error = error_;
  last.text = std::move(text_);
}

void clear_failure() {
  last.error = 0;
}

const char* describe(int error) {
  auto const number = std::abs(error);
  if (number == last.error && !last.text.empty()) return last.text.c_str();
  thread_local char text[128];
  return ::strerror_r(number, text, sizeof text);
}

}  // namespace stp::client
