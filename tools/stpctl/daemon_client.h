// SPDX-License-Identifier: BSD-3-Clause
// A connection to one link of stpd. If the daemon cannot be reached, does not answer within 10
// seconds, or is of another version, the functions throw Failure.
#pragma once

#include <span>
#include <string>

#include "libst/os/unique_fd.h"
#include "libst/service/messages.h"

namespace stp::stpctl {

class DaemonClient {
 public:
  explicit DaemonClient(std::string socket);

  // Sends a request and waits for the reply. Returns its result: 0 or a negative errno.
  int ask(service::Request request, service::Reply& reply, std::span<const int> fds = {});
  int ask(service::RequestKind kind, service::Reply& reply);

  [[nodiscard]] const std::string& socket() const { return path_; }

 private:
  std::string path_;
  service::UniqueFd socket_;
};

}  // namespace stp::stpctl
