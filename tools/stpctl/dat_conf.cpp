// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "tools/cli/app.h"
#include "tools/stpctl/ending.h"

namespace stp::stpctl {
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
