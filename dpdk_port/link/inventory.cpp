// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/inventory.h"

#include <linux/capability.h>
#include <net/if_arp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/link.h"
#include "stp/wire/layout.h"

namespace stp::port {
namespace {

namespace fs = std::filesystem;

// The first line; "": the file is missing or unreadable.
std::string line_of(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t')) line.pop_back();
  return line;
}

template <typename Number>
std::optional<Number> number_in(std::string text, int base = 10) {
  if (base == 16 && text.starts_with("0x")) text.erase(0, 2);
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Sorted by name.
std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> all;
  std::error_code ignored;
  for (fs::directory_iterator it(directory, ignored), end; it != end; it.increment(ignored))
    all.push_back(it->path());
  std::sort(all.begin(), all.end());
  return all;
}

// The last component of a symbolic link's target; "": none.
std::string target_name(const fs::path& link) {
  std::error_code error;
  const auto target = fs::read_symlink(link, error);
  return error ? std::string() : target.filename().string();
}

// Whether this process has it. `proc`: where that is mounted.
bool has_capability(unsigned capability, const std::string& proc = "/proc") {
  std::ifstream in(proc + "/self/status");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string name, set;
    if (fields >> name >> set && name == "CapEff:")
      return (number_in<std::uint64_t>(set, 16).value_or(0) >> capability & 1) != 0;
  }
  return false;
}

std::string why_unreachable(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "nobody serves this socket any more: start stpd again";
    case EACCES:
    case EPERM:
      return "this user may not use the socket: become a member of its group (ls -l shows it)";
    default:
      return std::string("it cannot be reached: ") + std::strerror(error);
  }
}

void add_daemons(const InventoryRoots& roots, Inventory& all) {
  for (const auto& path : entries_of(roots.sockets)) {
    if (path.extension() != ".sock") continue;
    Candidate daemon;
    daemon.kind = CandidateKind::kDaemon;
    daemon.name = path.string();
    daemon.link = "stpd:" + daemon.name;
    const auto error = roots.reach ? roots.reach(daemon.name) : 0;
    daemon.usable = error == 0;
    if (error != 0) daemon.note = why_unreachable(error);
    all.candidates.push_back(std::move(daemon));
  }
}

// "": it can be used.
std::string why_no_interface(const InventoryRoots& roots, const KernelInterface& at, bool may) {
  if (at.type == ARPHRD_LOOPBACK) return "frames on it have no addresses: for one process use loop";
  if (at.type != ARPHRD_ETHER) return "no Ethernet";
  if (!at.has(IFF_UP)) return "it is down: ip link set " + at.name + " up";
  if (at.mtu != 0 && at.mtu < kMinMtu)
    return "its MTU is below " + std::to_string(kMinMtu) + ": ip link set " + at.name + " mtu 1500";
  const auto owner = roots.owner ? roots.owner(at.index, at.mac) : std::string();
  if (!owner.empty())
    return owner + " owns it: reach its link (stpd:), or take another address (mac=)";
  if (!may)
    return "this user lacks CAP_NET_RAW: run as root, or start stpd --link iface:" + at.name;
  return {};
}

// Whether sysfs shows this interface, and none of another namespace that has its name.
bool is_that_of(const fs::path& shown, const KernelInterface& at) {
  return number_in<int>(line_of(shown / "ifindex")) == at.index &&
         parse_mac(line_of(shown / "address")).value_or(MacAddr{}) == at.mac;
}

void add_interfaces(const InventoryRoots& roots, Inventory& all) {
  const auto may = has_capability(CAP_NET_RAW, roots.proc);
  for (const auto& at : roots.interfaces()) {
    Candidate found;
    found.kind = CandidateKind::kInterface;
    found.name = at.name;
    found.link = "iface:" + found.name;
    found.state = !at.has(IFF_UP) ? "down" : at.has(IFF_RUNNING) ? "up" : "lowerlayerdown";
    if (at.mtu != 0) found.mtu = at.mtu;
    const auto shown = fs::path(roots.sys) / "class/net" / at.name;
    if (is_that_of(shown, at)) {
      found.driver = target_name(shown / "device/driver");
      found.state = line_of(shown / "operstate");
      // -1 or an error of read(2): unknown.
      found.megabits = number_in<unsigned>(line_of(shown / "speed"));
    }
    found.note = why_no_interface(roots, at, may);
    found.usable = found.note.empty();
    if (found.usable && !at.has(IFF_RUNNING))
      found.note = "no carrier: see the cable, and the other end";
    all.candidates.push_back(std::move(found));
  }
}

