// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/failure.h"

#include <rte_errno.h>

#include <array>
#include <string_view>

#include "dpdk_port/dpdk/eal.h"

namespace stp::port {
namespace {

// Replacements for DPDK messages that do not help.
struct Translation {
  std::string_view dpdk;
  const char* ours;
};
constexpr std::array kTranslations{
    Translation{"Device or resource busy",
                "another program has the NIC: fuser -v /dev/vfio/* names it"},
    Translation{"VFIO group is not viable",
                "the kernel has other devices of its IOMMU group, which are listed in "
                "/sys/bus/pci/devices/ADDRESS/iommu_group/devices: bind them to vfio-pci, too"},
    Translation{"failed to parse device",
                "no driver of DPDK has a name that it begins with: see the name (net_ring0, "
                "net_tap0), and whether the driver is installed (librte-net-...)"},
    Translation{"DMA remapping", "VFIO may not pin its memory: raise LimitMEMLOCK= (ulimit -l)"},
};

}  // namespace

std::string failure(const std::string& what, int result) {
  const std::string said = take_dpdk_message();
  for (const Translation& each : kTranslations) {
    if (said.find(each.dpdk) != std::string::npos) return what + ": " + each.ours;
  }
  return what + ": " + (said.empty() ? rte_strerror(-result) : said);
}

}  // namespace stp::port
