// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/device_plan.h"

#include <linux/memfd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/owners.h"
#include "stp/node/shards.h"

namespace stp::port {

Lcores make_lcores(const std::vector<unsigned>& usable,
                   const std::function<bool(unsigned)>& knows) {
  std::string list;
  for (std::size_t i = 0; i < usable.size() && usable[i] < kDpdkCpus; ++i) {
    if (!knows(usable[i])) continue;
    const unsigned first = usable[i];
    unsigned last = first;
    while (i + 1 < usable.size() && usable[i + 1] == last + 1 && last + 1 < kDpdkCpus &&
           knows(last + 1)) {
      ++last;
      ++i;
    }
    if (!list.empty()) list += ',';
    list += std::to_string(first);
    if (last != first) list += '-' + std::to_string(last);
  }
  if (!list.empty()) return {"0@(" + list + ")", false};
  unsigned other = 0;  // there may be no CPU 0
  while (other < kDpdkCpus && !knows(other)) ++other;
  return {"0@" + std::to_string(other % kDpdkCpus), true};
}

std::string why_foreign(const std::vector<unsigned>& usable) {
  std::string text = "it knows none of the CPUs that this process may use";
  if (usable.empty()) return text;
  text += " (the first is " + std::to_string(usable.front()) + "): ";
  if (usable.front() >= kDpdkCpus) return text + "permit one below " + std::to_string(kDpdkCpus);
  return text + "they are not in /sys/devices/system/cpu: permit one that is there";
}

bool dpdk_knows_cpu(unsigned cpu) {
  const auto file = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_id";
  return ::access(file.c_str(), F_OK) == 0;
}

namespace {

// They are allocated on demand; fewer free bytes than this are not worth using.
constexpr std::uint64_t kWorthwhile = std::uint64_t{128} << 20;

std::uint64_t number_at(const std::filesystem::path& path) {
  std::uint64_t value = 0;
  std::ifstream(path) >> value;
  return value;
}

}  // namespace

HugepageChoice choose_hugepages(const std::string& root,
                                const std::function<int(std::uint64_t bytes)>& trial) {
  std::uint64_t free = 0;
  std::string trouble;
  std::error_code failure;
  for (const auto& size : std::filesystem::directory_iterator(root, failure)) {
    const std::string name = size.path().filename();  // hugepages-2048kB
    const std::uint64_t page = std::strtoull(name.c_str() + name.find('-') + 1, nullptr, 10) << 10;
    const std::uint64_t count = number_at(size.path() / "free_hugepages");
    const std::uint64_t reserved = number_at(size.path() / "resv_hugepages");
    if (page == 0 || count <= reserved) continue;
    free += page * (count - reserved);
    if (const int error = trial(page); error != 0) {
      trouble =
          "hugepages of " + std::to_string(page >> 10) +
          " KiB are free, but this process gets none (" + std::strerror(error) +
          "): usual pages are used; see the limits of its cgroup (hugetlb.max), LimitMEMLOCK= "
          "and LimitFSIZE=";
    }
  }
  if (free < kWorthwhile) return {};
  return {trouble.empty(), trouble};
}

int try_hugepage(std::uint64_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes) return EFBIG;
  const auto size_flag = static_cast<unsigned>(std::countr_zero(bytes)) << MFD_HUGE_SHIFT;
  const int fd = ::memfd_create("stp-hugepage", MFD_CLOEXEC | MFD_HUGETLB | size_flag);
  if (fd < 0) return errno;
  int error = 0;
  void* page = MAP_FAILED;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    error = errno;
  } else {
    page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (page == MAP_FAILED) error = errno;
  }
  ::close(fd);
  if (page == MAP_FAILED) return error;
  // Where a cgroup has no more, the mapping is there without its page: touching it would end us.
  unsigned char present = 0;
  if (::mincore(page, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), &present) != 0) {
    error = errno;
  } else if ((present & 1) == 0) {
    error = ENOMEM;
  }
  ::munmap(page, bytes);
  return error;
}

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

bool make_runtime_directory(const fs::path& parent, pid_t pid) {
  struct stat status {};
  const auto makes = [&status](const fs::path& path) {
    return (::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) &&
           ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  };
  const auto others_write = [&status] { return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0; };
  const auto is_ours = [&status] { return status.st_uid == ::geteuid(); };
  if (!makes(parent) || (!is_ours() && status.st_uid != 0) ||
      (others_write() && (status.st_mode & S_ISVTX) == 0))
    return false;
  return makes(parent / file_prefix_of(pid)) && is_ours() && !others_write();
}

void remove_left_behind(const fs::path& parent) {
  std::error_code ignored;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(parent, ignored))
    if (is_left_behind(entry.path())) left.push_back(entry.path());
  for (const auto& directory : left) fs::remove_all(directory, ignored);
}

