// SPDX-License-Identifier: BSD-3-Clause
#include "tools/stpctl/commands.h"

#include <cstdio>
#include <filesystem>
#include <stdexcept>

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

void check(const std::string& text, const char* what, const char* forbidden) {
  if (text.empty() || text.find_first_of(forbidden) != std::string::npos)
    throw std::runtime_error(std::string(what) + " '" + text +
                             "' is empty, or has characters that dat.conf does not allow");
}

}  // namespace

// The registry gives ordinary programs the nonthreadsafe lines, and programs that ask for thread
// safety the threadsafe ones. So each link has both.
void dat_conf(const Options& options) {
  const auto file = options.provider.empty() ? provider() : options.provider;
  check(options.name, "the name", " \t\n\"\\#");
  check(file, "the provider", " \t\n\"\\#");
  std::vector<std::string> links{options.link};
  if (options.link.empty()) {
    links.clear();
    for (const auto& socket : options.sockets) links.push_back("stpd:" + socket);
  }
  unsigned number = 0;
  for (const auto& link : links) {
    check(link, "the link", "\n\"\\");
    for (const auto* const safety : {"nonthreadsafe", "threadsafe"})
      std::printf("%s%u u2.0 %s default %s stp.2.0 \"%s\" \"\"\n", options.name.c_str(), number,
                  safety, file.c_str(), link.c_str());
    ++number;
  }
}

}  // namespace stp::stpctl
