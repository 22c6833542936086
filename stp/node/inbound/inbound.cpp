// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "stp/base/assert.h"
#include "stp/base/scarce_memory.h"
#include "stp/node/inbound/inbound_transfer.h"

namespace stp {

int ExpectedAnswers::expect(const wire::Get& get, std::uint64_t length, bool value,
                            const Tiles& tiles) {
  const auto name = key(get.r_id, get.g_num);
  if (blocks_.contains(name)) return 0;
  if (is_over(get.g_num)) return -EALREADY;
  if (blocks_.size() == kMost) return -ENOBUFS;
  const auto start = tiles.linear(get.i_bufx, get.i_offset);
  StuMap map(static_cast<std::uint32_t>(stu_count(start, length, tiles.stu_log2)));
  auto& block = blocks_[name];
  block.b_num = get.g_num;
  block.r_id = get.r_id;
  block.start = block.first_address = start;
  block.end = block.whole_end = block.start + length;
  block.first_tile = block.start >> tiles.stu_log2;
  block.tile_known = block.exact = true;
  block.value = value;
  block.cts.r_mx = get.i_mx;
  block.stus = std::move(map);
  return 0;
}

// G_nums increase by one, so the newest and a window before it tell which are finished.
bool ExpectedAnswers::is_over(std::uint32_t g_num) {
  const auto ahead = static_cast<std::int32_t>(g_num - newest_);
  if (!any_ || ahead > 0) {
    const auto shift = any_ ? static_cast<std::uint32_t>(ahead) : kMost;
    over_ = shift >= kMost ? 0 : over_ << shift;
    any_ = true;
    newest_ = g_num;
    return false;
  }
  const auto behind = newest_ - g_num;
  return behind >= kMost || (over_ >> behind & 1) != 0;
}

void ExpectedAnswers::forget(std::uint32_t r_id, std::uint32_t g_num) {
  if (blocks_.erase(key(r_id, g_num)) == 0) return;
  const auto behind = newest_ - g_num;
  if (any_ && behind < kMost) over_ |= std::uint64_t{1} << behind;
}

// A Get's answer carries the peer's id of its region. That may equal an id of ours, but not with
// the same B_num, Mx and place.
// protocol: 7.18
InboundBlock* ExpectedAnswers::find(const wire::DataView& data, std::size_t length,
                                    const Tiles& tiles) {
  const auto found = blocks_.find(key(data.r_id(), data.b_num()));
  if (found == blocks_.end()) return nullptr;
  auto& block = found->second;
  const auto at = tiles.linear(data.r_bufx(), data.r_offset());
  const bool lands = block.cts.r_mx == data.r_mx() && at >= block.start && at + length <= block.end;
  return lands ? &block : nullptr;
}

void ExpectedAnswers::clear() {
  blocks_.clear();
  any_ = false;
}

namespace {

// Freed at once of an ended Transfer; the rest follows in slices.
constexpr std::size_t kTidiedAtOnce = 64;

// Bytes of a Transfer of `t_len` bytes.
std::uint64_t memory_of_transfer(std::uint64_t t_len, unsigned blocksize) {
  return window_memory::of_transfer(
      std::min<std::uint64_t>(t_len >> blocksize, Inbound::kMaxOpenBlocks - 1) + 1);
}

}  // namespace

void Inbound::configure(const Tiles& tiles, bool reuses_ids, GrantAccount account,
                        std::shared_ptr<WindowPurse> purse) {
  reuses_ids_ = reuses_ids;
  tiles_ = tiles;
  account_ = std::move(account);
  purse_ = std::move(purse);
  remains_ = InboundRemains(purse_);
}

void Inbound::end(std::uint32_t r_id) {
  auto* const found = transfers_.find(r_id);
  if (found == nullptr) return;
  if (recent_ != nullptr && recent_->transfer == found) recent_ = nullptr;
  const auto stus = window_memory::tracked_by(*found);
  STP_ASSERT(stus <= tracked_, "the STUs of a Transfer are counted with those of its connection");
  STP_ASSERT(found->blocks.size() <= open_.count(), "the Blocks of a Transfer are counted as open");
  STP_ASSERT(!found->blocks.empty() || found->outstanding == 0,
             "a Transfer without a Block is owed nothing");
  tracked_ -= stus;
  open_.closed(found->blocks.size());
  if (!found->blocks.empty()) account_.settle(found->outstanding);
  remains_.add(transfers_.take(*found));
  remains_.dismantle(kTidiedAtOnce);
}

void Inbound::drop_block(const GrantedBlock& block) {
  if (recent_ == &block) recent_ = nullptr;
  STP_ASSERT(block.received <= block.end - block.start, "a Block gets no more than was granted");
  STP_ASSERT(
      block.stus.capacity() <= block.transfer->tracked && block.transfer->tracked <= tracked_,
      "the STUs of a Block are counted with its Transfer and its connection");
  const auto left = block.end - block.start - block.received;
  STP_ASSERT(left <= block.transfer->outstanding, "what a Block lacks its Transfer lacks, too");
  tracked_ -= block.stus.capacity();
  block.transfer->tracked -= block.stus.capacity();
  block.transfer->memory.give(
      window_memory::of_block(block.stus.capacity(), block.parts != nullptr));
  block.transfer->outstanding -= left;
  open_.closed(1);
  account_.settle(left);
  STP_ASSERT(open_.count() != 0 || account_.outstanding() == 0, "without a Block nothing is owed");
}

InboundRemains Inbound::clear() {
  STP_ASSERT(open_.count() != 0 || account_.outstanding() == 0, "without a Block nothing is owed");
  if (open_.count() != 0) account_.settle(account_.outstanding());
  auto remains = std::exchange(remains_, InboundRemains(purse_));
  remains.add(transfers_.take_all());
  open_.clear();
  recent_ = nullptr;
  answers_.clear();
  requests_.clear();
  tracked_ = 0;
  return remains;
}

bool Inbound::has_memory(std::uint64_t bytes, const InboundTransfer* but) {
  constexpr int kForgotten = 2;  // about the cost of a Block and its Transfer
  if (!purse_ || purse_->has(bytes)) return true;
  for (int i = 0; i < kForgotten && transfers_.forget_oldest(but); ++i)
    if (purse_->has(bytes)) return true;
  return false;
}

// The Transfer of a CTS; starts it again if the CTS starts a new one.
int Inbound::begin(const wire::ClearToSend& cts, InboundTransfer*& out) {
  const auto* const offer = requests_.offer(cts.i_id);
  if (auto* const found = transfers_.find(cts.r_id); found != nullptr) {
    auto& old = *found;
    const bool same = !old.region && old.i_id == cts.i_id &&
                      !(reuses_ids_ && offer != nullptr && offer->fresh && old.has(cts.b_num));
    if (same) {
      out = &old;
      // protocol: 7.11
      return old.blocksize == cts.blocksize ? 0 : -EINVAL;
    }
    end(cts.r_id);
  }
  if (offer != nullptr && cts.blocksize > offer->max_block) return -EINVAL;
  if (!transfers_.make_room()) return -ENOBUFS;
  const auto t_len = offer != nullptr ? offer->t_len : InboundTransfer::kUnknownLength;
  WindowBytes memory;
  const auto bytes = memory_of_transfer(t_len, cts.blocksize);
  if (!has_memory(bytes) || !memory.add(purse_.get(), bytes)) return -EDQUOT;
  auto& transfer = transfers_.begin(cts.r_id, cts.i_id, t_len);
  transfer.memory = std::move(memory);
  transfer.blocksize = cts.blocksize;
  requests_.begun(cts.i_id);
  out = &transfer;
  return 0;
}

// protocol: 7.9, 7.10
int Inbound::grant(const wire::ClearToSend& cts, std::uint64_t limit, Time now,
                   std::uint32_t part) {
  if (cts.blocksize > tiles_.stu_log2 + wire::kMaxStusOfBlockLog2) return -EINVAL;
  if (requests_.has_ended(cts.i_id, cts.r_id)) return -EALREADY;
  InboundTransfer* transfer = nullptr;
  if (const auto error = begin(cts, transfer); error != 0) return error;

  auto size = std::uint64_t{1} << transfer->blocksize;
  if (transfer->t_len != InboundTransfer::kUnknownLength) {
    if (cts.b_num >= transfer->block_count()) return -EINVAL;
    size = std::min(size, transfer->t_len - (std::uint64_t{cts.b_num} << transfer->blocksize));
  }
  if (transfer->has(cts.b_num)) return 0;
  if (cts.b_num - transfer->b_seq >= kMaxOpenBlocks) return -EINVAL;
  size = std::min(size, limit);

  const auto start = tiles_.linear(cts.r_bufx, cts.r_offset);
  auto& blocks = transfer->blocks;
  if (const auto known = blocks.find(cts.b_num); known != blocks.end()) {
    if (known->second.start == start && transfer->mx == cts.r_mx) {
      if (part != 0 && known->second.is_part())
        grant_more(known->second, part, now);
      else  // repeated by the user
        account_.lost(now);
      return 0;
    }
    drop_block(known->second);
    blocks.erase(known);
  }
  const auto stus = stu_count(start, size, tiles_.stu_log2);
  if (stus > kMaxStusOfBlock) return -EINVAL;
  if (tracked_ + stus > kMaxTrackedStus || open_.count() >= kMaxOpenBlocks) return -ENOBUFS;
  const bool in_parts = part != 0 && part < stus;
  const auto bytes = window_memory::of_block(stus, in_parts);
  if (!has_memory(bytes, transfer)) return -EDQUOT;
  StuMap map(static_cast<std::uint32_t>(stus));
  auto parts = in_parts ? std::make_unique<GrantedParts>() : nullptr;
  auto& block = blocks[cts.b_num];
  // From here on nothing can fail: the memory is available.
  const auto paid = transfer->memory.add(purse_.get(), bytes);
  STP_ASSERT(paid, "the purse has what it said it has");
  block.transfer = transfer;
  block.b_num = cts.b_num;
  block.start = block.first_address = start;
  block.end = block.whole_end = start + size;
  if (in_parts) {
    block.end = start;
    block.end = block.end_of_part(part, tiles_);
    block.parts = std::move(parts);
  }
  block.first_tile = start >> tiles_.stu_log2;
  block.tile_known = true;
  block.stus = std::move(map);
  block.r_id = cts.r_id;
  block.exact = transfer->t_len != InboundTransfer::kUnknownLength;
  block.cts = cts;
  const auto granted = block.end - block.start;
  open_.granted(block, account_.outstanding() == 0, now);
  account_.grant(granted);
  transfer->mx = cts.r_mx;
  transfer->tracked += stus;
  transfer->outstanding += granted;
  tracked_ += stus;
  STP_ASSERT(transfer->tracked <= tracked_ && transfer->outstanding <= account_.outstanding(),
             "what a Transfer has granted its connection has granted");
  return 0;
}

// The next `stus` STUs of `block`.
// protocol: 13.19
void Inbound::grant_more(GrantedBlock& block, std::uint32_t stus, Time now) {
  STP_ASSERT(block.is_part() && block.parts != nullptr, "a part follows another one");
  const auto from = block.granted_stus(tiles_);
  const auto end = block.end_of_part(stus, tiles_);
  const auto bytes = end - block.end;
  block.end = end;
  open_.granted_part(block, from, account_.outstanding() == 0, now);
  account_.grant(bytes);
  block.transfer->outstanding += bytes;
}

// protocol: 7.13, 9.10
int Inbound::open_region(const wire::MemoryRegionAvailable& mra) {
  if (requests_.has_ended(mra.i_id, mra.r_id)) return -EALREADY;
  const auto start = tiles_.linear(mra.r_bufx, mra.r_offset);
  const auto t_len = mra.t_len;
  if (const auto* const known = transfers_.find(mra.r_id); known != nullptr) {
    const auto& old = *known;
    if (old.region && old.i_id == mra.i_id && old.start == start && old.t_len == t_len &&
        old.mx == mra.r_mx && old.b_win == mra.b_win)
      return 0;  // repeated
    end(mra.r_id);
  }
  if (mra.b_win == 0 || mra.b_win > kMaxWindow || t_len == 0) return -EINVAL;
  const auto stus = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(stu_count(start, t_len, tiles_.stu_log2), kMaxStusOfBlock));
  const auto places = window_memory::places_for(mra.b_win);
  if (tracked_ + window_memory::tracked(stus, places) > kMaxTrackedStus || !transfers_.make_room())
    return -ENOBUFS;
  WindowBytes memory;
  const auto bytes = window_memory::of_transfer(places) + window_memory::of_window(stus, places);
  if (!has_memory(bytes) || !memory.add(purse_.get(), bytes)) return -EDQUOT;
  auto& region = transfers_.add_region(mra.r_id);
  region.memory = std::move(memory);
  region.i_id = mra.i_id;
  region.mx = mra.r_mx;
  region.t_len = t_len;
  region.start = start;
  region.b_win = mra.b_win;
  region.most_stus = stus;
  tracked_ += window_memory::tracked_by(region);
  return 0;
}

