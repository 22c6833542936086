// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>
#include <utility>

#include "dpdk_port/link/start_thread.h"
#include "libst/host/budgets.h"
#include "libst/host/poll_loop.h"
#include "libst/ipc/requests.h"
#include "libst/os/file_limit.h"
#include "stp/base/assert.h"
#include "stp/base/caught.h"

namespace stp::stpd {

bool SlowSockets::replied(uid_t user, Time time, Time& last, Clock::time_point now) {
  const auto of_user = slow_.find(user);
  const auto before =
      std::max(std::exchange(last, time), of_user == slow_.end() ? Time(0) : of_user->second);
  const bool is_slow = time >= kSlow;
  if (is_slow)
    slow_[user] = time;
  else if (of_user != slow_.end())
    slow_.erase(of_user);
  took(user, std::min(time, before), now);
  return is_slow && costs_too_much(user, now);
}

SlowSockets::Time time_of_thread() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

namespace {

// Keys of the descriptors that epoll watches. A client's key is its ClientId: 32 bits, from 1.
constexpr std::uint64_t kListenerKey = 0;
constexpr std::uint64_t kStopKey = ~std::uint64_t{0};
constexpr std::uint64_t kErrandsKey = kStopKey - 1;
constexpr std::uint64_t kAdmitKey = kStopKey - 2;  // of no descriptor: once per turn
constexpr std::uint64_t kKeptFilesKey = kStopKey - 3;
constexpr std::uint64_t kExpelledKey = kStopKey - 4;  // minus the shard
constexpr int kHeartbeatMs = 1'000;

// Checks for a regular file that is open for writing. AT_STATX_DONT_SYNC uses what the kernel
// knows: asking the file system, for example a FUSE server, could block.
bool may_be_written(int file) {
  struct statx status {};
  if (::statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &status) != 0 ||
      !S_ISREG(status.stx_mode))
    return false;
  const auto mode = ::fcntl(file, F_GETFL) & O_ACCMODE;
  return mode == O_WRONLY || mode == O_RDWR;
}

struct Tracing {
  TraceControl& control;
  host::ClientId client;
  std::span<os::UniqueFd> fds;
};

int answer(Tracing of, const ask::TraceStart& request, ipc::Nothing&) {
  // A pipe or a socket could block the writer until somebody reads from it.
  if (of.fds.size() != 1 || !may_be_written(of.fds[0].get())) return -EINVAL;
  return caught([&] { return of.control.start(request.trace, of.client, of.fds[0]); },
                [](int error) { return -error; });
}

int answer(Tracing of, const ask::TraceStop& /*request*/, ipc::Nothing&) {
  return of.control.stop();
}

int answer(Tracing of, const ask::TraceStatus& /*request*/, ask::TraceStatus::Reply& reply) {
  return of.control.status(reply.trace);
}

}  // namespace

void answer_trace(TraceControl* control, host::ClientId client, bool administrator,
                  const ipc::RequestMessage& message, std::span<os::UniqueFd> fds,
                  ipc::ReplyMessage& reply) {
  reply.head = {.kind = message.head.kind};
  const auto result = ipc::dispatch(message, [&]<typename R>(const R& request) {
    if constexpr (ipc::kRuleOf<R>.where != ipc::Where::kDaemon)
      return -EINVAL;
    else if (ipc::kRuleOf<R>.who == ipc::Who::kAdministrator && !administrator)
      return -EPERM;
    else if (control == nullptr)
      return -EOPNOTSUPP;
    else
      return answer(Tracing{*control, client, fds}, request, reply.begin<R>());
  });
  if (result != 0) reply.refuse(result);
}

Server::Server(std::vector<host::Service*> shards, std::string path, Log log)
    : shards_(std::move(shards)), path_(std::move(path)), log_(std::move(log)) {}

Server::~Server() {
  stop();
}

void Server::set_admin(std::optional<gid_t> group, TraceControl* trace) {
  admin_group_ = group;
  trace_ = trace;
}

void Server::set_quotas(const host::Quotas& quotas) {
  most_clients_ = quotas.clients;
  most_map_bytes_ = quotas.map_bytes;
}

