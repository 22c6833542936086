// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/unscheduled.h"

#include <algorithm>

#include "stp/base/assert.h"
#include "stp/base/scarce_memory.h"
#include "stp/base/work_meter.h"

namespace stp {
namespace {

// Names differ in few bits (the next B_num, the next S_Port), so the hash must use all of them.
std::uint64_t mixed(const BlockName& name) {
  auto z = (name.source ^ name.source >> 29) * 0x9e3779b97f4a7c15 + name.block;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  return z ^ z >> 31;
}

}  // namespace

UnscheduledBlocks::UnscheduledBlocks(unsigned bufsize, unsigned stu_log2,
                                     std::shared_ptr<WindowPurse> purse)
    : purse_(std::move(purse)),
      tiles_{bufsize, stu_log2},
      open_(kMaxOpen),
      remembered_(kMaxRemembered) {}

template <typename Place>
std::span<Place> UnscheduledBlocks::places(std::vector<Place>& table, std::size_t ways,
                                           const BlockName& name) {
  work::count("Blocks that nobody granted", ways);
  const auto set = mixed(name) % (table.size() / ways);
  return std::span(table).subspan(set * ways, ways);
}

UnscheduledBlocks::Open* UnscheduledBlocks::find_open(const BlockName& name) {
  for (auto& place : places(open_, kOpenWays, name))
    if (place.used && place.name == name) return &place;
  return nullptr;
}

// A place for a new Block: a free one, or that of a Block without an STU for kPatience. nullptr:
// none.
UnscheduledBlocks::Open* UnscheduledBlocks::make_room(const BlockName& name, Time now) {
  const auto set = places(open_, kOpenWays, name);
  const auto free =
      std::find_if(set.begin(), set.end(), [](const Open& place) { return !place.used; });
  if (free != set.end()) return &*free;
  const auto oldest = std::min_element(set.begin(), set.end(), [](const Open& x, const Open& y) {
    return x.block.progress < y.block.progress;
  });
  if (now - oldest->block.progress < kPatience) return nullptr;
  ++abandoned_;
  return &*oldest;
}

// protocol: 11.7
bool UnscheduledBlocks::is_complete(const BlockName& name, Time now) {
  const auto set = places(remembered_, kRememberedWays, name);
  return std::any_of(set.begin(), set.end(), [&](const Remembered& place) {
    return place.until > now && place.name == name;
  });
}

// False: no memory for a map of its STUs.
bool UnscheduledBlocks::begin(Open& place, const BlockName& name, const wire::DataView& data,
                              const Bounds& bounds, Time now) {
  const auto start = std::uint64_t{bounds.first} << tiles_.bufsize;
  const auto end = start + (std::uint64_t{bounds.count} << tiles_.bufsize);
  const bool single = data.stu_num() == 0 && data.has(wire::flag::kLast);
  const auto most =
      single ? 1
             : std::min<std::uint64_t>((end - start) >> tiles_.stu_log2, Inbound::kMaxStusOfBlock);
  auto stus = std::move(place.block.stus);  // reused between Blocks: it may be large
  place.used = false;
  if (stus.capacity() >= most) {
    stus.reset();
  } else {
    memory_.give(StuMap::footprint(stus.capacity()));
    stus = StuMap();
    within_memory(
        [&] {
          auto more = StuMap(static_cast<std::uint32_t>(most));
          if (memory_.add(purse_.get(), StuMap::footprint(most))) stus = std::move(more);
        },
        [] {});  // as if it were lost
  }
  auto& block = place.block = {};
  block.stus = std::move(stus);
  if (block.stus.capacity() < most) return false;
  place.name = name;
  place.used = true;
  block.b_num = data.b_num();
  block.r_id = data.r_id();
  block.start = start;
  block.end = end;
  block.anywhere = true;
  block.cts.r_mx = data.r_mx();
  block.progress = now;
  STP_ASSERT(block.stus.placed() == 0 && block.received == 0, "a Block begins with nothing");
  return true;
}

// protocol: 11.6
DropReason UnscheduledBlocks::find(const BlockName& name, const wire::DataView& data,
                                   std::size_t length, const Bounds& bounds, Time now,
                                   InboundBlock*& out) {
  if (is_complete(name, now)) return DropReason::kDuplicateBlock;
  auto* place = find_open(name);
  const bool forgotten = place != nullptr && now - place->block.progress >= kMemory;
  if (forgotten) ++abandoned_;  // the name is in use again
  const bool fresh = place == nullptr || forgotten;
  if (place == nullptr && (place = make_room(name, now)) == nullptr) return DropReason::kBlocksFull;
  if (fresh && !begin(*place, name, data, bounds, now)) return DropReason::kBlocksFull;
  if (place->block.cts.r_mx != data.r_mx()) return DropReason::kOutsideGrant;
  const auto drop = place->block.check_stu(data, length, tiles_);
  if (fresh && drop != DropReason::kNone) place->used = false;
  out = &place->block;
  return drop;
}

void UnscheduledBlocks::complete(const BlockName& name, Time now) {
  if (auto* const place = find_open(name)) {
    STP_ASSERT(place->block.stus.complete(), "a Block that completes has all its STUs");
    place->used = false;
  }
  const auto set = places(remembered_, kRememberedWays, name);
  const auto oldest =
      std::min_element(set.begin(), set.end(),
                       [](const Remembered& x, const Remembered& y) { return x.until < y.until; });
  *oldest = {name, now + kMemory};
}

}  // namespace stp