// The kernel's interfaces on a PCI device; those of virtio are one level below.
std::vector<std::string> interfaces_of(const fs::path& device) {
  std::vector<std::string> names;
  const auto add = [&names](const fs::path& directory) {
    for (const auto& path : entries_of(directory)) names.push_back(path.filename().string());
  };
  add(device / "net");
  for (const auto& below : entries_of(device))
    if (below.filename().string().starts_with("virtio")) add(below / "net");
  return names;
}

bool has_free_hugepages(const Inventory& all) {
  return std::any_of(all.hugepages.begin(), all.hugepages.end(),
                     [](const Hugepages& pages) { return pages.free != 0; });
}

// "": it can be used.
std::string why_no_pci(const fs::path& device, const Candidate& found, const Inventory& all) {
  if (found.driver == "vfio-pci") return {};
  if (found.driver == "uio_pci_generic" || found.driver == "igb_uio")
    return has_free_hugepages(all) ? ""
                                   : "with a uio driver it needs hugepages, and none is free: "
                                     "sysctl vm.nr_hugepages=256, or bind it to vfio-pci";
  const auto bind = "dpdk-devbind.py --bind=vfio-pci " + found.name;
  if (found.driver.empty()) return "no driver has it: " + bind;
  const auto names = interfaces_of(device);
  const auto text = "the kernel's driver " + found.driver + " has it";
  if (names.empty()) return text + ": " + bind;
  return text + " as " + names.front() + ": use iface:" + names.front() +
         ", or take it from the kernel: " + bind;
}

void add_pci(const InventoryRoots& roots, Inventory& all) {
  constexpr char kNetwork[] = "0x02";
  for (const auto& device : entries_of(roots.sys + "/bus/pci/devices")) {
    if (!line_of(device / "class").starts_with(kNetwork)) continue;
    Candidate found;
    found.kind = CandidateKind::kPci;
    found.name = device.filename().string();
    found.link = "pci:" + found.name;
    found.driver = target_name(device / "driver");
    found.note = why_no_pci(device, found, all);
    found.usable = found.note.empty();
    all.candidates.push_back(std::move(found));
  }
}

// Sockets with a listener here and a matching name: nothing else tells their purpose.
void add_memif(const InventoryRoots& roots, Inventory& all) {
  constexpr std::size_t kPathAt = 7;  // fields before it
  constexpr char kListening[] = "00010000";
  std::ifstream in(roots.proc + "/net/unix");
  std::vector<std::string> paths;
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::vector<std::string> words;
    for (std::string word; words.size() <= kPathAt && fields >> word;) words.push_back(word);
    if (words.size() <= kPathAt || words[3] != kListening) continue;
    const auto& path = words[kPathAt];
    if (path.starts_with('/') && path.find("memif") != std::string::npos) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  for (const auto& path : paths) {
    Candidate found;
    found.kind = CandidateKind::kMemif;
    found.name = path;
    found.link = "memif:" + path + ",role=client";
    found.usable = true;
    found.note = "serves one client; its program chooses what to speak";
    all.candidates.push_back(std::move(found));
  }
}

// Whether a socket on this machine has the UDP port of a udp: link without port=.
bool has_usual_udp_port(const InventoryRoots& roots) {
  constexpr std::size_t kAddressAt = 1;  // fields before it
  for (const char* const table : {"/self/net/udp", "/self/net/udp6"}) {
    std::ifstream in(roots.proc + table);
    for (std::string line; std::getline(in, line);) {
      std::istringstream fields(line);
      std::string address;
      for (std::size_t i = 0; i <= kAddressAt; ++i) fields >> address;
      const auto colon = address.find(':');
      if (colon == std::string::npos) continue;
      if (number_in<unsigned>(address.substr(colon + 1), 16) == wire::kUdpPort) return true;
    }
  }
  return false;
}

void add_udp(const InventoryRoots& roots, Inventory& all) {
  Candidate udp;
  udp.kind = CandidateKind::kUdp;
  udp.link = "udp:";
  udp.name = "udp";
  udp.usable = !has_usual_udp_port(roots);
  udp.note = udp.usable ? "all addresses of this machine, over any IP network, without rights; "
                          "udp:ADDRESS is one of them"
                        : "another program has UDP port 8181: reach its link (stpd:), or take a "
                          "port that is free (udp:,port=0)";
  all.candidates.push_back(std::move(udp));
}

void add_hugepages(const InventoryRoots& roots, Inventory& all) {
  constexpr std::string_view kPrefix = "hugepages-";
  for (const auto& at : entries_of(roots.sys + "/kernel/mm/hugepages")) {
    const auto name = at.filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with("kB")) continue;
    const auto size = number_in<std::uint64_t>(
        name.substr(kPrefix.size(), name.size() - kPrefix.size() - std::strlen("kB")));
    if (!size) continue;
    all.hugepages.push_back({*size,
                             number_in<std::uint64_t>(line_of(at / "nr_hugepages")).value_or(0),
                             number_in<std::uint64_t>(line_of(at / "free_hugepages")).value_or(0)});
  }
}

}  // namespace