int Server::listen(const ipc::SocketAccess& access) {
  if (const auto error = listener_.open(path_, access); error != 0) return error;
  if (const auto error = listener_.open_for_operators(path_, admin_group_); error != 0)
    log(LogLevel::kWarning,
        "socket " + ipc::operators_socket_of(path_) + ": " + std::strerror(-error) +
            (error == -EPERM ? ": stpd may not give it to the group of the administrators, so its "
                               "members wait in " +
                                   path_ + " with all other programs"
                             : ": administrators wait in " + path_ + " with all other programs"));
  return 0;
}

int Server::start(std::size_t links) {
  if (!listener_.is_open())
    if (const auto error = listen(); error != 0) return error;
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!stop_ || !epoll_) return -errno;
  first_reserved_file_ = os::first_reserved_file();
  workers_ = std::make_shared<UserWorkers>();
  closer_ = std::make_shared<Closer>();
  const auto mappings = host::free_mappings() / links, files = host::free_files() / links;
  if (constexpr std::uint64_t kFew = 16; files < kFew * host::kFilesOfAProgram)
    log(LogLevel::kWarning, "programs may have " + std::to_string(files) +
                                " open files of stpd, which is enough for some " +
                                std::to_string(files / host::kFilesOfAProgram) +
                                " of them: raise LimitNOFILE");
  for (auto* const service : shards_) {
    const auto turn = service->drive();
    turn->reserve_files_from(first_reserved_file_);
    turn->set_process_totals(mappings, files);
    turn->offer_memory([workers = workers_](uid_t user, std::shared_ptr<void> thing) {
      return UserWorkers::guard(workers, user, std::move(thing));
    });
    turn->close_bells_by([closer = closer_](uid_t user, os::UniqueFd bell) {
      closer->close(user, std::move(bell));
    });
  }
  errands_.emplace(workers_);
  foreign_.emplace(os::room_for_foreign_files());
  waiting_.emplace(os::room_for_newcomers());
  if (const auto error = watch(stop_.get(), kStopKey); error != 0) return error;
  if (const auto error = watch(errands_->done_fd(), kErrandsKey); error != 0) return error;
  for (std::size_t shard = 0; shard < shards_.size(); ++shard)
    if (const auto error = watch(shards_[shard]->expelled_fd(), kExpelledKey - shard); error != 0)
      return error;
  kept_files_.emplace(most_kept_);
  if (kept_files_->news_fd() >= 0)
    if (const auto error = watch(kept_files_->news_fd(), kKeptFilesKey); error != 0) return error;
  listener_.watch(epoll_.get(), kListenerKey);
  thread_ = start_thread([this] { run(); });
  return 0;
}

void Server::stop() {
  end_thread();
  for (auto& socket : listener_.end())
    if (foreign_) foreign_->hang_up(::geteuid(), std::move(socket));
  end_clients();
}

Listener Server::stop_and_keep_listening() {
  end_thread();
  Listener kept = std::exchange(listener_, {});
  end_clients();
  return kept;
}

void Server::end_thread() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_.get(), 1);  // the counter was 0: this cannot fail
  thread_.join();
}

void Server::end_clients() {
  while (!peers_.empty()) drop(peers_.begin()->first, "the daemon ends");
  if (waiting_)
    while (auto guest = waiting_->next()) hang_up(guest->who.uid, std::move(guest->socket));
  if (errands_) end_errands();
  errands_.reset();
  kept_files_.reset();
  workers_.reset();
  foreign_.reset();
  closer_.reset();
}

// Holds the lock that the polling thread needs, so it must not wait long for a processor either.
void Server::run() {
  host::ask_for_short_slices(host::kShortSlice);
  std::array<epoll_event, 64> events;
  foreign_->begin_receiving();
  for (;;) {
    const auto timeout =
        listener_.is_paused() ? static_cast<int>(Listener::kPause.count()) : kHeartbeatMs;
    const auto count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                    waiting_->empty() ? timeout : 0);
    heartbeat_.beat();
    for (const auto& event :
         std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
      if (event.data.u64 == kStopKey) return foreign_->end_receiving();
      handle_event_safely(event.data.u64);
    }
    handle_event_safely(kAdmitKey);
    tend();
  }
}

// Work that no event triggers. Runs at least once per second.
void Server::tend() {
  const auto left_out = [this](LogLevel level) {
    return [this, level](uid_t user, std::uint64_t lines) {
      log(level, std::to_string(lines) + " lines about clients of " +
                     (user == LogBudget::kTheRest ? std::string("several users")
                                                  : "uid " + std::to_string(user)) +
                     " were left out: there were too many");
    };
  };
  log_budget_.end_intervals(Clock::now(), left_out(LogLevel::kWarning));
  debug_budget_.end_intervals(Clock::now(), left_out(LogLevel::kDebug));
  listener_.resume_if_due();
  workers_->tend();
  closer_->tend();
  report_lost_threads();
}

