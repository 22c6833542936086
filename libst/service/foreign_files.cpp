// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/foreign_files.h"

#include <sys/socket.h>

#include <utility>

namespace stp::service {

bool ForeignFiles::may_take(uid_t user) const {
  const auto waiting = closer_.waiting();
  return waiting == 0 || (waiting + kMostFds <= room_ && !is_stuck(user));
}

int ForeignFiles::receive(int socket, uid_t user, Request& request, std::vector<UniqueFd>& fds) {
  const auto descriptors = may_take(user) ? Descriptors::kTake : Descriptors::kRefuse;
  if (descriptors == Descriptors::kTake && room_ >= kMostFds)
    return receive_request(socket, request, fds, Wait::kDontWait);
  Nudge::Span const span(*nudge_);  // the kernel closes those that it cannot deliver
  return receive_request(socket, request, fds, Wait::kDontWait, descriptors);
}

void ForeignFiles::hang_up(uid_t user, UniqueFd socket) {
  ::shutdown(socket.get(), SHUT_RDWR);
  close_socket(user, std::move(socket));
}

std::optional<ForeignFiles::Lost> ForeignFiles::tend() {
  closer_.tend();
  const auto before = std::exchange(lost_, closer_.lost());
  if (lost_ <= before) return std::nullopt;
  return Lost{lost_ - before, closer_.who_holds_up().value_or(0)};
}

}  // namespace stp::service
