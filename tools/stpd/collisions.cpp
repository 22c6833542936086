// SPDX-License-Identifier: BSD-3-Clause
// What cannot be twice: names of links, devices, addresses, and the files that stpd writes or
// makes.
#include <sys/stat.h>

#include <filesystem>
#include <optional>
#include <string>
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
  if (!port::parse_link(one.link, a, ignored) || !port::parse_link(other.link, b, ignored) ||
      a.kind != b.kind)
    return {};
  constexpr const char* kOneDevice =
      "are on one device with one address: leave one out, or give it an address of its own (mac=) "
      "on an interface";
  switch (a.kind) {
    case port::LinkKind::kPci:
      return a.target == b.target ? kOneDevice : "";
    case port::LinkKind::kIface:
      return are_of_one_interface(a.target, b.target) && a.mac == b.mac ? kOneDevice : "";
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

// A file that stpd writes or makes, or its configuration.
struct OwnFile {
  enum class Kind { kConfiguration, kSocket, kOperatorsSocket, kMemif, kTrace };

  Kind kind;
  std::string path;
  const LinkOptions* link;  // nullptr: of no link

  [[nodiscard]] bool is_socket() const {
    return kind != Kind::kConfiguration && kind != Kind::kTrace;
  }
};

std::vector<OwnFile> files_of(const Options& options) {
  using Kind = OwnFile::Kind;
  std::vector<OwnFile> files;
  if (!options.file.empty()) files.push_back({Kind::kConfiguration, options.file, nullptr});
  for (const auto& link : options.links) {
    files.push_back({Kind::kSocket, link.socket, &link});
    files.push_back({Kind::kOperatorsSocket, ipc::operators_socket_of(link.socket), &link});
    port::LinkConfig config;
    std::string ignored;
    if (port::parse_link(link.link, config, ignored) && config.kind == port::LinkKind::kMemif &&
        config.role == port::MemifRole::kServer)
      files.push_back({Kind::kMemif, config.target, &link});
    if (!link.pcap.empty()) files.push_back({Kind::kTrace, link.pcap, &link});
  }
  return files;
}

std::string name_of(const OwnFile& file) {
  const auto of = file.link == nullptr ? "" : " of link '" + file.link->name + "'";
  switch (file.kind) {
    case OwnFile::Kind::kConfiguration:
      return "the configuration file";
    case OwnFile::Kind::kSocket:
      return "the socket" + of;
    case OwnFile::Kind::kOperatorsSocket:
      return "the administrators' socket" + of;
    case OwnFile::Kind::kMemif:
      return "the memif socket" + of;
    case OwnFile::Kind::kTrace:
      return "the pcap file" + of;
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

bool is_one_file(const OwnFile& one, const OwnFile& other) {
  struct stat here {
  }, there{};
  if (::stat(one.path.c_str(), &here) == 0 && ::stat(other.path.c_str(), &there) == 0 &&
      here.st_dev == there.st_dev && here.st_ino == there.st_ino)
    return true;
  return place_of(one) == place_of(other);
}

// One of the two is at fault already, or both links may share the file.
bool need_no_comparison(const OwnFile& one, const OwnFile& other) {
  using Kind = OwnFile::Kind;
  if (one.link != nullptr && one.link != other.link && one.link->name == other.link->name)
    return true;
  if (one.kind != other.kind) return false;
  return one.kind == Kind::kOperatorsSocket ||
         (one.kind == Kind::kMemif && one.path == other.path);  // by their id=
}

void compare_files(const Options& options, const OwnFile& one, const OwnFile& other,
                   std::vector<std::string>& errors) {
  if (need_no_comparison(one, other) || !is_one_file(one, other)) return;
  using Kind = OwnFile::Kind;
  const auto place = other.kind == Kind::kTrace ? options.place_of(*other.link, {"pcap"})
                     : other.kind == Kind::kMemif
                         ? options.place_of(*other.link, {"link"})
                         : options.place_of(*other.link, {"socket", "link"});
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

}  // namespace stp::stpd