InboundBlock& Inbound::place_of(InboundTransfer& region, std::uint32_t b_num) {
  auto& window = region.window;
  const Refusable from_the_system;
  if (window.empty()) window.resize(window_memory::places_for(region.b_win));
  STP_ASSERT(b_num - region.b_seq < region.b_win && window.size() >= region.b_win,
             "a Block within the window has a place of its own");
  auto& place = window[b_num & (window.size() - 1)];
  if (place == nullptr) {
    auto made = std::make_unique<InboundBlock>();
    made->transfer = &region;
    made->start = region.start;
    made->end = region.start + region.t_len;
    made->anywhere = true;
    made->stus = StuMap(region.most_stus);
    place = std::move(made);
  }
  return *place;
}

Inbound::Demand Inbound::demand(const wire::ClearToSend& cts, bool in_parts) const {
  const auto* const found = transfers_.find(cts.r_id);
  const auto* const offer = requests_.offer(cts.i_id);
  const bool begun = found != nullptr && !found->region;
  if (begun && (found->has(cts.b_num) || found->blocks.contains(cts.b_num))) return {};
  const auto block = std::uint64_t{1} << cts.blocksize;
  const auto before = std::uint64_t{cts.b_num} << cts.blocksize;
  if (offer != nullptr && before > offer->t_len) return {};
  Demand demand{.remaining = block};
  if (offer != nullptr) demand.remaining = offer->t_len - before;
  const auto bytes = std::min(block, demand.remaining);
  demand.bytes = bytes;
  const auto start = tiles_.linear(cts.r_bufx, cts.r_offset);
  demand.memory = window_memory::of_block(stu_count(start, bytes, tiles_.stu_log2), in_parts);
  if (!begun)
    demand.memory += memory_of_transfer(
        offer != nullptr ? offer->t_len : InboundTransfer::kUnknownLength, cts.blocksize);
  return demand;
}

