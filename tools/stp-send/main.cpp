// SPDX-License-Identifier: BSD-3-Clause
// stp-send FILE... HOST:PORT: sends files to an stp-recv. Exits with 0 only when the receiver has
// confirmed the content of every one of them.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>

#include "tools/files/failure.h"
#include "tools/files/file_reader.h"
#include "tools/files/progress.h"
#include "tools/files/signals.h"
#include "tools/files/transfer_sender.h"

namespace {

using namespace stp::files;

struct Options {
  std::vector<std::string> words;  // files, and the destination as the last
  std::string link;
  bool quiet = false;
};

void send_file(TransferSender& sender, const std::string& path, Progress& progress) {
  FileReader file(path);
  auto const began = Clock::now();
  auto const repeats = sender.repeats();
  {
    Progress::Item bar(progress, printable(file.metadata().name), file.metadata().size);
    sender.send(file, [&bar](std::uint64_t bytes) { bar.advance(bytes); });
  }
  auto const seconds = std::chrono::duration<double>(Clock::now() - began).count();
  progress.say("sent " + printable(path) + ": " + rate_text(file.metadata().size, seconds) + ", " +
               std::to_string(sender.repeats() - repeats) + " Blocks repeated");
}

// The number of files that did not arrive.
int send_all(const Options& options, const Signals& signals, Progress& progress) {
  Endpoint endpoint(nullptr);
  Connection connection(endpoint, options.words.back());
  TransferSender sender(endpoint, connection, signals.stop());
  int failures = 0;
  for (auto path = options.words.begin(); path != options.words.end() - 1; ++path) {
    try {
      send_file(sender, *path, progress);
    } catch (const FileFailure& failure) {
      progress.complain(printable(*path) + ": " + failure.what());
      ++failures;
    } catch (const std::exception& failure) {
      throw LinkFailure(printable(*path) + ": " + failure.what());
    }
  }
  return failures;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Sends files over Scheduled Transfers to an stp-recv.", "stp-send");
  app.add_option("words", options.words, "FILE... HOST:PORT")->required()->expected(2, -1);
  app.add_option("--link", options.link,
                 "Link to use (stpd:PATH, iface:NAME, memif:PATH, loop); default: STP_LINK");
  app.add_flag("-q,--quiet", options.quiet, "Say nothing but errors");
  app.set_version_flag("--version", std::string(st_version()));
  CLI11_PARSE(app, argc, argv);

  if (!options.link.empty()) ::setenv("STP_LINK", options.link.c_str(), 1);
  Signals const signals;
  Progress progress("stp-send", options.quiet);
  try {
    return send_all(options, signals, progress) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& failure) {
    progress.complain(failure.what());
    return EXIT_FAILURE;
  }
}
