// SPDX-License-Identifier: BSD-3-Clause
// A link, or one of its shards, that runs in this process. A thread that waits in a libst call
// drives it; a background thread drives it when no caller does.

#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <thread>

#include "libst/client/backend.h"
#include "libst/client/error.h"
#include "libst/host/poll_loop.h"
#include "libst/os/shared_core.h"

namespace stp::client {

class LocalBackend final : public Backend {
 public:
  explicit LocalBackend(std::unique_ptr<port::Port> port);
  ~LocalBackend() override;
  // To be called first.
  int greet();

  void rung(Time now) override;
  void kick(std::uint32_t bell) override;
  int attend(Condition condition, Time deadline) override;
  Time look(std::uint32_t gatherer) override;
  void rouse() override { loop_.rouse(); }
  [[nodiscard]] int error() const override { return 0; }
  void leave() override;

 private:
  int exchange(ipc::RequestMessage& request, Payload& payload, ipc::ReplyMessage& reply) override;
  bool leaves_at_once();
  void wake_loop();
  bool answer_post(Time now = 0);
  void answer_bells();
  void answer_posts();
  // What the caller does between turns in which nothing moves.
  enum class Between { kYields, kSleeps };
  int drive(Condition condition, Time deadline, Between between = Between::kYields);
  void yield();

  // How long a caller drives the link before it sleeps: about a round trip to a peer that must wake
  // up.
  static constexpr Time kPatience = 50 * kMicrosecond;
  // Where others spin on the caller's core, it waits for frames itself for this long: to wake the
  // loop for that, and be woken by it, would be two more turns of the scheduler.
  static constexpr Time kNap = kMillisecond;
  // The first request after a call that looked for something leaves at once, and so do the first
  // kAtOnce requests after each look of the loop (PollLoop::looks). Further ones leave in bursts of
  // kBurst, with a call that looks, or when the loop runs. So requests of a program that sends a
  // few or waits for answers leave at once.
  static constexpr std::uint32_t kAtOnce = 8, kBurst = 32;
  // Timeout for peers to confirm the end of their connections when the process ends.
  static constexpr Time kFarewell = 200 * kMillisecond;

