// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/options.h"

#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "dpdk_port/link/cpus.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/link.h"
#include "libst/ipc/socket.h"
#include "tools/cli/app.h"

namespace stp::stpd {
namespace {

// Parses digits only: no sign, no blanks, nothing behind them.
template <typename T>
std::optional<T> whole_number(const std::string& text, int base = 10) {
  T number{};
  const auto* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number, base);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return number;
}

unsigned parse_cpu(const std::string& text, const std::string& all) {
  const auto cpu = whole_number<unsigned>(text);
  if (!cpu || *cpu >= port::kMostCpus)
    refuse("--cpus " + all + ": write numbers and ranges, as 2 or 2-3,6");
  return *cpu;
}

}  // namespace

void refuse(const std::string& what) {
  throw cli::ValidationError(what);
}

std::uint64_t parse_count(const std::string& option, const std::string& text, std::uint64_t most) {
  const auto count = whole_number<std::uint64_t>(text);
  if (!count || *count > most)
    refuse(option + " " + text + ": write a whole number from 0 to " + std::to_string(most));
  return *count;
}

std::uint64_t parse_size(const std::string& option, const std::string& text) {
  const auto size = cli::size_of(text);
  if (!size) refuse(option + " " + text + ": write a size in " + cli::kSizeWords);
  return *size;
}

