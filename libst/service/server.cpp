// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "libst/service/file_limit.h"

namespace stp::service {
namespace {

// Keys of what epoll watches; clients have their ClientId, which begins at 1 and has 32 bits.
constexpr std::uint64_t kListenerKey = 0;
constexpr std::uint64_t kStopKey = ~std::uint64_t{0};
constexpr std::uint64_t kMapsKey = kStopKey - 1;
// After running out of descriptors: how long before clients are accepted again.
constexpr int kAcceptPauseMs = 100;
constexpr int kHeartbeatMs = 1'000;

// What no client library sends: it has nothing to gain from an answer.
bool makes_sense(const Request& request, std::size_t fd_count) {
  if (request.version != kProtocolVersion) return fd_count == 0;
  auto const known = request.kind >= RequestKind::kHello && request.kind <= RequestKind::kUnlisten;
  if (!known && !is_admin(request.kind)) return false;
  if (request.reserved != 0) return false;
  if (request.kind == RequestKind::kTraceStart) return fd_count == 1 && request.segment_count == 0;
  auto const memory_goes_along = request.kind == RequestKind::kMap;
  return memory_goes_along ? fd_count != 0 : fd_count == 0 && request.segment_count == 0;
}

}  // namespace

Server::Server(Service& service, std::string path, Log log)
    : service_(service), path_(std::move(path)), log_(std::move(log)) {}

Server::~Server() {
  stop();
}

void Server::set_admin(std::optional<gid_t> group, TraceControl* trace) {
  admin_group_ = group;
  trace_ = trace;
}

void Server::set_quotas(const Quotas& quotas) {
  most_clients_ = quotas.clients;
  most_map_bytes_ = quotas.map_bytes;
}

int Server::listen(const SocketAccess& access) {
  if (auto const error = listen_at(path_, listener_, access); error != 0) return error;
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0) {
    file_device_ = status.st_dev;
    file_inode_ = status.st_ino;
  }
  return 0;
}

int Server::start() {
  if (!listener_)
    if (auto const error = listen(); error != 0) return error;
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!stop_ || !epoll_) return -errno;
  first_reserved_file_ = first_reserved_file();
  {
    std::lock_guard guard(service_.lock());
    service_.reserve_files_from(first_reserved_file_);
  }
  populator_.emplace();
  if (auto const error = watch(stop_.get(), kStopKey); error != 0) return error;
  if (auto const error = watch(populator_->done_fd(), kMapsKey); error != 0) return error;
  listener_watched_ = false;
  watch_listener(true);
  reaper_ = std::make_shared<Reaper>();
  thread_ = std::thread([this] { run(); });
  return 0;
}

void Server::stop() {
  if (thread_.joinable()) {
    ::eventfd_write(stop_.get(), 1);  // the counter was 0: this cannot fail
    thread_.join();
  }
  if (listener_) remove_file();
  listener_.reset();
  while (!peers_.empty()) drop(peers_.begin()->first, "the daemon ends");
  populator_.reset();
  reaper_.reset();
}

// Only what listen() made: by now another daemon may have taken the path over.
void Server::remove_file() {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_dev == file_device_ &&
      status.st_ino == file_inode_)
    ::unlink(path_.c_str());
}

void Server::run() {
  std::array<epoll_event, 64> events;
  for (;;) {
    auto const timeout = listener_watched_ ? kHeartbeatMs : kAcceptPauseMs;
    auto const count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    heartbeat_.beat();
    for (auto const& event :
         std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
      if (event.data.u64 == kStopKey) return;
      handle_event(event.data.u64);
    }
    if (count == 0) watch_listener(true);
  }
}

void Server::handle_event(std::uint64_t key) {
  if (key == kListenerKey)
    admit();
  else if (key == kMapsKey)
    end_maps();
  else
    serve(key);
}

int Server::watch(int fd, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void Server::watch_listener(bool on) {
  if (on == listener_watched_) return;
  if (on)
    listener_watched_ = watch(listener_.get(), kListenerKey) == 0;
  else
    listener_watched_ = ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener_.get(), nullptr) != 0;
}

// One message per turn, so that a client that sends without pause does not hold up the others.
void Server::serve(std::uint64_t key) {
  auto const at = peers_.find(key);
  if (at == peers_.end()) return;
  // One that waits for its pages is not read from: it has hung up.
  judge(key, at->second.mapping ? -ECONNRESET : answer(at->second));
}

void Server::judge(std::uint64_t key, int result) {
  switch (result) {
    case 0:
      return;
    case -ECONNRESET:
      return drop(key, "closed by the client");
    case -EPROTO:
      ++counts_.bad_messages;
      return drop(key, "sent what no client sends");
    case -EUSERS:
      ++counts_.refused;
      return drop(key, "too many are connected: this place was for an operator who watches");
    case -EAGAIN:
      ++counts_.slow_readers;
      return drop(key, "does not read its replies");
    default:
      return drop(key, std::strerror(-result));
  }
}

int Server::answer(Peer& peer) {
  Request request;
  std::vector<UniqueFd> fds;
  auto const result = receive_request(peer.socket.get(), request, fds, Wait::kDontWait);
  if (result == -EAGAIN) return 0;
  if (result != 0) return result;
  if (!makes_sense(request, fds.size())) return -EPROTO;
  if (peer.operating && !is_watching(request.kind)) return -EUSERS;
  peer.last_asked = ++asked_;
  return pass_on(peer, request, fds);
}

int Server::pass_on(Peer& peer, const Request& request, std::span<UniqueFd> fds) {
  if (request.kind == RequestKind::kMap) return begin_map(peer, request, fds);
  Attachments attachments;
  Reply reply{};
  reply.version = kProtocolVersion;
  if (is_trace(request.kind)) {
    reply.result =
        answer_trace(trace_, peer.client, peer.identity.administrator, request, fds, reply);
  } else {
    std::lock_guard guard(service_.lock());
    service_.handle(peer.client, request, attachments, reply);
  }
  return reply_to(peer, request, attachments, reply);
}

int Server::reply_to(Peer& peer, const Request& request, Attachments& attachments, Reply& reply) {
  std::array<int, 2> reply_fds{};
  std::size_t fd_count = 0;
  if (attachments.memory) reply_fds[fd_count++] = attachments.memory->fd();
  if (request.kind == RequestKind::kHello && reply.result == 0)
    reply_fds[fd_count++] = service_.bell();
  auto const sent =
      send_reply(peer.socket.get(), reply, std::span(reply_fds).first(fd_count), Wait::kDontWait);
  // A channel is handed out once; the client page again whenever the client says hello.
  if (attachments.memory && request.kind != RequestKind::kHello) attachments.memory->forget_fd();
  return sent;
}

void Server::drop(std::uint64_t key, const std::string& why) {
  auto const at = peers_.find(key);
  auto const client = at->second.client;
  auto const pid = at->second.identity.pid;
  if (at->second.mapping) populator_->abandon(key);
  if (at->second.operating) --operators_;
  peers_.erase(at);
  if (trace_ != nullptr) trace_->client_gone(client);
  {
    std::lock_guard guard(service_.lock());
    service_.remove_client(client);
  }
  watch_listener(true);
  log(LogLevel::kInfo,
      "client " + std::to_string(client) + " gone: pid " + std::to_string(pid) + ", " + why);
}

void Server::log(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

}  // namespace stp::service
