// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/stpd_backend.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <utility>

#include "dpdk_port/port.h"
#include "libst/client/error.h"
#include "libst/client/shared_pages.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"

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

using Clock = std::chrono::steady_clock;

// Waits until one of the sockets has a message, or is closed by the other side. False: it is late.
bool is_readable(std::initializer_list<int> sockets, Clock::time_point until) {
  std::vector<pollfd> fds;
  for (const int socket : sockets) fds.push_back({socket, POLLIN, 0});
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    const auto wait = std::max<std::chrono::milliseconds::rep>(left.count(), 0);
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(wait));
    if (ready > 0 || (ready == 0 && Clock::now() >= until)) return ready > 0;
  }
}

int not_served(const std::string& path) {
  return fail(-ETIMEDOUT,
              "stpd:" + path +
                  ": stpd does not answer: it is stopped or hangs, or has too many files open "
                  "(LimitNOFILE). See its log, or start it again");
}

constexpr const char* kSilent =
    ": stpd has stopped answering: it is stopped or hangs. See its log, or start it again, and "
    "this "
    "program after it";
constexpr const char* kEnded =
    ": stpd has ended, or has turned this program away. See its log, start it again, and this "
    "program after it";

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
                "stpd:" + path + ": no daemon answers there: " + std::strerror(-error) +
                    "; start stpd, or name its socket in the link (stpd:PATH)");
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
    const auto pause = static_cast<int>(patience_.count() / 2);
    pollfd fds[] = {{socket_.get(), POLLRDHUP, 0}, {stop_.get(), POLLIN, 0}};
    int ready;
    do ready = ::poll(fds, 2, pause);
    while ((ready < 0 && errno == EINTR) || (ready == 0 && asks_for_a_sign()));
    if (ready > 0 && fds[0].revents != 0) lost();
  });
  return 0;
}

// False: there was none, or it is not worth while any more.
bool StpdConnection::asks_for_a_sign() {
  std::unique_lock const one_at_a_time(mutex_, std::try_to_lock);
  if (!one_at_a_time) return true;  // who asks already will know
  Request asking{};
  asking.version = service::kProtocolVersion;
  asking.kind = service::RequestKind::kLinkState;
  bool answers = error() == 0 && service::send_request(socket_.get(), asking, {}) == 0;
  while (answers && !is_readable({socket_.get(), stop_.get()}, Clock::now() + patience_ / 4))
    if (!is_there()) answers = false;
  Reply reply{};
  std::vector<UniqueFd> none;
  if (answers && is_readable({stop_.get()}, Clock::now())) return false;
  if (answers && service::receive_reply(socket_.get(), reply, none) == 0) return true;
  if (error() == 0 && !answers) silent_ = true;
  lost();
  return false;
}

int StpdConnection::gone() const {
  const auto error = this->error();
  if (error == 0) return 0;
  return fail(error, "stpd:" + path_ + (silent_ ? kSilent : kEnded));
}

int StpdConnection::ask(const Request& request, std::span<const int> fds, Reply& reply,
                        std::vector<UniqueFd>& received) {
  std::lock_guard const one_at_a_time(mutex_);
  if (const auto end = gone(); end != 0) return end;
  auto failed = service::send_request(socket_.get(), request, fds);
  if (failed == 0) {
    failed = await_reply(request, reply, received);
    if (failed == -EMFILE) return no_room_for_files(received);
  }
  if (failed != 0) {
    lost();  // the next reply might answer this request
    return failed == -EAGAIN ? silent() : gone();
  }
  answered_ = true;
  return result_of(reply);
}

int StpdConnection::await_reply(const Request& request, Reply& reply,
                                std::vector<UniqueFd>& received) {
  const auto maps = request.kind == service::RequestKind::kMap;
  const auto end = Clock::now() + 3 * patience_;  // of kMapped
  if (maps || request.kind == service::RequestKind::kMapped)
    while (!is_readable({socket_.get()}, Clock::now() + patience_ / 4))
      if (!is_there() || (!maps && Clock::now() >= end)) return -EAGAIN;
  return service::receive_reply(socket_.get(), reply, received);
}

// Asks over a connection of its own, in the rest of the patience. A stpd that lets nobody else in
// also answers: it hangs up. Or the reply arrives meanwhile.
bool StpdConnection::is_there() const {
  const auto rest = patience_ - patience_ / 4;
  const auto until = Clock::now() + rest;
  UniqueFd other;
  const auto error = service::connect_to(path_, other, timeval_of(rest));
  if (error != 0) return error != -EAGAIN || is_readable({socket_.get()}, until);
  Request asking{};
  asking.version = service::kProtocolVersion;
  asking.kind = service::RequestKind::kStats;
  if (service::send_request(other.get(), asking, {}) != 0) return true;
  return is_readable({other.get(), socket_.get()}, until);
}

int StpdConnection::silent() {
  if (!answered_) return not_served(path_);
  silent_ = true;
  return fail(-ETIMEDOUT, "stpd:" + path_ + kSilent);
}

using service::UniqueFd;

