// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/options.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "dpdk_port/link/owners.h"
#include "stp/base/suggestion.h"
#include "tools/cli/say.h"

namespace stp::stpd {
namespace {

constexpr char kSectionPrefix[] = "link.";

// Returns the part of the line before the first # outside of quotes.
std::string without_comment(const std::string& line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote == 0 && line[i] == '#') return line.substr(0, i);
    if (line[i] == quote)
      quote = 0;
    else if (quote == 0 && (line[i] == '"' || line[i] == '\''))
      quote = line[i];
  }
  return line;
}

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string all;
  for (const auto& part : parts) all += (&part == parts.data() ? "" : between) + part;
  return all;
}

// Reads one configuration file into `out` and collects its errors.
class Reader {
 public:
  Reader(std::string path, Options& out, std::vector<std::string>& errors)
      : path_(std::move(path)), out_(out), errors_(errors) {}

  void read(std::istream& file) {
    // Some editors put it in front of UTF-8.
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
    for (std::string line; std::getline(file, line);) {
      if (number_++ == 0 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
      line = cli::trimmed(line);
      begin_ = number_;
      if (line.empty() || line.front() == '#') continue;
      if (line.front() == '[')
        begin_section(line);
      else if (const auto entry = with_rest_of_list(line, file); !entry.empty())
        take(entry);
    }
    end_section();
  }

 private:
  void complain(const std::string& what) { complain_of(number_, what); }
  void complain_of(int line, const std::string& what) {
    errors_.push_back(path_ + ":" + std::to_string(line) + ": " + what);
  }

  // A list may continue on further lines, up to its closing bracket. Each line may have a comment.
  // "": it does not end.
  std::string with_rest_of_list(std::string line, std::istream& file) {
    const auto equals = line.find('=');
    if (equals == std::string::npos) return line;
    const auto opening = line.find_first_not_of(" \t", equals + 1);
    if (opening == std::string::npos || line[opening] != '[') return line;
    line = without_comment(line);
    for (std::string more; line.find(']') == std::string::npos;) {
      if (!std::getline(file, more)) {
        complain_of(begin_, "a list begins here and does not end: close it with ]");
        return {};
      }
      ++number_;
      line += " " + cli::trimmed(without_comment(more));
    }
    return line;
  }

  void begin_section(const std::string& line) {
    end_section();
    const auto end = line.find(']');
    const auto name = end == std::string::npos ? line : line.substr(1, end - 1);
    const auto known = end != std::string::npos && name.rfind(kSectionPrefix, 0) == 0;
    section_ = known ? number_ : 0;
    if (known)
      check_name(name.substr(sizeof kSectionPrefix - 1));
    else
      complain("unknown section " + line + ": only [link.NAME] begins one");
    // The lines of an unknown section are checked as those of a link.
    LinkOptions link;
    link.name = known ? name.substr(sizeof kSectionPrefix - 1) : "unknown";
    link.poll = out_.main.poll;
    out_.links.push_back(link);
  }

  void check_name(const std::string& name) {
    if (!is_plain(name))
      return complain("link name '" + name + "': write letters, digits, '-', '_' and '.'");
    const auto same = [&](const LinkOptions& link) { return link.name == name; };
    if (std::any_of(out_.links.begin(), out_.links.end(), same) ||
        (!out_.main.link.empty() && same(out_.main)))
      complain("two links are named '" + name + "': give each a name of its own");
  }

  // Lines above the first section need no link: the command line may name it.
  void end_section() {
    if (section_ != 0 && lines().count("link") == 0)
      complain_of(section_, "this section names no link: add link = \"iface:NAME\"");
  }

  void take(const std::string& line) {
    if (line.find('=') == std::string::npos)
      return complain("'" + line + "' is no option: write name = value");
    auto [name, values] = cli::parse_config_line(line);
    if (name.empty()) return complain("'" + line + "' is no option: write name = value");
    if (const auto [at, is_new] = lines().emplace(name, begin_); !is_new)
      return complain(name + " stands in line " + std::to_string(at->second) +
                      " already: keep one of them");
    if (!values.empty() && !values[0].empty() && (values[0][0] == '"' || values[0][0] == '\''))
      return complain_of(begin_, "the quotes of " + name + " do not end; no value holds a #");
    if (name == "cpus") values = {joined(values, ",")};
    if (name == "listen" && (values.empty() || values[0].empty() || values[0] == "{}"))
      return complain(
          "listen without a rule lets everybody listen on every port: leave the line out, or, for "
          "nobody but root, name a port that no program has, as \"user:root:1\"");
    if (name != "listen" && values.size() != 1)
      return complain(name + " takes one value: put it in double quotes if it holds commas or " +
                      "blanks, as link = \"iface:eth0,mtu=9000\"");
    apply(name, values);
  }

  LinkOptions& link() { return out_.links.empty() ? out_.main : out_.links.back(); }
  // Options of the present section: name -> line
  std::map<std::string, int>& lines() { return link().lines.of; }

  void apply(const std::string& name, const std::vector<std::string>& values) {
    cli::App table;
    table.no_help();
    add_link_options(table, link());
    if (out_.links.empty()) add_daemon_options(table, out_);
    if (!table.has_option("--" + name)) return complain(unknown(name, table));
    std::vector<std::string> arguments;
    for (auto value = values.rbegin(); value != values.rend(); ++value)
      arguments.push_back("--" + name + "=" + *value);  // the last first, as CLI11 takes them
    try {
      table.parse(arguments);
    } catch (const cli::ParseError& error) {
      for (const auto& each : error.what_each()) complain(each);
    }
  }

  std::string unknown(const std::string& name, const cli::App& table) const {
    cli::App of_daemon;
    of_daemon.no_help();
    Options ignored;
    add_daemon_options(of_daemon, ignored);
    if (of_daemon.has_option("--" + name))
      return name + " is about the whole daemon: move it above the first [link.NAME]";
    const auto names = table.option_names();
    const auto similar =
        similar_word(name, std::vector<std::string_view>(names.begin(), names.end()));
    return "there is no option '" + name + "' here; " +
           (similar.empty() ? "there are: " + joined(names, ", ")
                            : "did you mean '" + std::string(similar) + "'?");
  }

  const std::string path_;
  Options& out_;
  std::vector<std::string>& errors_;
  int number_ = 0;   // of the line that was read last
  int begin_ = 0;    // of the line where the present entry begins
  int section_ = 0;  // the line where the present section begins; 0: none, or an unknown one
};

}  // namespace

