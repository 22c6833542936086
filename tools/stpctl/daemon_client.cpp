// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/daemon_client.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "libst/service/socket.h"
#include "tools/stpctl/failure.h"

namespace stp::stpctl {
namespace {

constexpr timeval kPatience{.tv_sec = 10, .tv_usec = 0};

std::string remedy_for(int error) {
  switch (error) {
    case -ENOENT:
      return "there is no such socket: start stpd, or name its socket with --socket (a path has a "
             "'/' in it)";
    case -ECONNREFUSED:
      return "the socket exists, but no daemon listens on it: start stpd again";
    case -EACCES:
      return "this user may not open it: ask whoever runs stpd, or use sudo";
    case -ENAMETOOLONG:
      return "the path is too long for a socket";
    default:
      return std::strerror(-error);
  }
}

std::string why_silent(int error) {
  switch (error) {
    case -EAGAIN:
      return "it has not answered for " + std::to_string(kPatience.tv_sec) +
             " seconds: is it stopped, or its machine overloaded?";
    case -ECONNRESET:
      return "it has closed the connection: it has ended, has too many clients (then only "
             "administrators get in), or is of another version than stpctl " STP_VERSION;
    case -EPROTO:
      return "its answer is not understood: it is of another version than stpctl " STP_VERSION;
    default:
      return std::strerror(-error);
  }
}

}  // namespace

DaemonClient::DaemonClient(std::string socket) : path_(std::move(socket)) {
  const auto error = service::connect_to_watch(path_, socket_, kPatience);
  if (error == -EAGAIN) throw Failure("daemon at " + path_ + ": " + why_silent(error));
  if (error != 0) throw Failure("no daemon at " + path_ + ": " + remedy_for(error));
  // Ignores errors: without this timeout stpctl waits for as long as the daemon takes.
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
}

int DaemonClient::ask(service::Request request, service::Reply& reply, std::span<const int> fds) {
  request.version = service::kProtocolVersion;
  auto error = service::send_request(socket_.get(), request, fds);
  std::vector<service::UniqueFd> none;
  if (error == 0) error = service::receive_reply(socket_.get(), reply, none);
  if (error != 0) throw Failure("daemon at " + path_ + ": " + why_silent(error));
  if (reply.result == -EPROTONOSUPPORT)
    throw Failure("daemon at " + path_ + ": " + why_silent(-EPROTO));
  return reply.result;
}

int DaemonClient::ask(service::RequestKind kind, service::Reply& reply) {
  service::Request request{};
  request.kind = kind;
  return ask(request, reply);
}

}  // namespace stp::stpctl