namespace {

constexpr unsigned kEthernetMtu = 1500, kMemifMtu = 9000;
constexpr unsigned kMaxDpdkMtu = 65'280;  // an mbuf's length has 16 bits
constexpr unsigned kMaxAfPacketMtu = 32'000, kMaxAfXdpMtu = 3506;

bool make_iface(const LinkConfig& link, unsigned serial, DeviceSpec& out, std::string& error) {
  InterfaceFacts facts;
  if (!look_up_interface(link.target, facts, error)) return false;
  if (link.mtu && *link.mtu > facts.mtu) {
    error = "its MTU is " + std::to_string(facts.mtu) +
            ", less than mtu=" + std::to_string(*link.mtu) + ": ip link set " + link.target +
            " mtu " + std::to_string(*link.mtu);
    return false;
  }
  out.interface = link.target;
  out.mac = link.mac.value_or(facts.mac);
  out.address = link.address ? link.address : facts.address;
  out.mtu = link.mtu.value_or(facts.mtu);
  if (link.driver.value_or(IfaceDriver::kAfPacket) == IfaceDriver::kAfPacket) {
    out.mtu = std::min(out.mtu, kMaxAfPacketMtu);
    out.name = link.target;
    out.packet_socket = true;
    out.qdisc = link.qdisc.value_or(false);
    return true;
  }
  if (link.qdisc) {
    error = "qdisc= is for driver=af_packet: af_xdp always passes the kernel by";
    return false;
  }
  if (facts.mtu > kMaxAfXdpMtu) {
    error = "af_xdp carries frames up to MTU 3506, the interface has " + std::to_string(facts.mtu) +
            ": lower it, or use driver=af_packet";
    return false;
  }
  out.name = "net_af_xdp" + std::to_string(serial);
  out.arguments = "iface=" + link.target;
  return true;
}

// Always the same for one end of a link, and different for the other end.
MacAddr memif_mac(const LinkConfig& link, bool server) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : link.target + '#' + std::to_string(link.id.value_or(0))) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  }
  MacAddr mac = MacAddr::from_u64(hash);
  mac.octets[0] = 0x02;  // locally administered
  mac.octets[5] = static_cast<std::uint8_t>((mac.octets[5] & 0xfe) | (server ? 1 : 0));
  return mac;
}

// log2 of a ring's length. Rings of long frames are short, so that their memory stays in the
// processors' caches; a full ring loses nothing.
unsigned memif_ring(std::size_t buffer) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  constexpr unsigned kShortest = 6, kLongest = 10;
  return std::clamp(static_cast<unsigned>(std::bit_width(kBytes / buffer)) - 1, kShortest,
                    kLongest);
}

bool make_memif(const LinkConfig& link, unsigned serial, DeviceSpec& out, std::string& error) {
  constexpr std::size_t kCacheLine = 64, kMaxBuffer = 65'535;
  const bool server = link.role == MemifRole::kServer;
  const std::size_t buffer = (frame_room(out.mtu) + kCacheLine - 1) & ~(kCacheLine - 1);
  const auto bsize = link.bsize.value_or(static_cast<unsigned>(std::min(buffer, kMaxBuffer)));
  const auto ring = link.rsize.value_or(memif_ring(bsize));
  out.name = "memif" + std::to_string(serial);
  out.mac = link.mac.value_or(memif_mac(link, server));
  out.memif = {.socket = link.target,
               .makes_socket = server,
               .id = link.id.value_or(0),
               .log2_ring = ring,
               .buffer = bsize};
  // One ring's buffers; the memory of a connection, both of them, has at most 1 GiB
  // (memif/ring.h).
  constexpr std::size_t kMostBytes = std::size_t{500} << 20;
  const std::size_t bytes = std::size_t{out.memif->buffer} << out.memif->log2_ring;
  if (bytes >= frame_room(out.mtu) && bytes <= kMostBytes) return true;
  error = "2^" + std::to_string(ring) + " buffers of " + std::to_string(bsize) + " bytes are " +
          std::to_string(bytes) + " bytes: a frame has up to " +
          std::to_string(frame_room(out.mtu)) + ", and a ring at most " +
          std::to_string(kMostBytes) + ": change rsize= or bsize=";
  return false;
}

bool check_mtu(const LinkConfig& link, const DeviceSpec& spec, std::string& error) {
  if (spec.mtu > kMaxDpdkMtu) {
    error = "mtu=" + std::to_string(spec.mtu) + " is more than a DPDK device carries: at most " +
            std::to_string(kMaxDpdkMtu);
  } else if (spec.mtu < kMinMtu) {
    error = "its MTU of " + std::to_string(spec.mtu) + " is too small for STP: at least " +
            std::to_string(kMinMtu) + " (ip link set " + link.target + " mtu 1500)";
  }
  return error.empty();
}

}  // namespace

