// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/address_space.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "libst/client/error.h"

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

}  // namespace

int areas_of(Bytes memory, std::vector<MappedArea>& out) {
  auto next = reinterpret_cast<std::uintptr_t>(memory.data());
  auto const end = next + memory.size();
  if (end < next) return -EFAULT;
  std::ifstream maps("/proc/self/maps");
  if (!maps) return fail(-EOPNOTSUPP, "/proc/self/maps cannot be read");
  for (std::string line; next < end && std::getline(maps, line);) {
    MappedArea area;
    if (!parse(line, area) || area.end <= next) continue;
    if (area.begin > next) break;
    cut(area, next, end);
    next = area.end;
    out.push_back(std::move(area));
  }
  return next == end ? 0 : fail(-EFAULT, "nothing is mapped at part of the memory");
}

std::vector<MappedArea> areas_where(const std::function<bool(const MappedArea&)>& wanted) {
  std::vector<MappedArea> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    MappedArea area;
    if (parse(line, area) && wanted(area)) out.push_back(std::move(area));
  }
  return out;
}

int check_access(Bytes memory, bool write) {
  std::vector<MappedArea> areas;
  if (auto const error = areas_of(memory, areas); error != 0) return error;
  auto const usable = [write](const MappedArea& area) {
    return area.readable && (area.writable || !write);
  };
  if (std::all_of(areas.begin(), areas.end(), usable)) return 0;
  return fail(-EFAULT, write ? "the memory cannot be written" : "the memory cannot be read");
}

}  // namespace stp::client
