// SPDX-License-Identifier: BSD-3-Clause
// A control group with a memory limit, in that of this process; of either version.
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
      ::usleep(10'000);  // whoever was in it is still going
    }
  }
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  // There is none: no controller for memory, or no right to make one.
  [[nodiscard]] bool empty() const { return path_.empty(); }
  // Who writes its pid there is in it.
  [[nodiscard]] std::string members() const { return path_ / "cgroup.procs"; }
  // Bytes that it had at most; 0 where the kernel does not say.
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
  // Where the group of this process is, by that controller ("": version 2). Empty: there is none.
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
