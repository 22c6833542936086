// SPDX-License-Identifier: BSD-3-Clause
// Requests and replies on a Unix SOCK_SEQPACKET socket: one message each, of exactly its size, with
// descriptors attached. Functions return 0 or a negative errno:
//   -EAGAIN      kDontWait, and the call would block
//   -ECONNRESET  the peer has closed the socket
//   -EPROTO      the received message is invalid
//   -EMFILE      the received message had descriptors that were not wanted or could not be received
#pragma once

#include <sys/time.h>
#include <sys/un.h>

#include <span>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"
#include "libst/service/messages.h"
#include "libst/service/socket_file.h"

namespace stp::service {

inline constexpr std::size_t kMaxFds = kMaxSegments;  // in a valid message
// The most descriptors that the kernel allows per message. If the receiver has room for fewer, the
// kernel closes the others in the receiving thread, which can block for ever.
inline constexpr std::size_t kMostFds = 253;

enum class Wait { kWait, kDontWait };

int send_request(int socket, const Request& request, std::span<const int> fds);
// `fds`: the attached descriptors: client page and bell for kHello, the channel for kAccept and
// kConnect. The caller owns them. They are close-on-exec.
int receive_reply(int socket, Reply& reply, std::vector<UniqueFd>& fds);

// kRefuse: the kernel closes the message's descriptors in the receiving thread, which may block
// (see Nudge). The request itself is returned even with -EMFILE.
enum class Descriptors { kTake, kRefuse };

// Receives all descriptors of a message, even of an invalid one. Whatever the result, `fds` has
// them and the caller closes them.
int receive_request(int socket, Request& request, std::vector<UniqueFd>& fds, Wait wait,
                    Descriptors descriptors = Descriptors::kTake);
int send_reply(int socket, const Reply& reply, std::span<const int> fds, Wait wait);

// Returns the path of a daemon's socket. `target`: what follows "stpd:" in a link string: a path
// (contains '/'), the name of one of the daemon's links, or nothing for the link named stpd.
std::string socket_of(const std::string& target);

// The socket beside a daemon's that only operators may open.
std::string operators_socket_of(const std::string& path);

// Connects to the daemon at `path`. If its backlog is full, waits for `patience`, then -EAGAIN; a
// zero patience never ends. It stays in force for send_request(). -ENOENT: no such socket;
// -ECONNREFUSED: nobody listens there; or another negative errno.
int connect_to(const std::string& path, UniqueFd& out, timeval patience = {});
// The same for whoever wants to watch: through the operators' socket, whose backlog no other
// program can fill, if this user may open it and nobody but the daemon can have made it.
int connect_to_watch(const std::string& path, UniqueFd& out, timeval patience = {});
// -ENAMETOOLONG, -EINVAL: not a valid socket path.
int address_of(const std::string& path, sockaddr_un& out);

// Listens at `path` and puts its file into `file`. Errors: see SocketFile::bind.
int listen_at(const std::string& path, UniqueFd& out, SocketFile& file,
              const SocketAccess& access = {});

}  // namespace stp::service
