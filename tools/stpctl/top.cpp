// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/top.h"

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <clocale>
#include <cstdio>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "libst/ipc/requests.h"
#include "stp/base/printable.h"
#include "tools/cli/app.h"
#include "tools/json/json.h"
#include "tools/stpctl/commands.h"
#include "tools/stpctl/counters.h"
#include "tools/stpctl/ending.h"
#include "tools/stpctl/table.h"

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

namespace {

constexpr std::size_t kRowsInPipe = 10;
constexpr std::size_t kHistory = 600;

// As wide as the narrowest terminal that people have.
constexpr std::string_view kHelp =
    "o  overview         c  connections\n"
    "l  links            p  programs\n"
    "\n"
    "s  order by the next column\n"
    "/  only rows with a text:\n"
    "   Enter keeps it, Esc drops it\n"
    "j k, arrows, Page Up, Page Down, Home\n"
    "\n"
    "space  stop and go on\n"
    "+ -    shorter and longer interval\n"
    "?      this page\n"
    "q      end\n"
    "\n"
    "Rates are those of the last interval.\n"
    "B are bytes of programs. A bar is one\n"
    "interval, the right one is the last.\n";

std::string by_width(const std::string& text, std::size_t columns) {
  return columns != 0 && text.size() > columns ? text.substr(0, columns) : text;
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The last of them without its end: the screen would move up.
std::string first_lines(const std::string& text, std::size_t count) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    end = text.find('\n', end);
    if (end == std::string::npos) return text;
    ++end;
  }
  return text.substr(0, end - 1);
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
  return printable(look.link.name) + (look.link.up ? "\n" : ": down\n") + table.text() +
         "connections " + std::to_string(look.link.connections) + ", opened " +
         short_rate(per_second("vc_opened")) + "/s, failed " + short_rate(per_second("vc_failed")) +
         "/s; dropped " + short_rate(rates.drops) + "/s, Blocks repeated " +
         short_rate(per_second("cts_repeated")) + "/s, waits for Slots " +
         short_rate(per_second("slot_waits")) + "/s\n" + shards_of(look, rates);
}

// The first columns tell where a row belongs, if there is more than one place.
struct Places {
  bool links, shards;
  explicit Places(const std::vector<const Sample*>& samples)
      : links(samples.size() > 1),
        shards(std::any_of(samples.begin(), samples.end(),
                           [](const Sample* each) { return each->look.link.is_divided(); })) {}
  void name(std::vector<std::string>& headings) const {
    if (shards) headings.insert(headings.begin(), "SHARD>");
    if (links) headings.insert(headings.begin(), "LINK");
  }
  void fill(std::vector<std::string>& cells, const Sample& sample, unsigned shard) const {
    if (shards) cells.insert(cells.begin(), std::to_string(shard));
    if (links) cells.insert(cells.begin(), sample.look.link.name);
  }
};

std::vector<const Sample*> all_of(const std::vector<Sample>& links) {
  std::vector<const Sample*> all;
  for (const auto& each : links) all.push_back(&each);
  return all;
}

Sheet connections_of(const std::vector<const Sample*>& samples) {
  const Places places(samples);
  Sheet sheet{.things = "connections",
              .headings = {"PID>", "", "UPORT>", "PORT>", "PEER", "STATE", "RX-B/S>", "TX-B/S>",
                           "CONTROL/S>", "RTT-US>"},
              .orders = {"rate", "RX-B/S", "TX-B/S", "CONTROL/S", "RTT-US", "PID"},
              .rows = {}};
  places.name(sheet.headings);
  for (const auto* sample : samples) {
    for (const auto& busy : sample->rates.connections) {
      const auto& c = *busy.connection;
      std::vector<std::string> cells{std::to_string(c.owner.pid),
                                     c.passive ? "<-" : "->",
                                     std::to_string(c.uport),
                                     std::to_string(c.local_port),
                                     c.peer,
                                     std::string(ipc::name_of(c.state)),
                                     short_rate(busy.rx_bytes),
                                     short_rate(busy.tx_bytes),
                                     short_rate(busy.control),
                                     round_trip_text(c)};
      places.fill(cells, *sample, c.shard);
      sheet.rows.push_back(
          {std::move(cells),
           {busy.rx_bytes + busy.tx_bytes, busy.rx_bytes, busy.tx_bytes, busy.control,
            static_cast<double>(c.round_trip.value_or(0)), -static_cast<double>(c.owner.pid)}});
    }
  }
  return sheet;
}

