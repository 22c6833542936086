// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/stpd_connection.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <utility>

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

// The same of a rule of the operator that forbids the request.
int forbidden(const Reply& reply) {
  const auto why = std::string(service::text_of(reply.text));
  return why.empty() ? -EACCES : fail(-EACCES, "stpd: " + why);
}

// Returns the reply's result. Adds a text to errors that a program would take for its own.
int result_of(const Reply& reply) {
  if (reply.result == -EDQUOT) return quota_used_up(reply);
  if (reply.result == -EACCES) return forbidden(reply);
  if (reply.result == -EMFILE)
    return fail(-EMFILE, "stpd has too many files open: raise its limit (LimitNOFILE)");
  if (reply.result == -EFAULT)
    return fail(-EFAULT,
                "stpd refuses memory with missing pages: something has punched holes into it "
                "(MADV_REMOVE, fallocate)");
  return reply.result;
}

timeval timeval_of(std::chrono::milliseconds time) {
  return {.tv_sec = time.count() / 1'000, .tv_usec = time.count() % 1'000 * 1'000};
}

void set_patience(int socket, timeval patience) {
  // Ignores errors: without a timeout a call takes as long as stpd does.
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

int not_served(const std::string& path) {
  return fail(-ETIMEDOUT,
              "stpd:" + path +
                  ": stpd does not accept programs: it is stopped or hangs, or has too many files "
                  "open (LimitNOFILE). See its log, or start it again");
}

// The reply has arrived without all of its descriptors: this process has too many files open.
int no_room_for_files(std::vector<UniqueFd>& received) {
  received.clear();
  return fail(-EMFILE, "this program has too many files open: raise its limit (ulimit -n)");
}

}  // namespace

int StpdConnection::open(const std::string& path, std::shared_ptr<StpdConnection>& out,
                         std::chrono::milliseconds patience) {
  UniqueFd socket;
  const auto error = service::connect_to(path, socket, timeval_of(patience));
  if (error == -EAGAIN) return not_served(path);
  if (error == -EACCES)
    return fail(error, "stpd:" + path +
                           ": this user may not use the daemon's socket: see --socket-mode and "
                           "--socket-group of stpd");
  if (error != 0)
    return fail(error == -ENOENT ? -ENODEV : error,
                "stpd:" + path + ": no daemon answers there: " + std::strerror(-error));
  out = std::make_shared<StpdConnection>(path, std::move(socket), patience);
  return 0;
}

StpdConnection::StpdConnection(std::string path, UniqueFd socket,
                               std::chrono::milliseconds patience)
    : path_(std::move(path)), socket_(std::move(socket)), patience_(patience) {
  set_patience(socket_.get(), timeval_of(patience_));
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
    failed = await_reply(request, reply, received);
    if (failed == -EMFILE) return no_room_for_files(received);
  }
  if (failed != 0) {
    lost();  // the next reply might answer this request
    return failed == -EAGAIN ? silent() : error();
  }
  answered_ = true;
  return result_of(reply);
}

int StpdConnection::await_reply(const Request& request, Reply& reply,
                                std::vector<UniqueFd>& received) {
  for (;;) {
    const auto failed = service::receive_reply(socket_.get(), reply, received);
    if (failed != -EAGAIN || request.kind != service::RequestKind::kMap) return failed;
    if (!answers_others()) return failed;
  }
}

// A stpd that lets nobody else in also answers: it hangs up.
bool StpdConnection::answers_others() const {
  UniqueFd other;
  const auto error = service::connect_to(path_, other, timeval_of(patience_));
  if (error != 0) return error != -EAGAIN;
  set_patience(other.get(), timeval_of(patience_));
  Request asking{};
  asking.version = service::kProtocolVersion;
  asking.kind = service::RequestKind::kStats;
  Reply reply{};
  std::vector<UniqueFd> none;
  auto answer = service::send_request(other.get(), asking, {});
  if (answer == 0) answer = service::receive_reply(other.get(), reply, none);
  return answer != -EAGAIN;
}

int StpdConnection::silent() const {
  if (!answered_) return not_served(path_);
  return fail(-ETIMEDOUT, "stpd:" + path_ +
                              ": stpd has stopped answering: it is stopped or hangs. See its log, "
                              "or start it again, and this program after it");
}

}  // namespace stp::client
