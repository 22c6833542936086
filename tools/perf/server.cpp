// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/commands.h"

#include <cerrno>
#include <deque>
#include <functional>
#include <stdexcept>
#include <utility>

#include "tools/perf/control.h"
#include "tools/perf/level0.h"
#include "tools/perf/managed.h"
#include "tools/perf/plan.h"
#include "tools/perf/room.h"

namespace stp::perf {
namespace {

constexpr std::chrono::seconds kServerPatience(10);
constexpr std::chrono::milliseconds kBetweenLooks(100);
constexpr std::size_t kWaiting = 1024;  // requests, and the listener's own

// The server is to end.
struct Stopped {};

// Requests to connect. Those of clients that have to wait for their turn are kept.
class Requests {
 public:
  Requests(stm_queue_t queue, const std::atomic<bool>& stop, std::chrono::milliseconds turn)
      : queue_(queue), stop_(stop), turn_(turn) {}

  // Waits for the next client.
  Connection next_client() {
    check_stop();
    if (!waiting_.empty()) {
      auto client = std::move(waiting_.front().request);
      waiting_.pop_front();
      return client;
    }
    for (;;)
      if (auto request = look(); request) return std::move(*request);
  }
  // Waits for a further connection of the client that is being served. Only the first request of a
  // client has private data.
  Connection next_of_client() {
    for (const auto until = Clock::now() + kServerPatience; Clock::now() < until;) {
      auto request = look();
      if (!request) continue;
      if (stm_private_data(*request, nullptr, 0) == 0) return std::move(*request);
      keep(std::move(*request));
    }
    throw std::runtime_error("the client makes no further connection");
  }
  void check_stop() const {
    if (stop_) throw Stopped();
  }
  // The client that is served from now on.
  void serves(stm_connection_t client) {
    stm_peer_info_t about{};
    about.size = sizeof about;
    served_ = stm_peer_query(client, &about) == 0 ? about.address : "another client";
    since_ = Clock::now();
  }
  // Call it all the time while a client is served. Most calls do nothing: a turn may take less than
  // a microsecond. `sleeps`: it may also take long.
  void attend(bool sleeps) {
    constexpr unsigned kTurnsBetweenClocks = 64;
    check_stop();
    if (!sleeps && turns_++ % kTurnsBetweenClocks != 0) return;
    const auto now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + kBetweenLooks;
    stm_event_t event{};
    while (checked(stm_queue_poll(queue_, &event, 1), "looking for clients") == 1)
      keep(Connection(event.connection));
    for (; !waiting_.empty() && now - waiting_.front().since >= turn_; waiting_.pop_front())
      tell(waiting_.front(), now);
  }

 private:
  struct Waiting {
    Connection request;
    Clock::time_point since;
  };

  void keep(Connection request) {
    if (waiting_.size() < kWaiting) waiting_.push_back({std::move(request), Clock::now()});
  }
  void tell(Waiting& waiting, Clock::time_point now) const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - since_).count();
    const auto why = Busy{served_, static_cast<std::uint32_t>(seconds)}.encoded();
    stm_reject(waiting.request.release(), why.data(), why.size());
  }
  std::optional<Connection> look() {
    check_stop();
    stm_event_t event{};
    const auto got = stm_queue_wait(
        queue_, 1, &event, 1,
        std::chrono::duration_cast<std::chrono::microseconds>(kBetweenLooks).count());
    if (got == -EWOULDBLOCK || got == -EINTR) return std::nullopt;
    checked(got, "waiting for a client");
    return Connection(event.connection);
  }

  stm_queue_t queue_;
  const std::atomic<bool>& stop_;
  const std::chrono::milliseconds turn_;
  std::deque<Waiting> waiting_;
  std::string served_;
  Clock::time_point since_, next_look_{};
  unsigned turns_ = 0;
};

// What level 0 does meanwhile when it waits for a client.
std::function<void()> looking_at(Requests& requests) {
  return [&requests] { requests.attend(true); };
}

