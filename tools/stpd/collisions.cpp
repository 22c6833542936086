// SPDX-License-Identifier: BSD-3-Clause
// What cannot be twice: names of links, devices, addresses, and the files that stpd writes or
// makes.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dpdk_port/link/address.h"
#include "dpdk_port/link/interfaces.h"
#include "dpdk_port/link/link.h"
#include "libst/ipc/socket.h"
#include "stp/wire/layout.h"
#include "tools/stpd/options.h"

namespace stp::stpd {
namespace {

// An interface may be named by an alternative name.
bool are_of_one_interface(const std::string& one, const std::string& other) {
  const auto index = port::index_of_interface(one);
  return one == other || (index != 0 && index == port::index_of_interface(other));
}

// ---- vdev: links

// A device string of DPDK: the driver's name with a number, and its options.
struct Vdev {
  explicit Vdev(const std::string& target) {
    std::istringstream parts(target);
    std::getline(parts, name, ',');
    for (std::string part; std::getline(parts, part, ',');) {
      const auto equals = std::min(part.find('='), part.size());
      options.emplace_back(part.substr(0, equals), part.substr(std::min(equals + 1, part.size())));
    }
  }
  [[nodiscard]] bool is(std::string_view driver) const {
    return name.starts_with(driver) &&
           name.find_first_not_of("0123456789_", driver.size()) == std::string::npos;
  }
  // "": it is not given.
  [[nodiscard]] std::string option(std::string_view of) const {
    for (const auto& [option, value] : options)
      if (option == of) return value;
    return {};
  }

  std::string name;
  std::vector<std::pair<std::string, std::string>> options;
};

// The interface whose frames and address a link takes, "" of others.
std::string interface_of(const port::LinkConfig& link) {
  if (link.kind == port::LinkKind::kIface) return link.target;
  if (link.kind != port::LinkKind::kVdev) return {};
  const Vdev device(link.target);
  const bool has_its_address = device.is("net_af_packet") || device.is("net_af_xdp") ||
                               (device.is("net_pcap") && device.option("phy_mac") == "1");
  return has_its_address ? device.option("iface") : "";
}

bool serves_memif(const Vdev& device) {
  const auto role = device.option("role");
  return device.is("net_memif") && (role == "server" || role == "master");
}

// Why two devices of DPDK cannot be there at once. "": they can.
std::string why_not_both(const Vdev& one, const Vdev& other) {
  if (one.name == other.name) return "are one device: give one of them another number";
  const auto same = [&](std::string_view option) {
    return !one.option(option).empty() && one.option(option) == other.option(option);
  };
  if (one.is("net_tap") && other.is("net_tap") && same("iface"))
    return "make one interface: give one of them another name (iface=)";
  const auto id = [](const Vdev& device) {
    return device.option("id").empty() ? "0" : device.option("id");
  };
  if (serves_memif(one) && serves_memif(other) && one.option("socket") == other.option("socket") &&
      id(one) == id(other))
    return "serve one memif: give one of them another socket, or another id=";
  return {};
}

// ---- addresses

// What the socket of a udp: or ip: link is bound to.
struct Bound {
  std::string interface;                         // "": any
  std::optional<port::InternetAddress> address;  // nullopt: all of its families
  bool ipv4 = true, ipv6 = true;
};

Bound bound_by(const port::LinkConfig& link) {
  const bool raw = link.kind == port::LinkKind::kIp;
  const bool brackets = link.target.starts_with('[');
  const auto address = port::parse_internet_address(
      brackets ? link.target.substr(1, link.target.size() - 2) : link.target);
  const bool of_ipv6 = address ? !address->ipv4() : brackets;
  Bound out;
  if (!address && !brackets) out.interface = link.target;
  if (address && !address->is_unspecified()) out.address = address;
  out.ipv4 = raw || out.address ? !of_ipv6 : true;
  out.ipv6 = of_ipv6 || (!raw && !address);
  return out;
}

// As the kernel sees it.
bool overlap(const Bound& one, const Bound& other) {
  if (!one.interface.empty() && !other.interface.empty() &&
      !are_of_one_interface(one.interface, other.interface))
    return false;
  if (one.address && other.address) return one.address == other.address;
  return (one.ipv4 && other.ipv4) || (one.ipv6 && other.ipv6);
}

// Why two links cannot be open at once. "": they can.
std::string why_not_both(const LinkOptions& one, const LinkOptions& other) {
  port::LinkConfig a, b;
  std::string ignored;
  if (!port::parse_link(one.link, a, ignored) || !port::parse_link(other.link, b, ignored))
    return {};
  constexpr const char* kOneDevice =
      "are on one device with one address: leave one out, or give it an address of its own (mac=) "
      "on an interface";
  const auto of_one = interface_of(a), of_other = interface_of(b);
  if (!of_one.empty() && !of_other.empty() && a.mac == b.mac &&
      are_of_one_interface(of_one, of_other))
    return kOneDevice;
  if (a.kind != b.kind) return {};
  switch (a.kind) {
    case port::LinkKind::kPci:
      return a.target == b.target ? kOneDevice : "";
    case port::LinkKind::kVdev:
      return why_not_both(Vdev(a.target), Vdev(b.target));
    case port::LinkKind::kUdp:
      if (a.port == 0U || a.port.value_or(wire::kUdpPort) != b.port.value_or(wire::kUdpPort))
        return {};
      return overlap(bound_by(a), bound_by(b))
                 ? "have one UDP port: give one of them another (port=)"
                 : "";
    case port::LinkKind::kIp:
      return overlap(bound_by(a), bound_by(b))
                 ? "have one address: leave one out, or name another address of this host"
                 : "";
    case port::LinkKind::kMemif:
      if (a.role != port::MemifRole::kServer || b.role != port::MemifRole::kServer) return {};
      if (a.target != b.target || a.id.value_or(0) != b.id.value_or(0)) return {};
      return "serve one memif: give one of them another socket, or another id=";
    default:
      return {};
  }
}

// Adds what two links cannot share but files.
void compare_links(const Options& options, const LinkOptions& one, const LinkOptions& other,
                   std::vector<std::string>& errors) {
  const auto place = options.place_of(other, {"link"});
  if (one.name == other.name)
    errors.push_back(place + "two links are named '" + one.name + "': give each a name of its own");
  if (const auto why = why_not_both(one, other); !why.empty())
    errors.push_back(place + "links '" + one.name + "' and '" + other.name + "' " + why);
}

// ---- files

// A file that stpd writes or makes, its configuration, and what a driver reads.
struct OwnFile {
  enum class Kind {
    kLog,  // what standard error is
    kConfiguration,
    kSocket,
    kOperatorsSocket,
    kMemif,
    kDriversMemif,
    kDriversSocket,
    kTrace,
    kDriversOutput,
    kDriversInput
  };

