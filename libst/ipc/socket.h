// SPDX-License-Identifier: BSD-3-Clause
// The Unix socket between programs and stpd: its file, its messages, who is at either end, whether
// its server is to be trusted, and the descriptors that lie in messages nobody has read.
#pragma once

#include <grp.h>
#include <pwd.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libst/ipc/requests.h"
#include "libst/os/unique_fd.h"

namespace stp::ipc {

// Decides who may connect. By default every local user may: a client reaches only its own objects,
// and only root's clients may choose Keys.
struct SocketAccess {
  mode_t mode = 0666;
  std::optional<uid_t> owner;
  std::optional<gid_t> group;
};

// The file of a listening socket. Its directory may belong to another user, who can replace the
// file at any time. So the class opens the directory once and checks it. After bind(2), which takes
// a path, it checks that the file in that directory is the one that was made, and changes it only
// through a descriptor.
class SocketFile {
 public:
  // Binds `socket` to `path`, and sets owner and mode of the file. First removes a stale socket
  // file, one that nobody answers on. Returns 0; -EADDRINUSE: something exists there; -EPERM: the
  // directory is not safe, or the owner cannot be set; -ENAMETOOLONG, -ENOENT, ...
  int bind(int socket, const std::string& path, const SocketAccess& access);
  // Whether nobody finds the file that bind() made any more. False as well where this user may not
  // look.
  [[nodiscard]] bool is_gone() const;
  // Removes only that file: another daemon may have taken over the name.
  void remove();

 private:
  [[nodiscard]] bool is_there() const;
  int open_directory(const std::string& path);
  int give(const SocketAccess& access);
  bool remove_stale(const std::string& path);

  os::UniqueFd directory_;
  std::string name_;
  dev_t device_ = 0;
  ino_t inode_ = 0;  // 0: bind() has made no file
};

// True if only its owner and root can remove or rename a file in the directory of `path`: others
// may not write there, or it is sticky.
bool directory_is_safe(const std::string& path);

// Creates the directory of `path`, accessible to all and writable for `owner`. Leaves an existing
// directory as it is. Returns 0 or a negative errno.
int make_directory_of(const std::string& path, std::optional<uid_t> owner);

// Requests and replies on a Unix SOCK_SEQPACKET socket: one message each, of exactly the size that
// its head says, with descriptors attached. Functions return 0 or a negative errno:
//   -EAGAIN      kDontWait, and the call would block
//   -ECONNRESET  the peer has closed the socket
//   -EPROTO      the received message is invalid
//   -EMFILE      the received message had descriptors that were not wanted or could not be received
// Of a message of another version only the head counts, and its body may be of any size.

// The most descriptors that the kernel allows per message. If the receiver has room for fewer, the
// kernel closes the others in the receiving thread, which can block for ever.
inline constexpr std::size_t kMostFds = 253;

enum class Wait { kWait, kDontWait };

int send_request(int socket, const RequestMessage& request, std::span<const int> fds);
// `fds`: the attached descriptors. The caller owns them. They are close-on-exec. A reply of another
// version has the result -EPROTONOSUPPORT.
int receive_reply(int socket, ReplyMessage& reply, std::vector<os::UniqueFd>& fds);
// Why stpd has hung up on a new client, which it has said before. -ECONNRESET: it has said nothing.
int receive_refusal(int socket, ReplyMessage& reply);

// kRefuse: the kernel closes the message's descriptors in the receiving thread, which may block
// (see Nudge). The request itself is returned even with -EMFILE.
enum class Descriptors { kTake, kRefuse };

// Receives all descriptors of a message, even of an invalid one. Whatever the result, `fds` has
// them and the caller closes them.
int receive_request(int socket, RequestMessage& request, std::vector<os::UniqueFd>& fds, Wait wait,
                    Descriptors descriptors = Descriptors::kTake);
// -ETOOMANYREFS: too many descriptors that this user has sent are not received yet, on any socket.
int send_reply(int socket, const ReplyMessage& reply, std::span<const int> fds, Wait wait);
// Whether the peer has not read all that was sent to it. Until it has, or has closed its end, the
// kernel charges the sender for it: its memory, and its descriptors even if the sender has closed
// the socket.
bool has_unread_by_peer(int socket);

// Returns the path of a daemon's socket. `target`: what follows "stpd:" in a link string: a path
// (contains '/'), the name of one of the daemon's links, or nothing for the link named stpd.
std::string socket_of(const std::string& target);

// The socket beside a daemon's that only operators may open.
std::string operators_socket_of(const std::string& path);

// Connects to the daemon at `path`. If its backlog is full, waits for `patience`, then -EAGAIN; a
// zero patience never ends. It stays in force for send_request(). -ENOENT: no such socket;
// -ECONNREFUSED: nobody listens there; -EPERM: who does is not to be trusted, and `why` tells the
// reason and the remedy; or another negative errno.
int connect_to(const std::string& path, os::UniqueFd& out, timeval patience = {},
               std::string* why = nullptr);
// The same for whoever wants to watch: through the operators' socket, whose backlog no other
// program can fill, if this user may open it and whoever has made it is to be trusted.
int connect_to_watch(const std::string& path, os::UniqueFd& out, timeval patience = {},
                     std::string* why = nullptr);
// -ENAMETOOLONG, -EINVAL: not a valid socket path.
int address_of(const std::string& path, sockaddr_un& out);

// Listens at `path` and puts its file into `file`. Errors: see SocketFile::bind.
int listen_at(const std::string& path, os::UniqueFd& out, SocketFile& file,
              const SocketAccess& access = {});

// Parses users and groups, given by name or by number. For start-up and reloads only: looking up a
// name may be slow.
inline std::optional<std::uint32_t> parse_id(const std::string& text) {
  std::uint32_t id = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, id);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return id;
}

