// SPDX-License-Identifier: BSD-3-Clause
#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <string_view>

#include "libst/ipc/requests.h"
#include "tools/json/json.h"
#include "tools/stpctl/commands.h"
#include "tools/stpctl/ending.h"
#include "tools/stpctl/top_view.h"

namespace stp::stpctl {
namespace {

using Clock = std::chrono::steady_clock;

Screen screen_now(bool terminal) {
  winsize size{};
  if (!terminal || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return {size.ws_row, size.ws_col};
}

bool shows_utf8() {
  std::setlocale(LC_CTYPE, "");
  return std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
}

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

class Top {
 public:
  explicit Top(const Options& options)
      : options_(options),
        terminal_(!options.json && ::isatty(STDOUT_FILENO) != 0),
        view_(terminal_ && shows_utf8(), options.interval),
        keys_(terminal_) {
    for (const auto& socket : options.sockets) {
      daemons_.emplace_back(socket);
      samples_.push_back({look_at(daemons_.back()), {}});
    }
  }

  void run() {
    auto next = Clock::now() + step();
    for (std::uint64_t turn = 0; options_.count == 0 || turn < options_.count; ++turn) {
      if (!wait_until(next)) return;
      if (!view_.paused()) look();
      draw();
      next = std::max(next + step(), Clock::now());
    }
  }

 private:
  [[nodiscard]] Clock::duration step() const {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(view_.interval()));
  }
  // Obeys keys meanwhile. False: it is to end.
  bool wait_until(Clock::time_point until) {
    for (;;) {
      const auto key = keys_.next(until);
      if (interrupted()) return false;
      if (key.empty()) return true;
      if (!view_.press(key)) return false;
      draw();
    }
  }
  void look() {
    for (std::size_t i = 0; i < daemons_.size(); ++i) {
      auto now = look_at(daemons_[i]);
      auto rates = rates_between(samples_[i].look, now);
      samples_[i] = {std::move(now), std::move(rates)};
    }
    view_.add(samples_);
  }
  void draw() const {
    std::string out = terminal_ ? "\033[H\033[2J" : "";
    if (options_.json)
      for (const auto& [look, rates] : samples_) out += json_of(look, rates);
    else
      out += view_.text(samples_, screen_now(terminal_));
    std::fputs(out.c_str(), stdout);
    std::fflush(stdout);
  }

  const Options& options_;
  const bool terminal_;
  TopView view_;
  Keys keys_;
  std::vector<DaemonClient> daemons_;
  std::vector<Sample> samples_;
};

}  // namespace

void top(const Options& options) {
  watch_for_interrupts();
  let_interrupts_in();
  Top(options).run();
}

}  // namespace stp::stpctl
