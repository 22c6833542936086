// SPDX-License-Identifier: BSD-3-Clause
// Whether DPDK may be told to use hugepages. It does not start without those that it has been
// promised, and cannot be started a second time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stp::port {

struct HugepageChoice {
  bool use = false;
  std::string trouble;  // why those that are free are not used
};

// `root`: /sys/kernel/mm/hugepages. `trial`: whether a page of that many bytes can be had; 0 or an
// error number.
HugepageChoice choose_hugepages(const std::string& root,
                                const std::function<int(std::uint64_t bytes)>& trial);

// Takes one page as DPDK does, and gives it back.
int try_hugepage(std::uint64_t bytes);

}  // namespace stp::port
