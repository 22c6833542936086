// SPDX-License-Identifier: BSD-3-Clause
// stp-recv --listen :PORT --out DIR: receives files from stp-send. A file appears under its name
// once it is complete and its content has been checked.
#include <CLI/CLI.hpp>
#include <cstdlib>

#include "tools/files/failure.h"
#include "tools/files/progress.h"
#include "tools/files/receiver.h"
#include "tools/files/signals.h"

namespace {

using namespace stp::files;

struct Options {
  std::string listen, directory, link;
  bool once = false, quiet = false;
  unsigned idle_seconds = 60;
  std::size_t per_peer = 8;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Receives files over Scheduled Transfers from stp-send.", "stp-recv");
  app.add_option("--listen", options.listen, "Port to listen on, as :3000")->required();
  app.add_option("--out", options.directory, "Directory for what arrives")
      ->required()
      ->check(CLI::ExistingDirectory);
  app.add_option("--link", options.link,
                 "Link to use (stpd:PATH, iface:NAME, memif:PATH, loop); default: STP_LINK");
  app.add_option("--idle-timeout", options.idle_seconds,
                 "Seconds after which a sender that is silent loses its connection; default: 60")
      ->check(CLI::Range(1, 86'400));
  app.add_option("--per-peer", options.per_peer,
                 "Senders of one host at once, 16 in all; default: 8")
      ->check(CLI::Range(1, 16));
  app.add_flag("--once", options.once, "End after the first sender");
  app.add_flag("-q,--quiet", options.quiet, "Say nothing but errors");
  app.set_version_flag("--version", std::string(st_version()));
  CLI11_PARSE(app, argc, argv);

  if (!options.link.empty()) ::setenv("STP_LINK", options.link.c_str(), 1);
  Signals const signals;
  Progress progress("stp-recv", options.quiet);
  ReceiverContext context{options.directory, progress, signals.stop()};
  context.idle_timeout = std::chrono::seconds(options.idle_seconds);
  context.most_per_peer = options.per_peer;
  try {
    Receiver receiver(options.listen, context);
    progress.say("listening on " + options.listen + ", writing to " + options.directory);
    return receiver.run(options.once) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& failure) {
    progress.complain(failure.what());
    return EXIT_FAILURE;
  }
}
