// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/link.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {
namespace {

// Places are reserved, not made.
constexpr std::size_t kQueueCapacity = std::size_t{1} << 20;
static_assert(4 * kMostPosted <= kQueueCapacity);  // so what an endpoint has posted finds them
// Of each connection: the queue that a stpd shares takes 24 KiB. A ring has 16 messages.
constexpr std::uint32_t kChannelSlots = 64;
// How many are registered together, at first and at most.
constexpr std::size_t kSlots = 16, kMostSlots = 128;
constexpr std::size_t kShort = 4096, kMostShort = 256;
constexpr std::size_t kNote = 64, kNotes = 64, kMostNotes = 1024;
// Whole pages, so that what is put from there comes in as few frames as it can.
constexpr std::size_t kShortLaned = 5 * 4096, kLaned = 17 * 4096;
constexpr std::size_t kMostShortLaned = 64, kFirstLaned = 4, kMostLaned = 16;
constexpr int kTurn = 64;
constexpr unsigned kTurnsWithoutLook = 1024;
constexpr std::chrono::seconds kBetweenLooks{1}, kLate{1}, kLinger{2};
constexpr std::int64_t kLook = 1000, kRest = 100;  // us
constexpr std::uint16_t kUdpPort = 8181;           // of the protocol

// The log says why each message that is not copied will cost a registration.
void tell_of_cache(const stm_domain_info_t& info) {
  if (info.cache == STM_CACHE_OFF)
    inform(FI_LOG_MR, "registrations are not kept: STP_REGISTRATION_CACHE is 0");
  if (info.cache == STM_CACHE_CANNOT)
    inform(FI_LOG_MR, "registrations are not kept: the kernel is older than Linux 6.11");
}

void* pointer_of(std::uint64_t context) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(context));
}

// Of this thread, whoever drives the links.
thread_local constinit Hearing hearing;

// Whether this thread's nice value is negative.
bool is_favored() {
  errno = 0;
  return ::getpriority(PRIO_PROCESS, 0) < 0 && errno == 0;
}

int begin_connect(const Dial& dial) {
  const auto given = static_cast<std::int64_t>(parameters().connect_timeout) * 1000;
  return stm_connect(dial.connection, dial.peer.c_str(),
                     given != 0 ? given : std::int64_t{STM_WHILE_ALIVE}, dial.data.data(),
                     dial.data.size());
}

}  // namespace

FabricLink::FabricLink()
    : slots_(kBuffer, kSlots, kMostSlots),
      short_slots_(kShort, kSlots, kMostShort),
      notes_(kNote, kNotes, kMostNotes),
      short_laned_(kShortLaned, kSlots, kMostShortLaned),
      laned_(kLaned, kFirstLaned, kMostLaned) {
  dialers_ = std::make_unique<Dialers>(mutex_, begin_connect);
  clerk_ = std::make_unique<Clerk>(mutex_, [this] { let_leave(); });
}

FabricLink::~FabricLink() {
  hearing.ends(this);
  dialers_.reset();  // their threads use what follows
  clerk_.reset();
  blocks_.clear();
  if (domain_ != nullptr) stm_domain_close(domain_);
}

int FabricLink::open(const std::string& text) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = text.c_str();
  attr.slots = kChannelSlots;
  target_ = UdpTarget(text);
  driven_by_stpd_ = text.starts_with("stpd:");
  if (!driven_by_stpd_) idle_.no_stpd_drives_it();
  if (const auto error = stm_domain_open(&attr, &domain_); error != 0) return error;
  stm_domain_info_t info{};
  info.size = sizeof info;
  if (const auto error = stm_domain_query(domain_, &info); error != 0) return error;
  own_udp_port_ = info.udp_port;
  peer_udp_port_ = info.peer_udp_port;
  tell_of_cache(info);
  slots_.set_domain(domain_);
  registrations_.set_domain(domain_);
  for (auto* const slots : {&short_slots_, &notes_, &short_laned_, &laned_})
    slots->set_domain(domain_);
  return stm_queue_create(domain_, kQueueCapacity, &queue_);
}