Inventory take_inventory(const InventoryRoots& roots) {
  Inventory all;
  add_hugepages(roots, all);
  add_daemons(roots, all);
  add_interfaces(roots, all);
  add_pci(roots, all);
  add_memif(roots, all);
  add_udp(roots, all);
  Candidate loop;
  loop.link = loop.name = "loop";
  loop.usable = true;
  loop.note = "for one process alone";
  all.candidates.push_back(std::move(loop));
  return all;
}

const char* name_of(CandidateKind kind) {
  switch (kind) {
    case CandidateKind::kDaemon:
      return "daemon";
    case CandidateKind::kInterface:
      return "interface";
    case CandidateKind::kPci:
      return "pci";
    case CandidateKind::kMemif:
      return "memif";
    case CandidateKind::kUdp:
      return "udp";
    case CandidateKind::kLoop:
      break;
  }
  return "loop";
}

namespace {

// Some NICs have registers at the second place but not at the first.
std::string registers_of(const fs::path& device) {
  for (const char place : std::string("012345")) {
    const fs::path file = device / (std::string("resource") + place);
    std::error_code missing;
    if (fs::exists(file, missing)) return file;
  }
  return {};
}

// Drivers that share the NIC with DPDK.
bool is_shared(const std::string& driver) {
  return driver == "mlx4_core" || driver == "mlx5_core";
}

std::string bind(const PciNic& nic) {
  return "dpdk-devbind.py --bind=vfio-pci " + nic.address;
}

std::string obstacle_of_vfio(const PciNic& nic, const PciRights& rights, std::uint64_t pinned) {
  if (nic.group.empty()) {
    return nic.driver + " holds " + nic.address +
           ", but it has no IOMMU group: turn the IOMMU on (kernel parameter intel_iommu=on, or "
           "the "
           "firmware's settings)";
  }
  const std::string file = "/dev/vfio/" + nic.group;
  if (!rights.opens_group) {
    return "this user may not open " + file + " of " + nic.address +
           ": give it to the user (chown USER " + file + "), or run as root";
  }
  if (rights.locks_without_limit || rights.memlock >= pinned) return {};
  const std::string need = std::to_string(pinned >> 20) + " MiB";
  return "RLIMIT_MEMLOCK is " + std::to_string(rights.memlock >> 10) +
         " KiB, and VFIO pins the memory of frames, " + need +
         ": LimitMEMLOCK= of the unit, ulimit -l, or CAP_IPC_LOCK";
}

}  // namespace

PciNic look_up_pci_nic(const std::string& address, const fs::path& sysfs) {
  PciNic nic;
  const fs::path device = sysfs / "bus/pci/devices" / address;
  std::error_code missing;
  nic.address = address;
  nic.exists = fs::exists(device, missing);
  nic.driver = target_name(device / "driver");
  if (const auto names = interfaces_of(device); !names.empty()) nic.interface = names.front();
  nic.group = target_name(device / "iommu_group");
  nic.memory = registers_of(device);
  return nic;
}

PciRights rights_on(const PciNic& nic, bool hugepages) {
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  const auto opens = [](const std::string& file) {
    return ::access(file.c_str(), R_OK | W_OK) == 0;
  };
  return {.hugepages = hugepages,
          // Without an IOMMU it has another name.
          .opens_group = opens("/dev/vfio/" + nic.group) || opens("/dev/vfio/noiommu-" + nic.group),
          .locks_without_limit = has_capability(CAP_IPC_LOCK),
          .memlock = limit.rlim_cur};
}

std::string obstacle_of(const PciNic& nic, const PciRights& rights, std::uint64_t pinned) {
  if (!nic.exists) {
    return "there is no PCI device " + nic.address + ": dpdk-devbind.py --status lists the NICs";
  }
  if (nic.driver.empty()) return "no driver holds " + nic.address + ": " + bind(nic);
  if (nic.by_vfio()) return obstacle_of_vfio(nic, rights, pinned);
  if (nic.by_uio()) {
    if (rights.hugepages) return {};
    return nic.driver + " holds " + nic.address +
           ", and under uio a NIC reaches hugepages only; 128 MiB of them must be free: sysctl "
           "vm.nr_hugepages=256, or with an IOMMU " +
           bind(nic);
  }
  if (is_shared(nic.driver)) return {};
  std::string said = "the kernel driver " + nic.driver + " holds " + nic.address;
  if (nic.interface.empty()) return said + "; to take it away: " + bind(nic);
  return said + " as interface " + nic.interface + ": use iface:" + nic.interface +
         ", or take it away: ip link set " + nic.interface + " down; " + bind(nic);
}

}  // namespace stp::port
