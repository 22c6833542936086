// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpd/options.h"

#include <cstdio>
#include <filesystem>

#include "tools/stpd/config_file.h"
#include "tools/stpd/option_table.h"

namespace stp::stpd {
namespace {

constexpr char kFooter[] =
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
    errors.emplace_back(error.what());
  }
  if (!errors.empty() || !complete(options, errors)) return std::nullopt;
  return options;
}

// What stpd needs to find where it starts.
void check_places(const LinkOptions& link, std::vector<std::string>& errors) {
  const auto complain = [&](const std::string& what) {
    errors.push_back("link '" + link.name + "': " + what);
  };
  if (!link.socket.starts_with('/'))
    complain("socket " + link.socket +
             ": write the whole path, beginning with /: stpd may start in any directory");
  std::error_code error;
  // stpd makes the last one that is missing.
  const auto above = std::filesystem::path(link.socket).parent_path().parent_path();
  if (link.socket.starts_with('/') && !std::filesystem::is_directory(above, error))
    complain("socket " + link.socket + ": there is no directory " + above.string() +
             ": make it (mkdir -p)");
  if (link.pcap.empty()) return;
  const auto directory = std::filesystem::path(link.pcap).parent_path();
  if (!link.pcap.starts_with('/'))
    complain("pcap " + link.pcap +
             ": write the whole path, beginning with /: stpd may start in any directory");
  else if (!std::filesystem::is_directory(directory, error))
    complain("pcap " + link.pcap + ": there is no directory " + directory.string() +
             ": make it (mkdir -p)");
}

int check(const std::string& path) {
  Options options;
  std::vector<std::string> errors;
  if (read_config(path, options, errors) && complete(options, errors))
    for (const auto& link : options.links) check_places(link, errors);
  // Each other setting above the first section is of a link there.
  LinkOptions unused;
  unused.poll = options.main.poll;
  if (options.main.link.empty() && options.main != unused)
    errors.push_back(
        "a setting of a link (socket, address, cpus, granted, pcap) stands above the first "
        "section, "
        "where no link is: write it into the section of its link");
  for (const auto& error : errors) std::fprintf(stderr, "stpd: %s\n", error.c_str());
  if (!errors.empty()) return 1;
  std::printf("%s: nothing is wrong; links:", path.c_str());
  for (const auto& link : options.links)
    std::printf(" %s (%s)", link.name.c_str(), link.link.c_str());
  std::printf("\n");
  return 0;
}

}  // namespace

Choice parse_options(int argc, char** argv) {
  cli::App app;
  Options scratch;
  Files files;
  describe(app, scratch, files);
  try {
    app.parse(argc, argv);
  } catch (const cli::ParseError& error) {
    return {std::nullopt, app.report(error, 1)};
  }
  if (!files.check.empty()) return {std::nullopt, check(files.check)};
  std::vector<std::string> errors;
  auto options = put_together(argc, argv, files.config, errors);
  for (const auto& error : errors) std::fprintf(stderr, "stpd: %s\n", error.c_str());
  return {std::move(options), 1};
}

std::optional<Options> reload_options(int argc, char** argv, std::vector<std::string>& errors) {
  cli::App app;
  Options scratch;
  Files files;
  describe(app, scratch, files);
  try {
    app.parse(argc, argv);
  } catch (const cli::ParseError& error) {  // a user, group or CPU that it names is gone
    errors.emplace_back(error.what());
    return std::nullopt;
  }
  return put_together(argc, argv, files.config, errors);
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