std::uint32_t FabricLink::ipv4() const {
  stm_domain_info_t info{};
  info.size = sizeof info;
  const auto known = stm_domain_query(domain_, &info) == 0 && info.ipv4 != 0;
  return known ? info.ipv4 : INADDR_LOOPBACK;
}

Address FabricLink::at_present(const Address& name, std::uint32_t format) const {
  auto own = name;
  if (format != FI_SOCKADDR_IN6)
    own = Address::of(ipv4(), 0);
  else if (name.is_any() || name.ipv4())
    own = target_.address ? *target_.address
                          : own_ipv6(target_.interface).value_or(Address::of(ipv4(), 0));
  own.port = name.port;
  own.udp_port = own_udp_port_;
  return canonical(own);
}

Address FabricLink::canonical(Address address) const {
  if (peer_udp_port_ == kUdpPort && address.udp_port == kUdpPort) address.udp_port = 0;
  if (peer_udp_port_ != kUdpPort && address.udp_port == 0) address.udp_port = peer_udp_port_;
  return address;
}

Address FabricLink::canonical_from_peer(Address address) const {
  if (peer_udp_port_ != 0 && address.udp_port == 0) address.udp_port = kUdpPort;
  return canonical(address);
}

bool FabricLink::has_address(const Address& name, std::uint32_t format) const {
  if (name.is_any()) return true;
  if (const auto four = name.ipv4()) return *four == ipv4();
  if (format != FI_SOCKADDR_IN6) return false;
  // Another address of this host may be that of another link.
  const auto& bound = target_.address;
  return bound && !bound->is_any() ? name.ip == bound->ip && name.scope == bound->scope
                                   : is_own(name);
}

[[gnu::noinline]] void FabricLink::tell() {
  for (auto* const owner : std::exchange(telling_, {})) owner->tell();
}

int FabricLink::take() {
  if (owes_calls_) [[unlikely]]
    tell();
  std::array<stm_event_t, kTurn> events;
  const auto count = stm_queue_poll(queue_, events.data(), kTurn);
  for (int i = 0; i < count; ++i) dispatch(events[static_cast<std::size_t>(i)]);
  if (owes_calls_) [[unlikely]]
    call_owners(count == 0);
  return count;
}

// `idle`: the program may sleep next.
[[gnu::noinline]] void FabricLink::call_owners(bool idle) {
  if (!awaiting_.empty()) let_look_again();
  if (idle) tell();
  if (idle)
    for (auto* const each : std::exchange(cleaning_, {})) each->clean_up();
  owes_calls_ = !awaiting_.empty() || !telling_.empty() || !cleaning_.empty();
}

void FabricLink::let_look_again() {
  for (auto* const owner : std::exchange(awaiting_, {})) {
    owner->awaits_ = false;
    owner->look_again();
  }
  if (awaiting_.empty()) awaiting_since_ = {};
}

void FabricLink::let_leave() {
  for (auto* const owner : std::exchange(leaving_, {})) {
    owner->leaves_soon_ = false;
    owner->leave();
  }
}

bool FabricLink::rest_to_look_again() {
  const auto limit = look_again_in();
  if (!limit) return false;
  wait(std::chrono::microseconds(*limit).count());
  return true;
}

std::optional<std::chrono::milliseconds> FabricLink::look_again_in() const {
  constexpr std::chrono::milliseconds kLeast{1}, kMost{100};
  if (awaiting_.empty()) return std::nullopt;
  const auto since = Clock::now() - awaiting_since_;
  return std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(since / 8), kLeast,
                    kMost);
}

// A call that waits hears of the loss of the link, one that polls does not.
void FabricLink::wait(std::int64_t microseconds) {
  stm_event_t event{};
  const auto result = stm_queue_wait(queue_, 1, &event, 1, microseconds);
  if (result > 0) {
    heard();
    return dispatch(event);
  }
  if (result == 0 || result == -EWOULDBLOCK || result == -EINTR) return;
  lost_ = result;
  explain(FI_LOG_FABRIC, "the link is lost", result);
}

void FabricLink::look_for_loss() {
  if (--turns_until_look_ == 0) [[unlikely]]
    look_around();
}