bool read_config(const std::string& path, Options& out, std::vector<std::string>& errors) {
  std::error_code ignored;  // opening the file reports the error
  if (std::filesystem::is_directory(path, ignored)) {
    errors.push_back(path + ": this is a directory: name the file");
    return false;
  }
  std::ifstream file(path);
  if (!file) {
    errors.push_back(path + ": " + std::strerror(errno));
    return false;
  }
  const auto before = errors.size();
  out.file = path;
  Reader(path, out, errors).read(file);
  return errors.size() == before;
}

namespace {

constexpr char kFooter[] =
    "Exit status: 0 after TERM or INT, 1 if no link can be served or --check finds errors, 2 for "
    "a wrong command line or file.\n"
    "Signals: TERM or INT ends stpd, HUP reads the configuration file again.\n"
    "Several links: write a file with a section [link.NAME] for each; programs choose one by "
    "STP_LINK=stpd:NAME.\n"
    "Example: stpd --link iface:eth0,mtu=9000 --user stpd --poll adaptive";

struct Files {
  std::string config;  // of --config
  std::string check;   // of --check
};

void describe(cli::App& app, Options& options, Files& files) {
  app.description("Serves user programs of the Scheduled Transfer Protocol on links that it owns.");
  app.name("stpd");
  app.footer(kFooter);
  app.set_version_flag("--version", "stpd " STP_VERSION);
  app.add_option("--config", files.config,
                 "Read options from this file first: lines name = value, with the names of the "
                 "options; [link.NAME] begins a link")
      ->type_name("FILE");
  app.add_option("--check", files.check, "Only report the errors of this file")->type_name("FILE");
  add_link_options(app, options.main);
  add_daemon_options(app, options);
}

// Reads the file first, so that the command line overrides it.
std::optional<Options> put_together(int argc, char** argv, const std::string& config,
                                    std::vector<std::string>& errors) {
  Options options;
  if (!config.empty()) read_config(config, options, errors);
  cli::App app;
  Files ignored;
  describe(app, options, ignored);
  try {
    app.parse(argc, argv);
  } catch (const cli::ParseError& error) {
    errors.insert(errors.end(), error.what_each().begin(), error.what_each().end());
  }
  for (const auto& name : app.given()) options.main.lines.of.erase(name);
  if (!errors.empty() || !complete(options, errors)) return std::nullopt;
  return options;
}

// What stpd needs to find where it starts.
void check_socket_place(const std::string& socket, const std::string& usual,
                        const std::function<void(const std::string&)>& complain) {
  if (!socket.starts_with('/'))
    complain("write the whole path, beginning with /: stpd may start in any directory");
  std::error_code error;
  // stpd makes the last one that is missing.
  const auto above = std::filesystem::path(socket).parent_path().parent_path();
  if (socket.starts_with('/') && !std::filesystem::is_directory(above, error))
    complain("there is no directory " + above.string() + ": make it (mkdir -p)");
  if (const auto why = port::why_no_socket(socket, usual); !why.empty()) complain(why);
}

void check_trace_place(const std::string& pcap,
                       const std::function<void(const std::string&)>& complain) {
  std::error_code error;
  if (std::filesystem::is_directory(pcap, error)) complain("it is a directory: name a file in it");
  const auto directory = std::filesystem::path(pcap).parent_path();
  if (!pcap.starts_with('/'))
    complain("write the whole path, beginning with /: stpd may start in any directory");
  else if (!std::filesystem::is_directory(directory, error))
    complain("there is no directory " + directory.string() + ": make it (mkdir -p)");
}

void check_places(const Options& options, const LinkOptions& link,
                  std::vector<std::string>& errors) {
  const auto of = "link '" + link.name + "': ";
  check_socket_place(link.socket, ipc::socket_of(link.name), [&](const std::string& what) {
    errors.push_back(options.place_of(link, {"socket", "link"}) + of + "socket " + link.socket +
                     ": " + what);
  });
  if (link.pcap.empty()) return;
  check_trace_place(link.pcap, [&](const std::string& what) {
    errors.push_back(options.place_of(link, {"pcap"}) + of + "pcap " + link.pcap + ": " + what);
  });
}

// Each setting of a link above the first section is of a link there; `poll` is that of all others,
// too.
void check_settings_without_link(const Options& options, std::vector<std::string>& errors) {
  const auto& main = options.main;
  if (!main.link.empty() || main.lines.of.contains("link")) return;  // one that is wrong, too
  cli::App of_links;
  of_links.no_help();
  LinkOptions ignored;
  add_link_options(of_links, ignored);
  for (const auto& [name, line] : main.lines.of)
    if (name != "poll" && of_links.has_option("--" + name))
      errors.push_back(options.place_of(main, {name.c_str()}) + name +
                       " is of a link, and stands above the first section, where no link is: write "
                       "it into the section of its link");
}

// A file may be another one than was meant, with anything in it.
void tell(const std::vector<std::string>& errors) {
  for (const auto& error : errors) cli::say("stpd", error);
}

int check(const std::string& path) {
  Options options;
  std::vector<std::string> errors;
  if (read_config(path, options, errors) && complete(options, errors))
    for (const auto& link : options.links) check_places(options, link, errors);
  check_settings_without_link(options, errors);
  tell(errors);
  if (!errors.empty()) return 1;
  std::string links;
  for (const auto& link : options.links) links += ' ' + link.name + " (" + link.link + ')';
  cli::print(path + ": nothing is wrong; links:" + links);
  // No mistake: a file is checked while it is in use, before a SIGHUP.
  for (const auto& link : options.links)
    if (port::probe_socket(link.socket) == 0)
      cli::print("a daemon serves " + link.socket + " at present: another one cannot start there");
  return 0;
}

}  // namespace