std::uint32_t Inbound::first_missing(std::uint32_t r_id, std::uint32_t b_num) const {
  const auto* const block = granted(r_id, b_num);
  return block == nullptr ? 0 : block->first_missing(tiles_);
}

const InboundBlock* Inbound::granted(std::uint32_t r_id, std::uint32_t b_num) const {
  const auto* const transfer = transfers_.find(r_id);
  if (transfer == nullptr) return nullptr;
  const auto found = transfer->blocks.find(b_num);
  return found == transfer->blocks.end() ? nullptr : &found->second;
}

const InboundTransfer* Inbound::transfer(std::uint32_t r_id) const {
  return transfers_.find(r_id);
}

// protocol: 8.6
bool Inbound::find_whole(const wire::DataView& data, std::size_t length,
                         InboundTransfer*& out) const {
  // find() decides which answer or Block it belongs to.
  if (data.stu_num() != 0 || !data.has(wire::flag::kLast) || !answers_.empty()) return false;
  auto* const region = transfers_.find(data.r_id());
  if (region == nullptr || !region->region || region->partial != 0) return false;
  if (data.r_mx() != region->mx || region->has(data.b_num()) ||
      data.b_num() - region->b_seq >= region->b_win)
    return false;
  const auto at = tiles_.linear(data.r_bufx(), data.r_offset());
  const auto tile = std::uint64_t{1} << tiles_.stu_log2;
  if (at < region->start || at + length > region->start + region->t_len) return false;
  if ((at & (tile - 1)) + length > tile) return false;
  out = region;
  return true;
}

