// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/counters.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "dpdk_port/link/link.h"
#include "stp/base/printable.h"
#include "stp/base/suggestion.h"
#include "stp/counters.h"

namespace stp::stpctl {
namespace {

enum class Kind { kCount, kDrop, kLevel };

struct Row {
  std::string_view name, unit, text;
  Kind kind;
};

// All that there are.
constexpr Row kRows[] = {
#define STP_COUNT(id, name, unit, text) {#name, #unit, text, Kind::kCount},
#define STP_DROP(id, name, unit, text) {#name, #unit, text, Kind::kDrop},
#define STP_LEVEL(id, name, unit, text) {#name, #unit, text, Kind::kLevel},
    STP_COUNTERS(STP_COUNT, STP_DROP) STP_OTHER_COUNTERS(STP_COUNT, STP_LEVEL)
#undef STP_LEVEL
#undef STP_DROP
#undef STP_COUNT
};

const Row* row_of(std::string_view name) {
  const auto* const row = std::ranges::find(kRows, name, &Row::name);
  return row == std::end(kRows) ? nullptr : row;
}

bool is_of_kind(std::string_view name, Kind kind) {
  const auto* const row = row_of(name);
  return row != nullptr && row->kind == kind;
}

// Falls as well.
bool is_level(std::string_view name) {
  return is_of_kind(name, Kind::kLevel);
}

}  // namespace

std::string_view counter_named(std::string_view name) {
  constexpr std::string_view kPrefix = "stp_", kSuffix = "_total";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  if (row_of(name) == nullptr && name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  const auto* const row = row_of(name);
  return row == nullptr ? std::string_view{} : row->name;
}

std::vector<std::string_view> names_of_counters() {
  std::vector<std::string_view> names;
  for (const auto& row : kRows) names.push_back(row.name);
  return names;
}

std::string_view similar_counter(std::string_view name) {
  return similar_word(name, names_of_counters());
}

std::string_view text_of_counter(std::string_view name) {
  const auto* const row = row_of(name);
  return row == nullptr ? std::string_view{} : row->text;
}

bool counts_drops(std::string_view name) {
  return is_of_kind(name, Kind::kDrop);
}

namespace {

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : printable(text, true)) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// The metric of a counter, or of a level.
struct Metric {
  explicit Metric(const std::string& counter, const char* prefix = "stp_")
      : name(prefix + counter + (is_level(counter) ? "" : "_total")),
        type(is_level(counter) ? "gauge" : "counter") {
    if (const auto* const row = row_of(counter); row != nullptr) unit = row->unit;
  }

  std::string name;
  const char* type;
  std::string_view unit;  // "": this version does not know the counter
};

void head(std::string& out, const std::string& metric, std::string_view help, const char* type) {
  out += "# HELP " + metric + ' ' + escaped(help, "\\") + '\n';
  out += "# TYPE " + metric + ' ' + type + '\n';
}

// With its unit, which the format knows as a comment, and OpenMetrics by this word.
void head(std::string& out, const Metric& metric, std::string_view help) {
  if (!metric.unit.empty()) out += "# UNIT " + metric.name + ' ' + std::string(metric.unit) + '\n';
  head(out, metric.name, help, metric.type);
}

std::string label(const char* name, const std::string& text) {
  return std::string(name) + "=\"" + escaped(text, "\\\"") + '"';
}

// The socket is a label, too: two daemons may have links of the same name, for example in two
// network namespaces, but never the same socket.
void add_sample(std::string& out, const std::string& metric, const LinkReport& link,
                std::uint64_t value, const std::string& more = {}) {
  out += metric + '{' + label("link", link.name) + ',' + label("socket", link.socket) + more +
         "} " + std::to_string(value) + '\n';
}

std::string shard_label(std::size_t index) {
  return ',' + label("shard", std::to_string(index + 1));
}

template <typename Value>
void gauge(std::string& out, const std::vector<LinkCounters>& links, const std::string& metric,
           std::string_view help, Value&& value) {
  head(out, metric, help, "gauge");
  for (const auto& of : links) add_sample(out, metric, of.link, value(of.link));
}

template <typename Value>
void gauge_of_shards(std::string& out, const std::vector<LinkCounters>& links,
                     const std::string& metric, std::string_view help, Value&& value) {
  head(out, metric, help, "gauge");
  for (const auto& of : links)
    for (std::size_t i = 0; of.link.is_divided() && i < of.link.shards.size(); ++i)
      add_sample(out, metric, of.link, value(of.link.shards[i]), shard_label(i));
}

bool is_of_shards(const std::vector<LinkCounters>& links, const std::string& name) {
  return std::ranges::any_of(links, [&](const LinkCounters& of) {
    const auto at = std::ranges::find(of.counters, name, &CounterValue::name);
    return of.link.is_divided() && at != of.counters.end() && !at->shards.empty();
  });
}

// Counters of shards have metrics of their own, so that sums over the labels of the link's counters
// stay right.
void counter_of_shards(std::string& out, const std::vector<LinkCounters>& links,
                       const std::string& name) {
  if (!is_of_shards(links, name)) return;
  const Metric metric(name, "stp_by_shard_");
  head(out, metric, "of one shard: " + std::string(text_of_counter(name)));
  for (const auto& of : links)
    for (const auto& counter : of.counters)
      for (std::size_t i = 0;
           of.link.is_divided() && counter.name == name && i < counter.shards.size(); ++i)
        add_sample(out, metric.name, of.link, counter.shards[i], shard_label(i));
}

// One sample for each user that may be seen and each budget.
template <typename Value>
void gauge_of_users(std::string& out, const std::vector<LinkCounters>& links,
                    const std::string& metric, std::string_view help, Value&& value) {
  head(out, metric, help, "gauge");
  for (const auto& of : links)
    for (const auto& user : of.users)
      for (const auto& budget : user.budgets)
        if (const auto number = value(budget))
          add_sample(
              out, metric, of.link, *number,
              ',' + label("uid", std::to_string(user.uid)) + ',' + label("budget", budget.name));
}

// One sample for each state, 1 for the one that the link is in.
void gauge_of_states(std::string& out, const std::vector<LinkCounters>& links) {
  head(out, "stp_link_state", "1 for the state that the link is in", "gauge");
  for (const auto& of : links)
    for (const auto& each : port::kLinkStates)
      add_sample(out, "stp_link_state", of.link, of.link.state == each.name ? 1 : 0,
                 ',' + label("state", std::string(each.name)));
}

void info_of_links(std::string& out, const std::vector<LinkCounters>& links) {
  head(out, "stp_link_info", "1; what the link is, in its labels", "gauge");
  for (const auto& of : links)
    add_sample(out, "stp_link_info", of.link, 1,
               ',' + label("mac", of.link.mac) + ',' +
                   label("address", of.link.address.value_or("")) + ',' +
                   label("mtu", std::to_string(of.link.mtu)) + ',' +
                   label("driver", of.link.driver));
}

// Returns the names of the counters of all links: links of different kinds have different counters.
std::vector<std::string> names_of(const std::vector<LinkCounters>& links) {
  std::vector<std::string> names;
  for (const auto& of : links)
    for (const auto& counter : of.counters)
      if (std::find(names.begin(), names.end(), counter.name) == names.end())
        names.push_back(counter.name);
  return names;
}

}  // namespace

std::string prometheus_counters(const std::vector<LinkCounters>& links) {
  std::string out;
  const auto names = names_of(links);
  for (const auto& name : names) {
    const Metric metric(name);
    head(out, metric, text_of_counter(name));
    for (const auto& of : links)
      for (const auto& counter : of.counters)
        if (counter.name == name) add_sample(out, metric.name, of.link, counter.value);
  }
  for (const auto& name : names) counter_of_shards(out, links, name);
  return out;
}

std::string prometheus_text(const std::vector<LinkCounters>& links) {
  auto out = prometheus_counters(links);
  gauge(out, links, "stp_link_up", "whether the link is up", [](auto& l) { return l.up ? 1 : 0; });
  gauge_of_states(out, links);
  info_of_links(out, links);
  gauge(out, links, "stp_connected_clients", "programs that are connected to the daemon",
        [](auto& l) { return l.clients; });
  gauge(out, links, "stp_connections", "connections of the link",
        [](auto& l) { return l.connections; });
  gauge(out, links, "stp_regions", "mapped regions of memory", [](auto& l) { return l.regions; });
  gauge(out, links, "stp_shards",
        "shards of the link: 1, or queues=", [](auto& l) { return l.shards.size(); });
  if (std::ranges::any_of(links, [](auto& of) { return of.link.is_divided(); })) {
    gauge_of_shards(out, links, "stp_by_shard_connections", "connections of one shard",
                    [](auto& shard) { return shard.connections; });
    gauge_of_shards(out, links, "stp_by_shard_regions", "mapped regions of one shard",
                    [](auto& shard) { return shard.regions; });
  }
  gauge_of_users(out, links, "stp_user_used", "what a user has of a budget",
                 [](auto& budget) { return std::optional(budget.used); });
  gauge_of_users(out, links, "stp_user_most", "what a user may have of it now",
                 [](auto& budget) { return budget.most; });
  return out;
}

}  // namespace stp::stpctl
