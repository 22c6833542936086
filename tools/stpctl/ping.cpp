// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/ping.h"

#include <stp/st.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>

#include "stp/base/printable.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/json/json.h"
#include "tools/stpctl/commands.h"
#include "tools/stpctl/ending.h"

namespace stp::stpctl {

void RoundTrips::add(Time round_trip) {
  if (latest_.size() < kKept)
    latest_.push_back(round_trip);
  else
    latest_[count_ % kKept] = round_trip;
  min_ = count_ == 0 ? round_trip : std::min(min_, round_trip);
  max_ = std::max(max_, round_trip);
  sum_ += round_trip;
  ++count_;
}

Time RoundTrips::percentile(unsigned percent) const {
  if (latest_.empty()) return 0;
  auto sorted = latest_;
  // The smallest time that at least `percent` of them do not exceed: nearest rank, rounded up.
  const auto rank = std::max<std::size_t>((sorted.size() * percent + 99) / 100, 1);
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(rank - 1);
  std::nth_element(sorted.begin(), at, sorted.end());
  return *at;
}

namespace {

using Clock = std::chrono::steady_clock;

struct DeleteEndpoint {
  void operator()(st_ehandle* endpoint) const { st_delete(endpoint); }
};
using EndpointHandle = std::unique_ptr<st_ehandle, DeleteEndpoint>;

struct CloseConnection {
  void operator()(st_chandle* connection) const { st_close(connection); }
};
using ConnectionHandle = std::unique_ptr<st_chandle, CloseConnection>;

double microseconds(Time time) {
  return static_cast<double>(time) / static_cast<double>(kMicrosecond);
}

Time since(Clock::time_point start) {
  return static_cast<Time>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// What there is to tell of a peer that was not reached.
void report_no_connection(const std::string& peer, const std::string& why) {
  Json json;
  json.object().value("peer", peer).null("connect_us");
  for (const auto* count : {"sent", "answered", "lost"}) json.value(count, std::uint64_t{0});
  std::puts(json.value("error", why).end().text().c_str());
}

[[noreturn]] void cannot_connect(const std::string& peer, int error, bool as_json) {
  const std::string why =
      error == -EINTR ? "a signal has ended this before the peer answered" : st_strerror(error);
  std::string text = peer + ": " + why;
  if (error == -EINVAL) throw WrongUsage(text);
  if (error == -ECONNREFUSED)
    text += ". Its Node has answered: the link works. `stpctl ping --serve :PORT` there listens";
  // Other texts name what is at fault: the name, the link, the daemon of this host.
  if (why.starts_with(std::strerror(ETIMEDOUT)) || why.starts_with("nobody answers for") ||
      why.starts_with("nobody answered in time; "))
    text += ". Is its stpd up, with that address, and reachable over this link?";
  if (as_json) report_no_connection(peer, why);
  throw Failure(text);
}

class Pinger {
 public:
  explicit Pinger(const Options& options) : options_(options) { connect(); }

  // Runs until the count is reached or a signal comes, and returns 0; or until the connection ends,
  // and returns its error.
  int run() {
    auto next = Clock::now();
    while (!interrupted() && (options_.count == 0 || sent_ < options_.count)) {
      if (const auto error = one(); error != 0) return error;
      next = std::max(next + duration_of(options_.interval), Clock::now());
      const bool more = options_.count == 0 || sent_ < options_.count;
      if (more && !sleep_until(next)) break;
    }
    return 0;
  }
  void report() const { options_.json ? report_json() : report_text(); }
  [[nodiscard]] bool answered() const { return times_.count() != 0; }

 private:
  void connect() {
    st_ehandle_t endpoint = nullptr;
    if (const auto failed = st_create(nullptr, &endpoint); failed != 0)
      throw Failure(st_strerror(failed));
    endpoint_.reset(endpoint);
    let_interrupts_in();
    st_chandle_t connection = nullptr;
    const auto start = Clock::now();
    const auto error = st_connect(endpoint, options_.peer.c_str(), &connection);
    interrupted();  // before the connection is closed
    if (error != 0) cannot_connect(options_.peer, error, options_.json);
    connect_time_ = since(start);
    connection_.reset(connection);
    if (!options_.json)
      std::printf("%s: connected in %.1f us\n", printable(options_.peer).c_str(),
                  microseconds(connect_time_));
  }

  // Sends one Request_State and waits for the answer or the timeout. Returns 0, or the error with
  // which the connection has ended.
  int one() {
    st_header_t ask{};
    ask.op_flags = ST_OP_FLAGS(ST_OP_RS, 0);
    ask.sync = ++sequence_;
    ask.b_num = ST_NO_ID;
    ask.d_id = ST_NO_ID;
    ask.s_id = ST_NO_ID;
    const auto start = Clock::now();
    if (const auto error = st_tx(connection_.get(), &ask, nullptr, 0, 0, 0); error != 0)
      return error == -EINTR ? 0 : error;
    ++sent_;
    unsigned slots = 0;
    const auto error = await_answer(start + duration_of(options_.timeout), slots);
    if (error == 0) {
      const auto time = since(start);
      times_.add(time);
      say(time, slots);
    } else if (error == -EWOULDBLOCK) {
      ++lost_;
      if (!quiet()) std::printf("no answer %u\n", sequence_);
    } else if (error == -EINTR) {
      --sent_;  // a signal ended the wait: it counts neither as answered nor as lost
    }
    return error == -EWOULDBLOCK || error == -EINTR ? 0 : error;
  }

  int await_answer(Clock::time_point until, unsigned& slots) {
    for (;;) {
      const auto left = std::chrono::duration_cast<std::chrono::microseconds>(
          std::max(until - Clock::now(), Clock::duration::zero()));
      timeval timeout{.tv_sec = static_cast<time_t>(left.count() / 1'000'000),
                      .tv_usec = static_cast<suseconds_t>(left.count() % 1'000'000)};
      st_header_t header;
      if (const auto got = st_rx(connection_.get(), &header, nullptr, &timeout); got < 0)
        return got;
      if (ST_OP(header.op_flags) != ST_OP_RSR) continue;  // sent by the peer's program
      slots = header.r_slots;
      if (header.sync == sequence_) return 0;
      ++late_;  // the answer to a ping that was counted as lost, and still is
    }
  }

  [[nodiscard]] bool quiet() const { return options_.json || options_.interval == 0; }
  void say(Time time, unsigned slots) const {
    if (quiet()) return;
    std::printf("answer %u: %.1f us, %u Slots free\n", sequence_, microseconds(time), slots);
    std::fflush(stdout);
  }

  [[nodiscard]] double lost_percent() const {
    return sent_ == 0 ? 0 : 100.0 * static_cast<double>(lost_) / static_cast<double>(sent_);
  }
  void report_text() const {
    std::printf("%ju sent, %ju answered, %ju lost (%.1f%%), %ju late\n", std::uintmax_t{sent_},
                std::uintmax_t{times_.count()}, std::uintmax_t{lost_}, lost_percent(),
                std::uintmax_t{late_});
    if (answered())
      std::printf("round trip us: min %.1f, avg %.1f, p50 %.1f, p99 %.1f, max %.1f\n",
                  microseconds(times_.min()), microseconds(times_.average()),
                  microseconds(times_.percentile(50)), microseconds(times_.percentile(99)),
                  microseconds(times_.max()));
  }
  void report_json() const {
    Json json;
    json.object().value("peer", options_.peer).value("connect_us", microseconds(connect_time_));
    json.value("sent", sent_).value("answered", times_.count()).value("lost", lost_);
    json.value("lost_percent", lost_percent()).value("late", late_).object("round_trip_us");
    const auto time = [&](const char* name, Time value) {
      answered() ? json.value(name, microseconds(value)) : json.null(name);
    };
    time("min", times_.min());
    time("avg", times_.average());
    time("p50", times_.percentile(50));
    time("p99", times_.percentile(99));
    time("max", times_.max());
    std::puts(json.end().end().text().c_str());
  }

  const Options& options_;
  EndpointHandle endpoint_;
  ConnectionHandle connection_;  // destroyed before its endpoint
  Time connect_time_ = 0;
  std::uint32_t sequence_ = 0;
  std::uint64_t sent_ = 0, lost_ = 0, late_ = 0;
  RoundTrips times_;
};

// ---- the other side

constexpr unsigned kMostVisitors = 256;

// Accepts the next peer, or refuses it if `visitors` are too many. The Node answers the pings.
// Returns whether there is one visitor more. Does not wait: the peer may have gone meanwhile.
bool admit(st_ehandle_t endpoint, unsigned visitors) {
  st_chandle_t connection = nullptr;
  st_peer_t peer;
  timeval none{};
  const auto error = st_inspect(endpoint, &connection, &peer, &none);
  if (error == -EWOULDBLOCK || error == -EINTR) return false;
  if (error != 0) throw Failure(st_strerror(error));
  if (visitors < kMostVisitors && st_accept_opt(connection, nullptr) == 0) return true;
  st_close(connection);  // refuses it, unless the peer has gone
  return false;
}

void serve_pings(const Options& options) {
  st_ehandle_t handle = nullptr;
  if (const auto error = st_create(options.peer.c_str(), &handle); error != 0) {
    const auto text = options.peer + ": " + st_strerror(error);
    if (error == -EINVAL) throw WrongUsage(text);
    throw Failure(text);
  }
  const EndpointHandle endpoint(handle);
  unsigned inspect = 1;
  auto error = st_setopt(handle, ST_OPT_INSPECT, &inspect);
  if (error == 0) error = st_listen(handle);
  if (error != 0) throw Failure(options.peer + ": " + st_strerror(error));
  cli::print("listening on " + options.peer + "; Ctrl-C ends it");
  std::fflush(stdout);
  unsigned visitors = 0;  // st_delete closes their connections in the end
  while (!interrupted()) {
    // Signals are unblocked only while this thread waits. A signal that comes just before the wait
    // is noticed after it.
    timeval look{.tv_sec = 0, .tv_usec = 200'000};
    st_event_t event;
    let_interrupts_in();
    error = st_next_event(handle, &event, &look);
    watch_for_interrupts();
    if (error == -EINTR || error == -EWOULDBLOCK) continue;
    if (error != 0) throw Failure(options.peer + ": " + st_strerror(error));
    if (event.kind != ST_EVENT_CONNECTION) {
      st_close(event.chandle);  // the peer has gone
      --visitors;
    } else if (admit(handle, visitors)) {
      ++visitors;
    }
  }
}

}  // namespace

void ping(const Options& options) {
  ::setenv("STP_LINK", options.link.c_str(), 1);
  watch_for_interrupts();
  if (options.serve) return serve_pings(options);
  Pinger pinger(options);
  const auto error = pinger.run();
  pinger.report();
  if (error != 0) throw Failure(options.peer + ": the connection has ended: " + st_strerror(error));
  if (!pinger.answered())
    throw Failure(options.peer + (interrupted() ? ": a signal has ended this before an answer came"
                                                : ": no answer"));
}

void add_ping(cli::App& ping, Options& options) {
  ping.add_option("peer", options.peer, "The peer; with --serve the :PORT to listen on")
      ->type_name("HOST:PORT")
      ->required();
  auto* const serve = ping.add_flag("--serve", options.serve, "Listen for pings until Ctrl-C");
  ping.add_option("--count", options.count, "Number of pings; 0: until Ctrl-C")
      ->capture_default_str()
      ->excludes(serve);
  ping.add_option("--interval", options.interval, "Seconds between two pings; 0: no pause")
      ->type_name("SECONDS")
      ->between(0.0, kMostSeconds)
      ->capture_default_str()
      ->excludes(serve);
  ping.add_option("--timeout", options.timeout, "Seconds until a ping counts as lost")
      ->type_name("SECONDS")
      ->between(kLeastSeconds, kMostSeconds)
      ->capture_default_str()
      ->excludes(serve);
  ping.add_option("--link", options.link,
                  std::string("Any link, as for STP_LINK") + cli::kLinkOptions)
      ->type_name("LINK")
      ->default_str("that of --socket, else STP_LINK, else the daemon's");
}

std::string check_ping(const Options& options) {
  return cli::reason_against_name(options.peer);
}

}  // namespace stp::stpctl