  Kind kind;
  std::string path;
  const LinkOptions* link;  // nullptr: of no link

  [[nodiscard]] bool is_socket() const {
    return kind == Kind::kSocket || kind == Kind::kOperatorsSocket || kind == Kind::kMemif ||
           kind == Kind::kDriversMemif || kind == Kind::kDriversSocket;
  }
  [[nodiscard]] bool is_written() const {
    return kind == Kind::kTrace || kind == Kind::kDriversOutput || kind == Kind::kLog;
  }
};

// Of a vdev: link. Sockets only where the driver makes them: who connects shares that of another.
void add_files_of(const Vdev& device, const LinkOptions& link, std::vector<OwnFile>& files) {
  using Kind = OwnFile::Kind;
  const auto add = [&](Kind kind, const std::string& path) {
    if (!path.empty()) files.push_back({kind, path, &link});
  };
  for (const auto& [option, value] : device.options) {
    if (!device.is("net_pcap")) break;
    if (option == "tx_pcap") add(Kind::kDriversOutput, value);
    if (option == "rx_pcap") add(Kind::kDriversInput, value);
  }
  if (serves_memif(device) && device.option("socket-abstract") == "no")
    add(Kind::kDriversMemif, device.option("socket"));
  if (device.is("net_vhost") && device.option("client") != "1")
    add(Kind::kDriversSocket, device.option("iface"));
  if (device.is("net_virtio_user") && device.option("server") == "1")
    add(Kind::kDriversSocket, device.option("path"));
}

std::vector<OwnFile> files_of(const Options& options) {
  using Kind = OwnFile::Kind;
  std::vector<OwnFile> files{{Kind::kLog, "/dev/stderr", nullptr}};
  if (!options.file.empty()) files.push_back({Kind::kConfiguration, options.file, nullptr});
  for (const auto& link : options.links) {
    files.push_back({Kind::kSocket, link.socket, &link});
    files.push_back({Kind::kOperatorsSocket, ipc::operators_socket_of(link.socket), &link});
    port::LinkConfig config;
    std::string ignored;
    if (port::parse_link(link.link, config, ignored)) {
      if (config.kind == port::LinkKind::kMemif && config.role == port::MemifRole::kServer)
        files.push_back({Kind::kMemif, config.target, &link});
      if (config.kind == port::LinkKind::kVdev) add_files_of(Vdev(config.target), link, files);
    }
    if (!link.pcap.empty()) files.push_back({Kind::kTrace, link.pcap, &link});
  }
  return files;
}

std::string name_of(const OwnFile& file) {
  const auto of = file.link == nullptr ? "" : " of link '" + file.link->name + "'";
  switch (file.kind) {
    case OwnFile::Kind::kLog:
      return "what stpd logs to";
    case OwnFile::Kind::kConfiguration:
      return "the configuration file";
    case OwnFile::Kind::kSocket:
      return "the socket" + of;
    case OwnFile::Kind::kOperatorsSocket:
      return "the administrators' socket" + of;
    case OwnFile::Kind::kMemif:
      return "the memif socket" + of;
    case OwnFile::Kind::kDriversMemif:
    case OwnFile::Kind::kDriversSocket:
      return "the driver's socket" + of;
    case OwnFile::Kind::kTrace:
      return "the pcap file" + of;
    case OwnFile::Kind::kDriversOutput:
      return "the tx_pcap file" + of;
    case OwnFile::Kind::kDriversInput:
      return "the rx_pcap file" + of;
  }
  return {};
}

// Whole, and without symbolic links; the file need not be there. bind(2) follows none in the place
// of the socket itself, open(2) also one that leads to a file which is not there.
std::filesystem::path place_of(const OwnFile& file) {
  std::error_code error;
  auto place = std::filesystem::absolute(file.path, error);
  if (file.is_socket())
    return std::filesystem::weakly_canonical(place.parent_path(), error) / place.filename();
  constexpr int kMostLinks = 40;  // as the kernel follows
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(place, error); ++i)
    place = place.parent_path() / std::filesystem::read_symlink(place, error);
  return std::filesystem::weakly_canonical(place, error);
}

bool find(const OwnFile& file, struct stat& found) {
  return (file.kind == OwnFile::Kind::kLog ? ::fstat(STDERR_FILENO, &found)
                                           : ::stat(file.path.c_str(), &found)) == 0;
}

// /dev/null, say, takes what all have for it.
bool is_one_file(const OwnFile& one, const OwnFile& other) {
  struct stat here {
  }, there{};
  if (find(one, here) && find(other, there) && here.st_dev == there.st_dev &&
      here.st_ino == there.st_ino)
    return !(one.is_written() && other.is_written() && S_ISCHR(here.st_mode));
  return one.kind != OwnFile::Kind::kLog && place_of(one) == place_of(other);
}

// One of the two is at fault already, or both links may share the file, or none of them has it.
bool need_no_comparison(const OwnFile& one, const OwnFile& other) {
  using Kind = OwnFile::Kind;
  if (other.link == nullptr) return true;
  if (one.link != nullptr && one.link != other.link && one.link->name == other.link->name)
    return true;
  if (one.kind != other.kind) return false;
  const bool has_id = one.kind == Kind::kMemif || one.kind == Kind::kDriversMemif;
  return one.kind == Kind::kOperatorsSocket || one.kind == Kind::kDriversInput ||
         (has_id && one.path == other.path);  // by their id=
}

void compare_files(const Options& options, const OwnFile& one, const OwnFile& other,
                   std::vector<std::string>& errors) {
  if (need_no_comparison(one, other) || !is_one_file(one, other)) return;
  using Kind = OwnFile::Kind;
  const auto place = other.kind == Kind::kTrace ? options.place_of(*other.link, {"pcap"})
                     : other.kind == Kind::kSocket || other.kind == Kind::kOperatorsSocket
                         ? options.place_of(*other.link, {"socket", "link"})
                         : options.place_of(*other.link, {"link"});
  const auto as_written = one.path == other.path ? "" : ", " + other.path + ',';
  errors.push_back(place + name_of(other) + as_written + " is " + name_of(one) + ", " + one.path +
                   ": give each a file of its own");
}

}  // namespace