Sheet programs_of(const std::vector<Sample>& links) {
  struct Program {
    unsigned uid = 0, connections = 0;
    double rx = 0, tx = 0, control = 0;
  };
  Sheet sheet{.things = "programs",
              .headings = {"PID>", "UID>", "CONNECTIONS>", "RX-B/S>", "TX-B/S>", "CONTROL/S>"},
              .orders = {"rate", "RX-B/S", "TX-B/S", "CONTROL/S", "CONNECTIONS", "PID"},
              .rows = {}};
  const auto samples = all_of(links);
  Places places(samples);
  places.shards = false;  // a program may have connections on each
  places.name(sheet.headings);
  for (const auto* sample : samples) {
    std::map<unsigned, Program> programs;
    for (const auto& busy : sample->rates.connections) {
      auto& program = programs[busy.connection->owner.pid];
      program.uid = busy.connection->owner.uid;
      ++program.connections;
      program.rx += busy.rx_bytes;
      program.tx += busy.tx_bytes;
      program.control += busy.control;
    }
    for (const auto& [pid, program] : programs) {
      std::vector<std::string> cells{
          std::to_string(pid),    std::to_string(program.uid), std::to_string(program.connections),
          short_rate(program.rx), short_rate(program.tx),      short_rate(program.control)};
      places.fill(cells, *sample, 0);
      sheet.rows.push_back({std::move(cells),
                            {program.rx + program.tx, program.rx, program.tx, program.control,
                             static_cast<double>(program.connections), -static_cast<double>(pid)}});
    }
  }
  return sheet;
}

bool contains(const Sheet::Row& row, const std::string& text) {
  return std::any_of(row.cells.begin(), row.cells.end(),
                     [&](const std::string& cell) { return cell.find(text) != std::string::npos; });
}

// The rows with that text, in that order.
std::vector<const Sheet::Row*> rows_of(const Sheet& sheet, std::size_t order,
                                       const std::string& text) {
  std::vector<const Sheet::Row*> rows;
  for (const auto& row : sheet.rows)
    if (contains(row, text)) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](auto* a, auto* b) { return a->order[order] > b->order[order]; });
  return rows;
}

std::string table_of(const Sheet& sheet, const std::vector<const Sheet::Row*>& rows,
                     std::size_t first, std::size_t count) {
  Table table(sheet.headings);
  for (std::size_t i = first; i < rows.size() && i < first + count; ++i) table.row(rows[i]->cells);
  return table.empty() ? "" : table.text();
}

}  // namespace

std::string bars(const std::deque<double>& values, double most, std::size_t columns, bool utf8) {
  static constexpr std::array<const char*, 9> kBlocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::string_view kLetters = " .:-=+*#@";
  const auto count = std::min(columns, values.size());
  std::string out(columns - count, ' ');
  for (std::size_t i = values.size() - count; i < values.size(); ++i) {
    // What is not 0 can be seen.
    const auto level = most <= 0 || values[i] <= 0
                           ? std::size_t{0}
                           : std::clamp(static_cast<std::size_t>(values[i] / most * 8 + 0.5),
                                        std::size_t{1}, std::size_t{8});
    out += utf8 ? std::string(kBlocks[level]) : std::string(1, kLetters[level]);
  }
  return out;
}

void TopView::add(const std::vector<Sample>& links) {
  history_.resize(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto note = [&](std::deque<double>& values, const char* name) {
      values.push_back(rate_of(links[i].rates.counters, name));
      if (values.size() > kHistory) values.pop_front();
    };
    note(history_[i].rx, "rx_data_bytes");
    note(history_[i].tx, "tx_data_bytes");
  }
}

// ---- keys

void TopView::type(std::string_view key) {
  if (key == "\r" || key == "\n") {
    typing_ = false;
  } else if (key == "\033") {
    typing_ = false;
    filter_.clear();
  } else if (key == "\177" || key == "\b") {
    if (!filter_.empty()) filter_.pop_back();
  } else if (key.size() == 1 && key[0] >= ' ' && key[0] <= '~' && filter_.size() < 40) {
    filter_ += key;
  }
  first_ = 0;
}

