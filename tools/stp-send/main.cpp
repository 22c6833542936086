// SPDX-License-Identifier: BSD-3-Clause
// stp-send FILE... HOST:PORT: sends files, and with -r directories, to an stp-recv. Exits with 0
// only if the receiver has confirmed the content of every file.
#include <stp/st.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>

#include "dpdk_port/link/start_thread.h"
#include "libst/ipc/link_choice.h"
#include "libst/os/file_limit.h"
#include "libst/os/standard_streams.h"
#include "tools/cli/app.h"
#include "tools/cli/say.h"
#include "tools/files/failure.h"
#include "tools/files/send_all.h"
#include "tools/files/signals.h"
#include "tools/files/tree.h"

namespace {

using namespace stp::files;

std::string reason_against_destination(const std::string& name) {
  const auto why = stp::cli::reason_against_name(name);
  return why.empty() ? "" : "\"" + name + "\" is not a destination: " + why + "; write HOST:PORT";
}

std::uint64_t rate_of(const std::string& text) {
  const auto rate = stp::cli::size_of(text);
  if (!rate || *rate == 0)
    throw std::runtime_error("--bwlimit: \"" + text +
                             "\" is not a rate; write a number per second of " +
                             stp::cli::kSizeWords);
  return *rate;
}

ModeChanges modes_of(const std::string& text) {
  const auto changes = ModeChanges::parse(text);
  if (!changes)
    throw std::runtime_error("--chmod: \"" + text +
                             "\" is no change of permissions; write D755,F644 or u=rwX,go=rX");
  return *changes;
}

// Reads a file, or standard input for "-".
template <typename Read>
auto with_lines(const std::string& path, const std::string& option, const Read& read) {
  const auto failure = [&](int error) {
    return std::runtime_error(option + " " + path + ": cannot read it: " + error_text(error));
  };
  std::ifstream file;
  if (path != "-") {
    file.open(path);
    if (!file || std::filesystem::is_directory(path)) throw failure(file ? EISDIR : errno);
  }
  std::istream& in = path == "-" ? std::cin : file;
  errno = 0;
  auto result = read(in);
  if (in.bad() || std::ferror(stdin) != 0) throw failure(errno != 0 ? errno : EIO);
  return result;
}

std::ptrdiff_t inputs_among(const std::vector<std::string>& paths) {
  return std::count(paths.begin(), paths.end(), "-");
}

// --exclude, --include and --exclude-from. Their order on the command line counts.
class FilterOptions {
 public:
  explicit FilterOptions(stp::cli::App& app)
      : app_(app),
        exclude_(add("--exclude", "PATTERN", "With -r: skip names that match this shell pattern")),
        include_(
            add("--include", "PATTERN", "With -r: do not skip what a later --exclude matches")),
        exclude_from_(add("--exclude-from", "FILE",
                          "With -r: file with such patterns, one a line; - is standard "
                          "input")) {}
  [[nodiscard]] std::vector<FilterRule> rules() const {
    std::vector<FilterRule> rules;
    std::map<const stp::cli::Option*, std::size_t> taken;
    for (const auto* option : app_.parse_order()) {
      if (option != exclude_ && option != include_ && option != exclude_from_) continue;
      const auto& value = option->results().at(taken[option]++);
      if (option != exclude_from_) {
        rules.push_back({option == include_, value});
        continue;
      }
      const auto more = with_lines(value, "--exclude-from",
                                   [](std::istream& in) { return read_rules(in, false); });
      rules.insert(rules.end(), more.begin(), more.end());
    }
    return rules;
  }
  // Their names, in the order in which they were given.
  [[nodiscard]] std::vector<std::string> given() const {
    std::vector<std::string> names;
    for (const auto* option : app_.parse_order()) {
      if (option == exclude_) names.emplace_back("--exclude");
      if (option == include_) names.emplace_back("--include");
      if (option == exclude_from_) names.emplace_back("--exclude-from");
    }
    return names;
  }
  // How many of them are read from standard input.
  [[nodiscard]] std::ptrdiff_t from_input() const { return inputs_among(exclude_from_->results()); }

 private:
  const stp::cli::Option* add(const std::string& name, const std::string& type,
                              const std::string& help) {
    return app_.add_option(name, unused_, help + "; may be repeated")
        ->type_name(type)
        ->allow_extra_args(false);
  }