[[gnu::noinline]] void FabricLink::look_around() {
  turns_until_look_ = kTurnsWithoutLook;
  if (lost_ != 0) return;
  const auto suspected = look_at_ == Clock::time_point{};
  if (!watched_.empty()) look_for_late_peers();
  mutex_.is_held();
  dialers_->hurry(Clock::now());
  if (!suspected && Clock::now() < look_at_) return;
  wait(kLook);
  look_at_ = Clock::now() + kBetweenLooks;
}

void FabricLink::look_for_late_peers() {
  const auto now = Clock::now();
  for (auto& each : watched_) {
    if (each.since == Clock::time_point{}) each.since = now;
    if (each.told || now - each.since < kLate) continue;
    each.told = true;
    inform_seldom(++late_, "a peer is late",
                  "for a second, no message that it has announced or begun has come whole");
  }
}

void FabricLink::progress() {
  if (take() == 0) look_for_loss();
}

static std::uint64_t nanoseconds() {
  const std::chrono::nanoseconds since = Clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(since.count());
}

// Runs once per poll, so it is one function.
[[gnu::flatten]] void FabricLink::poll() {
  if (take() != 0) {
    idle_.told();
    return heard();
  }
  look_for_loss();
  if (idle_.is_time()) may_rest();
}

[[gnu::noinline]] void FabricLink::may_rest() {
  if (lost_ != 0 || mutex_.is_awaited()) return;
  const auto crowded = core_.is_shared(nanoseconds());
  idle_.looked(crowded, crowded && is_favored());
  if (!crowded) return yield();
  // Where not, this thread polls the other link, too, and sleeps there.
  if (idle_.may_sleep(hearing.is_elsewhere(this)))
    mutex_.rest_unless_awaited([this] { wait(kRest); });
}

void FabricLink::heard() const {
  hearing.heard(this);
}

void FabricLink::yield() {
  const auto begin = nanoseconds();
  ::sched_yield();
  core_.yielded(begin, nanoseconds());
}

void FabricLink::poll_for_place(LinkLock& lock) {
  if (take() != 0) return;
  look_for_loss();
  if (!driven_by_stpd_ || lost_ != 0) return;
  if (!core_.is_shared(nanoseconds())) return lock.without([this] { yield(); });
  lock.without([] { std::this_thread::sleep_for(std::chrono::microseconds(kRest)); });
  take();
}

void FabricLink::linger(LinkLock& lock, const std::function<bool()>& sends) {
  const auto deadline = Clock::now() + kLinger;
  while (sends()) {
    if (Clock::now() >= deadline)
      return inform(FI_LOG_EP_CTRL,
                    "an endpoint is closed before all that it has injected arrived");
    progress();
    lock.without(std::this_thread::yield);
  }
}

void FabricLink::drain() {
  while (take() > 0)
    ;
}

void FabricLink::dispatch(const stm_event_t& event) {
  auto* const about = pointer_of(event.context);
  if (event.kind == STM_RECEIVE) {
    auto& buffer = *static_cast<RxBuffer*>(about);
    return buffer.owner->arrived(buffer, event);
  }
  switch (event.kind) {
    case STM_REQUEST:
      static_cast<Acceptor*>(about)->requested(event.connection);
      break;
    case STM_CONNECTED:
    case STM_REFUSED:
    case STM_FAILED:
    case STM_DISCONNECTED:
      static_cast<Owner*>(about)->connection_event(event);
      break;
    case STM_READ_REQUEST:
      static_cast<Owner*>(about)->serve(event);
      break;
    case STM_SEND:
    case STM_SERVED:
    case STM_READ:
    case STM_PUT:
    case STM_GET:
    case STM_FETCH: {
      auto& op = *static_cast<Op*>(about);
      op.owner->part_done(op, event.status);
      break;
    }
    default:
      break;
  }
}

Op& FabricLink::take_op() {
  if (free_ops_.empty()) {
    free_ops_.reserve(ops_.size() + 1);
    free_ops_.push_back(&ops_.emplace_back());
  }
  auto& op = *free_ops_.back();
  free_ops_.pop_back();
  return op;
}

void FabricLink::free_op(Op& op) {
  op.clear();
  free_ops_.push_back(&op);
}

bool FabricLink::has_under_way(const Owner& owner) const {
  return std::ranges::any_of(ops_, [&](const Op& op) { return op.owner == &owner; });
}

