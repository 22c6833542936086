// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/commands.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "libst/service/names.h"
#include "tools/json/json.h"
#include "tools/stpctl/counters.h"
#include "tools/stpctl/ending.h"
#include "tools/stpctl/snapshot.h"
#include "tools/stpctl/table.h"

namespace stp::stpctl {
namespace {

using Clock = std::chrono::steady_clock;

struct Look {
  Clock::time_point time;
  Link link;
  std::map<std::string, CounterValue> counters;
  std::vector<Connection> connections;
};

Look look_at(DaemonClient& daemon) {
  Look look{.time = Clock::now(), .link = read_link(daemon), .counters = {}, .connections = {}};
  look.connections = read_connections(daemon, look.link);
  for (auto& counter : read_counters(daemon, look.link))
    look.counters.emplace(counter.name, std::move(counter));
  return look;
}

// After a restart of the daemon, counters begin at 0 again: the rate is 0 then.
double rate(std::uint64_t before, std::uint64_t after, double seconds) {
  return after < before ? 0 : static_cast<double>(after - before) / seconds;
}

struct BusyConnection {
  const Connection* connection;
  double rx_bytes, tx_bytes, control;  // per second
};

using CounterRates = std::map<std::string, double>;

struct Rates {
  double seconds;
  CounterRates counters;
  std::vector<CounterRates> shards;  // of each
  double drops = 0;
  std::vector<BusyConnection> connections;  // the busiest first
};

bool same_connection(const Connection& a, const Connection& b) {
  return a.local_port == b.local_port && a.peer == b.peer && a.peer_port == b.peer_port &&
         a.owner.pid == b.owner.pid;
}

BusyConnection rates_of(const Connection& now, const Connection* before, double seconds) {
  const VcTraffic none;
  const auto& was = before != nullptr ? before->traffic : none;
  const auto& is = now.traffic;
  return {&now, rate(was.rx_data_bytes, is.rx_data_bytes, seconds),
          rate(was.tx_data_bytes, is.tx_data_bytes, seconds),
          rate(was.rx_control + was.tx_control, is.rx_control + is.tx_control, seconds)};
}

Rates rates_between(const Look& before, const Look& now) {
  Rates rates{.seconds = std::chrono::duration<double>(now.time - before.time).count(),
              .counters = {},
              .shards = std::vector<CounterRates>(now.link.shards.size()),
              .drops = 0,
              .connections = {}};
  for (const auto& [name, counter] : now.counters) {
    const auto at = before.counters.find(name);
    // After a restart of the daemon, the link may have another number of shards.
    const auto& old =
        at != before.counters.end() && at->second.shards.size() == counter.shards.size()
            ? at->second
            : counter;
    rates.counters[name] = rate(old.value, counter.value, rates.seconds);
    for (std::size_t i = 0; i < counter.shards.size(); ++i)
      rates.shards[i][name] = rate(old.shards[i], counter.shards[i], rates.seconds);
    if (counts_drops(name)) rates.drops += rates.counters[name];
  }
  std::map<unsigned, const Connection*> old;
  for (const auto& c : before.connections) old[c.local_port] = &c;
  for (const auto& c : now.connections) {
    const auto at = old.find(c.local_port);
    const bool known = at != old.end() && same_connection(*at->second, c);
    rates.connections.push_back(rates_of(c, known ? at->second : nullptr, rates.seconds));
  }
  std::stable_sort(rates.connections.begin(), rates.connections.end(), [](auto& a, auto& b) {
    return a.rx_bytes + a.tx_bytes > b.rx_bytes + b.tx_bytes;
  });
  return rates;
}

// ---- for people

constexpr std::size_t kRowsInPipe = 10;

struct Screen {
  std::size_t rows = 0, columns = 0;  // 0: there is no terminal
};

Screen screen_now(bool terminal) {
  winsize size{};
  if (!terminal || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
}

// What is left for connections below a text, with their headings and an empty line.
std::size_t rows_below(const std::string& text, const Screen& screen) {
  if (screen.rows == 0) return kRowsInPipe;
  const auto taken = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 3;
  return screen.rows > taken ? screen.rows - taken : 1;
}

double rate_of(const CounterRates& rates, const std::string& name) {
  const auto at = rates.find(name);
  return at == rates.end() ? 0 : at->second;
}

// Returns a table with the rates of each shard; "" if there is only one.
std::string shards_of(const Look& look, const Rates& rates) {
  if (!look.link.is_divided()) return "";
  Table table({"SHARD>", "RX-FRAMES/S>", "TX-FRAMES/S>", "RX-USER-B/S>", "TX-USER-B/S>", "GIVEN/S>",
               "TAKEN/S>", "FULL/S>", "CONNECTIONS>"});
  for (std::size_t i = 0; i < rates.shards.size(); ++i) {
    const auto per_second = [&](const char* name) {
      return short_rate(rate_of(rates.shards[i], name));
    };
    table.row({std::to_string(i + 1), per_second("rx_frames"), per_second("tx_frames"),
               per_second("rx_data_bytes"), per_second("tx_data_bytes"), per_second("shard_given"),
               per_second("shard_taken"), per_second("shard_full"),
               std::to_string(look.link.shards[i].connections)});
  }
  return table.text();
}

std::string summary(const Look& look, const Rates& rates) {
  const auto per_second = [&](const std::string& name) { return rate_of(rates.counters, name); };
  Table table({"", "FRAMES/S>", "BITS/S>", "USER-B/S>", "STUS/S>", "CONTROL/S>"});
  for (const std::string way : {"rx", "tx"})
    table.row({way, short_rate(per_second(way + "_frames")),
               short_rate(8 * per_second(way + "_bytes")),
               short_rate(per_second(way + "_data_bytes")), short_rate(per_second(way + "_stus")),
               short_rate(per_second(way + "_control"))});
  return look.link.name + (look.link.up ? "\n" : ": down\n") + table.text() + "connections " +
         std::to_string(look.link.connections) + ", opened " + short_rate(per_second("vc_opened")) +
         "/s, failed " + short_rate(per_second("vc_failed")) + "/s; dropped " +
         short_rate(rates.drops) + "/s, Blocks repeated " + short_rate(per_second("cts_repeated")) +
         "/s, waits for Slots " + short_rate(per_second("slot_waits")) + "/s\n" +
         shards_of(look, rates);
}

std::string busiest(const Rates& rates, std::size_t rows);

// One link on the screen. Columns that do not fit are cut off; sentences are not.
std::string page(const Look& look, const Rates& rates, const Screen& screen) {
  const auto above = fit(summary(look, rates), screen.columns);
  return above + fit(busiest(rates, rows_below(above, screen)), screen.columns) + '\n';
}

std::string busiest(const Rates& rates, std::size_t rows) {
  const bool divided = rates.shards.size() > 1;
  std::vector<std::string> headings{"PID>",  "",        "UPORT>",  "PORT>",      "PEER",
                                    "STATE", "RX-B/S>", "TX-B/S>", "CONTROL/S>", "RTT-US>"};
  if (divided) headings.insert(headings.begin(), "SHARD>");
  Table table(headings);
  for (const auto& busy : rates.connections) {
    if (rows-- == 0) break;
    const auto& c = *busy.connection;
    std::vector<std::string> cells{std::to_string(c.owner.pid),
                                   c.passive ? "<-" : "->",
                                   std::to_string(c.uport),
                                   std::to_string(c.local_port),
                                   c.peer,
                                   std::string(service::name_of(c.state)),
                                   short_rate(busy.rx_bytes),
                                   short_rate(busy.tx_bytes),
                                   short_rate(busy.control),
                                   std::to_string(c.round_trip / kMicrosecond)};
    if (divided) cells.insert(cells.begin(), std::to_string(c.shard));
    table.row(std::move(cells));
  }
  return table.empty() ? "" : table.text();
}

// ---- for programs

std::string json_of(const Look& look, const Rates& rates) {
  Json json;
  json.object().value("link", look.link.name).value("socket", look.link.socket);
  json.value("seconds", rates.seconds).value("dropped_per_second", rates.drops);
  json.object("per_second");
  for (const auto& [name, value] : rates.counters) json.value(name, value);
  json.end().array("shards");
  for (std::size_t i = 0; look.link.is_divided() && i < rates.shards.size(); ++i) {
    json.object().value("shard", i + 1);
    json.value("connections", look.link.shards[i].connections).object("per_second");
    for (const auto& [name, value] : rates.shards[i]) json.value(name, value);
    json.end().end();
  }
  json.end().array("connections");
  for (const auto& busy : rates.connections) {
    const auto& c = *busy.connection;
    json.object().value("pid", c.owner.pid).value("shard", c.shard).value("uport", c.uport);
    json.value("local_port", c.local_port).value("peer", c.peer);
    json.value("peer_mac", c.peer_mac);
    json.value("peer_port", c.peer_port).value("state", service::name_of(c.state));
    json.value("rx_bytes_per_second", busy.rx_bytes);
    json.value("tx_bytes_per_second", busy.tx_bytes);
    json.value("control_per_second", busy.control).value("round_trip_ns", c.round_trip).end();
  }
  return json.end().end().text() + '\n';
}

}  // namespace

void top(const Options& options) {
  watch_for_interrupts();
  let_interrupts_in();
  const bool terminal = !options.json && ::isatty(STDOUT_FILENO) != 0;
  std::vector<DaemonClient> daemons;
  std::vector<Look> before;
  for (const auto& socket : options.sockets) {
    daemons.emplace_back(socket);
    before.push_back(look_at(daemons.back()));
  }
  const auto step =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options.interval));
  auto next = Clock::now() + step;
  Keys keys(terminal);
  for (std::uint64_t turn = 0; options.count == 0 || turn < options.count; ++turn) {
    if (!keys.sleep_until(next)) return;
    std::string out = terminal ? "\033[H\033[2J" : "";
    for (std::size_t i = 0; i < daemons.size(); ++i) {
      auto now = look_at(daemons[i]);
      const auto rates = rates_between(before[i], now);
      out += options.json ? json_of(now, rates) : page(now, rates, screen_now(terminal));
      before[i] = std::move(now);
    }
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
    next = std::max(next + step, Clock::now());
  }
}

}  // namespace stp::stpctl
