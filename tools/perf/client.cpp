// SPDX-License-Identifier: BSD-3-Clause
#include "tools/perf/commands.h"

#include <array>
#include <cerrno>
#include <stdexcept>

#include "tools/perf/control.h"
#include "tools/perf/level0.h"
#include "tools/perf/managed.h"
#include "tools/perf/plan.h"
#include "tools/perf/room.h"

namespace stp::perf {
namespace {

constexpr std::int64_t kConnectTimeout = 10'000'000;  // us
constexpr std::chrono::microseconds kPatience(kConnectTimeout + 1'000'000);
// The most connections that are being established at the same time.
constexpr std::size_t kAtOnce = 16;

class Client {
 public:
  Client(const Setup& setup, const std::string& peer, const Plan& plan)
      : peer_(peer),
        plan_(plan),
        buffer_log2_(setup.buffer_log2),
        domain_(open_link(setup)),
        room_(domain_, setup.buffer_log2, plan),
        events_(room_.queue(), plan.sleeps, plan.crowded) {
    const auto greeting = Greeting{plan_, room_.remote()}.encoded();
    control_connection_ = connect(Control::kContext, greeting.data(), greeting.size());
    const auto remote = remote_of(control_connection_);
    if (!remote) throw std::runtime_error(peer_ + " is not an stp-perf server of this version");
    remote_ = *remote;
    control_.emplace(room_, control_connection_);
  }

  void measure(const Pace& pace, const UsageMeter& usage, Histogram& latency, Result& result) {
    if (plan_.operation == Operation::kLevel0) return measure_level0(pace, usage, latency, result);
    if (plan_.test == Test::kStream) return measure_stream(pace, usage, result);
    const auto connection = connect(Ping::kContext, nullptr, 0);
    Ping ping(plan_, room_, remote_, connection,
              [this](const stm_event_t& event) { control_->handle(event); });
    measure_latency([&] { ping.round_trip(); }, pace, usage, latency, result);
  }

  // What the result is compared with.
  void add_controls(const UsageMeter& usage, Result& result) const {
    result.here->memcpy_rate = copy_rate(plan_, usage);
    result.here->megabits = rate_of_link(domain_);
  }

 private:
  void check_connecting(int result) const {
    if (result == -ECONNREFUSED)
      throw std::runtime_error(peer_ + " refused the connection: nobody listens on that port; " +
                               "start stp-perf server there, or correct the port");
    checked_usage(result, "connecting to " + peer_);
  }
  // The same of one that was begun, whose link may know more.
  void check_begun(int result, stm_connection_t connection) const {
    stm_peer_info_t about{};
    about.size = sizeof about;
    const std::string why = stm_peer_query(connection, &about) == 0 ? about.trouble : "";
    const bool is_silent =
        result == -ETIMEDOUT || result == -EHOSTUNREACH || result == -ENETUNREACH;
    if (is_silent && !why.empty())
      throw std::runtime_error("connecting to " + peer_ + ": " + st_strerror(result) + ": " + why);
    if (result == -ECONNREFUSED && why.starts_with("tried of "))
      throw std::runtime_error(peer_ + " refused the connection: nobody listens on that port; " +
                               why);
    check_connecting(result);
  }
  [[nodiscard]] static std::string address_of(stm_connection_t connection) {
    stm_peer_info_t about{};
    about.size = sizeof about;
    return stm_peer_query(connection, &about) == 0 ? std::string(" (") + about.address + ")" : "";
  }

  // Programs that exchange files greet so, whatever their version.
  [[nodiscard]] static bool is_of_files(stm_connection_t connection) {
    std::array<char, 4> said{};
    const auto length = stm_private_data(connection, said.data(), said.size());
    return length >= static_cast<int>(said.size()) && said == std::array{'S', 'T', 'P', 'F'};
  }

  [[nodiscard]] static std::string why_refused(stm_connection_t connection) {
    if (const auto busy = Busy::of(connection); busy)
      return " serves another client, " + busy->station + ", for " + std::to_string(busy->seconds) +
             " s already: try again when that has ended, or start another " +
             "server there with a --port of its own";
    return is_of_files(connection) ? " is an stp-recv: name the port of an stp-perf server"
                                   : " has refused: it is no stp-perf server of this version";
  }

  Connection begin(std::uint64_t context, const void* data, std::size_t length) {
    auto connection = make_connection(domain_, connection_attr(room_.queue(), context));
    check_connecting(stm_connect(connection, peer_.c_str(), kConnectTimeout, data, length));
    return connection;
  }

  // Waits until one of the connections that were begun is established.
  void await_connection() {
    auto event = next_event(room_.queue(), kPatience);
    while (control_ && control_->handle(event)) event = next_event(room_.queue(), kPatience);
    if (event.kind == STM_REFUSED)
      throw std::runtime_error(peer_ + address_of(event.connection) +
                               why_refused(event.connection));
    check_begun(event.status, event.connection);
  }

  Connection connect(std::uint64_t context, const void* data, std::size_t length) {
    auto connection = begin(context, data, length);
    await_connection();
    return connection;
  }