namespace {

// The registration by the program that covers the bytes; nullptr: none.
const Mr* registration_of(const Segments& segments) {
  const auto* const mr = static_cast<const Mr*>(segments.desc[0]);
  const auto covers =
      segments.count == 1 && mr != nullptr && mr->covers(segments.iov[0].iov_base, segments.length);
  return covers ? mr : nullptr;
}

}  // namespace

bool is_registered(const Segments& segments) {
  return segments.length != 0 && registration_of(segments) != nullptr;
}

int FabricLink::span_of(const Segments& segments, bool gather, Span& out) {
  if (segments.length == 0) return 0;
  auto* const first = static_cast<std::byte*>(segments.iov[0].iov_base);
  if (const auto* const mr = registration_of(segments); mr != nullptr) {
    out.memory = mr->memory();
    out.data = first;
    return 0;
  }
  if (segments.length <= slots_.size()) {
    if (const auto error = slots_for(segments.length).take(out); error != 0) return error;
  } else {
    if (segments.count > 1) {
      out.own = allocate(segments.length);
      if (!out.own) return -ENOMEM;
    }
    out.data = out.own ? out.own.get() : first;
    const unsigned access = gather ? STM_LOCAL_READ : STM_LOCAL_WRITE;
    auto error = registrations_.take({out.data, segments.length, access}, out.registered);
    if (error == -EOPNOTSUPP && !out.own) {  // it cannot be lent to a stpd
      out.own = allocate(segments.length);
      if (!out.own) return -ENOMEM;
      out.data = out.own.get();
      error = registrations_.take({out.data, segments.length, access}, out.registered);
    }
    if (error != 0) return error;
    out.memory = out.registered->memory();
  }
  if (gather && out.data != first) fi::gather(segments, out.data);
  return 0;
}

bool FabricLink::comes_back(int status) const {
  const auto used_up = status == -EDQUOT || status == -ENOSPC || status == -ENOMEM;
  return used_up && (registrations_.size() != 0 || slots_.has_lent() || short_slots_.has_lent() ||
                     short_laned_.has_lent() || laned_.has_lent());
}

FabricLink::Lack FabricLink::lack() const {
  const auto rest = look_again_in().value_or(std::chrono::milliseconds{0});
  return {.released = registrations_.released(), .again = Clock::now() + rest};
}

// ---- where short messages land ----

RxBlock::~RxBlock() {
  if (memory != nullptr) stm_memory_release(memory);
}

int RxBlock::make(stm_domain_t domain, std::size_t count, std::size_t of_size) {
  size = of_size;
  bytes = allocate(count * size);
  if (!bytes) return -ENOMEM;
  if (const auto error =
          stm_memory_register(domain, bytes.get(), count * size, STM_LOCAL_WRITE, &memory);
      error != 0)
    return error;
  buffers.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    buffers[i] = {.data = &bytes.get()[i * size], .block = this};
  return 0;
}

int FabricLink::take_block(std::size_t count, std::unique_ptr<RxBlock>& out) {
  if (!blocks_.empty()) {
    out = std::move(blocks_.back());
    blocks_.pop_back();
    return 0;
  }
  auto block = std::make_unique<RxBlock>();
  if (const auto error = block->make(domain_, count, kBuffer); error != 0) return error;
  out = std::move(block);
  return 0;
}

bool sends_quietly(stm_connection_t connection) {
  stm_connection_info_t info{};
  info.size = sizeof info;
  return stm_connection_query(connection, &info) == 0 && info.quiet != 0;
}

// ---- threads that connect ----

namespace {

// Of more silent hosts none is remembered: then they hold up others as hosts do that are new.
constexpr std::size_t kMostRemembered = 4096;

std::string dialed_host(const Dial& dial) {
  return dial.peer.substr(0, dial.peer.rfind(':'));
}

}  // namespace

Dialers::Dialers(LinkMutex& mutex, std::function<int(const Dial&)> connect)
    : mutex_(mutex), connect_(std::move(connect)) {}

