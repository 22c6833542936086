// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/object.h"

#include <stp/st.h>

#include <cerrno>
#include <cstdio>

#include "libst/udapl/core/ia.h"

namespace stp::udapl {

Result result_of(int error) {
  switch (error) {
    case 0:
      return Result::kSuccess;
    case -EAGAIN:
    case -ENOMEM:
    case -EDQUOT:
    case -EMFILE:
      return Result::kInsufficientResources;
    case -EINVAL:
    case -EFAULT:
    case -ERANGE:
      return Result::kInvalidParameter;
    case -EACCES:
      return Result::kPrivilegesViolation;
    case -EBADF:
      return Result::kInvalidHandle;
    case -EBUSY:
    case -EISCONN:
    case -ENOTCONN:
    case -ESHUTDOWN:
      return Result::kInvalidState;
    case -EADDRINUSE:
      return Result::kConnQualInUse;
    case -EHOSTUNREACH:
      return Result::kInvalidAddress;
    default:
      return Result::kInternalError;
  }
}

Result told_result_of(int error, const std::string& what) {
  tell(what, st_strerror(error));
  return result_of(error);
}

void tell(const std::string& what, const char* why) {
  std::fprintf(stderr, "daplstp: %s: %s\n", what.c_str(), why);
}

Object::Object(Kind kind, Ia& ia)
    : ia_(ia), keep_(kind == Kind::kIa ? nullptr : ia.shared_from_this()), kind_(kind) {}

}  // namespace stp::udapl
