// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/top.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "libst/service/names.h"
#include "tools/json/json.h"
#include "tools/stpctl/counter_texts.h"
#include "tools/stpctl/interrupt.h"
#include "tools/stpctl/snapshot.h"
#include "tools/stpctl/table.h"

namespace stp::stpctl {
namespace {

using Clock = std::chrono::steady_clock;

struct Look {
  Clock::time_point time;
  Link link;
  std::map<std::string, std::uint64_t> counters;
  std::vector<Connection> connections;
};

Look look_at(DaemonClient& daemon) {
  Look look{.time = Clock::now(),
            .link = read_link(daemon),
            .counters = {},
            .connections = read_connections(daemon)};
  for (auto& [name, value] : read_counters(daemon)) look.counters.emplace(name, value);
  return look;
}

// A link that was started anew counts from 0 again.
double rate(std::uint64_t before, std::uint64_t after, double seconds) {
  return after < before ? 0 : static_cast<double>(after - before) / seconds;
}

struct BusyConnection {
  const Connection* connection;
  double rx_bytes, tx_bytes, control;  // per second
};

struct Rates {
  double seconds;
  std::map<std::string, double> counters;
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
              .drops = 0,
              .connections = {}};
  for (const auto& [name, value] : now.counters) {
    const auto old = before.counters.find(name);
    const auto per_second =
        old == before.counters.end() ? 0 : rate(old->second, value, rates.seconds);
    rates.counters[name] = per_second;
    if (counts_drops(name)) rates.drops += per_second;
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
constexpr std::size_t kHeaderRows = 8;

std::size_t rows_for_connections(bool terminal) {
  winsize size{};
  if (!terminal || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return kRowsInPipe;
  return size.ws_row > kHeaderRows ? size.ws_row - kHeaderRows : 1;
}

std::string summary(const Look& look, const Rates& rates) {
  const auto per_second = [&](const char* name) {
    const auto at = rates.counters.find(name);
    return at == rates.counters.end() ? 0 : at->second;
  };
  Table table({"", "FRAMES/S>", "BITS/S>", "USER-B/S>", "STUS/S>", "CONTROL/S>"});
  for (std::string const way : {"rx", "tx"})
    table.row({way, short_rate(per_second((way + "_frames").c_str())),
               short_rate(8 * per_second((way + "_bytes").c_str())),
               short_rate(per_second((way + "_data_bytes").c_str())),
               short_rate(per_second((way + "_stus").c_str())),
               short_rate(per_second((way + "_control").c_str()))});
  return look.link.name + (look.link.up ? "\n" : ": down\n") + table.text() + "connections " +
         std::to_string(look.link.connections) + ", opened " + short_rate(per_second("vc_opened")) +
         "/s, failed " + short_rate(per_second("vc_failed")) + "/s; dropped " +
         short_rate(rates.drops) + "/s, Blocks repeated " + short_rate(per_second("cts_repeated")) +
         "/s, waits for Slots " + short_rate(per_second("slot_waits")) + "/s\n";
}

std::string busiest(const Rates& rates, std::size_t rows) {
  Table table({"PID>", "", "UPORT>", "PORT>", "PEER", "STATE", "RX-B/S>", "TX-B/S>", "CONTROL/S>",
               "RTT-US>"});
  for (const auto& busy : rates.connections) {
    if (rows-- == 0) break;
    const auto& c = *busy.connection;
    table.row({std::to_string(c.owner.pid), c.passive ? "<-" : "->", std::to_string(c.uport),
               std::to_string(c.local_port), c.peer, std::string(service::name_of(c.state)),
               short_rate(busy.rx_bytes), short_rate(busy.tx_bytes), short_rate(busy.control),
               std::to_string(c.round_trip / kMicrosecond)});
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
  json.end().array("connections");
  for (const auto& busy : rates.connections) {
    const auto& c = *busy.connection;
    json.object().value("pid", c.owner.pid).value("uport", c.uport);
    json.value("local_port", c.local_port).value("peer_mac", c.peer);
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
  for (std::uint64_t turn = 0; options.count == 0 || turn < options.count; ++turn) {
    if (!sleep_until(next)) return;
    std::string out = terminal ? "\033[H\033[2J" : "";
    for (std::size_t i = 0; i < daemons.size(); ++i) {
      auto now = look_at(daemons[i]);
      const auto rates = rates_between(before[i], now);
      out += options.json
                 ? json_of(now, rates)
                 : summary(now, rates) + busiest(rates, rows_for_connections(terminal)) + '\n';
      before[i] = std::move(now);
    }
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
    next = std::max(next + step, Clock::now());
  }
}

}  // namespace stp::stpctl
