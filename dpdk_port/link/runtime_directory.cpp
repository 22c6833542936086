// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/runtime_directory.h"

#include <signal.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <string_view>
#include <vector>

#include "dpdk_port/link/socket_probe.h"

namespace stp::port {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "stp-";

// 0: not one of ours.
pid_t owner_of(const fs::path& directory) {
  const auto name = directory.filename().string();
  if (!name.starts_with(kPrefix)) return 0;
  pid_t pid = 0;
  const auto* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + kPrefix.size(), end, pid);
  return error == std::errc() && at == end && pid > 0 ? pid : 0;
}

// If that cannot be found out, the directory is left alone.
bool is_served(const fs::path& socket_path) {
  const auto error = probe_socket(socket_path.string());
  return error != ECONNREFUSED && error != ENOENT;
}

// DPDK makes the directory some moments before the socket in it.
bool is_young(const fs::path& directory) {
  std::error_code error;
  const auto changed = fs::last_write_time(directory, error);
  return error || fs::file_time_type::clock::now() - changed < std::chrono::minutes(1);
}

// The pid alone is not enough: the process may be in another pid namespace.
bool is_left_behind(const fs::path& directory) {
  const auto pid = owner_of(directory);
  if (pid == 0 || ::kill(pid, 0) == 0 || errno != ESRCH || is_young(directory)) return false;
  return !is_served(directory / "dpdk_telemetry.v2");
}

}  // namespace

std::string file_prefix_of(pid_t pid) {
  return std::string(kPrefix) + std::to_string(pid);
}

void remove_left_behind(const fs::path& parent) {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (is_left_behind(entry.path())) left.push_back(entry.path());
  for (const auto& directory : left) fs::remove_all(directory, ignored);
}

}  // namespace stp::port