bool TopView::press(std::string_view key) {
  constexpr std::size_t kScreenful = 10;
  constexpr double kShortest = 0.1, kLongest = 60;
  if (typing_) {
    type(key);
    return true;
  }
  if (std::exchange(help_, false) && key != "q" && key != "Q") return true;
  const auto show = [&](Page page) {
    page_ = page;
    first_ = 0;
  };
  if (key == "q" || key == "Q") return false;
  if (key == "?" || key == "h") help_ = true;
  if (key == "o") show(Page::kOverview);
  if (key == "l") show(Page::kLinks);
  if (key == "p") show(Page::kPrograms);
  if (key == "c") show(Page::kConnections);
  if (key == "s") ++order_[static_cast<std::size_t>(page_)];
  if (key == "/") typing_ = true;
  if (key == "\033") filter_.clear();
  if (key == " ") paused_ = !paused_;
  if (key == "+") interval_ = std::max(kShortest, interval_ / 2);
  if (key == "-") interval_ = std::min(kLongest, interval_ * 2);
  if (key == "j" || key == "\033[B") ++first_;
  if (key == "k" || key == "\033[A") first_ -= std::min<std::size_t>(first_, 1);
  if (key == "\033[6~") first_ += kScreenful;
  if (key == "\033[5~") first_ -= std::min(first_, kScreenful);
  if (key == "\033[H" || key == "\033[1~") first_ = 0;
  return true;
}

// ---- pages

std::string TopView::title(std::size_t columns) const {
  static constexpr std::array<const char*, kPages> kNames{"overview", "links", "programs",
                                                          "connections"};
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%s, every %g s%s",
                kNames[static_cast<std::size_t>(page_)], interval_, paused_ ? ", stopped" : "");
  std::string line = text.data();
  const std::string help = "? help";
  if (line.size() + 2 + help.size() <= columns)
    line += std::string(columns - line.size() - help.size(), ' ') + help;
  return by_width(line, columns) + '\n';
}

std::string TopView::history_of(std::size_t link, std::size_t columns) const {
  constexpr std::size_t kLabel = 3, kMost = 14;
  if (link >= history_.size() || columns < kLabel + kMost + 8) return "";
  const auto& history = history_[link];
  const auto most_of = [](const std::deque<double>& values) {
    return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  };
  std::string out;
  for (const auto& [name, values] :
       {std::pair{"rx ", &history.rx}, std::pair{"tx ", &history.tx}}) {
    const auto most = most_of(*values);
    out += name + bars(*values, most, columns - kLabel - kMost, utf8_) + " max " +
           short_rate(most) + '\n';
  }
  return out;
}

Sheet TopView::links_of(const std::vector<Sample>& links) const {
  constexpr std::size_t kBars = 12;
  Sheet sheet{
      .things = "links",
      .headings = {"LINK", "STATE", "RX-B/S>", "TX-B/S>", "FRAMES/S>", "DROPS/S>", "CONNECTIONS>"},
      .orders = {"rate", "RX-B/S", "TX-B/S", "FRAMES/S", "DROPS/S", "CONNECTIONS"},
      .rows = {}};
  if (!utf8_) sheet.headings.push_back("HISTORY");  // a table counts bytes
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto& [look, rates] = links[i];
    const auto rx = rate_of(rates.counters, "rx_data_bytes");
    const auto tx = rate_of(rates.counters, "tx_data_bytes");
    const auto frames = rate_of(rates.counters, "rx_frames") + rate_of(rates.counters, "tx_frames");
    std::vector<std::string> cells{look.link.name,
                                   look.link.state,
                                   short_rate(rx),
                                   short_rate(tx),
                                   short_rate(frames),
                                   short_rate(rates.drops),
                                   std::to_string(look.link.connections)};
    if (!utf8_ && i < history_.size()) {
      const auto& values = history_[i].rx;
      const auto most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
      cells.push_back(bars(values, most, kBars, false));
    }
    sheet.rows.push_back(
        {std::move(cells),
         {rx + tx, rx, tx, frames, rates.drops, static_cast<double>(look.link.connections)}});
  }
  return sheet;
}

