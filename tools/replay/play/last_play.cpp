// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/last_play.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using Clock = std::chrono::system_clock;

// Where only this user and root may make files.
std::string own_directory() {
  if (::geteuid() == 0) return "/run";
  const auto* const runtime = std::getenv("XDG_RUNTIME_DIR");
  return runtime == nullptr ? "" : runtime;
}

}  // namespace

LastPlay LastPlay::with(int interface, const MacAddr& station) {
  const auto directory = own_directory();
  struct stat network {};
  if (directory.empty() || ::stat("/proc/self/ns/net", &network) != 0) return LastPlay("");
  auto name = to_string(station);
  std::ranges::replace(name, ':', '-');
  return LastPlay(directory + "/stp-replay-" + std::to_string(network.st_ino) + '-' +
                  std::to_string(interface) + '-' + name);
}

std::chrono::milliseconds LastPlay::remembered() const {
  struct stat status {};
  if (path_.empty() || ::lstat(path_.c_str(), &status) != 0) return {};
  const Clock::time_point then(std::chrono::duration_cast<Clock::duration>(
      std::chrono::seconds(status.st_mtim.tv_sec) +
      std::chrono::nanoseconds(status.st_mtim.tv_nsec)));
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then);
  // A clock that was set back says nothing.
  return since.count() < 0 || since >= kRemembered ? std::chrono::milliseconds()
                                                   : kRemembered - since;
}

void LastPlay::note() const {
  if (path_.empty()) return;
  const auto file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  ::futimens(file, nullptr);
  ::close(file);
}

}  // namespace stp::replay