int StpdBackend::open(const std::shared_ptr<StpdConnection>& stpd, std::uint32_t shard,
                      std::shared_ptr<Backend>& out, Welcome& welcome) {
  auto backend = std::make_shared<StpdBackend>(stpd, shard);
  const auto error = backend->greet(welcome);
  // Their texts name the cause and the remedy.
  if (error == -EDQUOT || error == -EMFILE || error == -ETIMEDOUT) return error;
  if (error != 0)
    return fail(error, "stpd:" + stpd->path() +
                           ": the daemon has refused this program: " + std::strerror(-error) +
                           "; it may be full, or of another version: see its log");
  out = std::move(backend);
  return 0;
}

int StpdBackend::greet(Welcome& welcome) {
  auto request = request_for(RequestKind::kHello);
  request.shard = shard_;
  Reply hello{};
  std::vector<UniqueFd> fds;
  if (const auto error = stpd_->ask(request, {}, hello, fds); error != 0) return error;
  if (hello.version != service::kProtocolVersion || fds.size() != 2 || hello.shards == 0 ||
      hello.shards > port::kMaxQueues)
    return -EPROTO;
  auto page = SharedMemory::adopt(fds[0].release(), 0, sizeof(ClientPage));
  if (page == nullptr) return -EPROTO;
  page->forget_fd();
  if (const auto error = tell_mapped(kNoneId); error != 0) return error;
  bell_ = std::move(fds[1]);
  Backend::welcome(hello, std::move(page));
  if (this->page().magic != service::kClientPageMagic) return -EPROTO;
  welcome = {.shards = hello.shards, .first = static_cast<std::uint32_t>(hello.value)};
  return shard_ == 0 ? stpd_->watch() : 0;
}

// Until then stpd does not use what was mapped: from then on nobody can take its pages away.
int StpdBackend::tell_mapped(std::uint64_t vc) {
  auto request = request_for(RequestKind::kMapped);
  request.shard = shard_;
  request.vc = vc;
  Reply reply{};
  std::vector<UniqueFd> none;
  return stpd_->ask(request, {}, reply, none);
}

int StpdBackend::exchange(Request& request, Payload& payload, Reply& reply) {
  request.shard = shard_;
  if (request.kind == RequestKind::kMap) return ask_to_map(request, payload, reply);
  std::vector<UniqueFd> received;
  auto error = stpd_->ask(request, {}, reply, received);
  if (error == 0 && received.empty()) return 0;
  if (error == 0) {
    payload.memory = SharedMemory::adopt(received[0].release(), 0, reply.channel_size);
    error = payload.memory == nullptr ? -errno : tell_mapped(reply.vc);
    if (error != 0) payload.memory.reset();
  }
  if (payload.memory != nullptr)
    payload.memory->forget_fd();
  else if (reply.result == 0)
    give_back(reply.vc);
  return error;
}

// stpd has made a connection whose channel could not be received or mapped.
void StpdBackend::give_back(std::uint64_t vc) {
  auto request = request_for(RequestKind::kClose);
  request.shard = shard_;
  request.vc = vc;
  request.at_once = 1;
  Reply reply{};
  std::vector<UniqueFd> none;
  stpd_->ask(request, {}, reply, none);
}

// stpd seals a memfd and keeps it mapped as long as a region uses it. Afterwards it cannot map it
// for writing any more, so memory that is mapped once more gets a memfd of its own.
int StpdBackend::ask_to_map(Request& request, Payload& payload, Reply& reply) {
  const auto error = ask_to_map(request, payload, reply, false);
  if (error != -EPERM) return error;
  const auto again = ask_to_map(request, payload, reply, true);
  return again != -EPERM
             ? again
             : fail(-EPERM,
                    "another stpd, or another region, uses this memory already, and has "
                    "sealed it: stpd cannot map it for writing");
}

int StpdBackend::ask_to_map(Request& request, Payload& payload, Reply& reply, bool anew) {
  auto share = std::make_shared<Share>();
  if (const auto error = SharedPages::instance().share(
          payload.mapped, payload.own.empty() ? payload.mapped : payload.own, *share, anew);
      error != 0)
    return error;
  std::vector<int> fds;
  request.piece_count = request.segment_count = 0;
  for (const auto& piece : share->pieces) request.pieces[request.piece_count++] = piece;
  for (const auto& part : share->parts) {
    const auto fd = part.memory->fd();
    const auto known = std::find(fds.begin(), fds.end(), fd);
    auto& segment = request.segments[request.segment_count++];
    segment.fd_index = static_cast<std::uint32_t>(known - fds.begin());
    segment.offset = part.offset;
    segment.length = part.length;
    if (known == fds.end()) fds.push_back(fd);
  }
  std::vector<UniqueFd> none;
  const auto error = stpd_->ask(request, fds, reply, none);
  if (error == 0) payload.keep = std::move(share);
  return error;
}

void StpdBackend::rung() {
  if (page().service_asleep.load(std::memory_order_seq_cst) != 0) ::eventfd_write(bell_.get(), 1);
}

bool StpdBackend::attend(Condition condition, Time deadline) {
  const auto until = deadline == 0 ? 0 : std::min(deadline, port::now() + kPatience);
  for (;;) {
    if (condition()) return true;
    // stpd may need this core. It gets one that is shared without this, because it wakes.
    const auto begin = port::now();
    if (core_.is_shared(begin)) return false;
    std::this_thread::yield();
    const auto now = port::now();
    core_.yielded(begin, now);
    if (until == 0 || now >= until) return condition();
  }
}

}  // namespace stp::client