  std::vector<Connection> connect_all(std::uint32_t count) {
    std::vector<Connection> all;
    for (std::uint32_t made = 0; made < count; ++made) {
      while (all.size() < count && all.size() - made < kAtOnce) {
        const auto index = static_cast<std::uint32_t>(all.size());
        all.push_back(begin(Stream::context_of(index, Stream::Role::kConnection), nullptr, 0));
      }
      await_connection();
    }
    return all;
  }

  void measure_level0(const Pace& pace, const UsageMeter& usage, Histogram& latency,
                      Result& result) {
    Level0 level0("", plan_, buffer_log2_);
    if (plan_.test == Test::kLatency) {
      Level0Ping ping(plan_, level0.connect(peer_));
      return measure_latency([&] { ping.round_trip(); }, pace, usage, latency, result);
    }
    std::vector<Level0Connection> connections;
    while (connections.size() < plan_.connections) connections.push_back(level0.connect(peer_));
    Level0Stream stream(plan_, std::move(connections));
    measure_stream(
        stream, [&] { stream.turn(); }, pace, usage, result);
    finish(result, [](const stm_event_t&) {});
  }

  template <typename RoundTrip>
  void measure_latency(RoundTrip&& round_trip, const Pace& pace, const UsageMeter& usage,
                       Histogram& latency, Result& result) {
    for (Stretch warm_up(pace.warm_up, pace.quiet, "warming up"); !warm_up.past(0);) round_trip();
    control_->send(Note::kBegin);
    const auto before = usage.now();
    Stretch stretch(pace.measure, pace.quiet, "measuring");
    do {
      const auto start = Clock::now();
      round_trip();
      latency.add(Clock::now() - start);
    } while (!stretch.past(latency.count()));
    result.seconds = stretch.seconds();
    result.here = Side{.usage = usage.now() - before};
    result.operations = latency.count();
    finish(result, [](const stm_event_t&) {});
  }

  void measure_stream(const Pace& pace, const UsageMeter& usage, Result& result) {
    const auto owned = connect_all(plan_.connections);
    const std::vector<stm_connection_t> connections(owned.begin(), owned.end());
    Stream stream(plan_, room_, remote_, connections);
    const auto handle = [&](const stm_event_t& event) {
      if (!control_->handle(event)) stream.handle(event);
    };
    const auto turn = [&] {
      events_.turn(handle);
      stream.retry();
    };
    if (!plan_.sleeps) turns_.learn(turn);
    measure_stream(
        stream, [&] { turns_.take(turn); }, pace, usage, result);
    finish(result, [&](const stm_event_t& event) {
      stream.handle(event);
      stream.retry();
    });
  }

  template <typename AnyStream, typename Turn>
  void measure_stream(AnyStream& stream, Turn&& turn, const Pace& pace, const UsageMeter& usage,
                      Result& result) {
    const auto run = [&](Stretch&& stretch, std::uint64_t least) {
      const auto done = stream.operations();
      do {
        turn();
      } while (!stretch.past(stream.operations() - done));
      result.prolonged = stream.operations() - done < least;
      while (stream.operations() - done < least && !control_->ended()) turn();
      result.seconds = stretch.seconds();
      result.operations = stream.operations() - done;
    };
    stream.start();
    run(Stretch(pace.warm_up, pace.quiet, "warming up"), 0);
    control_->send(Note::kBegin);
    const auto before = usage.now();
    const auto turns_before = turns_.times();
    run(Stretch(pace.measure, pace.quiet, "measuring"), 1);  // a rate needs one operation
    result.here = Side{.usage = usage.now() - before, .turns = turns_.times() - turns_before};
    stream.stop();
    while (!stream.drained() && !control_->ended()) turn();
  }

  // Requests the server's report. Handles what the server still sends meanwhile.
  template <typename Others>
  void finish(Result& result, Others&& others) {
    control_->send(Note::kEnd);
    while (control_->take() != Note::kReport) {
      if (control_->ended()) throw std::runtime_error(peer_ + " has ended the connection");
      events_.turn([&](const stm_event_t& event) {
        if (!control_->handle(event)) others(event);
      });
    }
    result.peer = control_->report().side;
    result.peer_operations = control_->report().operations;
  }

  const std::string& peer_;
  const Plan plan_;
  const unsigned buffer_log2_;
  Domain domain_;
  Room room_;
  Events events_;
  Connection control_connection_;
  stm_remote_t remote_{};
  std::optional<Control> control_;
  Turns turns_;
};

}  // namespace

Result run_client(const Setup& setup, const std::string& peer, const Plan& plan, const Pace& pace,
                  const UsageMeter& usage, Histogram& latency) {
  auto here = plan;
  here.crowded = is_crowded(setup);
  Result result;
  result.operation = name_of(plan.operation);
  result.link = setup.link;
  result.size = plan.size;
  result.window = plan.window;
  result.connections = plan.connections;
  result.bidirectional = plan.bidirectional;
  result.sleeps = plan.sleeps;
  if (plan.operation == Operation::kLevel0) level0_address(peer);  // before anything is begun
  Client client(setup, peer, here);
  client.measure(pace, usage, latency, result);
  client.add_controls(usage, result);
  if (plan.test == Test::kLatency) result.latency = &latency;
  return result;
}

}  // namespace stp::perf
