// SPDX-License-Identifier: BSD-3-Clause
// Requests and replies on a Unix SOCK_SEQPACKET socket: one message each, of exactly its size,
// descriptors going along. Functions return 0 or a negative errno:
//   -EAGAIN      kDontWait, and it would have waited
//   -ECONNRESET  the other side has gone
//   -EPROTO      received what is no such message
//   -EMFILE      received one with descriptors, and none were wanted or could be had
#pragma once

#include <sys/un.h>

#include <span>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/messages.h"
#include "libst/service/socket_file.h"

namespace stp::service {

inline constexpr std::size_t kMaxFds = kMaxSegments;  // that one of ours has
// What the kernel lets any message have. With less room the kernel would close the others, in the
// thread that receives, and that can wait for ever.
inline constexpr std::size_t kMostFds = 253;

enum class Wait { kWait, kDontWait };

int send_request(int socket, const Request& request, std::span<const int> fds);
// `fds` are the ones that came along: client page and bell for kHello, the channel for kAccept and
// kConnect. They belong to the caller, and are closed on exec.
int receive_reply(int socket, Reply& reply, std::vector<UniqueFd>& fds);

// kRefuse: the message's descriptors are let go of inside the kernel, which may wait for whoever
// stands behind them: see Nudge. The request itself is there even with -EMFILE.
enum class Descriptors { kTake, kRefuse };

// All descriptors of a message are taken, whatever else is wrong with it, and are the caller's to
// close: whatever the result, `fds` has them.
int receive_request(int socket, Request& request, std::vector<UniqueFd>& fds, Wait wait,
                    Descriptors descriptors = Descriptors::kTake);
int send_reply(int socket, const Reply& reply, std::span<const int> fds, Wait wait);

// What may stand behind "stpd:": a path (it has a '/'), the name of one of the daemon's links, or
// nothing for the one that is named stpd.
std::string socket_of(const std::string& target);

// A connection to the daemon at `path`: 0, or -ENOENT, -ECONNREFUSED (nobody answers there), ...
int connect_to(const std::string& path, UniqueFd& out);
// -ENAMETOOLONG, -EINVAL: no socket has such a path.
int address_of(const std::string& path, sockaddr_un& out);
// Whether a daemon listens at `path`, or may: a full backlog is an answer, too.
bool somebody_answers(const std::string& path);

// Listens at `path`, whose file becomes `file`: see SocketFile::bind for errors.
int listen_at(const std::string& path, UniqueFd& out, SocketFile& file,
              const SocketAccess& access = {});

}  // namespace stp::service
