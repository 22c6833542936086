// SPDX-License-Identifier: BSD-3-Clause
// stpctl top. What it shows: a page of text for a terminal of any size, and the keys that change
// it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/stpctl/snapshot.h"

namespace stp::stpctl {

// What happens on a link in a second: the difference of two looks at its daemon.
struct Look {
  std::chrono::steady_clock::time_point time;
  LinkReport link;
  std::map<std::string, CounterValue> counters;
  std::vector<Connection> connections;
};

// Throws Failure.
Look look_at(DaemonClient& daemon);

struct BusyConnection {
  const Connection* connection;        // of the later Look
  double rx_bytes, tx_bytes, control;  // per second
};

using CounterRates = std::map<std::string, double>;
// 0: there is no such counter.
double rate_of(const CounterRates& rates, const std::string& name);

struct Rates {
  double seconds;
  CounterRates counters;
  std::vector<CounterRates> shards;  // of each
  double drops = 0;
  std::vector<BusyConnection> connections;  // the busiest first
};

// `now` has to outlive the result.
Rates rates_between(const Look& before, const Look& now);

struct Screen {
  std::size_t rows = 0, columns = 0;  // 0: there is no terminal
};

// A link, as it was looked at last, and what happened there since the time before.
struct Sample {
  Look look;
  Rates rates;
};

// Rows of a table that can be sorted and searched.
struct Sheet {
  struct Row {
    std::vector<std::string> cells;
    std::vector<double> order;  // one for each of `orders`: the greatest is first
  };
  std::string things;  // that the rows are, for a heading
  std::vector<std::string> headings, orders;
  std::vector<Row> rows;
};

// The last values, one a column, as bars between 0 and `most`. Of letters where the terminal does
// not know UTF-8.
std::string bars(const std::deque<double>& values, double most, std::size_t columns, bool utf8);

class TopView {
 public:
  // `utf8`: whether the terminal shows it.
  TopView(bool utf8, double interval) : utf8_(utf8), interval_(interval) {}

  // Takes note of a sample of each link, always in the same order.
  void add(const std::vector<Sample>& links);
  // False: the key ends the program.
  bool press(std::string_view key);
  [[nodiscard]] std::string text(const std::vector<Sample>& links, const Screen& screen) const;
  // Seconds between two samples.
  [[nodiscard]] double interval() const { return interval_; }
  [[nodiscard]] bool paused() const { return paused_; }

 private:
  enum class Page : std::size_t { kOverview, kLinks, kPrograms, kConnections };
  static constexpr std::size_t kPages = 4;
  struct History {
    std::deque<double> rx, tx;  // bytes of users per second, the newest last
  };

  void type(std::string_view key);
  [[nodiscard]] std::string page(const std::vector<Sample>& links, const Screen& screen) const;
  [[nodiscard]] std::string title(std::size_t columns) const;
  [[nodiscard]] std::string history_of(std::size_t link, std::size_t columns) const;
  [[nodiscard]] std::string overview(const std::vector<Sample>& links, const Screen& screen) const;
  [[nodiscard]] std::string page_of(const Sheet& sheet, const Screen& screen,
                                    std::size_t taken) const;
  [[nodiscard]] Sheet links_of(const std::vector<Sample>& links) const;

  const bool utf8_;
  double interval_;
  bool paused_ = false, help_ = false, typing_ = false;
  Page page_ = Page::kOverview;
  std::string filter_;
  std::array<std::size_t, kPages> order_{};
  std::size_t first_ = 0;  // row of the sheet that is shown at the top
  std::vector<History> history_;
};

}  // namespace stp::stpctl
