// SPDX-License-Identifier: BSD-3-Clause
// A connection to one stpd. Every error throws Failure.
#pragma once

#include <span>
#include <string>

#include "libst/os/unique_fd.h"
#include "libst/service/messages.h"

namespace stp::stpctl {

class DaemonClient {
 public:
  explicit DaemonClient(std::string socket);

  // The result of the request, which may be an error; what that means depends on the request.
  int ask(service::Request request, service::Reply& reply, std::span<const int> fds = {});
  int ask(service::RequestKind kind, service::Reply& reply);

  [[nodiscard]] const std::string& socket() const { return path_; }

 private:
  std::string path_;
  service::UniqueFd socket_;
};

}  // namespace stp::stpctl
