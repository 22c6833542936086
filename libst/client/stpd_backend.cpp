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

#include "dpdk_port/link/owners.h"
#include "dpdk_port/link/start_thread.h"
#include "dpdk_port/port.h"
#include "libst/client/error.h"
#include "libst/client/shared_pages.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"

namespace stp::client {

using ipc::ReplyMessage;
using ipc::RequestKind;
using ipc::RequestMessage;
using os::UniqueFd;

namespace {

// Returns the reply's result. Adds a text to errors that a program would take for its own. The
// daemon's text names the quota, or the budget of this user, its size, and the remedy; or the rule
// of the operator that forbids the request.
int result_of(const ReplyMessage& reply) {
  const auto result = reply.head.result;
  if (const auto why = reply.why(); !why.empty()) return fail(result, "stpd: " + std::string(why));
  if (result == -EMFILE)
    return fail(-EMFILE, "stpd has too many files open: raise its limit (LimitNOFILE)");
  if (result == -EFAULT)
    return fail(-EFAULT,
                "stpd refuses memory with missing pages: something has punched holes into it "
                "(MADV_REMOVE, fallocate)");
  return result;
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

constexpr int kNoStop = -1;  // poll() ignores it

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
    "then "
    "this program, unless it goes on by itself";
constexpr const char* kEnded =
    ": stpd has ended, or has turned this program away. See its log, start it again, and then this "
    "program, unless it goes on by itself";

// The reply has arrived without all of its descriptors: this process has too many files open.
int no_room_for_files(std::vector<UniqueFd>& received) {
  received.clear();
  return fail(-EMFILE, "this program has too many files open: raise its limit (ulimit -n)");
}

// Whether this is the answer to that request, with what the table says goes along.
bool answers(const RequestMessage& request, const ReplyMessage& reply, std::size_t fd_count) {
  const auto& head = reply.head;
  if (head.result != 0) return fd_count == 0;
  return head.kind == request.head.kind && fd_count == ipc::rule_of(head.kind)->reply_files;
}

}  // namespace

int StpdConnection::open(const std::string& path, std::shared_ptr<StpdConnection>& out,
                         std::chrono::milliseconds patience) {
  UniqueFd socket;
  std::string stranger;
  const auto error = ipc::connect_to(path, socket, timeval_of(patience), &stranger);
  if (error == -EAGAIN) return not_served(path);
  if (!stranger.empty()) return fail(error, "stpd:" + path + ": " + stranger);
  if (error == -EACCES)
    return fail(error, "stpd:" + path +
                           ": this user may not use the daemon's socket: see --socket-mode and "
                           "--socket-group of stpd");
  const auto fault = error != 0 ? port::why_no_socket(path, ipc::kDefaultSocket) : "";
  if (!fault.empty()) return fail(-ENODEV, "stpd:" + path + ": " + fault);
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
  watcher_ = start_thread([this] {
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
  if (!mutex_.try_lock()) return true;  // who asks already will know
  const Lock one_at_a_time(mutex_, std::adopt_lock);
  const RequestMessage asking(ask::LinkState{});
  bool answers = error() == 0 && ipc::send_request(socket_.get(), asking, {}) == 0;
  while (answers && !is_readable({socket_.get(), stop_.get()}, Clock::now() + patience_ / 4))
    if (!is_there(stop_.get())) answers = false;
  ReplyMessage reply;
  std::vector<UniqueFd> none;
  if (answers && is_readable({stop_.get()}, Clock::now())) return false;
  if (answers && ipc::receive_reply(socket_.get(), reply, none) == 0) return true;
  if (error() == 0 && !answers) silent_ = true;
  lost();
  return false;
}

int StpdConnection::gone() const {
  const auto error = this->error();
  if (error == 0) return 0;
  return fail(error, "stpd:" + path_ + (silent_ ? kSilent : kEnded));
}

int StpdConnection::ask(const RequestMessage& request, std::span<const int> fds,
                        ReplyMessage& reply, std::vector<UniqueFd>& received) {
  const Lock one_at_a_time(mutex_);
  if (const auto end = gone(); end != 0) return end;
  auto failed = ipc::send_request(socket_.get(), request, fds);
  if (failed == 0) {
    failed = await_reply(request.head.kind, reply, received);
    if (failed == -EMFILE) return no_room_for_files(received);
    if (failed == 0 && !answers(request, reply, received.size())) failed = -EPROTO;
  }
  if (failed == -ECONNRESET && !answered_) failed = ipc::receive_refusal(socket_.get(), reply);
  if (failed != 0) {
    received.clear();
    lost();  // the next reply might answer this request
    return failed == -EAGAIN ? silent() : gone();
  }
  answered_ = true;
  return result_of(reply);
}

int StpdConnection::await_reply(RequestKind kind, ReplyMessage& reply,
                                std::vector<UniqueFd>& received) {
  const auto maps = kind == RequestKind::kMap;
  const auto end = Clock::now() + 3 * patience_;  // of kMapped
  if (maps || kind == RequestKind::kMapped)
    while (!is_readable({socket_.get()}, Clock::now() + patience_ / 4))
      if (!is_there(kNoStop) || (!maps && Clock::now() >= end)) return -EAGAIN;
  return ipc::receive_reply(socket_.get(), reply, received);
}

// Asks over a connection of its own, in the rest of the patience. A stpd that lets nobody else in
// also answers: it hangs up. Or the reply arrives meanwhile, or `stop` becomes readable.
bool StpdConnection::is_there(int stop) const {
  constexpr std::chrono::milliseconds kStep{200};
  const auto until = Clock::now() + (patience_ - patience_ / 4);
  UniqueFd other;
  int error;
  do {
    error = ipc::connect_to(path_, other, timeval_of(std::min(kStep, patience_)));
    if (error == -EAGAIN && is_readable({socket_.get(), stop}, Clock::now())) return true;
  } while (error == -EAGAIN && Clock::now() < until);
  if (error != 0) return error != -EAGAIN;
  const RequestMessage asking(ask::Stats{.index = 0});
  if (ipc::send_request(other.get(), asking, {}) != 0) return true;
  return is_readable({other.get(), socket_.get(), stop}, until);
}

int StpdConnection::silent() {
  if (!answered_) return not_served(path_);
  silent_ = true;
  return fail(-ETIMEDOUT, "stpd:" + path_ + kSilent);
}

int StpdBackend::open(const std::shared_ptr<StpdConnection>& stpd, std::uint32_t shard,
                      std::shared_ptr<Backend>& out, Welcome& welcome) {
  auto backend = std::make_shared<StpdBackend>(stpd, shard);
  const auto error = backend->greet(welcome);
  // Their texts name the cause and the remedy.
  for (const int told : {-EDQUOT, -EMFILE, -EBUSY, -ETIMEDOUT})
    if (error == told) return error;
  if (error != 0)
    return fail(error, "stpd:" + stpd->path() + ": the daemon has refused this program: " +
                           std::strerror(-error) + "; it may be of another version: see its log");
  out = std::move(backend);
  return 0;
}

int StpdBackend::greet(Welcome& welcome) {
  ReplyMessage reply;
  std::vector<UniqueFd> fds;
  if (const auto error = stpd_->ask(RequestMessage(ask::Hello{}, shard_), {}, reply, fds);
      error != 0)
    return error;
  const auto& hello = reply.as<ask::Hello>();
  if (hello.shards == 0 || hello.shards > port::kMaxQueues) return -EPROTO;
  auto page = SharedMemory::adopt(fds[0].release(), 0, sizeof(ClientPage));
  if (page == nullptr) return -EPROTO;
  page->forget_fd();
  if (const auto error = tell_mapped(kNoneId); error != 0) return error;
  bell_ = std::move(fds[1]);
  Backend::welcome(hello, std::move(page));
  if (this->page().magic != ipc::kClientPageMagic) return -EPROTO;
  welcome = {.shards = hello.shards, .first = hello.first};
  return shard_ == 0 ? stpd_->watch() : 0;
}

// Until then stpd does not use what was mapped: from then on nobody can take its pages away.
int StpdBackend::tell_mapped(std::uint64_t vc) {
  ReplyMessage reply;
  std::vector<UniqueFd> none;
  return stpd_->ask(RequestMessage(ask::Mapped{.vc = vc}, shard_), {}, reply, none);
}

int StpdBackend::exchange(RequestMessage& request, Payload& payload, ReplyMessage& reply) {
  request.head.shard = shard_;
  if (request.head.kind == RequestKind::kMap) return ask_to_map(request, payload, reply);
  std::vector<UniqueFd> received;
  auto error = stpd_->ask(request, {}, reply, received);
  const auto* const given = channel_in(reply);
  if (given == nullptr) return error;
  if (error == 0) error = take_channel(*given, std::move(received.front()), payload);
  if (error != 0) give_back(given->vc);
  return error;
}

int StpdBackend::take_channel(const GivenChannel& given, UniqueFd fd, Payload& payload) {
  auto memory = SharedMemory::adopt(fd.release(), 0, given.size);
  if (memory == nullptr) return -errno;
  if (const auto error = tell_mapped(given.vc); error != 0) return error;
  memory->forget_fd();
  payload.memory = std::move(memory);
  return 0;
}

// stpd has made a connection whose channel could not be received or mapped.
void StpdBackend::give_back(std::uint64_t vc) {
  const ask::Close close{.vc = vc, .at_once = 1, .option = {}};
  ReplyMessage reply;
  std::vector<UniqueFd> none;
  stpd_->ask(RequestMessage(close, shard_), {}, reply, none);
}

// All pages are made before they are lent: for what quotas or budgets forbid that takes long, or
// more memory than there is.
int StpdBackend::may_map(const RequestMessage& request, const Payload& payload) {
  constexpr std::uint64_t kWorthAQuestion = std::uint64_t{16} << 20;
  std::uint64_t bytes = 0;
  for (const auto& piece : payload.mapped) bytes += piece.size();
  if (bytes < kWorthAQuestion) return 0;
  auto question = request;
  auto& map = question.body.as<ask::Map>();
  const auto page = ipc::page_size();
  map.piece_count = map.segment_count = 1;
  map.pieces[0] = {.at = 0, .length = bytes};
  map.segments[0] = {
      .fd_index = 0, .reserved = 0, .offset = 0, .length = (bytes + page - 1) / page * page};
  std::vector<UniqueFd> none;
  ReplyMessage answer;
  return stpd_->ask(question, {}, answer, none);
}

// stpd seals a memfd and keeps it mapped as long as a region uses it. Afterwards it cannot map it
// for writing any more, so memory that is mapped once more gets a memfd of its own.
int StpdBackend::ask_to_map(RequestMessage& request, Payload& payload, ReplyMessage& reply) {
  if (const auto error = may_map(request, payload); error != 0) return error;
  const auto error = ask_to_map(request, payload, reply, false);
  if (error != -EPERM) return error;
  const auto again = ask_to_map(request, payload, reply, true);
  return again != -EPERM
             ? again
             : fail(-EPERM,
                    "another stpd, or another region, uses this memory already, and has "
                    "sealed it: stpd cannot map it for writing");
}

int StpdBackend::ask_to_map(RequestMessage& message, Payload& payload, ReplyMessage& reply,
                            bool anew) {
  auto share = std::make_shared<Share>();
  if (const auto error = SharedPages::instance().share(
          payload.mapped, payload.own.empty() ? payload.mapped : payload.own, *share, anew);
      error != 0)
    return error;
  std::vector<int> fds;
  auto& request = message.body.as<ask::Map>();
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
  const auto error = stpd_->ask(message, fds, reply, none);
  if (error == 0) payload.keep = std::move(share);
  return error;
}

void StpdBackend::rung(Time /*now*/) {
  if (page().service_asleep.load(std::memory_order_seq_cst) != 0) ::eventfd_write(bell_.get(), 1);
}

int StpdBackend::attend(Condition condition, Time deadline) {
  const auto until = deadline == 0 ? 0 : std::min(deadline, port::now() + kPatience);
  for (;;) {
    if (condition()) return 0;
    // stpd may need this core. It gets one that is shared without this, because it wakes.
    const auto begin = port::now();
    if (core_.is_shared(begin)) return -EAGAIN;
    std::this_thread::yield();
    const auto now = port::now();
    core_.yielded(begin, now);
    if (until == 0 || now >= until) return condition() ? 0 : -EAGAIN;
  }
}

}  // namespace stp::client
