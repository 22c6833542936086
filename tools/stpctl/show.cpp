// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/commands.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_port/link/inventory.h"
#include "dpdk_port/link/owners.h"
#include "libst/host/budgets.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/json/json.h"
#include "tools/stpctl/counters.h"
#include "tools/stpctl/ending.h"
#include "tools/stpctl/snapshot.h"
#include "tools/stpctl/table.h"

namespace stp::stpctl {
namespace {

// Returns the state of a connection, with the error if there is one.
std::string state_of(const Connection& c) {
  if (c.connectionless) return "connectionless";
  std::string text(ipc::name_of(c.state));
  if (c.error != 0) text += std::string(": ") + std::strerror(std::abs(c.error));
  if (c.passive && !c.accepted.value_or(true)) text += ", not accepted";
  return text;
}

void put_owner(Json& json, const Owner& owner) {
  json.value("pid", owner.pid).value("uid", owner.uid);
}

// ---- one entry of each list: as a row of a table, and as JSON

Table table_of_links() {
  return Table({"LINK", "STATE", "MAC", "ADDRESS", "MTU>", "STU>", "CLIENTS>", "CONNECTIONS>",
                "REGIONS>", "DRIVER", "SOCKET"});
}
void add(Table& table, const LinkReport& link) {
  table.row({link.name, link.state, link.mac, link.address.value_or("-"), std::to_string(link.mtu),
             std::to_string(1U << link.max_stu), std::to_string(link.clients),
             std::to_string(link.connections), std::to_string(link.regions), link.driver,
             link.socket});
  for (std::size_t i = 0; link.is_divided() && i < link.shards.size(); ++i)
    table.row({"  shard " + std::to_string(i + 1), "", "", "", "", "", "",
               std::to_string(link.shards[i].connections), std::to_string(link.shards[i].regions),
               "", ""});
}
void add(Json& json, const LinkReport& link) {
  json.object();
  json.value("link", link.name).value("socket", link.socket);
  json.value("device", link.device).value("driver", link.driver).value("up", link.up);
  json.value("state", link.state);
  json.value("mac", link.mac);
  link.address ? json.value("address", *link.address) : json.null("address");
  json.value("mtu", link.mtu).value("max_stu_bytes", 1U << link.max_stu);
  json.value("clients", link.clients).value("connections", link.connections);
  json.value("regions", link.regions).value("administrator", link.administrator);
  json.value("trouble", link.trouble).value("steering", link.steering).array("shards");
  for (std::size_t i = 0; i < link.shards.size(); ++i)
    json.object()
        .value("shard", i + 1)
        .value("connections", link.shards[i].connections)
        .value("regions", link.shards[i].regions)
        .end();
  json.end().end();
}

// Adds a first column for the shard, if the link has several.
std::vector<std::string> with_shard(const LinkReport& link, std::string shard,
                                    std::vector<std::string> cells) {
  if (link.is_divided()) cells.insert(cells.begin(), std::move(shard));
  return cells;
}

// Whether congestion is controlled there.
std::optional<std::string> way_of(const Connection& c) {
  if (!c.yields) return std::nullopt;
  return *c.yields ? "shared" : "own";
}

Table table_of_connections(const LinkReport& link) {
  return Table(with_shard(link, "SHARD>",
                          {"PID>", "UID>", "", "UPORT>", "PORT>", "PEER", "PEER-PORT>", "STATE",
                           "WAY", "STU>", "SLOTS>", "RTT-US>", "RX-BYTES>", "TX-BYTES>"}));
}
void add(Table& table, const Connection& c, const LinkReport& link) {
  const bool alone = c.connectionless;
  // The peer has not answered, so it has told nothing.
  const bool is_unknown = alone || (c.peer_port == 0 && !c.passive);
  const auto of_peer = [&](const std::string& text) { return alone ? std::string("-") : text; };
  table.row(with_shard(link, std::to_string(c.shard),
                       {std::to_string(c.owner.pid), std::to_string(c.owner.uid),
                        alone ? "" : (c.passive ? "<-" : "->"), of_peer(std::to_string(c.uport)),
                        std::to_string(c.local_port), of_peer(c.peer),
                        is_unknown ? "-" : std::to_string(c.peer_port), state_of(c),
                        way_of(c).value_or("-"), c.max_stu ? std::to_string(1U << *c.max_stu) : "-",
                        is_unknown ? "-" : std::to_string(c.credit) + "/" + std::to_string(c.slots),
                        of_peer(round_trip_text(c)), std::to_string(c.traffic.rx_data_bytes),
                        std::to_string(c.traffic.tx_data_bytes)}));
}
void add(Json& json, const Connection& c) {
  json.object();
  put_owner(json, c.owner);
  json.value("connectionless", c.connectionless);
  json.value("direction", c.passive ? "in" : "out").value("uport", c.uport);
  json.value("shard", c.shard).value("local_port", c.local_port);
  json.value("peer", c.peer).value("peer_mac", c.peer_mac).value("peer_port", c.peer_port);
  json.value("state", ipc::name_of(c.state));
  c.accepted ? json.value("accepted", *c.accepted) : json.null("accepted");
  c.error != 0 ? json.value("error", std::strerror(std::abs(c.error))) : json.null("error");
  const auto way = way_of(c);
  way ? json.value("way", *way) : json.null("way");
  c.max_stu ? json.value("max_stu_bytes", 1U << *c.max_stu) : json.null("max_stu_bytes");
  json.value("peer_slots", c.slots).value("credit", c.credit);
  c.round_trip ? json.value("round_trip_ns", *c.round_trip) : json.null("round_trip_ns");
  json.value("rx_control", c.traffic.rx_control).value("rx_data_bytes", c.traffic.rx_data_bytes);
  json.value("tx_control", c.traffic.tx_control).value("tx_data_bytes", c.traffic.tx_data_bytes);
  json.end();
}

Table table_of_regions(const LinkReport& link) {
  return Table(
      with_shard(link, "SHARD>",
                 {"PID>", "UID>", "FOR", "BYTES>", "BUFX>", "COUNT>", "BUFSIZE>", "MX>", "STATE"}));
}
const char* state_of(const Region& region) {
  return region.unmapping ? "unmapping" : "mapped";
}
void add(Table& table, const Region& r, const LinkReport& link) {
  table.row(with_shard(
      link, std::to_string(r.shard),
      {std::to_string(r.owner.pid), std::to_string(r.owner.uid),
       std::string(ipc::name_of(r.direction)), short_bytes(r.bytes), std::to_string(r.base),
       std::to_string(r.count), short_bytes(std::uint64_t{1} << r.bufsize),
       std::to_string(r.mx_count), state_of(r)}));
}
void add(Json& json, const Region& r) {
  json.object();
  put_owner(json, r.owner);
  json.value("shard", r.shard);
  json.value("direction", ipc::name_of(r.direction)).value("bytes", r.bytes);
  json.value("first_bufx", r.base).value("bufx_count", r.count);
  json.value("bufsize_bytes", std::uint64_t{1} << r.bufsize).value("mx_count", r.mx_count);
  json.value("state", state_of(r)).end();
}

// A line for each user; "used/most" of each budget.
bool is_bytes(const std::string& budget) {
  return budget.ends_with("_bytes");
}
Table table_of_users(const LinkReport& /*link*/) {
  std::vector<std::string> headings{"UID>"};
  for (const auto& rule : host::kResourceRules) headings.push_back(std::string(rule.heading) + '>');
  return Table(std::move(headings));
}
void add(Table& table, const User& user, const LinkReport& /*link*/) {
  std::vector<std::string> cells{user.uid == ipc::kUnknownUser ? "-" : std::to_string(user.uid)};
  for (const auto& budget : user.budgets) {
    const auto text = [&](std::uint64_t value) {
      return is_bytes(budget.name) ? short_bytes(value) : std::to_string(value);
    };
    cells.push_back(text(budget.used) + '/' + (budget.most ? text(*budget.most) : "-"));
  }
  table.row(std::move(cells));
}
void add(Json& json, const User& user) {
  json.object().value("uid", user.uid).value("trusted", user.trusted).object("budgets");
  for (const auto& budget : user.budgets) {
    json.object(budget.name).value("used", budget.used);
    budget.most ? json.value("most", *budget.most) : json.null("most");
    json.end();
  }
  json.end().end();
}

// ---- lists of one link each

// Collects failures, so that one link that does not answer does not hide the others.
class Failures {
 public:
  explicit Failures(const Options& options) : whole_(options.patience), patience_(whole_) {}
  // With the rest of the patience as its argument.
  template <typename Work>
  void guard(Work&& work) {
    try {
      work(patience_);
    } catch (const Silence& silence) {
      add(silence.what());
      patience_ = std::min(patience_, whole_ / 10);
    } catch (const Failure& failure) {
      add(failure.what());
    }
  }
  void raise() const {
    if (!texts_.empty()) throw Failure(texts_);
  }

