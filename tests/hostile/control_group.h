// SPDX-License-Identifier: BSD-3-Clause
// A control group with a memory limit, inside that of this process. Supports versions 1 and 2.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace stp::hostile {

class ControlGroup {
 public:
  explicit ControlGroup(std::uint64_t limit) {
    namespace fs = std::filesystem;
    std::error_code error;
    for (const auto& [root, of_limit, of_peak] :
         {Version{own("", "/sys/fs/cgroup"), "memory.max", "memory.peak"},
          Version{own("memory", "/sys/fs/cgroup/memory"), "memory.limit_in_bytes",
                  "memory.max_usage_in_bytes"}}) {
      if (root.empty()) continue;
      const auto path = root / ("stp-hostile-" + std::to_string(::getpid()));
      if (!fs::create_directory(path, error)) continue;
      path_ = path;
      peak_ = path / of_peak;
      std::ofstream out(path / of_limit);
      if (fs::exists(path / of_limit, error) && out << limit << std::flush) return;
      fs::remove(path_, error);
      path_.clear();
    }
  }
  ~ControlGroup() {
    std::error_code error;
    for (int tries = 0; !path_.empty() && tries < 100; ++tries) {
      if (std::filesystem::remove(path_, error)) return;
      ::usleep(10'000);  // its processes are still ending
    }
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  // True if there is none: no memory controller, or no right to make a group.
  [[nodiscard]] bool empty() const { return path_.empty(); }
  // A process that writes its pid there joins the group.
  [[nodiscard]] std::string members() const { return path_ / "cgroup.procs"; }
  // The most bytes that it had, or 0 if the kernel does not report it.
  [[nodiscard]] std::uint64_t peak() const {
    std::uint64_t bytes = 0;
    std::ifstream(peak_) >> bytes;
    return bytes;
  }

 private:
  struct Version {
    std::filesystem::path root;
    const char *limit, *peak;
  };
  // The path of this process's group of that controller ("": version 2), or empty if there is none.
  static std::filesystem::path own(const std::string& controller, const std::string& root) {
    std::ifstream in("/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {
      const auto first = line.find(':'), second = line.find(':', first + 1);
      if (second == std::string::npos) continue;
      if (line.substr(first + 1, second - first - 1) != controller) continue;
      const std::filesystem::path path = root + line.substr(second + 1);
      std::error_code error;
      return std::filesystem::exists(path / "cgroup.procs", error) ? path : std::filesystem::path();
    }
    return {};
  }

  std::filesystem::path path_, peak_;
};

}  // namespace stp::hostile