bool make_device_spec(const LinkConfig& link, unsigned serial, DeviceSpec& out,
                      std::string& error) {
  error.clear();
  out = {};
  out.bus = link.kind == LinkKind::kPci ? "pci" : "vdev";
  out.mac = link.mac;
  out.vlan = link.vlan;
  out.address = link.address;
  out.answers_arp = link.address.has_value();
  out.mtu = link.mtu.value_or(link.kind == LinkKind::kMemif ? kMemifMtu : kEthernetMtu);
  switch (link.kind) {
    case LinkKind::kIface:
      if (!make_iface(link, serial, out, error)) return false;
      break;
    case LinkKind::kMemif:
      if (!make_memif(link, serial, out, error)) return false;
      break;
    case LinkKind::kPci:
      out.name = link.target;
      out.sets_mac = out.sets_mtu = true;
      break;
    case LinkKind::kVdev: {
      const std::size_t comma = link.target.find(',');
      out.name = link.target.substr(0, comma);
      if (comma != std::string::npos) out.arguments = link.target.substr(comma + 1);
      out.sets_mac = true;
      out.sets_mtu = link.mtu.has_value();
      break;
    }
    case LinkKind::kStpd:
    case LinkKind::kUdp:
    case LinkKind::kIp:
    case LinkKind::kLoop:
      error = "this link needs no device";
      return false;
  }
  out.data_room = std::max(out.data_room, frame_room(out.mtu));
  return check_mtu(link, out, error);
}

namespace {

constexpr std::size_t kKiB = 1024;
// Drivers add their own header (virtio: 12 bytes), a checksum or a second VLAN tag to a frame.
constexpr std::size_t kDriversOwn = 32;
constexpr std::size_t kLeastRoom = 2048;
// A buffer's length has 16 bits and includes DPDK's headroom of 128 bytes.
constexpr std::size_t kMostRoom = 65'535 - 128;
// Memory of an mbuf beside its room.
constexpr std::size_t kMbufHeads = 448;

std::size_t room_of(const DeviceSpec& spec, const DeviceFacts& facts) {
  const std::size_t frame = spec.data_room;
  // A memif's buffers belong to the program at the other end.
  if (spec.memif || facts.driver == "net_memif") return frame;
  // An mbuf is a chunk of the kernel's ring: at least 2048 bytes, at most a page.
  if (facts.driver == "net_af_xdp") return std::max(frame, kLeastRoom);
  const std::size_t least = std::max({frame + kDriversOwn, facts.least_room, kLeastRoom});
  // Its device accepts only powers of two and rounds down.
  const std::size_t suits =
      facts.driver == "net_e1000_em" ? std::bit_ceil(least) : (least + kKiB - 1) / kKiB * kKiB;
  return std::min(suits, std::max(kMostRoom, frame));
}

// Both ends of these are software, and a queue of one end leads to the same queue of the other.
bool is_peers_choice(const std::string& driver) {
  return driver == "net_vhost" || driver == "net_virtio_user" || driver == "net_memif";
}

// A peer may have several shards, and each of ours then needs a queue to each of them: all queues
// that such a device was made with are used (crossing.h), by one shard as well. A NIC has one
// for each shard.
unsigned queues_of(const DeviceSpec& spec, const DeviceFacts& facts, unsigned most) {
  const bool all = facts.driver == "net_vhost" || facts.driver == "net_virtio_user";
  return std::clamp(most, 1U, all ? spec.shards * Shards::kMost : spec.shards);
}

}  // namespace

DevicePlan plan_device(const DeviceSpec& spec, const DeviceFacts& facts) {
  // Some devices (virtio) admit no VLAN until told; others admit all, and a filter saves them work.
  DevicePlan plan{.room = room_of(spec, facts),
                  .tell_vlan = spec.vlan && facts.filters_vlans,
                  .receive_queues = queues_of(spec, facts, facts.most_receive_queues),
                  .send_queues = queues_of(spec, facts, facts.most_send_queues)};
  if (plan.receive_queues == 1) return plan;
  plan.steering = is_peers_choice(facts.driver) ? Steering::kPeer : Steering::kRules;
  return plan;
}

unsigned pinned_megabytes(const DeviceSpec& spec) {
  constexpr std::size_t kForDpdk = 32, kLinks = 4;
  const std::size_t mbuf = kMbufHeads + room_of(spec, {});
  const std::size_t link = spec.shards * mbuf * (2 * kDescriptors + kSpareMbufs);
  return static_cast<unsigned>(kForDpdk + kLinks * (link / (kKiB * kKiB) + 1));
}

}  // namespace stp::port