std::string TopView::page_of(const Sheet& sheet, const Screen& screen, std::size_t taken) const {
  const auto order = order_[static_cast<std::size_t>(page_)] % sheet.orders.size();
  const auto rows = rows_of(sheet, order, filter_);
  const auto room = screen.rows > taken + 3 ? screen.rows - taken - 3 : 1;
  const auto last = rows.size() > room ? rows.size() - room : 0;
  std::string out = sheet.things + ' ' + std::to_string(rows.size()) + " by " + sheet.orders[order];
  if (!filter_.empty() || typing_)
    out += " with \"" + filter_ + (typing_ ? "_\"" : "\"") + " of " +
           std::to_string(sheet.rows.size());
  out = by_width(out, screen.columns) + '\n';
  return out + fit(table_of(sheet, rows, std::min(first_, last), room), screen.columns);
}

// The links one below the other, each with what is busiest there.
std::string TopView::overview(const std::vector<Sample>& links, const Screen& screen) const {
  std::string out;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const auto sheet = connections_of({&links[i]});
    auto above = fit(summary(links[i].look, links[i].rates), screen.columns);
    if (screen.rows == 0) {
      const auto rows = rows_of(sheet, 0, "");
      out += above + table_of(sheet, rows, 0, kRowsInPipe) + '\n';
      continue;
    }
    constexpr std::size_t kLeast = 5;  // lines of connections, with their headings
    const auto share = (screen.rows - 1) / links.size();
    const auto history = history_of(i, screen.columns);
    if (lines_of(above + history) + kLeast <= share) above += history;
    out += above;
    const Screen part{.rows = share, .columns = screen.columns};
    if (!sheet.rows.empty()) out += page_of(sheet, part, lines_of(above));
  }
  return out;
}

std::string TopView::text(const std::vector<Sample>& links, const Screen& screen) const {
  if (screen.rows == 0) return overview(links, screen);
  return first_lines(page(links, screen), screen.rows);
}

std::string TopView::page(const std::vector<Sample>& links, const Screen& screen) const {
  const auto head = title(screen.columns);
  if (help_) return head + fit(std::string(kHelp), screen.columns);
  switch (page_) {
    case Page::kOverview:
      return head + overview(links, screen);
    case Page::kLinks: {
      const bool several = links.size() > 1;  // each history then stands below the link's name
      auto out = head + page_of(links_of(links), screen, 1 + (several ? 3 : 2) * links.size());
      for (std::size_t i = 0; utf8_ && i < links.size(); ++i) {
        if (several) out += by_width(printable(links[i].look.link.name), screen.columns) + '\n';
        out += history_of(i, screen.columns);
      }
      return out;
    }
    case Page::kPrograms:
      return head + page_of(programs_of(links), screen, 1);
    case Page::kConnections:
      return head + page_of(connections_of(all_of(links)), screen, 1);
  }
  return head;
}

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
    json.value("peer_port", c.peer_port).value("state", ipc::name_of(c.state));
    json.value("rx_bytes_per_second", busy.rx_bytes);
    json.value("tx_bytes_per_second", busy.tx_bytes);
    json.value("control_per_second", busy.control);
    c.round_trip ? json.value("round_trip_ns", *c.round_trip) : json.null("round_trip_ns");
    json.end();
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
    for (const auto& socket : options.sockets) begin(socket);
    if (daemons_.empty()) throw Failure(missing_);
  }

  // Those daemons that did not answer at the beginning are told in the end.
  void run() {
    watch();
    if (!missing_.empty()) throw Failure(missing_);
  }

 private:
  void begin(const std::string& socket) {
    try {
      DaemonClient daemon(socket);
      samples_.push_back({look_at(daemon), {}});
      daemons_.push_back(std::move(daemon));
    } catch (const Failure& failure) {
      missing_.insert(missing_.end(), failure.what_each.begin(), failure.what_each.end());
    }
  }
  void watch() {
    auto next = Clock::now() + step();
    for (std::uint64_t turn = 0; options_.count == 0 || turn < options_.count; ++turn) {
      if (!wait_until(next)) return;
      if (!view_.paused()) look();
      draw();
      next = std::max(next + step(), Clock::now());
    }
  }
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
  std::vector<std::string> missing_;  // why a daemon is not among them
};

}  // namespace

void top(const Options& options) {
  watch_for_interrupts();
  let_interrupts_in();
  Top(options).run();
}

void add_top(cli::App& top, Options& options) {
  top.add_option("--interval", options.interval, "Seconds between two samples")
      ->type_name("SECONDS")
      ->between(0.05, kMostSeconds)
      ->capture_default_str();
  top.add_option("--count", options.count, "Number of samples; 0: until Ctrl-C, or q on a terminal")
      ->capture_default_str();
}

}  // namespace stp::stpctl
