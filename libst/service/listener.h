// SPDX-License-Identifier: BSD-3-Clause
// The socket on which stpd accepts clients, and its file. It stops listening for a moment when no
// descriptor is free, because epoll would report it again and again; clients wait in the backlog
// meanwhile.
#pragma once

#include <chrono>
#include <string>

#include "libst/os/unique_fd.h"
#include "libst/service/socket.h"

namespace stp::service {

class Listener {
 public:
  // How long the listener accepts no clients after pause().
  static constexpr std::chrono::milliseconds kPause{100};

  // Creates the socket. Returns 0; -EADDRINUSE: another daemon answers there; or another negative
  // errno.
  int open(const std::string& path, const SocketAccess& access) {
    return listen_at(path, socket_, file_, access);
  }
  [[nodiscard]] bool is_open() const { return static_cast<bool>(socket_); }
  // Removes the file. Closing the result also closes the connections in the backlog and the
  // descriptors in their messages, which may block.
  UniqueFd end();

  // From now on epoll reports clients under this key.
  void watch(int epoll, std::uint64_t key);
  [[nodiscard]] bool is_paused() const { return !watched_; }
  void pause();
  // Ends a pause: at once, or `if_due`.
  void resume();
  void resume_if_due();

  // Accepts a client. Without one, `error` is an errno; starved(error) tells whether clients have
  // to wait because the process or the machine is short of something.
  UniqueFd accept(int& error) const;
  static bool starved(int error);

 private:
  using Clock = std::chrono::steady_clock;

  UniqueFd socket_;
  SocketFile file_;
  int epoll_ = -1;
  std::uint64_t key_ = 0;
  bool watched_ = false;
  Clock::time_point accepts_from_{};
};

}  // namespace stp::service
