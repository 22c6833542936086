// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/address_space.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <span>

#include "libst/client/error.h"
#include "libst/os/unique_fd.h"

namespace stp::client {
namespace {

// One line of /proc/self/maps.
bool parse(const std::string& line, MappedArea& area) {
  char rights[5] = {};
  int name_at = 0;
  if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %" SCNx64 " %*s %" SCNu64 " %n",
                  &area.begin, &area.end, rights, &area.offset, &area.inode, &name_at) != 5)
    return false;
  area.readable = rights[0] == 'r';
  area.writable = rights[1] == 'w';
  area.executable = rights[2] == 'x';
  area.shared = rights[3] == 's';
  area.name = line.substr(static_cast<std::size_t>(name_at));
  return true;
}

void cut(MappedArea& area, std::uintptr_t begin, std::uintptr_t end) {
  if (area.begin < begin) {
    area.offset += begin - area.begin;
    area.begin = begin;
  }
  area.end = std::min(area.end, end);
}

using os::UniqueFd;

UniqueFd open_maps() {
  return UniqueFd(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
}

struct KeptMaps {
  UniqueFd fd;
  pid_t process = 0;  // it shows the areas of this process, also to a child that reads it
};

KeptMaps& kept_maps() {
  static auto* const kept = new KeptMaps;  // never destroyed, as HandleTable
  return *kept;
}

// Calls `use` for each line. Returns false if the file cannot be read to its end. The buffer is on
// the stack: another thread may fork, and then pages of the heap may be write-protected
// (WriteFreeze), so that pread() into them would fail.
bool read_lines(int fd, const std::function<void(const std::string&)>& use) {
  std::array<char, 16'384> block;
  constexpr std::size_t kLongestLine = 8'192;  // of a list of areas: a path and some numbers
  std::string line;
  for (off_t offset = 0;;) {
    const auto got = ::pread(fd, block.data(), block.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    offset += got;
    for (const auto c : std::span(block.data(), static_cast<std::size_t>(got))) {
      if (c != '\n') {
        if (line.size() == kLongestLine) return false;
        line += c;
        continue;
      }
      use(line);
      line.clear();
    }
  }
}

// Accepts what it reads only if this function is in one of the areas: the program may have closed
// the kept descriptor and opened another file under its number.
bool read_areas(int fd, const std::function<bool(const MappedArea&)>& wanted,
                std::vector<MappedArea>& out) {
  const auto here = reinterpret_cast<std::uintptr_t>(&read_areas);
  bool is_ours = false;
  out.clear();
  const auto whole = read_lines(fd, [&](const std::string& line) {
    MappedArea area;
    if (!parse(line, area)) return;
    is_ours |= area.begin <= here && here < area.end;
    if (wanted(area)) out.push_back(std::move(area));
  });
  return whole && is_ours;
}

}  // namespace

bool areas_where(const std::function<bool(const MappedArea&)>& wanted,
                 std::vector<MappedArea>& out) {
  if (const auto fd = open_maps(); fd && read_areas(fd.get(), wanted, out)) return true;
  const auto& kept = kept_maps();
  return kept.process == ::getpid() && read_areas(kept.fd.get(), wanted, out);
}

void keep_maps_open() {
  kept_maps() = {open_maps(), ::getpid()};
}

namespace {

// PROCMAP_QUERY of <linux/fs.h>, which older headers lack.
struct AreaQuery {
  std::uint64_t size, flags, address;
  std::uint64_t begin, end, rights, page_size, offset, inode;
  std::uint32_t device_major, device_minor, name_size, build_id_size;
  std::uint64_t name, build_id;
};
constexpr unsigned long kAreaQuery = _IOWR('f', 17, AreaQuery);
constexpr std::uint64_t kReadable = 1, kWritable = 2, kShared = 8;

}  // namespace

bool area_at(std::uintptr_t address, AreaAt& out) {
  AreaQuery query{};
  query.size = sizeof query;
  query.address = address;
  if (::ioctl(kept_maps().fd.get(), kAreaQuery, &query) != 0) return false;
  out = {.begin = query.begin,
         .end = query.end,
         .readable = (query.rights & kReadable) != 0,
         .writable = (query.rights & kWritable) != 0,
         .shared = (query.rights & kShared) != 0,
         .offset = query.offset,
         .device = ::makedev(query.device_major, query.device_minor),
         .inode = query.inode};
  return out.begin <= address && address < out.end;
}

bool areas_at(Bytes memory, std::vector<AreaAt>& out) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto end = begin + memory.size();
  const auto before = errno;
  auto at = begin;
  for (AreaAt area; at < end && out.size() < kMostAreas && area_at(at, area); at = area.end)
    out.push_back(area);
  errno = before;
  return begin < end && at >= end;
}