Dialers::~Dialers() {
  {
    const LinkLock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Dialers::dial(Dial&& dial) {
  mutex_.is_held();
  const auto all_busy = now_.size() + waiting_.size() >= threads_.size();
  if (all_busy && threads_.size() < kMost) add_thread();
  waiting_.push_back(std::move(dial));
  changed_.notify_all();
}

bool Dialers::add_thread() {
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;  // else those that there are will do
    return false;
  }
  return true;
}

bool Dialers::hurry(std::chrono::steady_clock::time_point now) {
  mutex_.is_held();
  if (waiting_.empty()) return false;
  const auto all_busy = now_.size() == threads_.size() && next() != waiting_.end();
  if (!all_busy || now - begun_at_ < kSlow) return true;
  begun_at_ = now;
  const auto most = std::min({2 * threads_.size(), threads_.size() + waiting_.size(), kMostSlow});
  while (threads_.size() < most && add_thread())
    ;
  return true;
}

void Dialers::stop(LinkLock& lock, const Owner& owner) {
  mutex_.is_held();
  std::erase_if(waiting_, [&owner](const Dial& dial) { return dial.owner == &owner; });
  const auto find = [&] {
    mutex_.is_held();
    return std::ranges::find(now_, &owner, &Dialing::owner);
  };
  if (const auto found = find(); found != now_.end())
    stm_connection_close(found->connection);  // so the thread does not wait for the peer any longer
  while (find() != now_.end()) lock.wait(changed_);
}

void Dialers::forget(const Owner& owner) {
  mutex_.is_held();
  for (auto& each : now_)
    if (each.owner == &owner) each.owner = nullptr;
}

bool Dialers::is_silent(const Dial& dial) const {
  return !silent_.empty() && silent_.contains(dialed_host(dial));
}

std::deque<Dial>::iterator Dialers::next() {
  const auto found = std::ranges::find_if(waiting_, [this](const Dial& dial) {
    mutex_.is_held();
    return !is_silent(dial);
  });
  if (found != waiting_.end()) return found;
  const auto to_silent = std::ranges::count_if(now_, &Dialing::to_silent);
  return static_cast<std::size_t>(to_silent) < kMostToSilent ? waiting_.begin() : waiting_.end();
}

void Dialers::note(const Dial& dial, int status) {
  if (status == 0 && !silent_.empty()) silent_.erase(dialed_host(dial));
  if (status != -EHOSTUNREACH) return;
  if (silent_.size() >= kMostRemembered) silent_.clear();
  silent_.insert(dialed_host(dial));
}

void Dialers::run() {
  LinkLock lock(mutex_);
  for (;;) {
    auto first = next();
    while (!closing_ && first == waiting_.end()) {
      lock.wait(changed_);
      first = next();
    }
    if (closing_) return;
    const auto dial = std::move(*first);
    waiting_.erase(first);
    begun_at_ = std::chrono::steady_clock::now();
    const auto now = now_.insert(now_.end(), {dial.owner, dial.connection, is_silent(dial)});
    const auto status = lock.without([&] { return connect_(dial); });
    note(dial, status);
    const auto is_there = now->owner != nullptr;
    if (is_there && status != 0) dial.owner->not_dialed(status);
    if (is_there && status == 0) dial.owner->dialed();
    now_.erase(now);
    changed_.notify_all();
  }
}

Clerk::Clerk(LinkMutex& mutex, std::function<void()> work)
    : mutex_(mutex), work_(std::move(work)) {}

Clerk::~Clerk() {
  {
    const LinkLock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Clerk::call() {
  mutex_.is_held();
  if (std::exchange(called_, true)) return;
  try {
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    called_ = false;  // the program does it with its calls
    return;
  }
  changed_.notify_all();
}

void Clerk::run() {
  LinkLock lock(mutex_);
  for (;;) {
    while (!called_ && !closing_) lock.wait(changed_);
    if (!closing_) lock.without([] { std::this_thread::sleep_for(kRest); });
    if (closing_) return;
    called_ = false;
    work_();
  }
}

// ---- listening ----

namespace {

// Where a port is chosen: those that IANA leaves to whoever wants one.
constexpr std::uint16_t kFirstDynamic = 49'152, kLastDynamic = 65'535;
constexpr int kTries = 256;

}  // namespace

int listen_at(const FabricLink& link, Address& name, Acceptor& acceptor, stm_listener_t& listener) {
  const auto listen_on = [&](std::uint16_t port) {
    const auto text = ":" + std::to_string(port);
    const auto error = stm_listen(link.domain(), text.c_str(), link.queue(),
                                  reinterpret_cast<std::uintptr_t>(&acceptor), 0, &listener);
    if (error == 0) name.port = port;
    return error;
  };
  auto port = name.port;
  if (port != 0) {
    const auto error = listen_on(port);
    return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "port " + std::to_string(port), error);
  }
  // Programs begin at different ones.
  std::random_device seed;
  port = static_cast<std::uint16_t>(kFirstDynamic + seed() % (kLastDynamic - kFirstDynamic + 1));
  auto error = -EADDRINUSE;
  for (int i = 0; i < kTries && error == -EADDRINUSE; ++i) {
    error = listen_on(port);
    port = port == kLastDynamic ? kFirstDynamic : static_cast<std::uint16_t>(port + 1);
  }
  return error == 0 ? 0 : explain(FI_LOG_EP_CTRL, "any port", error);
}

// ---- sleeping on it ----

Clock::time_point deadline_in(int timeout) {
  return timeout < 0 ? Clock::time_point::max() : Clock::now() + std::chrono::milliseconds(timeout);
}

bool Wait::offers(fi_wait_obj wanted) {
  return wanted == FI_WAIT_NONE || wanted == FI_WAIT_UNSPEC || wanted == FI_WAIT_FD;
}

Wait::Wait(FabricLink& link, fi_wait_obj wanted)
    : link_(link), kind_(wanted == FI_WAIT_UNSPEC ? FI_WAIT_FD : wanted) {}

Wait::~Wait() {
  if (epoll_ >= 0) ::close(epoll_);
  if (event_ >= 0) ::close(event_);
}

int Wait::open() {
  if (is_open()) return 0;
  const auto queue = stm_queue_fd(link_.queue());
  if (queue < 0) return queue;
  event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const auto epoll = ::epoll_create1(EPOLL_CLOEXEC);
  epoll_event readable{};
  readable.events = EPOLLIN;
  const auto made = event_ >= 0 && epoll >= 0 &&
                    ::epoll_ctl(epoll, EPOLL_CTL_ADD, event_, &readable) == 0 &&
                    ::epoll_ctl(epoll, EPOLL_CTL_ADD, queue, &readable) == 0;
  if (made) {
    epoll_ = epoll;
    rings_ = true;
    return 0;
  }
  const auto error = errno;
  if (epoll >= 0) ::close(epoll);
  if (event_ >= 0) ::close(event_);
  event_ = -1;
  return -error;
}

[[gnu::noinline]] void Wait::ring() {
  rings_ = false;
  ::eventfd_write(event_, 1);
}

void Wait::clear() {
  if (rings_ || !is_open()) return;
  rings_ = true;
  eventfd_t count = 0;
  ::eventfd_read(event_, &count);
}

int Wait::control(int command, void* argument, bool has_events) {
  if (argument == nullptr) return -FI_EINVAL;
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = kind_;
    return 0;
  }
  if (command != FI_GETWAIT || !possible()) return -FI_ENOSYS;
  if (const auto error = open(); error != 0) return error;
  if (has_events) wake();
  *static_cast<int*>(argument) = epoll_;
  return 0;
}

int Wait::sleep(LinkLock& lock, Clock::time_point deadline) const {
  constexpr auto kSlow = static_cast<int>(Dialers::kSlow.count());
  const auto look = link_.look_again_in();
  auto limit = look ? static_cast<int>(look->count()) : -1;
  link_.mutex().is_held();
  if (link_.dialers().hurry(Clock::now())) limit = limit < 0 ? kSlow : std::min(limit, kSlow);
  if (deadline != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return 0;
    limit = static_cast<int>(std::min<std::int64_t>(left, limit < 0 ? INT_MAX : limit));
  }
  pollfd readable{.fd = epoll_, .events = POLLIN, .revents = 0};
  const auto interrupted = lock.without(
      [&] { return ::poll(&readable, 1, limit) < 0 && errno == EINTR && Clock::now() < deadline; });
  return interrupted ? -FI_EINTR : 0;
}

}  // namespace stp::fi