 private:
  void add(const char* text) { texts_.emplace_back(text); }

  const std::chrono::milliseconds whole_;
  std::chrono::milliseconds patience_;
  std::vector<std::string> texts_;
};

void note_if_partial(const LinkReport& link) {
  if (!link.administrator)
    cli::say("stpctl", link.name +
                           ": shows only what this user has; an administrator sees all (see "
                           "--admin-group of stpd)");
}

template <typename Entry>
void show_list(const Options& options, const char* name, Table (*make_table)(const LinkReport&),
               std::vector<Entry> (*read)(DaemonClient&, const LinkReport&)) {
  Json json;
  Failures failures(options);
  json.object().array("links");
  const auto show_link = [&](const std::string& socket, std::chrono::milliseconds patience) {
    DaemonClient daemon(socket, patience);
    const auto link = read_link(daemon);
    const auto entries = read(daemon, link);
    json.object().value("link", link.name).value("socket", link.socket);
    json.value("complete", link.administrator).array(name);
    auto table = make_table(link);
    for (const auto& entry : entries) {
      add(json, entry);
      add(table, entry, link);
    }
    json.end().end();
    if (options.json) return;
    note_if_partial(link);
    if (options.sockets.size() > 1) cli::print(link.name);
    std::fputs(table.text().c_str(), stdout);
  };
  for (const auto& socket : options.sockets)
    failures.guard([&](auto patience) { show_link(socket, patience); });
  json.end().end();
  if (options.json) std::puts(json.text().c_str());
  failures.raise();
}

// ---- stats

// With --shards, a link that has several shards gets a column for each.
void print_stats(const Options& options, const LinkCounters& of) {
  const auto shards = options.shards && of.link.is_divided() ? of.link.shards.size() : 0;
  std::vector<std::string> headings{"COUNTER", "VALUE>"};
  for (std::size_t i = 0; i < shards; ++i)
    headings.push_back("SHARD " + std::to_string(i + 1) + '>');
  headings.emplace_back();
  Table table(headings);
  for (const auto& counter : of.counters) {
    if (!options.all && options.counters.empty() && counter.value == 0) continue;
    std::vector<std::string> cells{counter.name, std::to_string(counter.value)};
    for (std::size_t i = 0; i < shards; ++i)
      cells.push_back(counter.shards.empty() ? "-" : std::to_string(counter.shards[i]));
    cells.push_back(std::string(text_of_counter(counter.name)) +
                    (counts_drops(counter.name) ? " (dropped)" : ""));
    table.row(std::move(cells));
  }
  if (options.sockets.size() > 1) cli::print(of.link.name);
  std::fputs(table.text().c_str(), stdout);
}

void add(Json& json, const LinkCounters& of) {
  json.object().value("link", of.link.name).value("socket", of.link.socket).object("counters");
  for (const auto& counter : of.counters) json.value(counter.name, counter.value);
  json.end().array("shards");
  for (std::size_t i = 0; of.link.is_divided() && i < of.link.shards.size(); ++i) {
    json.object().value("shard", i + 1).object("counters");
    for (const auto& counter : of.counters)
      if (!counter.shards.empty()) json.value(counter.name, counter.shards[i]);
    json.end().end();
  }
  json.end().end();
}

}  // namespace

void show_links(const Options& options) {
  Json json;
  Failures failures(options);
  json.object().array("links");
  auto table = table_of_links();
  std::vector<std::string> notes;
  for (const auto& socket : options.sockets)
    failures.guard([&](auto patience) {
      DaemonClient daemon(socket, patience);
      const auto link = read_link(daemon);
      add(json, link);
      add(table, link);
      if (!link.trouble.empty()) notes.push_back(link.name + ": " + link.trouble);
      if (!link.steering.empty()) notes.push_back(link.name + ": steering: " + link.steering);
    });
  json.end().end();
  if (options.json)
    std::puts(json.text().c_str());
  else if (!table.empty())
    std::fputs(table.text().c_str(), stdout);
  if (!options.json)
    for (const auto& note : notes) cli::print(note);
  failures.raise();
}

void show_connections(const Options& options) {
  show_list<Connection>(options, "connections", table_of_connections, read_connections);
}

void show_regions(const Options& options) {
  show_list<Region>(options, "regions", table_of_regions, read_regions);
}

void show_users(const Options& options) {
  show_list<User>(options, "users", table_of_users, read_users);
}

namespace {

bool is_asked(const Options& options, std::string_view counter) {
  return options.counters.empty() ||
         std::ranges::any_of(options.counters, [&](const std::string& name) {
           return counter_named(name) == counter;
         });
}

}  // namespace

namespace {

// All names, or those that were asked for; each may be that of a metric.
void list_counters(const Options& options) {
  Json json;
  json.object().object("counters");
  Table table({"COUNTER", ""});
  for (const auto& name : names_of_counters()) {
    if (!is_asked(options, name)) continue;
    const auto text = std::string(text_of_counter(name)) + (counts_drops(name) ? " (dropped)" : "");
    json.value(name, text);
    table.row({std::string(name), text});
  }
  if (options.json)
    std::puts(json.end().end().text().c_str());
  else
    std::fputs(table.text().c_str(), stdout);
}

}  // namespace

void show_stats(const Options& options) {
  if (options.list) return list_counters(options);
  std::vector<LinkCounters> all;
  Failures failures(options);
  for (const auto& socket : options.sockets)
    failures.guard([&](auto patience) {
      DaemonClient daemon(socket, patience);
      auto link = read_link(daemon);
      auto counters = read_counters(daemon, link);
      std::erase_if(counters,
                    [&](const CounterValue& counter) { return !is_asked(options, counter.name); });
      auto users = options.prometheus && options.counters.empty() ? read_users(daemon, link)
                                                                  : std::vector<User>{};
      all.push_back({std::move(link), std::move(counters), std::move(users)});
    });
  if (options.prometheus) {
    const auto text = options.counters.empty() ? prometheus_text(all) : prometheus_counters(all);
    std::fputs(text.c_str(), stdout);
  } else if (options.json) {
    Json json;
    json.object().array("links");
    for (const auto& of : all) add(json, of);
    std::puts(json.end().end().text().c_str());
  } else {
    for (const auto& of : all) print_stats(options, of);
  }
  failures.raise();
}

void add_stats(cli::App& stats, Options& options) {
  stats.add_option("COUNTER", options.counters, "Only these, also those that are 0")
      ->expected(0, -1);
  stats.add_flag("--all", options.all, "Also list counters that are 0");
  stats.add_flag("--shards", options.shards, "Also show each shard of a link with queues=");
  stats.add_flag("--prometheus", options.prometheus, "Prometheus text exposition format");
  stats.add_flag("--list", options.list, "List all counters that there are; needs no daemon");
}

std::string check_stats(const Options& options) {
  for (const auto& name : options.counters)
    if (counter_named(name).empty()) {
      const std::string meant(similar_counter(name));
      return "there is no counter " + name +
             (meant.empty() ? ": 'stpctl stats --list' lists them"
                            : "; did you mean " + meant + "?");
    }
  if (options.list && (options.all || options.shards || options.prometheus))
    return "--list has no values: leave out --all, --shards and --prometheus";
  return options.prometheus && options.json ? "use --json or --prometheus, not both" : "";
}

// ---- what could be a link on this machine

namespace {

std::string text_or_dash(const std::optional<unsigned>& number) {
  return number ? std::to_string(*number) : "-";
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string text_of(const port::Inventory& inventory) {
  Table table({"LINK", "USABLE", "STATE", "DRIVER", "MTU>", "MBIT/S>", "NOTE"});
  for (const auto& each : inventory.candidates)
    table.row({each.link, each.usable ? "yes" : "no", or_dash(each.state), or_dash(each.driver),
               text_or_dash(each.mtu), text_or_dash(each.megabits), each.note});
  auto text = table.text();
  for (const auto& pages : inventory.hugepages)
    text += "hugepages of " + short_bytes(pages.kilobytes << 10) + ": " +
            std::to_string(pages.total) + ", free " + std::to_string(pages.free) + "\n";
  return text;
}

std::string json_of(const port::Inventory& inventory) {
  Json json;
  json.object().array("links");
  for (const auto& each : inventory.candidates) {
    json.object()
        .value("link", each.link)
        .value("kind", port::name_of(each.kind))
        .value("name", each.name)
        .value("usable", each.usable)
        .value("note", each.note)
        .value("state", each.state)
        .value("driver", each.driver);
    each.mtu ? json.value("mtu", *each.mtu) : json.null("mtu");
    each.megabits ? json.value("mbit_per_s", *each.megabits) : json.null("mbit_per_s");
    json.end();
  }
  json.end().array("hugepages");
  for (const auto& pages : inventory.hugepages)
    json.object()
        .value("kilobytes", pages.kilobytes)
        .value("total", pages.total)
        .value("free", pages.free)
        .end();
  return json.end().end().text() + "\n";
}

}  // namespace

void devices(const Options& options) {
  port::InventoryRoots roots;
  roots.sockets = ipc::kSocketDirectory;
  roots.sockets.pop_back();  // its slash
  roots.reach = port::probe_socket;
  roots.owner = port::InterfaceOwner::find;
  const auto inventory = port::take_inventory(roots);
  std::fputs((options.json ? json_of(inventory) : text_of(inventory)).c_str(), stdout);
}

namespace {

constexpr char kProvider[] = "libdaplstp.so.0";

// Returns the path of the provider beside this program, as built or installed; if it is not there,
// a name for the loader to search.
std::string provider() {
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const auto prefix = program.parent_path().parent_path();
  for (const auto* const folder : {STP_LIBDIR, "lib"}) {
    const auto file = prefix / folder / kProvider;
    if (std::filesystem::exists(file, ignored)) return file;
  }
  return kProvider;
}

// The fault; "": none.
std::string check(const std::string& text, const char* what, const char* forbidden) {
  const auto has_control = [&] {
    return std::any_of(text.begin(), text.end(),
                       [](unsigned char c) { return c < ' ' || c == 127; });
  };
  if (!text.empty() && text.find_first_of(forbidden) == std::string::npos && !has_control())
    return "";
  return std::string(what) + " '" + text +
         "' is empty, or has characters that dat.conf does not allow";
}

std::string check_word(const std::string& text, const char* what) {
  return check(text, what, " \"\\#");
}

std::vector<std::string> links_of(const Options& options) {
  if (!options.link.empty()) return {options.link};
  std::vector<std::string> links;
  for (const auto& socket : options.sockets) links.push_back("stpd:" + socket);
  return links;
}

// What dat.conf could not carry; "": nothing.
std::string reason_against_dat_conf(const Options& options) {
  auto wrong = check_word(options.name, "the name");
  if (wrong.empty() && !options.provider.empty())
    wrong = check_word(options.provider, "the provider");
  for (const auto& link : links_of(options))
    if (wrong.empty()) wrong = check(link, "the link", "\"\\");
  return wrong;
}

}  // namespace

// The registry gives ordinary programs the nonthreadsafe lines, and programs that ask for thread
// safety the threadsafe ones. So each link has both.
void dat_conf(const Options& options) {
  const auto file = options.provider.empty() ? provider() : options.provider;
  if (const auto wrong = check_word(file, "the provider"); !wrong.empty()) throw Failure(wrong);
  unsigned number = 0;
  for (const auto& link : links_of(options)) {
    for (const auto* const safety : {"nonthreadsafe", "threadsafe"})
      std::printf("%s%u u2.0 %s default %s stp.2.0 \"%s\" \"\"\n", options.name.c_str(), number,
                  safety, file.c_str(), link.c_str());  // for a file: without control characters
    ++number;
  }
}

void add_dat_conf(cli::App& conf, Options& options) {
  conf.add_option("--name", options.name, "Names of the adapters: NAME0, NAME1, ...")
      ->type_name("NAME")
      ->capture_default_str();
  conf.add_option("--provider", options.provider, "Library of the provider")
      ->type_name("FILE")
      ->default_str("libdaplstp.so.0, where it was installed");
  conf.add_option("--link", options.link,
                  std::string("Any link, as for STP_LINK") + cli::kLinkOptions)
      ->type_name("LINK")
      ->default_str("those of --socket, else STP_LINK, else the daemons'");
}

std::string check_dat_conf(const Options& options) {
  return options.json ? "dat-conf has no --json" : reason_against_dat_conf(options);
}

}  // namespace stp::stpctl
