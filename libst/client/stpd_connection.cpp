// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/stpd_connection.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstring>

#include "libst/client/error.h"
#include "libst/service/socket.h"
#include "libst/service/text_field.h"

namespace stp::client {

using service::Reply;
using service::Request;
using service::UniqueFd;

namespace {

// The daemon's text names the quota, or the budget of this user, its size, and the remedy.
int quota_used_up(const Reply& reply) {
  const auto why = std::string(service::text_of(reply.text));
  return why.empty() ? -EDQUOT : fail(-EDQUOT, "stpd: " + why);
}

// Returns the reply's result. Adds a text to errors that a program would take for its own.
int result_of(const Reply& reply) {
  if (reply.result == -EDQUOT) return quota_used_up(reply);
  if (reply.result == -EMFILE)
    return fail(-EMFILE, "stpd has too many files open: raise its limit (LimitNOFILE)");
  if (reply.result == -EFAULT)
    return fail(-EFAULT,
                "stpd refuses memory with missing pages: something has punched holes into it "
                "(MADV_REMOVE, fallocate)");
  return reply.result;
}

// The reply has arrived without all of its descriptors: this process has too many files open.
int no_room_for_files(std::vector<UniqueFd>& received) {
  received.clear();
  return fail(-EMFILE, "this program has too many files open: raise its limit (ulimit -n)");
}

}  // namespace

int StpdConnection::open(const std::string& path, std::shared_ptr<StpdConnection>& out) {
  UniqueFd socket;
  if (const auto error = service::connect_to(path, socket); error != 0)
    return fail(error == -ENOENT ? -ENODEV : error,
                "stpd:" + path + ": no daemon answers there: " + std::strerror(-error));
  out = std::make_shared<StpdConnection>(path, std::move(socket));
  return 0;
}

StpdConnection::~StpdConnection() {
  if (!watcher_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);
  watcher_.join();
}

int StpdConnection::watch() {
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  if (!stop_) return -errno;
  watcher_ = std::thread([this] {
    pollfd fds[] = {{socket_.get(), POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}};
    while (::poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    if (fds[0].revents != 0) lost();
  });
  return 0;
}

int StpdConnection::ask(const Request& request, std::span<const int> fds, Reply& reply,
                        std::vector<UniqueFd>& received) {
  std::lock_guard const one_at_a_time(mutex_);
  if (const auto gone = error(); gone != 0) return gone;
  auto failed = service::send_request(socket_.get(), request, fds);
  if (failed == 0) {
    failed = service::receive_reply(socket_.get(), reply, received);
    if (failed == -EMFILE) return no_room_for_files(received);
  }
  if (failed == 0) return result_of(reply);
  lost();  // after any other error the next reply might answer an earlier request
  return error();
}

}  // namespace stp::client