  stp::cli::App& app_;
  std::vector<std::string> unused_;
  const stp::cli::Option *exclude_, *include_, *exclude_from_;
};

// Returns the exit status.
int send(const Sending& sending, bool quiet, bool has_input) {
  const Signals signals("stp-send");
  Progress progress("stp-send", quiet);
  if (sending.dry) progress.only_tells();
  return progress.run(quiet, [&] {
    if (has_stream(sending) && !has_input)
      throw std::runtime_error("standard input is closed: " + error_text(EBADF) +
                               "; name a file, or redirect it");
    return send_all(sending, signals.stop(), progress) == 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const auto closed = stp::os::hold_standard_streams(stp::os::ClosedOutput::kVanishes);
  Sending sending;
  std::string link;
  bool quiet = false;
  stp::cli::App app("Sends files over Scheduled Transfers to an stp-recv.", "stp-send");
  long retry = 0;
  std::optional<long> connect_timeout;
  app.usage_end("HOST:PORT");
  app.add_option("FILE", sending.paths, "What to send; - is standard input")
      ->required()
      ->expected(1, -1);
  app.add_flag("-r,--recursive", sending.trees,
               "Send directories with their content: names, permissions, times, symbolic links");
  app.add_flag("-H,--hard-links", sending.hard_links,
               "With -r: names of one file (hard links) become names of one file there, too");
  app.add_flag("-c,--checksum", sending.checksum,
               "Compare the content of existing files, not only their size and time");
  app.add_flag("--delete", sending.remove,
               "With -r: delete at the receiver what is in directories of that tree there and not "
               "here; needs stp-recv --allow-delete");
  app.add_flag("-n,--dry-run", sending.dry, "Send nothing; print what would be sent and made");
  app.add_flag("-v,--verbose", sending.verbose, "Print a line for each file that is sent");
  FilterOptions filter(app);
  std::optional<std::string> list, modes, limit, into;
  app.add_option("--files-from", list,
                 "Send only what this file lists: paths below FILE, which is a directory; "
                 "- is standard input. Implies -r")
      ->type_name("FILE");
  app.add_option("--into", into, "Directory for the files, below that of the receiver")
      ->type_name("DIR");
  app.add_option("--chmod", modes, "Permissions at the receiver, as D755,F644 or u=rwX,go=rX")
      ->type_name("CHANGES");
  app.add_option("--name", sending.name, "Name of FILE at the receiver")
      ->type_name("NAME")
      ->default_str("its own; of standard input stdin");
  app.add_option(
         "--bwlimit", limit,
         "Bytes of content per second at most, 1 or more, as 500K, 20M, 1G (powers of 1024) "
         "or 0x1000")
      ->type_name("RATE")
      ->default_str("no limit");
  app.add_option("--retry", retry,
                 "Seconds for which a lost link or receiver is tried again, anew after progress")
      ->type_name("SECONDS")
      ->between(0, 31'536'000)
      ->capture_default_str();
  app.add_option("--connect-timeout", connect_timeout,
                 "Seconds that the receiver and its host, at all its addresses, may take to answer")
      ->type_name("SECONDS")
      ->between(1, 3600)
      ->default_str("30, and 10 if the host does not answer");
  stp::cli::add_link_option(app, link);
  app.add_flag("-q,--quiet", quiet, "Print only errors");
  app.footer(
      "Exit status: 0 if the receiver has confirmed every file, 1 if not, 2 for a wrong command "
      "line.\nExample: stp-send -r --link iface:eth0 photos 10.9.0.2:3000");
  app.set_version_flag("--version", "stp-send " STP_VERSION);
  if (const auto status = app.parse_or_report(argc, argv, stp::cli::kWrongUsage))
    return stp::os::status_with_output("stp-send", *status, EXIT_FAILURE);
  if (sending.paths.size() == 1)
    return stp::cli::usage_error(
        "stp-send", "FILE... HOST:PORT is needed, and there is only " + sending.paths.front(),
        stp::cli::kWrongUsage);

  sending.destination = sending.paths.back();
  sending.paths.pop_back();
  sending.into = into.value_or("");
  if (list) sending.listed.emplace();
  sending.trees = sending.trees || list;
  auto wrong = conflict_of(sending, filter.given(), quiet);
  const auto inputs = inputs_among(sending.paths) + filter.from_input() + (list == "-" ? 1 : 0);
  if (wrong.empty() && inputs > 1)
    wrong = "standard input is read only once, and - stands for it in several places";
  if (wrong.empty()) wrong = reason_against_destination(sending.destination);
  if (!wrong.empty()) return stp::cli::usage_error("stp-send", wrong, stp::cli::kWrongUsage);

  try {
    if (limit) sending.bytes_per_second = rate_of(*limit);
    if (modes) sending.modes = modes_of(*modes);
  } catch (const std::runtime_error& error) {
    return stp::cli::usage_error("stp-send", error.what(), stp::cli::kWrongUsage);
  }
  try {
    sending.rules = filter.rules();
    if (list) sending.listed = with_lines(*list, "--files-from", read_paths);
    check_names(sending);
  } catch (const std::runtime_error& error) {
    stp::cli::say("stp-send", error.what());
    return EXIT_FAILURE;
  }
  sending.retry = std::chrono::seconds(retry);
  if (connect_timeout)
    sending.patience = {std::chrono::seconds(*connect_timeout),
                        std::chrono::seconds(*connect_timeout)};
  stp::os::raise_file_limit();  // a tree has one open for each level
  if (!link.empty()) ::setenv("STP_LINK", link.c_str(), 1);
  if (retry > 0) stp::ipc::wait_for_usual_stpd();
  try {
    return send(sending, quiet, !closed[STDIN_FILENO]);
  } catch (const stp::NoThread& none) {
    stp::cli::say("stp-send", none.what());
    return EXIT_FAILURE;
  }
}