  host::Service service_;
  host::PollLoop loop_;
  host::ClientId client_ = 0;
  const bool yields_;  // there are too few cores to spin on one
  // One late yield may be that of the loop, which shares the core with a caller who is pinned.
  os::SharedCore core_{{.late_in_a_row = 8, .longest = 800 * kMillisecond}};
  // row_: loop_.looks() at the last post (upper 32 bits), and the number of posts since that look.
  // driven_: loop_.visits() when a post drove the link last.
  std::atomic<std::uint64_t> row_{0}, driven_{0};
  std::atomic<bool> passed_on_{false};  // a post found the lock held and left it to the holder
};

using host::PollLoop;

namespace {

// A Node in this process serves this program only, so there is nobody to protect: Ports and Mx are
// limited by their 16-bit names, queues and Slots by memory.
host::Quotas own_quotas() {
  constexpr std::uint32_t kPorts = 65'535, kMxs = 65'535;
  host::Quotas quotas;
  quotas.connections = kPorts;
  quotas.mxs = kMxs;
  quotas.slots = std::numeric_limits<std::uint64_t>::max();
  quotas.queue_bytes = std::numeric_limits<std::uint64_t>::max();
  return quotas;
}

}  // namespace

LocalBackend::LocalBackend(std::unique_ptr<port::Port> port)
    : service_(std::move(port)),
      loop_(service_, host::PollPolicy::kAdaptive),
      yields_(std::thread::hardware_concurrency() <= 2) {
  service_.drive()->set_quotas(own_quotas());
}

LocalBackend::~LocalBackend() {
  leave();
}

int LocalBackend::greet() {
  {
    const auto turn = service_.drive();
    client_ = turn->add_client(::geteuid() == 0);
    if (client_ == 0) {
      const auto error = -errno;
      return fail(error, std::string("no page for the link's events: ") + std::strerror(-error));
    }
  }
  Payload payload;
  ask::Hello::Reply hello{};
  if (const auto error = call(ask::Hello{}, hello, payload); error != 0) return error;
  welcome(hello, std::move(payload.memory));
  loop_.start();
  return 0;
}

int LocalBackend::exchange(ipc::RequestMessage& request, Payload& payload,
                           ipc::ReplyMessage& reply) {
  host::Attachments attachments;
  attachments.pieces = payload.mapped;
  {
    const auto turn = service_.drive();
    loop_.visited();
    turn->handle(client_, request, attachments, reply);
    turn->poll();  // frames that the request causes leave now
  }
  answer_posts();
  payload.memory = std::move(attachments.memory);
  // The memory is mapped, and no other process needs it. So a connection costs the program no
  // descriptor.
  if (payload.memory) payload.memory->forget_fd();
  return reply.head.result;
}

// Wakes the loop if it sleeps, because it drives the link after the caller.
void LocalBackend::wake_loop() {
  if (page().service_asleep.load(std::memory_order_seq_cst) != 0)
    ::eventfd_write(service_.bell(), 1);
}

void LocalBackend::rung(Time now) {
  wake_loop();
  if (answer_post(now)) answer_bells();
}

// Call after releasing the lock. Answers the posts of threads that found it held.
void LocalBackend::answer_posts() {
  if (passed_on_.exchange(false, std::memory_order_seq_cst)) answer_bells();
}

// Drives the link while bells are rung and the lock is free. If another thread holds the lock, that
// thread's next turn handles the bells, or its answer_posts(), or the loop.
void LocalBackend::answer_bells() {
  while (page().bells.any() && answer_post()) {
  }
}

// `now`: the time, if the caller has just read it. False: another thread holds the lock.
bool LocalBackend::answer_post(Time now) {
  const auto turn = service_.try_drive();
  if (!turn) return false;
  loop_.posted();
  turn->poll(0, now);
  return true;
}

void LocalBackend::kick(std::uint32_t bell) {
  if (!leaves_at_once()) {
    ring(bell);
    wake_loop();  // the loop may have gone to sleep since leaves_at_once() looked
    return loop_.leave_to_loop();
  }
  if (const auto turn = service_.try_drive()) {
    // No other thread needs to see the bell: kicking directly saves four atomic operations.
    loop_.posted();
    turn->kick(client_, bell);
    turn->poll();
    wake_loop();
  } else {
    ring(bell);
    passed_on_.store(true, std::memory_order_seq_cst);
    wake_loop();
  }
  answer_bells();
  driven_.store(loop_.visits(), std::memory_order_relaxed);
}

// Returns whether a post drives the link at once. If many requests are posted in a row, a turn for
// each would cost more than the requests themselves.
bool LocalBackend::leaves_at_once() {
  const auto look = loop_.looks();
  const auto before = row_.load(std::memory_order_relaxed);
  // Threads that post at the same time may overwrite each other's count. The only effect is a turn
  // more or less.
  const auto row = before >> 32 == look ? before + 1 : std::uint64_t{look} << 32;
  row_.store(row, std::memory_order_relaxed);
  const auto posts = static_cast<std::uint32_t>(row);
  if (posts < kAtOnce || posts % kBurst == 0) return true;
  // Also if another caller has driven the Service since the last post, or if the loop sleeps.
  return loop_.visits() != driven_.load(std::memory_order_relaxed) ||
         page().service_asleep.load() != 0;
}

int LocalBackend::attend(Condition condition, Time deadline) {
  if (deadline == 0) return drive(condition, 0);
  const auto begin = port::now();
  // Where others spin on this core, a thread that spins, too, gets it back a slice later, and one
  // that sleeps as soon as a frame wakes it. After a while the loop takes over.
  const bool naps = core_.is_shared(begin);
  const auto until = std::min(deadline, begin + (naps ? kNap : kPatience));
  const auto driven = drive(condition, until, naps ? Between::kSleeps : Between::kYields);
  if (driven == -EAGAIN && deadline > begin) loop_.take_over();
  return driven;
}

Time LocalBackend::look(std::uint32_t gatherer) {
  Time time = 0;
  {
    const auto turn = service_.drive();
    loop_.visited();
    turn->poll(gatherer);
    time = turn->last_turn();
  }
  if (passed_on_.load(std::memory_order_seq_cst)) answer_posts();
  return time;
}

// At least one turn, then until the condition holds, the time has come or a signal handler has run
// while it slept.
int LocalBackend::drive(Condition condition, Time until, Between between) {
  bool holds = false, uninterrupted = true;
  for (auto turn = service_.drive();; turn.give_way()) {
    loop_.visited();
    const auto rouses = loop_.rouses();
    const auto moved = turn->poll();
    holds = condition();
    if (holds || until == 0 || !uninterrupted) break;
    const auto now = turn->now();
    if (now >= until) break;
    if (moved != 0) continue;
    if (between == Between::kSleeps)
      uninterrupted = loop_.sleep_as_caller(turn, until - now, rouses);
    else if (yields_)
      yield();
  }
  if (passed_on_.load(std::memory_order_seq_cst)) answer_posts();
  return holds ? 0 : uninterrupted ? -EAGAIN : -EINTR;
}

void LocalBackend::yield() {
  const auto begin = port::now();
  ::sched_yield();
  core_.yielded(begin, port::now());
}

void LocalBackend::leave() {
  loop_.stop();
  const auto until = port::now() + kFarewell;
  const auto turn = service_.drive();
  turn->remove_client(client_);
  do {
    turn->poll();
  } while (turn->node().vc_count() > 0 && port::now() < until);
  turn->poll();  // sends the last answers: a turn sends what the turn before has received
}

int open_here(const port::LinkConfig& link, std::vector<std::shared_ptr<Backend>>& out) {
  port::OpenError error;
  auto ports = port::Port::open_shards(link, error);
  if (ports.empty()) return fail(error.is_taken ? -EADDRINUSE : -ENODEV, error.text);
  for (auto& port : ports) {
    auto backend = std::make_shared<LocalBackend>(std::move(port));
    if (const auto failed = backend->greet(); failed != 0) return failed;
    out.push_back(std::move(backend));
  }
  return 0;
}

}  // namespace stp::client