// Runs once per STU, so it is one function.
[[gnu::flatten]] DropReason Inbound::find(const wire::DataView& data, std::size_t length,
                                          InboundBlock*& out) {
  if (!answers_.empty()) {
    out = answers_.find(data, length, tiles_);
    if (out != nullptr) return out->check_stu(data, length, tiles_);
  }
  if (recent_ != nullptr && recent_->r_id == data.r_id() && recent_->b_num == data.b_num()) {
    out = recent_;
  } else if (const auto why = find_granted(data, out); why != DropReason::kNone) {
    return why;
  }
  if (data.r_mx() != out->transfer->mx) return DropReason::kOutsideGrant;
  return out->check_stu(data, length, tiles_);
}

DropReason Inbound::find_granted(const wire::DataView& data, InboundBlock*& out) {
  auto* const transfer = transfers_.find(data.r_id());
  if (transfer == nullptr) return DropReason::kNoGrant;
  // protocol: 8.10
  if (transfer->has(data.b_num())) return DropReason::kDuplicateBlock;
  if (transfer->region) {
    if (data.b_num() - transfer->b_seq >= transfer->b_win) return DropReason::kBadBNum;
    out = &place_of(*transfer, data.b_num());
    if (out->stus.placed() == 0) out->b_num = data.b_num();
    return DropReason::kNone;
  }
  const auto block = transfer->blocks.find(data.b_num());
  if (block == transfer->blocks.end()) return DropReason::kBadBNum;
  out = recent_ = &block->second;
  return DropReason::kNone;
}

