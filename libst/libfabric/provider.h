// SPDX-License-Identifier: BSD-3-Clause
// The border to libfabric: the provider's name, parameters and log, and how calls come in.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "libst/include/stp/managed.h"
#include "stp/base/caught.h"

namespace stp::fi {

extern fi_provider provider;

// Logs at FI_LOG_LEVEL=info why something is not offered or has failed.
void inform(fi_log_subsys subsystem, const std::string& text);
// The same, of something that strangers can cause: of the first ten times, then of each that
// doubles `count`, which is the number so far. So they do not fill the log.
void warn_seldom(std::uint64_t count, const std::string& what, const std::string& why);
void inform_seldom(std::uint64_t count, const std::string& what, const std::string& why);
// Logs as inform() does, with the managed API's text for this thread's last error. Of what is used
// up it warns: the text names it, with the limit and the remedy. Returns the libfabric error,
// negative.
int explain(fi_log_subsys subsystem, const std::string& what, int status);

// What was under way to the peer, or awaited from it, fails because of that status. Warns of it, as
// seldom as inform_seldom(): programs tell no more than that an operation has failed.
void tell_failed(std::uint64_t count, const std::string& peer, int status);

// The connection to `peer` could not be made, because nobody has answered in time. Warns of it, as
// seldom, with the remedy: programs tell no more than the error.
void tell_unreachable(std::uint64_t count, const std::string& peer);

// Parameters: the environment variables FI_STP_*, shown by fi_info -e.
struct Parameters {
  std::string link;             // FI_STP_LINK, else STP_LINK; empty: all links found
  std::size_t rx_buffers = 32;  // FI_STP_RX_BUFFERS: per endpoint, for short messages
  std::size_t rdm_kept = std::size_t{16} << 20;  // FI_STP_RDM_KEPT: bytes of early messages
  std::size_t connect_timeout = 0;  // FI_STP_CONNECT_TIMEOUT: milliseconds; 0: while the peer lives
};
void define_parameters();
Parameters parameters();

// ---- conversions between calls and objects: fids, exceptions, errors, unsupported calls ----

// The object that begins with the structure `F`, which begins with that fid.
template <class T, class F>
T& object_of(fid_t id) {
  return *static_cast<T*>(reinterpret_cast<F*>(id));
}

// Keeps exceptions out of the program.
template <class Call>
auto guarded(Call call) noexcept -> decltype(call()) {
  return caught(call, [](int error) {  // without a thread: -FI_EAGAIN, as another call may get one
    return static_cast<decltype(call())>(error == EIO ? -FI_EOTHER : -error);
  });
}

// A call that an object does not support. Converts to the type of the pointer it is assigned to.
template <class R, class... Arguments>
R refuse(Arguments...) {
  return static_cast<R>(-FI_ENOSYS);
}

// The `strerror` of a queue: the text of a status of the managed API, or of an error that libfabric
// alone knows.
template <class Queue>
const char* describe_error(Queue*, int status, const void*, char* buffer, std::size_t length) {
  const auto number = status < 0 ? -status : status;
  const auto* const text = number >= FI_ERRNO_OFFSET ? fi_strerror(number) : st_strerror(status);
  if (buffer != nullptr && length != 0) {
    std::strncpy(buffer, text, length - 1);
    buffer[length - 1] = '\0';
  }
  return text;
}

// As explain(), but as a warning: for what nobody should have to ask the log for.
int complain(fi_log_subsys subsystem, const std::string& what, int status);

// The libfabric error number, positive, for a status of the managed API.
[[nodiscard]] inline int error_of(int status) {
  switch (status) {
    case 0:
      return 0;
    case -EMSGSIZE:
      return FI_ETRUNC;
    case -ERANGE:  // beyond the end of the region
      return FI_EACCES;
    case -EPROTO:
      return FI_EOTHER;
    case -EDQUOT:
      return FI_ENOSPC;
    default:
      return -status;
  }
}

}  // namespace stp::fi