// Also accepts one part of a list, if the caller has split it at its commas already.
std::vector<unsigned> parse_cpus(const std::string& text) {
  const std::vector<unsigned> usable = port::usable_cpus();
  std::vector<unsigned> cpus;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const auto first = parse_cpu(part.substr(0, dash), text);
    const auto last = dash == std::string::npos ? first : parse_cpu(part.substr(dash + 1), text);
    if (last < first) refuse("--cpus " + text + ": " + part + " ends before it begins");
    for (auto cpu = first; cpu <= last; ++cpu) {
      if (!std::binary_search(usable.begin(), usable.end(), cpu))
        refuse("--cpus " + text + ": this process may not run on CPU " + std::to_string(cpu) +
               " (nproc tells how many there are)");
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

mode_t parse_mode(const std::string& text) {
  const auto mode = whole_number<unsigned>(text, 8);
  if (!mode || *mode > 0777) refuse("--socket-mode " + text + ": write three octal digits, as 660");
  return static_cast<mode_t>(*mode);
}

namespace {

// Adds an option whose value is one of `choices`; --help lists them.
template <typename T>
void add_choice(cli::App& app, const std::string& name, T& out, const std::string& description,
                const std::vector<std::pair<std::string, T>>& choices) {
  std::string words, usual;
  for (const auto& [word, value] : choices) {
    words += (words.empty() ? "" : "|") + word;
    if (value == out) usual = word;
  }
  const auto take = [&out, choices, words, name](const std::string& text) {
    for (const auto& [word, value] : choices)
      if (word == text) return void(out = value);
    refuse(name + " " + text + ": write one of " + words);
  };
  app.add_text(name, take, description)->type_name(words)->default_str(usual);
}

template <typename T>
void add_size(cli::App& app, const std::string& name, T& out, const std::string& description) {
  constexpr std::uint64_t kMebi = 1U << 20, kGibi = 1U << 30;
  const auto usual =
      out % kGibi == 0 ? std::to_string(out / kGibi) + "GiB" : std::to_string(out / kMebi) + "MiB";
  const auto take = [&out, name](const std::string& text) { out = parse_size(name, text); };
  app.add_text(name, take, description)->type_name("SIZE")->default_str(usual);
}

// Adds a size whose default, 0, stands for a part of the memory that there is: see the description.
void add_size_of_memory(cli::App& app, const std::string& name, std::uint64_t& out,
                        const std::string& description) {
  const auto take = [&out, name](const std::string& text) {
    out = parse_size(name, text);
    if (out == 0) refuse(name + " 0: write a size above 0, as 4GiB, or leave it out");
  };
  app.add_text(name, take, description)->type_name("SIZE");
}

template <typename T>
cli::Option* add_count(cli::App& app, const std::string& name, T& out,
                       const std::string& description) {
  const auto take = [&out, name](const std::string& text) {
    out = static_cast<T>(parse_count(name, text, std::numeric_limits<T>::max()));
  };
  return app.add_text(name, take, description)->type_name("N");
}

template <typename T>
void add_quota(cli::App& app, const std::string& name, T& out, const std::string& description) {
  add_count(app, name, out, description)->default_str(std::to_string(out));
}

// A limit without which nobody is served.
template <typename T>
void add_positive(cli::App& app, const std::string& name, T& out, const std::string& description) {
  const auto take = [&out, name](const std::string& text) {
    out = static_cast<T>(parse_count(name, text, std::numeric_limits<T>::max()));
    if (out == 0) refuse(name + " 0: nobody would be served; write 1 or more");
  };
  app.add_text(name, take, description)->type_name("N")->default_str(std::to_string(out));
}

// ---- checks of values that need more than their text

void check_link(const std::string& text) {
  port::LinkConfig link;
  std::string error;
  if (!port::parse_link(text, link, error)) refuse(error);  // it names the link
  if (link.kind == port::LinkKind::kStpd)
    refuse("--link " + text + ": stpd cannot use another stpd: name an interface or a device");
  if (const auto why = port::unfit_here(link); !why.empty()) refuse("link '" + text + "': " + why);
}

std::uint64_t parse_between(const std::string& name, std::uint64_t value, std::uint64_t least,
                            std::uint64_t most) {
  if (value < least || value > most)
    refuse(name + ' ' + std::to_string(value) + ": it has to be between " + std::to_string(least) +
           " and " + std::to_string(most));
  return value;
}

void check_socket(const std::string& path) {
  constexpr auto kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kLongest)
    refuse("--socket " + path + ": the path of a socket has " + std::to_string(kLongest) +
           " bytes at most");
}

void check_address(const std::string& text) {
  port::LinkConfig link;
  std::string ignored;
  if (text.find(',') != std::string::npos ||
      !port::parse_link("loop,address=" + text, link, ignored))
    refuse("--address " + text + ": write IPv4 address and prefix length, as 10.9.0.1/24");
}

uid_t user_named(const std::string& option, const std::string& name) {
  const auto user = ipc::find_user(name);
  if (!user)
    refuse(option + " " + name + ": there is no such user (useradd --system " + name + ")");
  return *user;
}

gid_t group_named(const std::string& option, const std::string& name) {
  const auto group = ipc::find_group(name);
  if (!group)
    refuse(option + " " + name + ": there is no such group (groupadd --system " + name + ")");
  return *group;
}

std::vector<host::PortRule> parse_rules(const std::vector<std::string>& texts) {
  std::vector<host::PortRule> rules;
  std::vector<std::string> errors;
  for (const auto& text : texts) {
    std::string error;
    if (const auto rule = host::PortRules::parse(text, error))
      rules.push_back(*rule);
    else
      errors.push_back("--listen " + error);
  }
  if (!errors.empty()) throw cli::ValidationError(errors);
  return rules;
}

// 100 lets the first user take everything, so that nothing is left for later users.
unsigned parse_share(const std::string& text) {
  const auto percent = parse_count("--user-share", text, 100);
  if (percent == 0) refuse("--user-share 0: write a percentage from 1 to 100");
  return static_cast<unsigned>(percent);
}

void add_budgets(cli::App& app, host::Quotas& out) {
  app.group("Budgets (of all clients of a link, shared by their users)");
  app.add_text(
         "--user-share", [&out](const std::string& text) { out.user_share = parse_share(text); },
         "Percentage of each budget that one user may hold while no other user holds any; later "
         "users may hold less, but never nothing")
      ->type_name("PERCENT")
      ->limits("1 to 100")
      ->default_str(std::to_string(out.user_share));
  for (const auto& rule : host::kResourceRules) {
    auto& total = out.totals[rule.resource];
    if (rule.help == nullptr) continue;
    if (rule.by == host::TotalBy::kMachine || rule.by == host::TotalBy::kPartOfMemory)
      add_size_of_memory(app, rule.remedy, total, rule.help);
    else
      add_quota(app, rule.remedy, total, rule.help);
  }
}

void add_quotas(cli::App& app, host::Quotas& out) {
  app.group("Quotas (of one client)");
  for (const auto& rule : host::kQuotaRules) {
    if (rule.option == nullptr) continue;
    if (rule.size)
      add_size(app, rule.option, out.*rule.limit, rule.help);
    else if (rule.limit == &host::Quotas::clients)
      add_positive(app, rule.option, out.*rule.limit, rule.help);
    else
      add_quota(app, rule.option, out.*rule.limit, rule.help);
  }
  add_budgets(app, out);
}

void add_access(cli::App& app, Options& out) {
  app.group("Who may do what");
  app.add_text(
         "--user",
         [&out](const std::string& name) {
           user_named("--user", name);
           out.user = name;
         },
         "Once links and sockets are open, switch to this user and drop capabilities")
      ->type_name("NAME");
  app.add_text(
         "--group",
         [&out](const std::string& name) {
           group_named("--group", name);
           out.group = name;
         },
         "Switch to this group; needs --user")
      ->type_name("NAME")
      ->default_str("the primary group of --user");
  app.add_text(
         "--socket-owner",
         [&out](const std::string& name) {
           out.socket_access.owner = user_named("--socket-owner", name);
           out.socket_owner = name;
         },
         "Owner of the socket file")
      ->type_name("NAME");
  app.add_text(
         "--socket-group",
         [&out](const std::string& name) {
           out.socket_access.group = group_named("--socket-group", name);
           out.socket_group = name;
         },
         "Group of the socket file")
      ->type_name("NAME");
  app.add_text(
         "--socket-mode",
         [&out](const std::string& mode) { out.socket_access.mode = parse_mode(mode); },
         "Permissions of the socket file, as for chmod: with 660 its owner and group may connect")
      ->type_name("MODE")
      ->default_str("666");
  app.add_texts(
         "--listen",
         [&out](const std::vector<std::string>& rules) {
           out.rules = parse_rules(rules);
           out.listen = rules;
         },
         "Who may listen on which ports: all:PORTS, user:NAME:PORTS, group:NAME:PORTS; may be "
         "given several times. Without a rule, everybody may listen on every port; with a rule, "
         "only those that a rule names")
      ->type_name("RULE");
  app.add_text(
         "--admin-group",
         [&out](const std::string& name) {
           group_named("--admin-group", name);
           out.admin_group = name;
         },
         "Members of this group may see all connections and make traces with stpctl; root and "
         "the user of stpd may anyway")
      ->type_name("NAME");
}

}  // namespace

bool is_plain(const std::string& name) {
  return !name.empty() && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
         });
}