namespace {

constexpr std::uint64_t kExecutable = 4;

bool ask(std::uintptr_t address, MappedArea& out) {
  std::array<char, 4'096> name;
  AreaQuery query{};
  query.size = sizeof query;
  query.address = address;
  query.name = reinterpret_cast<std::uintptr_t>(name.data());
  query.name_size = name.size();
  if (::ioctl(kept_maps().fd.get(), kAreaQuery, &query) != 0) return false;
  out.begin = query.begin;
  out.end = query.end;
  out.readable = (query.rights & kReadable) != 0;
  out.writable = (query.rights & kWritable) != 0;
  out.executable = (query.rights & kExecutable) != 0;
  out.shared = (query.rights & kShared) != 0;
  out.offset = query.offset;
  out.inode = query.inode;
  if (query.name_size != 0) out.name = name.data();
  return out.begin <= address && address < out.end;
}

// The areas of the memory, each asked for: to read the list takes longer the more there are, and
// each registration through a stpd makes one more. False: the kernel does not tell, or some of it
// is not mapped.
bool ask_for(std::uintptr_t begin, std::uintptr_t end, std::vector<MappedArea>& out) {
  AreaAt here;
  const auto before = errno;
  auto at = begin;
  if (kept_maps().process == ::getpid() &&
      area_at(reinterpret_cast<std::uintptr_t>(&ask_for), here)) {
    for (MappedArea area; at < end && ask(at, area); area = {}) {
      at = area.end;
      out.push_back(std::move(area));
    }
  }
  errno = before;
  return at >= end;
}

int look(Bytes memory, std::vector<MappedArea>& out) {
  auto next = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto end = next + memory.size();
  if (end < next) return fail(-EFAULT, "the memory would end behind the last address there is");
  const auto overlaps = [&](const MappedArea& area) { return area.begin < end && area.end > next; };
  std::vector<MappedArea> areas;
  if (!ask_for(next, end, areas)) {
    areas.clear();
    if (!areas_where(overlaps, areas)) return fail(-EOPNOTSUPP, "/proc/self/maps cannot be read");
  }
  for (auto& area : areas) {
    if (area.end <= next) continue;
    if (area.begin > next) break;
    cut(area, next, end);
    next = area.end;
    out.push_back(std::move(area));
  }
  return next == end ? 0 : fail(-EFAULT, "part of the memory is not mapped");
}

}  // namespace

// Since Linux 6.17, /proc/self/maps may lack pages that are being replaced at that moment, as a
// fork in another thread does (SetAside). So a hole is accepted only after kLooks attempts.
int areas_of(Bytes memory, std::vector<MappedArea>& out) {
  constexpr int kLooks = 4;
  const auto before = static_cast<std::ptrdiff_t>(out.size());
  for (int i = 1;; ++i) {
    const auto error = look(memory, out);
    if (error != -EFAULT || i == kLooks) return error;
    out.erase(out.begin() + before, out.end());
  }
}

namespace {

// The next check where the kernel does not tell of areas: asks it to make the pages present, which
// fails if they cannot be accessed. That takes 10 us for 1 MiB; reading /proc/self/maps takes 1 ms
// in a process with many libraries. False: they cannot be accessed, or the check does not apply.
// Long memory is not checked this way: the program may only have reserved it, and this would
// allocate its pages.
bool can_be_present(Bytes memory, bool write) {
  constexpr std::size_t kLong = std::size_t{16} << 20;
  constexpr int kPopulateRead = 22, kPopulateWrite = 23;  // MADV_POPULATE_..., Linux 5.14
  if (memory.size() > kLong) return false;
  static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<std::uintptr_t>(memory.data()) & ~(page - 1);
  const auto length = reinterpret_cast<std::uintptr_t>(memory.data()) + memory.size() - from;
  const auto before = errno;
  const auto result =
      ::madvise(reinterpret_cast<void*>(from), length, write ? kPopulateWrite : kPopulateRead);
  errno = before;
  return result == 0;
}

}  // namespace

// What the kernel tells of areas allocates no page: memory that is registered for what may come
// costs nothing before it comes. After a fork it would tell of those of the parent.
int check_access(Bytes memory, bool write) {
  const auto usable = [write](const auto& area) {
    return area.readable && (area.writable || !write);
  };
  std::vector<AreaAt> told;
  if (kept_maps().process == ::getpid() && areas_at(memory, told) &&
      std::ranges::all_of(told, usable))
    return 0;
  if (can_be_present(memory, write)) return 0;
  std::vector<MappedArea> areas;
  if (const auto error = areas_of(memory, areas); error != 0) return error;
  if (std::ranges::all_of(areas, usable)) return 0;
  return fail(-EFAULT, write ? "the memory cannot be written" : "the memory cannot be read");
}

}  // namespace stp::client