// Runs the test of one client.
class Service {
 public:
  // `level0`: where level 0 listens already.
  Service(const Serving& serving, const UsageMeter& usage, stm_domain_t domain, Requests& requests,
          Connection control, const Greeting& greeting, std::optional<Level0> level0)
      : usage_(usage),
        requests_(requests),
        plan_(greeting.plan),
        peer_(greeting.remote),
        room_(domain, serving.setup.buffer_log2, plan_),
        events_(room_.queue(), plan_.sleeps, plan_.crowded),
        level0_(std::move(level0)),
        control_connection_(std::move(control)) {
    if (plan_.operation != Operation::kLevel0 || (level0_ && level0_->size() != plan_.size))
      level0_.reset();
    if (plan_.operation == Operation::kLevel0 && !level0_)
      level0_.emplace(serving.port, plan_, serving.setup.buffer_log2, looking_at(requests));
    requests_.serves(control_connection_);
    const auto attr = connection_attr(room_.queue(), Control::kContext);
    const auto answer = encoded(room_.remote());
    checked(stm_accept(control_connection_, &attr, answer.data(), answer.size()), "accepting");
    control_.emplace(room_, control_connection_);
  }

  void run() {
    const bool streams = plan_.test == Test::kStream;
    if (level0_)
      streams ? serve_level0_stream() : serve_level0_ping();
    else
      streams ? serve_stream() : serve_ping();
    report_.side = {.usage = usage_.now() - begun_,
                    .turns = turns_.times() - turns_begun_,
                    .memcpy_rate = copy_rate(plan_, usage_),
                    .megabits = rate_of_link(room_.domain())};
    control_->send(report_);
    // Waits until the client closes the connections.
    while (!control_->ended()) {
      requests_.attend(plan_.sleeps);
      events_.turn([&](const stm_event_t& event) { control_->handle(event); });
    }
  }

 private:
  // Returns false when the test is over: the client has the report or is gone.
  bool heed_notes() {
    return heed_notes([] { return std::uint64_t{0}; });
  }
  // `operations` returns how many operations of this side have completed.
  template <typename Operations>
  bool heed_notes(Operations&& operations) {
    if (control_->ended()) throw std::runtime_error("the client has ended the connection");
    requests_.attend(plan_.sleeps);
    const auto note = control_->take();
    if (note == Note::kBegin) {
      begun_ = usage_.now();
      turns_begun_ = turns_.times();
      before_ = operations();
    }
    return note != Note::kEnd;
  }

  Connection accept_next(std::uint64_t context) {
    auto connection = requests_.next_of_client();
    const auto attr = connection_attr(room_.queue(), context);
    checked(stm_accept(connection, &attr, nullptr, 0), "accepting");
    return connection;
  }

  void serve_ping() {
    const auto connection = accept_next(Ping::kContext);
    Ping ping(plan_, room_, peer_, connection,
              [this](const stm_event_t& event) { control_->handle(event); });
    while (heed_notes()) ping.answer();
  }

  void serve_level0_ping() {
    Level0Ping ping(plan_, level0_->accept());
    while (heed_notes()) look_for_notes(ping.answer());
  }

  void serve_level0_stream() {
    std::vector<Level0Connection> connections;
    while (connections.size() < plan_.connections) connections.push_back(level0_->accept());
    Level0Stream stream(plan_, std::move(connections));
    if (plan_.bidirectional) stream.start();
    while (heed_notes([&] { return stream.operations(); })) look_for_notes(stream.turn());
    report_.operations = stream.operations() - before_;
    stream.stop();
    while (!stream.drained() && !control_->ended()) {
      requests_.attend(plan_.sleeps);
      look_for_notes(stream.turn());
    }
  }