void add_link_options(cli::App& app, LinkOptions& out) {
  using host::PollPolicy;
  app.group("Link");
  app.add_text(
         "--link",
         [&out](const std::string& text) {
           check_link(text);
           out.link = text;
         },
         std::string("The link: iface:NAME, udp:ADDRESS, ip:ADDRESS, pci:ADDRESS, memif:SOCKET, "
                     "vdev:DEVICE or loop") +
             cli::kLinkOptions)
      ->type_name("LINK");
  app.add_text(
         "--socket",
         [&out](const std::string& path) {
           check_socket(path);
           out.socket = path;
         },
         "Unix socket that programs connect to")
      ->type_name("PATH")
      ->default_str(
          "/run/stpd/NAME.sock, where NAME is the link's name in the file, and stpd outside of it");
  app.add_text(
         "--address",
         [&out](const std::string& text) {
           check_address(text);
           out.address = text;
         },
         "IPv4 address of the link, as 10.9.0.1/24")
      ->type_name("IPv4/LEN")
      ->default_str("the interface's");
  add_choice<PollPolicy>(app, "--poll", out.poll,
                         "busy: keep a core and never sleep; adaptive: sleep when idle; "
                         "interrupt: sleep at once",
                         {{"busy", PollPolicy::kBusy},
                          {"adaptive", PollPolicy::kAdaptive},
                          {"interrupt", PollPolicy::kInterrupt}});
  app.add_text(
         "--cpus", [&out](const std::string& text) { out.cpus = parse_cpus(text); },
         "CPUs that the polling thread may run on, as 2 or 2-3,6; with queues=, one for each "
         "thread")
      ->type_name("LIST")
      ->default_str("any");
  app.add_text(
         "--granted",
         [&out](const std::string& text) { out.granted = parse_size("--granted", text); },
         "Most bytes that all programs together may have granted to peers and not received; 0: "
         "no limit")
      ->type_name("SIZE")
      ->default_str("384 of the link's longest STUs, or less if its receive queue is short");
  app.add_text(
         "--pcap", [&out](const std::string& path) { out.pcap = path; },
         "Write a trace of all frames to this file (pcapng)")
      ->type_name("FILE");
  add_count(app, "--pcap-frames", out.pcap_frames, "End the trace after this many frames")
      ->limits("1 or more; needs --pcap")
      ->default_str("no limit");
  app.add_text(
         "--pcap-snap",
         [&out](const std::string& text) {
           out.pcap_snap = static_cast<std::uint32_t>(
               parse_between("--pcap-snap", parse_count("--pcap-snap", text, ipc::kMostSnap),
                             ipc::kLeastSnap, ipc::kMostSnap));
         },
         "Keep only the first BYTES of each frame; stp-replay check needs 80, over UDP or IP 128")
      ->type_name("BYTES")
      ->limits(std::to_string(ipc::kLeastSnap) + " to " + std::to_string(ipc::kMostSnap) +
               "; needs --pcap")
      ->default_str("whole frames");
  app.add_text(
         "--pcap-buffer",
         [&out](const std::string& text) {
           out.pcap_buffer = parse_between("--pcap-buffer", parse_size("--pcap-buffer", text),
                                           ipc::kLeastTraceBuffer, ipc::kMostTraceBuffer);
         },
         "How far the file may be behind, in memory, as 256M")
      ->type_name("SIZE")
      ->limits("1M to 1G; needs --pcap")
      ->default_str("64M");
}