bool Inbound::progress(InboundBlock& block, std::size_t length, std::uint32_t sync, Time now) {
  const bool begun = block.received > 0;
  block.received += length;
  STP_ASSERT(block.received <= block.end - block.start, "a Block gets no more than it may");
  if (block.transfer == nullptr) return false;
  if (block.transfer->region) {
    if (block.stus.placed() == 1) ++block.transfer->partial;
    STP_ASSERT(block.transfer->partial <= block.transfer->b_win,
               "no more Blocks have begun than the window holds");
    return false;
  }
  STP_ASSERT(length <= block.transfer->outstanding, "what arrives was outstanding");
  block.transfer->outstanding -= length;
  account_.arrived();
  auto& grant = block.grant_of(block.stus.newest());
  tell_account(block, grant, begun, length, now);
  account_.settle(length);
  const bool lost = open_.arrived(block, grant, sync, now);
  if (block.is_part() && block.received == block.end - block.start)
    open_.waits_for_grant(static_cast<GrantedBlock&>(block));
  return lost;
}

// The first STU that a CTS has asked for shows how long the path is. If that of a part is lost, the
// next one does not: it has waited for more of its part. After a repeated CTS nobody knows which of
// them it answers.
// protocol: 10.24, 13.10, 13.19
void Inbound::tell_account(InboundBlock& block, const Grant& grant, bool begun, std::size_t length,
                           Time now) {
  if (begun && account_.path() == nullptr) return;
  const bool tells = !grant.begun && (grant.first == block.stus.newest() || !block.parts);
  const auto left = tells ? grant.left : 0;
  const auto delay = left == 0 ? 0 : std::max<Time>(now - left, 1);
  if (!begun) account_.began(block.end - block.start, delay);
  auto* const path = account_.path();
  if (path == nullptr) return;
  path->arrived(length, delay, now);
  if (block.parts != nullptr && open_.shows_loss(block)) path->lost(now);
}

bool Inbound::complete(InboundBlock& block) {
  STP_ASSERT(block.stus.complete(), "a Block that completes has all its STUs");
  if (block.transfer == nullptr) {
    answers_.forget(block.r_id, block.b_num);
    return false;
  }
  auto& transfer = *block.transfer;
  const auto b_num = block.b_num;
  bool passes_lost = false;
  if (transfer.region) {
    STP_ASSERT(transfer.partial > 0, "a Block that completes has begun");
    --transfer.partial;
    block.stus.reset();
    block.tile_known = false;
    block.has_append = false;
    block.received = 0;
  } else {
    const auto at = transfer.blocks.find(b_num);
    STP_ASSERT(at != transfer.blocks.end() && &at->second == &block,
               "a Block that completes is one of its Transfer");
    passes_lost = open_.passed_by(block);
    drop_block(at->second);
    transfer.blocks.erase(at);
  }
  transfer.complete(b_num);
  if (transfer.finished()) transfers_.finished(transfer);
  return passes_lost;
}

}  // namespace stp