void find_collisions(const Options& options, std::vector<std::string>& errors) {
  for (auto one = options.links.begin(); one != options.links.end(); ++one)
    for (auto other = options.links.begin(); other != one; ++other)
      compare_links(options, *other, *one, errors);
  const auto files = files_of(options);
  for (auto one = files.begin(); one != files.end(); ++one)
    for (auto other = files.begin(); other != one; ++other)
      compare_files(options, *other, *one, errors);
}

namespace {

// nullopt: there is none, or it may not be seen (errno).
std::optional<OwnFiles::Identity> identity_of(int at, const char* path, int flags) {
  struct statx found {};
  if (::statx(at, path, flags | AT_STATX_DONT_SYNC, STATX_INO | STATX_BTIME, &found) != 0)
    return std::nullopt;
  if ((found.stx_mask & STATX_BTIME) == 0) found.stx_btime = {};
  return OwnFiles::Identity{found.stx_dev_major, found.stx_dev_minor, found.stx_ino,
                            found.stx_btime.tv_sec, found.stx_btime.tv_nsec};
}

std::optional<OwnFiles::Identity> identity_of(int file) {
  return identity_of(file, "", AT_EMPTY_PATH);
}

// The place of an open file, also where this process may not look. "": unknown.
std::string place_of(int file) {
  std::array<char, PATH_MAX> text{};
  const auto link = "/proc/self/fd/" + std::to_string(file);
  const auto size = ::readlink(link.c_str(), text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

}  // namespace

void OwnFiles::look(const Options& options) {
  files_.clear();
  for (const auto& own : files_of(options))
    if (own.kind != OwnFile::Kind::kLog)
      files_.push_back({own.path, place_of(own), identity_of(AT_FDCWD, own.path.c_str(), 0)});
}

bool OwnFiles::has(int file) const {
  const auto given = identity_of(file);
  if (!given) return false;
  if (identity_of(STDERR_FILENO) == given) return true;
  return std::ranges::any_of(files_, [&](const File& own) {
    if (own.seen == given) return true;
    const auto now = identity_of(AT_FDCWD, own.path.c_str(), 0);
    return now ? now == given : errno == EACCES && own.place == place_of(file);
  });
}

}  // namespace stp::stpd
