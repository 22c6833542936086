// SPDX-License-Identifier: BSD-3-Clause
// Requests and replies on a Unix SOCK_SEQPACKET socket: one message each, of exactly its size,
// descriptors going along. Functions return 0 or a negative errno:
//   -EAGAIN      kDontWait, and it would have waited
//   -ECONNRESET  the other side has gone
//   -EPROTO      received what is no such message, or with more than kMaxFds descriptors
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libst/service/messages.h"
#include "libst/service/unique_fd.h"

namespace stp::service {

inline constexpr std::size_t kMaxFds = kMaxSegments;

enum class Wait { kWait, kDontWait };

int send_request(int socket, const Request& request, std::span<const int> fds);
// `fds` are the ones that came along: client page and bell for kHello, the channel for kAccept and
// kConnect. They belong to the caller, and are closed on exec.
int receive_reply(int socket, Reply& reply, std::vector<UniqueFd>& fds);

int receive_request(int socket, Request& request, std::vector<UniqueFd>& fds, Wait wait);
int send_reply(int socket, const Reply& reply, std::span<const int> fds, Wait wait);

// What may stand behind "stpd:": a path (it has a '/'), the name of one of the daemon's links, or
// nothing for the one that is named stpd.
std::string socket_of(const std::string& target);

// A connection to the daemon at `path`: 0, or -ENOENT, -ECONNREFUSED (nobody answers there), ...
int connect_to(const std::string& path, UniqueFd& out);
// Who may connect. Any local user by default: a client reaches only what it made itself, and only
// root's may choose Keys.
struct SocketAccess {
  mode_t mode = 0666;
  std::optional<uid_t> owner;
  std::optional<gid_t> group;
};

// Listens at `path`. A socket file that nobody answers on is removed first; -EADDRINUSE when
// somebody does.
int listen_at(const std::string& path, UniqueFd& out, const SocketAccess& access = {});

}  // namespace stp::service
