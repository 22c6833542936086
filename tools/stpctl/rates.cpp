// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/rates.h"

#include <algorithm>

#include "tools/stpctl/counters.h"

namespace stp::stpctl {
namespace {

// After a restart of the daemon, counters begin at 0 again: the rate is 0 then.
double rate(std::uint64_t before, std::uint64_t after, double seconds) {
  return after < before ? 0 : static_cast<double>(after - before) / seconds;
}

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

}  // namespace

Look look_at(DaemonClient& daemon) {
  Look look{.time = std::chrono::steady_clock::now(),
            .link = read_link(daemon),
            .counters = {},
            .connections = {}};
  look.connections = read_connections(daemon, look.link);
  for (auto& counter : read_counters(daemon, look.link))
    look.counters.emplace(counter.name, std::move(counter));
  return look;
}

double rate_of(const CounterRates& rates, const std::string& name) {
  const auto at = rates.find(name);
  return at == rates.end() ? 0 : at->second;
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

}  // namespace stp::stpctl