void Server::report_lost_threads() {
  if (const auto lost = foreign_->tend(); lost) {
    counts_.stuck_descriptors += lost->more;
    log_client(lost->user, LogLevel::kError,
               "a descriptor of uid " + std::to_string(lost->user) +
                   " cannot be closed: the server of that file (FUSE?) does not answer. Until then "
                   "new programs of this user are refused, and others of it cannot map memory: end "
                   "that server");
  }
  while (const auto user = workers_->held_up())
    log_client(
        *user, LogLevel::kError,
        "a thread has worked on memory of uid " + std::to_string(*user) +
            " for ten seconds: one of its programs may hold a lock of the file. Until it lets go, "
            "a stpd that is killed keeps its link from the next one: end that program");
  const auto before = std::exchange(lost_closing_, closer_->lost());
  if (lost_closing_ <= before) return;
  counts_.stuck_descriptors += lost_closing_ - before;
  log(LogLevel::kError, "the bell of a program of uid " +
                            std::to_string(closer_->who_holds_up().value_or(0)) +
                            " cannot be closed, because an epoll that watches it is held up. "
                            "Until then new programs of this user are refused: end those it has");
}

// An exception while serving one client ends only that client.
void Server::handle_event_safely(std::uint64_t key) {
  try {
    handle_event(key);
  } catch (const std::exception& failure) {
    give_up(key, what_of(failure));
  }
}

void Server::give_up(std::uint64_t key, const char* why) {
  log(LogLevel::kError, std::string("a request could not be served: ") + why);
  if (peers_.contains(key)) drop(key, "its request could not be served");
}

void Server::handle_event(std::uint64_t key) {
  if (key == kListenerKey)
    accept_clients();
  else if (key == kAdmitKey)
    admit_clients();
  else if (key == kErrandsKey)
    end_errands();
  else if (key == kKeptFilesKey)
    kept_files_->look();
  else if (key <= kExpelledKey && key > kExpelledKey - shards_.size())
    drop_expelled(static_cast<unsigned>(kExpelledKey - key));
  else if ((key & kProcessBit) == 0)
    serve(key);
  else if (peers_.contains(key ^ kProcessBit))
    drop(key ^ kProcessBit, "its process has ended", true);
}

