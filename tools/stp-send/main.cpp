// SPDX-License-Identifier: BSD-3-Clause
// stp-send FILE... HOST:PORT: sends files, and with -r directories, to an stp-recv. Exits with 0
// only when the receiver has confirmed the content of every one of them.
#include <stp/st.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "libst/os/file_limit.h"
#include "tools/files/failure.h"
#include "tools/files/send_all.h"
#include "tools/files/signals.h"

int main(int argc, char** argv) {
  using namespace stp::files;
  Sending sending;
  std::string link;
  bool quiet = false;
  CLI::App app("Sends files over Scheduled Transfers to an stp-recv.", "stp-send");
  app.add_option("words", sending.paths, "FILE... HOST:PORT")->required()->expected(2, -1);
  app.add_flag("-r,--recursive", sending.trees,
               "Send directories with all that they hold: names, permissions, times, symbolic\n"
               "links. What an earlier transfer has brought is verified and not sent again");
  app.add_option("--link", link,
                 "Link to use (stpd:PATH, iface:NAME, memif:PATH, loop); default: STP_LINK");
  app.add_flag("-q,--quiet", quiet, "Say nothing but errors");
  app.set_version_flag("--version", std::string(st_version()));
  CLI11_PARSE(app, argc, argv);

  sending.destination = sending.paths.back();
  sending.paths.pop_back();
  stp::service::raise_file_limit();  // a tree has one open for each level
  if (!link.empty()) ::setenv("STP_LINK", link.c_str(), 1);
  Signals const signals;
  Progress progress("stp-send", quiet);
  try {
    return send_all(sending, signals.stop(), progress) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& failure) {
    progress.complain(failure.what());
    return EXIT_FAILURE;
  }
}
