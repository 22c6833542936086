// SPDX-License-Identifier: BSD-3-Clause
// stp-send FILE... HOST:PORT: sends files, and with -r directories, to an stp-recv. Exits with 0
// only if the receiver has confirmed the content of every file.
#include <stp/st.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "libst/os/file_limit.h"
#include "libst/service/link_choice.h"
#include "tools/files/failure.h"
#include "tools/files/send_all.h"
#include "tools/files/signals.h"

namespace {

// "20M": 20 * 2^20.
std::optional<std::uint64_t> bytes_of(const std::string& text) {
  constexpr std::string_view kUnits = "KMG";
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = std::string_view(text).substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || unit.size() > 1) return std::nullopt;
  if (unit.empty()) return number;
  const auto power = kUnits.find(unit);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  if (power == std::string_view::npos || number > kMost) return std::nullopt;
  return number << (10 * (power + 1));
}

}  // namespace

int main(int argc, char** argv) {
  using namespace stp::files;
  Sending sending;
  std::string link;
  bool quiet = false;
  CLI::App app("Sends files over Scheduled Transfers to an stp-recv.", "stp-send");
  std::string limit;
  long retry = 0, connect_timeout = 30;
  app.add_option("words", sending.paths, "FILE... HOST:PORT; - is standard input")
      ->required()
      ->expected(2, -1);
  app.add_flag("-r,--recursive", sending.trees,
               "Send directories with their content: names, permissions, times, symbolic links");
  app.add_flag("-c,--checksum", sending.checksum,
               "Compare the content of existing files, not only their size and time");
  app.add_option("--exclude", sending.exclude,
                 "With -r: skip names that match this shell pattern; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--name", sending.stream_name,
                 "File name for standard input at the receiver; default: stdin");
  app.add_option("--bwlimit", limit, "Bytes per second at most, as 500K, 20M or 1G");
  app.add_option("--retry", retry,
                 "Seconds without progress during which a lost link or receiver is tried again")
      ->check(CLI::Range(0, 31'536'000));
  app.add_option("--connect-timeout", connect_timeout,
                 "Seconds that the receiver may take to accept; default: 30")
      ->check(CLI::Range(1, 3600));
  app.add_option(
      "--link", link,
      "Link to use (stpd:PATH, iface:NAME, pci:ADDRESS, memif:PATH, vdev:DEVICE, loop);\n"
      "default: STP_LINK");
  app.add_flag("-q,--quiet", quiet, "Print only errors");
  app.set_version_flag("--version", std::string(st_version()));
  CLI11_PARSE(app, argc, argv);

  if (!limit.empty()) {
    const auto rate = bytes_of(limit);
    if (!rate || *rate == 0) {
      std::fprintf(stderr,
                   "stp-send: --bwlimit: \"%s\" is not a rate; write bytes per second, as 20M\n",
                   limit.c_str());
      return EXIT_FAILURE;
    }
    sending.bytes_per_second = *rate;
  }
  sending.retry = std::chrono::seconds(retry);
  sending.connect_timeout = std::chrono::seconds(connect_timeout);
  sending.destination = sending.paths.back();
  sending.paths.pop_back();
  stp::service::raise_file_limit();  // a tree has one open for each level
  if (!link.empty()) ::setenv("STP_LINK", link.c_str(), 1);
  const Signals signals;
  Progress progress("stp-send", quiet);
  const auto choice = stp::service::choose_link();
  if (choice.is_loop()) {
    progress.complain(no_link(choice));
    return EXIT_FAILURE;
  }
  if (!quiet) progress.complain(describe(choice));
  try {
    return send_all(sending, signals.stop(), progress) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& failure) {
    progress.complain(failure.what());
    return EXIT_FAILURE;
  }
}