int Server::watch(int fd, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

// One message per turn, so that a client that sends without pause does not hold up the others.
void Server::serve(std::uint64_t key) {
  const auto at = peers_.find(key);
  if (at == peers_.end()) return;
  // While its errand is under way, epoll reports a client only if it has hung up.
  judge(key, at->second.errand != nullptr ? -ECONNRESET : answer(at->second));
}

void Server::judge(std::uint64_t key, int result) {
  switch (result) {
    case 0:
      return;
    case -ECONNRESET:
      return drop(key, "closed by the client", true);
    case -EPROTO:
      ++counts_.bad_messages;
      return drop(key, "sent an invalid request");
    case -EUSERS:
      ++counts_.refused;
      return drop(key,
                  "its place was for watching only, for lack of places or files: raise "
                  "--max-clients or LimitNOFILE");
    case -ETOOMANYREFS:
      ++counts_.bad_messages;
      return drop(key, "sent descriptors while earlier ones of its user cannot be closed");
    case -ETIME:
      ++counts_.slow_sockets;
      return drop(key,
                  "so many wait for its socket that each reply takes stpd long; its user is "
                  "served no more for a hundred times as long");
    case -ENFILE:
      return drop(key,
                  "no descriptors can be sent to it: so many wait in sockets of programs that do "
                  "not read their replies; raise LimitNOFILE");
    case -EAGAIN:
      ++counts_.slow_readers;
      return drop(key, "does not read its replies");
    default:
      return drop(key, std::strerror(-result));
  }
}

int Server::answer(Peer& peer) {
  ipc::RequestMessage request;
  std::vector<os::UniqueFd> fds;
  const auto uid = peer.identity.uid;
  try {
    const auto received = foreign_->receive(peer.socket.get(), uid, request, fds);
    const auto result = answer(peer, received, request, fds);
    foreign_->close(uid, fds);  // the descriptors that nobody has taken over
    return result;
  } catch (...) {
    foreign_->close(uid, fds);  // this thread must not close them: that may block
    throw;
  }
}

int Server::answer(Peer& peer, int received, const ipc::RequestMessage& request,
                   std::span<os::UniqueFd> fds) {
  const auto kind = request.head.kind;
  if (received == -EAGAIN) return 0;
  if (received != 0 && received != -EMFILE) return received;
  // Libst reads each reply before it asks again. Who does not would have the daemon pay for many.
  if (ipc::has_unread_by_peer(peer.socket.get())) return -EAGAIN;
  if (received == -EMFILE) return refuse_descriptors(peer, kind);
  if (request.head.version != ipc::kProtocolVersion)  // its other fields may mean anything
    return fds.empty() ? refuse_request(peer, ipc::RequestKind::kNone, -EPROTONOSUPPORT) : -EPROTO;
  if (!makes_sense(peer, request, fds.size())) return -EPROTO;
  if (peer.operating && !ipc::only_watches(kind)) {
    const auto told = refuse_request(peer, kind, -EDQUOT,
                                     "no place for a program is left, only some from which "
                                     "operators watch: raise --max-clients or LimitNOFILE of "
                                     "stpd");
    return told != 0 ? told : -EUSERS;
  }
  peer.last_asked = ++asked_;
  if (!ipc::only_watches(kind) && !std::exchange(peer.uses_link, true))
    log_client(peer.identity.uid, LogLevel::kInfo,
               "client " + std::to_string(peer.client) + " uses the link: pid " +
                   std::to_string(peer.identity.pid) + ", uid " +
                   std::to_string(peer.identity.uid));
  return pass_on(peer, request, fds);
}

bool Server::makes_sense(const Peer& peer, const ipc::RequestMessage& request,
                         std::size_t fd_count) const {
  const auto& head = request.head;
  return ipc::makes_sense(request, fd_count) && head.shard < shards_.size() &&
         (ipc::rule_of(head.kind)->where != ipc::Where::kItsShard || peer.clients[head.shard] != 0);
}

int Server::refuse_descriptors(Peer& peer, ipc::RequestKind kind) {
  if (foreign_->is_stuck(peer.identity.uid)) return -ETOOMANYREFS;
  return refuse_request(peer, kind, -EMFILE);
}

int Server::refuse_request(Peer& peer, ipc::RequestKind kind, int error, std::string_view why) {
  host::Attachments none;
  ipc::ReplyMessage reply;
  reply.head.kind = kind;
  reply.refuse(error, why);
  return reply_to(peer, none, reply);
}

namespace {

bool gives_files(const ipc::RequestMessage& request) {
  return ipc::rule_of(request.head.kind)->reply_files != 0;
}

}  // namespace

int Server::pass_on(Peer& peer, const ipc::RequestMessage& request, std::span<os::UniqueFd> fds) {
  if (request.head.kind == ipc::RequestKind::kMap) return begin_map(peer, request, fds);
  if (request.head.kind == ipc::RequestKind::kMapped) return begin_mapped(peer, request);
  const auto uid = peer.identity.uid;
  if (const auto many = gives_files(request) ? kept_files_->too_many(uid) : 0; many != 0)
    return refuse_request(peer, request.head.kind, -EDQUOT,
                          "programs of uid " + std::to_string(uid) + " keep " +
                              std::to_string(many) +
                              " files of connections that have ended, which take memory of stpd: "
                              "end these programs");
  host::Attachments attachments;
  ipc::ReplyMessage reply;
  int bell = -1;
  if (ipc::rule_of(request.head.kind)->where == ipc::Where::kDaemon)
    answer_trace(trace_, peer.client, peer.identity.administrator, request, fds, reply);
  else
    ask_service(peer, request, attachments, reply, bell);
  return reply_to(peer, attachments, reply, bell);
}

void Server::ask_service(Peer& peer, const ipc::RequestMessage& request,
                         host::Attachments& attachments, ipc::ReplyMessage& reply, int& bell) {
  const auto shard = request.head.shard;
  const auto turn = shards_[shard]->drive();
  if (ipc::only_watches(request.head.kind)) return turn->watch(peer.identity, request, reply);
  if (request.head.kind == ipc::RequestKind::kHello)
    return greet(turn, peer, request, attachments, reply, bell);
  turn->handle(peer.clients[shard], request, attachments, reply);
}

// `turn`: of that shard's Service.
void Server::greet(const host::Turn& turn, Peer& peer, const ipc::RequestMessage& request,
                   host::Attachments& attachments, ipc::ReplyMessage& reply, int& bell) {
  const auto shard = request.head.shard;
  if (say_hello(turn, peer, shard, reply) != 0) return log_no_hello(peer, reply);
  turn->handle(peer.clients[shard], request, attachments, reply);
  if (reply.head.result != 0) return log_no_hello(peer, reply);
  if (const auto error = turn->bell_of(peer.clients[shard], bell); error != 0)
    return reply.refuse(error);
  if (shard != 0) return;
  // Programs of one domain each are spread over the shards.
  if (!peer.begins) peer.begins = next_shard_++ % static_cast<unsigned>(shards_.size());
  reply.body.as<ask::Hello::Reply>().first = *peer.begins;
}

// The program hears the number only.
void Server::log_no_hello(const Peer& peer, const ipc::ReplyMessage& reply) {
  const auto error = -reply.head.result;
  std::string why = std::strerror(error);
  if (error == EFBIG) why += ": stpd may not make files so large; raise LimitFSIZE of systemd";
  if (error == EDQUOT) why = reply.why();
  log_client(peer.identity.uid, LogLevel::kWarning,
             "client " + std::to_string(peer.client) + " gets no pages: " + why);
}

// Makes the peer a client of the shard, whose Service has the turn, unless it is one.
int Server::say_hello(const host::Turn& turn, Peer& peer, unsigned shard,
                      ipc::ReplyMessage& reply) {
  if (peer.clients[shard] != 0) return 0;
  std::string why;
  peer.clients[shard] = turn->add_client_of_link(peer.identity, peer.use, why);
  if (peer.clients[shard] != 0) return 0;
  reply.head.kind = ipc::RequestKind::kHello;
  reply.refuse(-errno, why);
  return reply.head.result;
}

int Server::reply_to(Peer& peer, host::Attachments& attachments, const ipc::ReplyMessage& reply,
                     int bell) {
  std::array<int, 2> reply_fds{};
  std::size_t fd_count = 0;
  const auto fine = reply.head.result == 0;
  if (attachments.memory && fine) {
    reply_fds[fd_count++] = attachments.memory->fd();
    kept_files_->handed_out(peer.identity.uid, attachments.memory->fd(), attachments.memory);
  }
  if (bell >= 0 && fine) reply_fds[fd_count++] = bell;
  STP_ASSERT(!fine || fd_count == ipc::rule_of(reply.head.kind)->reply_files,
             "what goes along with a reply is what the table says");
  int result = 0;
  const auto time = time_of([&] {
    result = ipc::send_reply(peer.socket.get(), reply, std::span(reply_fds).first(fd_count),
                             ipc::Wait::kDontWait);
  });
  if (result == -ETOOMANYREFS) result = -ENFILE;
  const bool costs = slow_sockets_.replied(peer.identity.uid, time, peer.last_reply);
  return costs && result == 0 ? -ETIME : result;
}

void Server::drop(std::uint64_t key, const std::string& why, bool expected) {
  const auto at = peers_.find(key);
  const auto client = at->second.client;
  const auto clients = std::move(at->second.clients);
  const auto pid = at->second.identity.pid;
  const auto user = at->second.identity.uid;
  // Each question of stpctl is a client: those would fill the log.
  const auto level = at->second.uses_link || !expected ? LogLevel::kInfo : LogLevel::kDebug;
  if (at->second.errand != nullptr) at->second.errand->abandoned = true;
  if (at->second.operating) --operators_;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->second.socket.get(), nullptr);
  if (at->second.process)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->second.process.get(), nullptr);
  closer_->close(user, std::move(at->second.process));
  hang_up(user, std::move(at->second.socket));
  peers_.erase(at);
  if (trace_ != nullptr) trace_->client_gone(client);
  for (std::size_t shard = 0; shard < clients.size(); ++shard)
    if (clients[shard] != 0) shards_[shard]->drive()->remove_client(clients[shard]);
  listener_.resume();
  log_client(user, level,
             "client " + std::to_string(client) + " gone: pid " + std::to_string(pid) + ", " + why);
}

void Server::log_client(uid_t user, LogLevel level, const std::string& text) {
  auto& budget = level == LogLevel::kDebug ? debug_budget_ : log_budget_;
  if (budget.allows(user, Clock::now())) log(level, text);
}

void Server::log(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

}  // namespace stp::stpd