void add_daemon_options(cli::App& app, Options& out) {
  add_access(app, out);
  app.group("Log");
  add_choice<LogLevel>(app, "--log-level", out.log_level, "Least severe lines to log to stderr",
                       {{"error", LogLevel::kError},
                        {"warning", LogLevel::kWarning},
                        {"info", LogLevel::kInfo},
                        {"debug", LogLevel::kDebug}});
  add_choice<LogFormat>(
      app, "--log-format", out.log_format,
      "Write lines of text, text behind the time (UTC), or a JSON object per line",
      {{"text", LogFormat::kText}, {"timed", LogFormat::kTimed}, {"json", LogFormat::kJson}});
  add_quotas(app, out.quotas);
}

namespace {

// An option of a trace where there is none; "": there is no such option.
std::string without_trace(const LinkOptions& link) {
  const LinkOptions usual;
  if (!link.pcap.empty()) return {};
  if (link.pcap_frames != usual.pcap_frames) return "--pcap-frames";
  if (link.pcap_snap != usual.pcap_snap) return "--pcap-snap";
  return link.pcap_buffer != usual.pcap_buffer ? "--pcap-buffer" : "";
}

// The option becomes one of the link's text.
void complete_address(const Options& options, LinkOptions& link, std::vector<std::string>& errors) {
  if (link.address.empty()) return;
  const auto text = link.link;
  link.link += ",address=" + link.address;
  port::LinkConfig alone, parsed;
  std::string error, ignored;
  if (port::parse_link(link.link, parsed, error)) return;
  port::parse_link(text, alone, ignored);
  if (alone.address) error = "'" + text + "' has address= already: keep one of them";
  errors.push_back(options.place_of(link, {"address"}) + "--address " + link.address + ": " +
                   error);
}

}  // namespace

bool complete(Options& options, std::vector<std::string>& errors) {
  const auto before = errors.size();
  if (!options.main.link.empty()) options.links.insert(options.links.begin(), options.main);
  if (options.links.empty())
    errors.emplace_back((options.file.empty() ? "" : options.file + ": ") +
                        "no link: give --link LINK, or --config FILE with link = \"LINK\" in it");
  if (options.user.empty() && !options.group.empty())
    errors.emplace_back(options.place_of(options.main, {"group"}) +
                        "--group is for --user: name the user to switch to, too, or leave it out");
  for (auto& link : options.links) {
    if (const auto useless = without_trace(link); !useless.empty())
      errors.push_back(options.place_of(link, {useless.c_str() + 2}) + useless +
                       " is for a trace: name its file, too (--pcap), or leave it out");
    if (link.socket.empty()) link.socket = ipc::socket_of(link.name);
    complete_address(options, link, errors);
  }
  find_collisions(options, errors);
  return errors.size() == before;
}

}  // namespace stp::stpd
