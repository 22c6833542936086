// SPDX-License-Identifier: BSD-3-Clause
// Descriptors that clients send to stpd, and sockets in which clients may have left some. The
// server's thread takes only as many as the process has room for, and never closes one: that may
// block for ever (closer.h). A user whose files cannot be closed may send no more of them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/closer.h"
#include "libst/service/nudge.h"
#include "libst/service/socket.h"

namespace stp::service {

class ForeignFiles {
 public:
  // `room`: how many may be attached to requests or wait to be closed.
  explicit ForeignFiles(std::size_t room) : room_(room) {}

  // The thread that calls receive() calls these first and last.
  void begin_receiving() { nudge_.emplace(); }
  void end_receiving() { nudge_.reset(); }
  // Receives a request of `user` without waiting, as receive_request(). -EMFILE: its descriptors
  // were refused.
  int receive(int socket, uid_t user, Request& request, std::vector<UniqueFd>& fds);
  // Closes what nobody has taken over. Never blocks.
  void close(uid_t user, std::vector<UniqueFd>& fds) { closer_.close(user, fds); }
  // Closes a socket of a client, in which descriptors may be left, as it closes descriptors.
  // hang_up(): the client sees the end of its connection at once.
  void hang_up(uid_t user, UniqueFd socket);
  void close_socket(uid_t user, UniqueFd socket) {
    closer_.close(user, std::move(socket), Closer::Kind::kSocket);
  }

  // Too many of this user wait to be closed, or one cannot be closed.
  [[nodiscard]] bool is_stuck(uid_t user) const {
    return closer_.waiting(user) >= Closer::kMostPerUser || has_lost(user);
  }
  // A descriptor of this user cannot be closed.
  [[nodiscard]] bool has_lost(uid_t user) const { return closer_.lost(user) != 0; }
  // Too many sockets of this user wait to be closed.
  [[nodiscard]] bool has_left_sockets(uid_t user) const {
    return closer_.waiting(user, Closer::Kind::kSocket) >= Closer::kMostSocketsPerUser;
  }
  // So many wait to be closed that no more clients should be accepted for a moment.
  [[nodiscard]] bool is_crowded() const { return closer_.waiting() > room_ / 2; }

  struct Lost {
    std::size_t more = 0;  // descriptors
    uid_t user = 0;        // whose one of them is
  };
  // Call now and then. Returns the threads that were lost to a descriptor since the last call.
  std::optional<Lost> tend();

 private:
  [[nodiscard]] bool may_take(uid_t user) const;

  const std::size_t room_;
  Closer closer_;
  std::optional<Nudge> nudge_;
  std::size_t lost_ = 0;  // at the last tend()
};

}  // namespace stp::service
