// SPDX-License-Identifier: BSD-3-Clause
// What DPDK is told: when it starts (the lcore, hugepages, the directory of its telemetry), and for
// a link (the device to make, and its configuration).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "dpdk_port/link/link.h"

namespace stp::port {

inline constexpr unsigned kDpdkCpus = 1024;  // DPDK knows no others

// DPDK's --lcores: one lcore, which may run on any CPU of the program. Threads that poll a link are
// not lcores.
struct Lcores {
  std::string list;      // "0@(0-3,6)"
  bool foreign = false;  // a CPU that the program may not use: DPDK knows none of the others
};

// `knows`: whether DPDK finds that CPU.
Lcores make_lcores(const std::vector<unsigned>& usable, const std::function<bool(unsigned)>& knows);

// Why DPDK knows none of these CPUs, and what to do about it.
std::string why_foreign(const std::vector<unsigned>& usable);

// As DPDK looks for it.
bool dpdk_knows_cpu(unsigned cpu);

// Whether DPDK may be told to use hugepages. It does not start without those that it has been
// promised, and cannot be started a second time.
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

// The directory of DPDK's telemetry socket. It stays behind when its process is killed or has
// dropped the right to remove it.

// DPDK's --file-prefix for a process: the name of its directory.
std::string file_prefix_of(pid_t pid);

// Makes that directory in `parent`, and `parent` itself. False: they cannot be made, or what is
// there may be another user's, who could keep DPDK from starting, or answer in its place.
bool make_runtime_directory(const std::filesystem::path& parent, pid_t pid);

// Removes from `parent` the directories of our ended processes. One that was changed within the
// last minute stays: a process of another pid namespace may be starting.
void remove_left_behind(const std::filesystem::path& parent);

// A link in DPDK's terms: the device to make, the size of its frames, its address.
struct DeviceSpec {
  std::string bus;             // "vdev" or "pci"
  std::string name;            // of the device, and of its ethdev
  std::string arguments;       // of the driver
  std::string interface;       // iface: the kernel's name
  bool packet_socket = false;  // uses a PacketSocket: no ethdev is made
  bool qdisc = false;          // likewise: what it sends passes the interface's queueing discipline

  struct Memif {
    std::string socket;         // its file
    bool makes_socket = false;  // false: the other side makes it
    std::uint32_t id = 0;
    unsigned log2_ring = 0;
    std::uint32_t buffer = 0;  // bytes
  };
  std::optional<Memif> memif;  // no ethdev is made

  unsigned shards = 1;  // that use the device
  unsigned mtu = 0;
  std::size_t data_room = 0;  // of an mbuf: room for a whole frame, and the driver's minimum
  bool sets_mtu = false;      // tell the driver the MTU
  std::optional<std::uint16_t> vlan;  // the tag of frames
  std::optional<MacAddr> mac;         // the MAC address to use; nullopt: the device's own
  bool sets_mac = false;              // set it on the device; else receive frames for it as well
  std::optional<Ipv4> address;
  bool answers_arp = false;
};

// False: `error` names the fault and the remedy. `serial` makes device names unique. Of one shard.
bool make_device_spec(const LinkConfig& link, unsigned serial, DeviceSpec& out, std::string& error);

// Descriptors each way, if the device has room for them.
constexpr std::uint16_t kDescriptors = 512;
// Mbufs beyond those in descriptors: for bursts in progress and for the rings of software devices.
constexpr unsigned kSpareMbufs = 1536;

struct DeviceFacts {
  std::string driver;
  std::size_t least_room = 0;  // the smallest receive buffer it accepts, in bytes
  bool filters_vlans = false;  // it can filter by VLAN
  unsigned most_receive_queues = 1, most_send_queues = 1;
};

// What decides which queue of a device an arriving frame is in, where it has several.
enum class Steering {
  kNothing,  // nothing that we know of
  kPeer,     // the peer's choice of its queue
  kRules,    // rules on the D_Port, if the device takes them
};

// The configuration of a DPDK device, derived from what its driver reports.
struct DevicePlan {
  std::size_t room = 0;    // bytes of a frame that fit one mbuf
  bool tell_vlan = false;  // turn on its filter and admit the link's VLAN
  unsigned receive_queues = 1, send_queues = 1;
  Steering steering = Steering::kNothing;
};

DevicePlan plan_device(const DeviceSpec& spec, const DeviceFacts& facts);

// DPDK's memory, in MiB, for a process whose first link is that NIC, without hugepages: VFIO pins
// all of it. Enough for four such links.
unsigned pinned_megabytes(const DeviceSpec& spec);

}  // namespace stp::port
