// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/placement.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "stp/base/assert.h"
#include "stp/base/work_meter.h"
#include "stp/node/wake_ups.h"
#include "stp/wire/big_endian.h"

namespace stp {
namespace {

using Middle = void(std::byte* to, const std::byte* from, std::size_t length);

constexpr std::size_t kVector = 32;
constexpr std::size_t kLong = 128;  // from this length on, vectors copy the middle

bool at_multiple(const std::byte* at, std::size_t size) {
  return reinterpret_cast<std::uintptr_t>(at) % size == 0;
}

// One naturally aligned store.
template <typename Integer>
[[gnu::always_inline]] inline void step(std::byte*& to, const std::byte*& from) {
  using Place [[gnu::may_alias]] = Integer;
  Integer value;
  std::memcpy(&value, from, sizeof value);
  __atomic_store_n(reinterpret_cast<Place*>(to), value, __ATOMIC_RELEASE);
  to += sizeof value;
  from += sizeof value;
}

// `to` is aligned to a Vector, `length` a multiple of one. A volatile store happens once and in
// place: no compiler turns these into a memcpy.
template <typename Vector>
[[gnu::always_inline]] inline void copy_vectors(std::byte* to, const std::byte* from,
                                                std::size_t length) {
  using Place [[gnu::may_alias]] = volatile Vector;
  const auto one = [&](std::size_t at) __attribute__((always_inline)) {
    Vector value;
    std::memcpy(&value, from + at, sizeof value);
    *reinterpret_cast<Place*>(to + at) = value;
  };
  STP_ASSERT(at_multiple(to, sizeof(Vector)) && length % sizeof(Vector) == 0,
             "vectors are copied to where they are aligned");
  constexpr std::size_t kAtOnce = 8 * sizeof(Vector);
  for (; length >= kAtOnce; length -= kAtOnce, to += kAtOnce, from += kAtOnce) {
    one(0);
    one(sizeof(Vector));
    one(2 * sizeof(Vector));
    one(3 * sizeof(Vector));
    one(4 * sizeof(Vector));
    one(5 * sizeof(Vector));
    one(6 * sizeof(Vector));
    one(7 * sizeof(Vector));
  }
  for (std::size_t at = 0; at < length; at += sizeof(Vector)) one(at);
}

using Half [[gnu::vector_size(16)]] = std::int64_t;

void copy_halves(std::byte* to, const std::byte* from, std::size_t length) {
  copy_vectors<Half>(to, from, length);
}

#ifdef __x86_64__
using Whole [[gnu::vector_size(kVector)]] = std::int64_t;

[[gnu::target("avx")]] void copy_whole(std::byte* to, const std::byte* from, std::size_t length) {
  copy_vectors<Whole>(to, from, length);
}

Middle* const copy_middle = __builtin_cpu_supports("avx") ? copy_whole : copy_halves;
#else
Middle* const copy_middle = copy_halves;
#endif

// Copies fewer bytes than a word, in as few stores as the alignment permits.
void copy_few(std::byte* to, const std::byte* from, const std::byte* end) {
  while (to != end) {
    const auto left = static_cast<std::size_t>(end - to);
    if (left >= 4 && at_multiple(to, 4))
      step<std::uint32_t>(to, from);
    else if (left >= 2 && at_multiple(to, 2))
      step<std::uint16_t>(to, from);
    else
      step<std::uint8_t>(to, from);
  }
}

}  // namespace

void copy_any_in_order(std::byte* to, const std::byte* from, std::size_t length) {
  const auto apart = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
  if (apart < length) {
    std::memmove(to, from, length);
    return;
  }
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  auto* const end = to + length;
  if (length >= kWord) {
    if (!at_multiple(to, 2)) step<std::uint8_t>(to, from);
    if (!at_multiple(to, 4)) step<std::uint16_t>(to, from);
    if (!at_multiple(to, kWord)) step<std::uint32_t>(to, from);
    if (length >= kLong) {
      while (!at_multiple(to, kVector)) step<std::uint64_t>(to, from);
      const auto middle = (static_cast<std::size_t>(end - to) - kWord) / kVector * kVector;
      copy_middle(to, from, middle);
      to += middle;
      from += middle;
    }
    while (end - to >= static_cast<std::ptrdiff_t>(kWord)) step<std::uint64_t>(to, from);
  }
  STP_ASSERT(to <= end && end - to < static_cast<std::ptrdiff_t>(kWord),
             "less than a word is left at the end");
  copy_few(to, from, end);
}

namespace {

std::uint64_t linear(const Vc& vc, const wire::Header& h) {
  return Address{h.bufx, h.offset}.linear(vc.endpoint->config.bufsize);
}

}  // namespace

// The first STU of a Put Block allocates memory. If the system has none, the STU counts as lost.
DropReason Placement::find_block(Vc& vc, const wire::Header& h, std::size_t length,
                                 InboundBlock*& out) {
  try {
    return vc.inbound.find(wire::DataView(h), length, out);
  } catch (const std::bad_alloc&) {
    return DropReason::kBlocksFull;
  }
}

// Runs once per STU, so it is one function for the only STU of a Put Block, and one for others.
[[gnu::flatten]] void Placement::on_data(Vc& vc, const wire::Frame& frame, Time now) {
  const auto& h = frame.header;
  const auto length = frame.stu.size();
  std::byte* memory = nullptr;
  InboundTransfer* region = nullptr;
  const auto why = use_.memory.check(vc.reach(), h, length, permit::kData, memory);
  if (why == DropReason::kNone && vc.inbound.find_whole(wire::DataView(h), length, region))
    return place_whole(vc, frame, *region, memory);
  place_part(vc, frame, why, memory, now);
}

// `why`: what check() has found.
[[gnu::flatten, gnu::noinline]] void Placement::place_part(Vc& vc, const wire::Frame& frame,
                                                           DropReason why, std::byte* memory,
                                                           Time now) {
  const auto& h = frame.header;
  const auto length = frame.stu.size();
  InboundBlock* block = nullptr;
  if (why == DropReason::kNone) why = find_block(vc, h, length, block);
  if (why != DropReason::kNone) {
    use_.common.drop(why);
    // The sender may not know that the Block is complete: the state it asks for tells.
    // protocol: 6.16
    const bool repeat = why == DropReason::kDuplicateStu || why == DropReason::kDuplicateBlock;
    // What is asked for again begins later than STU 0, or STU 0 was missing.
    // protocol: 10.22
    if (repeat && h.param == 0) vc.inbound.open_blocks().came_twice();
    if (repeat && h.has(wire::flag::kSendState)) use_.states.answer(vc, h.sync, h.b_num, h.d_id, 0);
    return;
  }
  STP_ASSERT(memory != nullptr && block != nullptr, "an STU that is placed has memory and a Block");
  if (!place(vc, frame, *block, memory)) return;
  const bool was_marked = use_.common.marked && is_granted(*block);
  const bool was_repeated = block->repeats != 0;
  if (vc.inbound.progress(*block, length, h.sync, now)) vc.channel.count_cts_repeated();
  if (was_marked) heed_mark(vc, now);  // the path knows of the round trip now
  if (was_repeated) use_.recovery.look_earlier(vc, now);
  if (!block->stus.complete()) {
    if (block->parts != nullptr) count_part(vc, *block);
    if (h.has(wire::flag::kLast)) ask_for_rest(vc, *block, now);
    return;
  }
  place_end(vc, *block);
  deliver_block(vc, frame.src, *block);
  const bool asks = block->last.has(wire::flag::kSendState);
  const auto sync = block->last.sync;
  auto* const transfer = block->transfer;
  const auto first = transfer != nullptr ? transfer->b_seq : 0;
  if (vc.inbound.complete(*block)) use_.recovery.ask_for_lost(vc, now);
  if (const auto* const path = vc.inbound.account().path())
    vc.channel.suggest_block(path->block_log2());
  if (transfer != nullptr && !transfer->held.empty()) place_held(vc, *transfer, first);
  // protocol: 6.15
  if (asks) use_.states.answer(vc, sync, h.b_num, h.d_id, 0);
}

bool Placement::is_granted(const InboundBlock& block) {
  return block.transfer != nullptr && !block.transfer->region;
}

// A way on which a router marks is shared with others, whatever was known of it.
// protocol: 13.22
[[gnu::noinline]] void Placement::heed_mark(Vc& vc, Time now) {
  if (!use_.common.heeds_marks()) return;
  use_.common.counters.add(Counter::kRxMarked);
  auto* const path = vc.inbound.account().path();
  (path != nullptr ? *path : use_.pacing.share_path(vc)).marked(now);
}

// Each STU is counted once, so a peer that sends crumbs has no more steps than its Block has.
// protocol: 10.17
[[gnu::noinline]] void Placement::count_part(Vc& vc, const InboundBlock& block) {
  constexpr std::uint32_t kStep = 8;  // STUs
  if (block.stus.placed() % kStep == 0) vc.channel.count_step();
}

// The Last of a Block has arrived before others.
[[gnu::noinline]] void Placement::ask_for_rest(Vc& vc, InboundBlock& block, Time now) {
  const bool granted = block.transfer != nullptr && !block.transfer->region;
  if (granted) use_.recovery.ask_for_rest(vc, static_cast<GrantedBlock&>(block), now);
}

// The same for the only STU of a Put Block.
void Placement::place_whole(Vc& vc, const wire::Frame& frame, InboundTransfer& region,
                            std::byte* memory) {
  const auto& h = frame.header;
  const bool silent = h.has(wire::flag::kSilent);
  // protocol: 6.9
  if (!silent && vc.channel.free_slots() == 0) return use_.common.drop(DropReason::kSlotOverrun);
  const auto length = frame.stu.size();
  auto now_placed = length;
  const bool holds = silent && region.holds_end(h.b_num);
  if (holds || !region.held.empty()) [[unlikely]] {
    if (!has_room_for_end(vc, region, h, length, holds))
      return use_.common.drop(DropReason::kBlocksFull);
    now_placed = hold_end(vc, region, frame, holds);
  }
  STP_ASSERT(now_placed <= length, "no more is placed than has come");
  copy_in_order(memory, frame.stu.data(), now_placed);
  count_stu(vc, length);
  const auto first = region.b_seq;
  region.complete(h.b_num);
  if (!region.held.empty()) place_held(vc, region, first);
  use_.common.counters.add(Counter::kRxBlocks);
  // protocol: 8.9
  if (!silent)
    deliver(vc, use_.wake_ups, frame.src, h, frame.append, NodeChannel::Place::kSlot, length);
  // protocol: 6.15
  if (h.has(wire::flag::kSendState)) use_.states.answer(vc, h.sync, h.b_num, h.d_id, 0);
}

void Placement::count_stu(Vc& vc, std::size_t length) {
  use_.common.counters.add(Counter::kRxStus);
  use_.common.counters.add(Counter::kRxDataBytes, length);
  vc.traffic.rx_data_bytes += length;
}

// Places an STU that has passed every check. False: it is dropped after all.
bool Placement::place(Vc& vc, const wire::Frame& frame, InboundBlock& block, std::byte* memory) {
  const auto& h = frame.header;
  const auto length = frame.stu.size();
  const bool last = h.has(wire::flag::kLast);
  const bool silent = last ? h.has(wire::flag::kSilent) : block.last.has(wire::flag::kSilent);
  // protocol: 6.9
  const bool completes = block.stus.completes(h.param, last);
  if (completes && !silent && vc.channel.free_slots() == 0) {
    use_.common.drop(DropReason::kSlotOverrun);  // as if lost: a repeat completes the Block
    return false;
  }
  if (block.value) {  // the only numeric operand: host order in users' memory
    const auto value = wire::load64(frame.stu.data());
    copy_in_order(memory, reinterpret_cast<const std::byte*>(&value), sizeof value);
  } else {
    auto* const transfer = block.transfer;
    const bool in_region = transfer != nullptr && transfer->region;
    const bool early = in_region && silent && transfer->holds_end(h.b_num);
    const bool holds = last && (!completes || early);
    auto at_once = length;
    if (in_region && (holds || !transfer->held.empty())) {
      if (!has_room_for_end(vc, *transfer, h, length, holds)) {
        use_.common.drop(DropReason::kBlocksFull);
        return false;
      }
      at_once = hold_end(vc, *transfer, frame, holds);
    } else if (holds) {
      at_once = block.held.keep(frame.stu, linear(vc, h));
    }
    STP_ASSERT(at_once <= length, "no more is placed than has come");
    copy_in_order(memory, frame.stu.data(), at_once);
  }
  count_stu(vc, length);
  const auto address = linear(vc, h);
  if (!block.tile_known) {
    const auto bufsize = vc.endpoint->config.bufsize;
    block.first_tile =
        (address >> stu_size_log2(vc.local_max_stu, vc.peer_max_stu, bufsize)) - h.param;
    block.tile_known = true;
  }
  if (h.param == 0) block.first_address = address;
  block.stus.place(h.param, last);
  if (last) {
    block.last = h;
    block.has_append = !frame.append.empty();
    if (block.has_append) std::memcpy(block.append, frame.append.data(), frame.append.size());
  }
  return true;
}

void Placement::write_end(const Vc& vc, std::uint16_t mx, const HeldEnd& end) {
  STP_ASSERT(end.size > 0 && end.size <= HeldEnd::kMost, "an end that is written has been held");
  const auto place = Address::from_linear(end.address, vc.endpoint->config.bufsize);
  wire::Header at;
  at.mx = mx;
  at.bufx = place.bufx;
  at.offset = place.offset;
  std::byte* memory = nullptr;
  const auto gone = use_.memory.check(vc.reach(), at, end.size, permit::kData, memory);
  if (gone != DropReason::kNone) return use_.common.drop(gone);  // as if it came only now
  copy_in_order(memory, end.bytes, end.size);
}

// `block` is complete: places its held end, or keeps it until the Blocks before it are complete.
// protocol: 8.15
void Placement::place_end(const Vc& vc, InboundBlock& block) {
  auto* const transfer = block.transfer;
  const bool in_region = transfer != nullptr && transfer->region;
  if (in_region && block.last.has(wire::flag::kSilent) && transfer->holds_end(block.b_num)) return;
  const auto end =
      in_region ? transfer->held.take(block.b_num) : std::exchange(block.held, HeldEnd{});
  if (end.size != 0) write_end(vc, block.last.mx, end);
}

// The Blocks from `first` to B_seq are complete: places their held ends.
// protocol: 8.15
[[gnu::noinline]] void Placement::place_held(const Vc& vc, InboundTransfer& region,
                                             std::uint32_t first) {
  for (; first != region.b_seq && !region.held.empty(); ++first) {
    work::count("ends of Blocks that were held");
    if (const auto end = region.held.take(first); end.size != 0) write_end(vc, region.mx, end);
  }
}

// Whether an STU of `length` bytes can be placed in a region with held ends; `holds`: its own end
// will be held. If not, it is dropped as lost and will be repeated.
[[gnu::noinline]] bool Placement::has_room_for_end(const Vc& vc, InboundTransfer& region,
                                                   const wire::Header& h, std::size_t length,
                                                   bool holds) {
  if (holds && !region.held.make_room(std::bit_ceil(region.b_win))) return false;
  return region.held.may_overwrite(linear(vc, h), length);
}

// The number of bytes of the STU to place at once. Held ends of earlier Blocks take over the bytes
// it writes in their place; otherwise they would undo it.
// protocol: 8.15
[[gnu::noinline]] std::size_t Placement::hold_end(const Vc& vc, InboundTransfer& region,
                                                  const wire::Frame& frame, bool holds) {
  const auto& h = frame.header;
  const auto address = linear(vc, h);
  HeldEnd end;
  const auto at_once = holds ? end.keep(frame.stu, address) : frame.stu.size();
  if (holds) region.held.hold(h.b_num, end);
  region.held.overwrite(h.b_num, address, frame.stu.first(at_once));
  return at_once;
}

// Delivers the header of a complete Block to its user.
// protocol: 8.9
void Placement::deliver_block(Vc& vc, const MacAddr& from, const InboundBlock& block) {
  use_.common.counters.add(Counter::kRxBlocks);
  if (block.last.has(wire::flag::kSilent)) return;
  auto header = block.last;
  const auto first = Address::from_linear(block.first_address, vc.endpoint->config.bufsize);
  header.bufx = first.bufx;
  header.offset = first.offset;
  deliver(vc, use_.wake_ups, from, header,
          block.has_append ? std::as_bytes(std::span(block.append)) : Bytes{},
          NodeChannel::Place::kSlot, block.received);
}

// protocol: 11.6
void Placement::on_unscheduled(Vc& vc, const wire::Frame& frame, Time now) {
  const auto& h = frame.header;
  const auto length = frame.stu.size();
  std::byte* memory = nullptr;
  if (const auto why = use_.memory.check(vc.reach(), h, length, permit::kData, memory);
      why != DropReason::kNone)
    return use_.common.drop(why);
  const auto& mx = use_.memory.named(h.mx);
  auto& blocks = *vc.unscheduled;
  wire::DataView const data(h);
  const auto name = BlockName::of(frame.src, data);
  const auto abandoned = blocks.abandoned();
  InboundBlock* block = nullptr;
  const auto why = blocks.find(name, data, length, {mx.first, mx.count}, now, block);
  use_.common.counters.add(Counter::kBlocksAbandoned, blocks.abandoned() - abandoned);
  if (why != DropReason::kNone) return use_.common.drop(why);
  if (!place(vc, frame, *block, memory)) return;
  UnscheduledBlocks::progress(*block, now);
  if (!block->stus.complete()) return;
  place_end(vc, *block);
  deliver_block(vc, frame.src, *block);
  blocks.complete(name, now);
}

}  // namespace stp