  // The level-0 test does not wait on the managed API's queue, so this polls it from time to time.
  // `came`: the last turn has received something. It checks the number of turns first and then the
  // clock: a turn takes a fraction of a microsecond, or milliseconds if other programs occupy the
  // cores.
  void look_for_notes(bool came) {
    constexpr unsigned kTurnsBetweenClocks = 64;
    if (came || !plan_.sleeps) {
      if (looks_++ % kTurnsBetweenClocks != 0) return;
      const auto now = Clock::now();
      if (now < next_look_) return;
      next_look_ = now + std::chrono::milliseconds(1);
    }
    stm_event_t event{};
    while (checked(stm_queue_poll(room_.queue(), &event, 1), "polling for events") == 1)
      control_->handle(event);
  }

  void serve_stream() {
    std::vector<Connection> owned;
    std::vector<stm_connection_t> connections;
    const auto heed = [this](const stm_event_t& event) { control_->handle(event); };
    if (!plan_.sleeps) turns_.learn([&] { events_.turn(heed); });
    for (std::uint32_t i = 0; i < plan_.connections; ++i) {
      owned.push_back(accept_next(Stream::context_of(i, Stream::Role::kConnection)));
      connections.push_back(owned.back());
    }
    Stream stream(plan_, room_, peer_, connections);
    const auto once = [&] {
      events_.turn([&](const stm_event_t& event) {
        if (!control_->handle(event)) stream.handle(event);
      });
      stream.retry();
    };
    const auto turn = [&] { turns_.take(once); };
    for (bool started = false; heed_notes([&] { return stream.operations(); }); turn()) {
      if (started || !plan_.bidirectional) continue;
      stream.start();
      started = true;
    }
    report_.operations = stream.operations() - before_;
    stream.stop();
    while (!stream.drained() && !control_->ended()) {
      requests_.attend(plan_.sleeps);
      turn();
    }
    connections_ = std::move(owned);
  }

  const UsageMeter& usage_;
  Requests& requests_;
  const Plan plan_;
  const stm_remote_t peer_;
  Room room_;
  Events events_;
  std::optional<Level0> level0_;
  Connection control_connection_;
  std::vector<Connection> connections_;
  std::optional<Control> control_;
  Usage begun_;
  std::uint64_t before_ = 0;  // operations when the measurement began
  unsigned looks_ = 0;        // at level 0
  Turns turns_;
  TurnTimes turns_begun_;
  Clock::time_point next_look_{};
  ServerReport report_;
};

void serve(const Serving& serving, const UsageMeter& usage, stm_domain_t domain, Requests& requests,
           Connection control, std::optional<Level0> level0) {
  auto greeting = Greeting::of(control);
  if (!greeting) {
    stm_reject(control.release(), nullptr, 0);
    throw std::runtime_error("refused a client that is not an stp-perf of this version");
  }
  greeting->plan.crowded = is_crowded(serving.setup);
  Service(serving, usage, domain, requests, std::move(control), *greeting, std::move(level0)).run();
}

}  // namespace

void run_server(const Serving& serving, const UsageMeter& usage,
                const std::atomic<bool>& stop) try {
  const auto domain = open_link(serving.setup);
  const auto queue = make_queue(domain, kWaiting);
  stm_listener_t listening = nullptr;
  const auto listened = stm_listen(domain, serving.port.c_str(), queue, 0, 0, &listening);
  checked_usage(
      listened,
      "listening on " + serving.port +
          (listened == -EADDRINUSE ? " (name another --port, or end who listens there)" : ""));
  const Listener listener(listening);
  Requests requests(queue, stop, serving.turn);
  std::optional<Level0> level0;
  if (serving.plan != nullptr && serving.plan->operation == Operation::kLevel0)
    level0.emplace(serving.port, *serving.plan, serving.setup.buffer_log2, looking_at(requests));
  if (serving.listening) serving.listening();
  do {
    auto client = requests.next_client();
    try {
      serve(serving, usage, domain, requests, std::move(client), std::exchange(level0, {}));
    } catch (const std::exception& failure) {
      if (serving.mishap) serving.mishap(failure.what());
    }
  } while (!serving.once);
} catch (const Stopped&) {
}

}  // namespace stp::perf