Choice parse_options(int argc, char** argv) {
  cli::App app;
  Options scratch;
  Files files;
  describe(app, scratch, files);
  if (const auto status = app.parse_or_report(argc, argv, cli::kWrongUsage))
    return {std::nullopt, *status};
  if (!files.check.empty()) return {std::nullopt, check(files.check)};
  std::vector<std::string> errors;
  auto options = put_together(argc, argv, files.config, errors);
  tell(errors);
  return {std::move(options), cli::kWrongUsage};
}

std::optional<Options> reload_options(int argc, char** argv, std::vector<std::string>& errors) {
  cli::App app;
  Options scratch;
  Files files;
  describe(app, scratch, files);
  try {
    app.parse(argc, argv);
  } catch (const cli::ParseError& error) {  // a user, group or CPU that it names is gone
    errors.insert(errors.end(), error.what_each().begin(), error.what_each().end());
    return std::nullopt;
  }
  // Whoever reads it may wait for ever, and hear no SIGTERM.
  std::error_code ignored;
  const auto found = std::filesystem::status(files.config, ignored);
  if (std::filesystem::exists(found) && !std::filesystem::is_regular_file(found)) {
    errors.push_back(files.config + ": only a regular file is read again");
    return std::nullopt;
  }
  return put_together(argc, argv, files.config, errors);
}

std::string Options::place_of(const LinkOptions& link,
                              std::initializer_list<const char*> names) const {
  for (const auto* const name : names)
    if (const auto at = link.lines.of.find(name); at != link.lines.of.end())
      return file + ":" + std::to_string(at->second) + ": ";
  return "";
}

std::vector<std::string> needs_restart(const Options& now, const Options& wanted) {
  std::vector<std::string> names;
  const auto compare = [&](const char* name, bool same) {
    if (!same) names.emplace_back(name);
  };
  compare("links and their options", now.links == wanted.links);
  compare("user", now.user == wanted.user);
  compare("group", now.group == wanted.group);
  compare("socket-owner", now.socket_owner == wanted.socket_owner);
  compare("socket-group", now.socket_group == wanted.socket_group);
  compare("socket-mode", now.socket_access.mode == wanted.socket_access.mode);
  compare("admin-group", now.admin_group == wanted.admin_group);
  return names;
}

}  // namespace stp::stpd