inline std::optional<uid_t> find_user(const std::string& name) {
  if (const auto* const entry = ::getpwnam(name.c_str())) return entry->pw_uid;
  return parse_id(name);
}

inline std::optional<gid_t> find_group(const std::string& name) {
  if (const auto* const entry = ::getgrnam(name.c_str())) return entry->gr_gid;
  return parse_id(name);
}

// Who is at the other end of a Unix socket: its user and groups, and its process. Other processes
// can inherit a socket and outlive the program that made it, so the service watches the process and
// not the socket.

inline constexpr uid_t kUnknownUser = ~uid_t{0};

// Root, and the user of this process.
inline bool is_trusted(uid_t user) {
  return user == 0 || user == ::geteuid();
}

struct ClientIdentity {
  pid_t pid = 0;
  uid_t uid = kUnknownUser;
  std::vector<gid_t> groups;  // the primary group first
  bool administrator = false;
};

// Identifies the process at the other end of a Unix socket, by its primary group only. Root and the
// user of this process are administrators. nullopt: the system does not tell.
std::optional<ClientIdentity> identify_peer(int socket);
// Adds the other groups, of which a process may have 65,536: then this takes half a millisecond.
// Members of `admin_group` are administrators, too.
void find_groups(int socket, std::optional<gid_t> admin_group, ClientIdentity& who);

// Makes a descriptor that becomes readable when the connected process ends. `pid`: as the socket
// reports it; 0: a process that this one cannot see. Returns 0 and sets `out`, which stays empty if
// this kernel has no such descriptor; -ESRCH: the process has ended.
int open_process(int socket, pid_t pid, os::UniqueFd& out);

// Whether a program may believe that whoever serves a Unix socket is the stpd that it looks for.

// Why this user should not trust `server` to serve the socket at `path`; "": it may. A program
// lends its memory to who serves its socket, and believes what it is told there. Trusted are:
//   root and this user;
//   another user, if nobody but root, this user and the server could have put the socket there:
//   they have each directory on the way, links included, and others may not make files in it. In a
//   sticky directory (/tmp) others may, but not replace a directory of root or of this user. What
//   is mounted there is nobody's.
// So whoever was the first to take a name in /tmp is not trusted, nor is what lies below a
// directory or a link that it has made there.
std::string why_distrust(const std::string& path, uid_t server);

// The same of whoever listens at the other end of `connected`, as the kernel tells it.
std::string why_distrust_server(const std::string& path, int connected);

// Descriptors in messages of a Unix socket that nobody has read. Whoever closes the socket closes
// them too, and that may block for ever. A socket without any closes at once.

// Whether unread messages of a SOCK_SEQPACKET socket have descriptors attached; also true if that
// cannot be found out in a few steps. Reads messages that have none. Never blocks, and closes no
// descriptor. Call after shutdown(): no message arrives any more.
bool has_unread_files(int socket);

// Whether peers may attach descriptors to messages from now on. For a listening socket: before it
// is accepted, a peer may not either. Linux before 6.16 knows no such choice: there they always
// may.
void permit_files(int socket, bool permitted);
// Whether they may not: if they never might, no message has any.
bool refuses_files(int socket);

}  // namespace stp::ipc
