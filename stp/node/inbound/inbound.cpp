// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/inbound.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "stp/base/assert.h"

namespace stp {

namespace {

// Of what has ended; the rest follows in slices.
constexpr std::size_t kTidiedAtOnce = 64;

// A place for a Block of a region counts as a map of so many STUs at least: about what it takes
// itself, so that many small windows are no way to more memory than a few large ones.
// protocol: 7.14
constexpr std::uint64_t kLeastTracked = 1'024;

// Places for so many Blocks of a region.
std::uint32_t places_of(const InboundTransfer& region) {
  return std::bit_ceil(region.b_win);
}

std::uint64_t tracked(std::uint64_t stus, std::uint32_t places) {
  return std::max(stus, kLeastTracked) * places;
}

std::uint64_t tracked_by(const InboundTransfer& region) {
  return tracked(region.most_stus, places_of(region));
}

// What the tables and the allocator add to each of them.
constexpr std::uint64_t kTableEntry = 64;

// With the numbers of Blocks that are complete ahead of their turn, of which there are so many.
std::uint64_t memory_of_transfer(std::uint64_t blocks) {
  return sizeof(InboundTransfer) + 2 * kTableEntry + std::bit_ceil((blocks + 63) / 64) * 8;
}

std::uint64_t memory_of_transfer(std::uint64_t t_len, unsigned blocksize) {
  return memory_of_transfer(
      std::min<std::uint64_t>(t_len >> blocksize, Inbound::kMaxOpenBlocks - 1) + 1);
}

std::uint64_t memory_of_block(std::uint64_t stus) {
  return sizeof(GrantedBlock) + kTableEntry + StuMap::footprint(stus);
}

std::uint64_t memory_of_window(std::uint64_t stus, std::uint32_t places) {
  return places *
         (sizeof(InboundBlock) + HeldEnds::kPlaceSize + kTableEntry + StuMap::footprint(stus));
}

}  // namespace

void Inbound::configure(unsigned bufsize, unsigned stu_log2, bool reuses_ids,
                        const GrantAccount& account, std::shared_ptr<WindowPurse> purse) {
  reuses_ids_ = reuses_ids;
  bufsize_ = bufsize;
  stu_log2_ = stu_log2;
  account_ = account;
  purse_ = std::move(purse);
  remains_ = InboundRemains(purse_);
}

const Inbound::Offer* Inbound::find_offer(std::uint32_t i_id) const {
  work::count("Requests_To_Send", offers_.size());
  auto const found =
      std::find_if(offers_.begin(), offers_.end(), [&](const Offer& o) { return o.i_id == i_id; });
  return found == offers_.end() ? nullptr : &*found;
}

void Inbound::offered(const wire::RequestToSend& rts) {
  bool const repeated = transfers_.under_way(rts.i_id, rts.t_len);
  Offer const offer{rts.i_id, rts.t_len, rts.max_block, !repeated};
  if (auto const* const known = find_offer(rts.i_id)) {
    offers_[static_cast<std::size_t>(known - offers_.data())] = offer;
  } else if (offers_.size() < kMaxOffers) {
    offers_.push_back(offer);
  } else {
    offers_[next_offer_++ % kMaxOffers] = offer;
  }
}

void Inbound::ended_by_peer(std::uint32_t i_id, std::uint32_t r_id) {
  forget_ended(i_id);
  if (ended_.size() == kMaxEnded) ended_.erase(ended_.begin());
  ended_.push_back({i_id, r_id});
  work::count("ENDs", ended_.size());
}

// protocol: 7.12
bool Inbound::has_ended(std::uint32_t i_id, std::uint32_t r_id) const {
  return std::ranges::any_of(ended_, [&](const Ended& e) {
    return e.i_id == i_id && (e.r_id == wire::kNoId || e.r_id == r_id);
  });
}

void Inbound::end(std::uint32_t r_id) {
  auto* const found = transfers_.find(r_id);
  if (found == nullptr) return;
  if (recent_ != nullptr && recent_->transfer == found) recent_ = nullptr;
  auto const stus = found->region ? tracked_by(*found) : found->tracked;
  STP_ASSERT(stus <= tracked_, "the STUs of a Transfer are counted with those of its connection");
  STP_ASSERT(found->blocks.size() <= open_count_, "the Blocks of a Transfer are counted as open");
  STP_ASSERT(!found->blocks.empty() || found->outstanding == 0,
             "a Transfer without a Block is owed nothing");
  tracked_ -= stus;
  open_count_ -= found->blocks.size();
  if (!found->blocks.empty()) account_.settle(found->outstanding);
  remains_.add(transfers_.take(*found));
  remains_.dismantle(kTidiedAtOnce);
}

std::size_t InboundRemains::dismantle(std::size_t most) {
  std::size_t done = 0;
  while (done < most && !apart_.empty()) {
    auto& transfer = apart_.back().mapped();
    done += transfer.dismantle(most - done) + 1;
    if (transfer.blocks.empty() && transfer.window.empty()) apart_.pop_back();
  }
  while (done < most && !together_.empty()) {
    auto& transfers = together_.back();
    if (transfers.empty()) {
      together_.pop_back();
      continue;
    }
    auto const first = transfers.begin();
    done += first->second.dismantle(most - done) + 1;
    if (first->second.blocks.empty() && first->second.window.empty()) transfers.erase(first);
  }
  return done;
}

void Inbound::drop_block(const GrantedBlock& block) {
  if (recent_ == &block) recent_ = nullptr;
  STP_ASSERT(open_count_ > 0, "a Block that is dropped was open");
  STP_ASSERT(block.received <= block.end - block.start, "a Block gets no more than was granted");
  STP_ASSERT(
      block.stus.capacity() <= block.transfer->tracked && block.transfer->tracked <= tracked_,
      "the STUs of a Block are counted with its Transfer and its connection");
  auto const left = block.end - block.start - block.received;
  STP_ASSERT(left <= block.transfer->outstanding, "what a Block lacks its Transfer lacks, too");
  tracked_ -= block.stus.capacity();
  block.transfer->tracked -= block.stus.capacity();
  block.transfer->memory.give(memory_of_block(block.stus.capacity()));
  block.transfer->outstanding -= left;
  --open_count_;
  account_.settle(left);
  STP_ASSERT(open_count_ != 0 || account_.outstanding() == 0, "without a Block nothing is owed");
}

InboundRemains Inbound::clear() {
  STP_ASSERT(open_count_ != 0 || account_.outstanding() == 0, "without a Block nothing is owed");
  if (open_count_ != 0) account_.settle(account_.outstanding());
  auto remains = std::exchange(remains_, InboundRemains(purse_));
  remains.add(transfers_.take_all());
  open_.disband();
  open_count_ = 0;
  recent_ = nullptr;
  gets_.clear();
  any_get_ = false;
  offers_.clear();
  ended_.clear();
  tracked_ = 0;
  return remains;
}

bool Inbound::has_memory(std::uint64_t bytes, const InboundTransfer* but) {
  constexpr int kForgotten = 2;  // about what a Block and its Transfer take
  if (!purse_ || purse_->has(bytes)) return true;
  for (int i = 0; i < kForgotten && transfers_.forget_oldest(but); ++i)
    if (purse_->has(bytes)) return true;
  return false;
}

// The Transfer a CTS belongs to, begun anew where the CTS starts one.
int Inbound::begin(const wire::ClearToSend& cts, InboundTransfer*& out) {
  auto const* const offer = find_offer(cts.i_id);
  if (auto* const found = transfers_.find(cts.r_id); found != nullptr) {
    auto& old = *found;
    bool const same = !old.region && old.i_id == cts.i_id &&
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
  auto const t_len = offer != nullptr ? offer->t_len : InboundTransfer::kUnknownLength;
  WindowBytes memory;
  auto const bytes = memory_of_transfer(t_len, cts.blocksize);
  if (!has_memory(bytes) || !memory.add(purse_.get(), bytes)) return -EDQUOT;
  auto& transfer = transfers_.begin(cts.r_id, cts.i_id, t_len);
  transfer.memory = std::move(memory);
  transfer.blocksize = cts.blocksize;
  if (offer != nullptr) offers_[static_cast<std::size_t>(offer - offers_.data())].fresh = false;
  out = &transfer;
  return 0;
}

// protocol: 7.9, 7.10
int Inbound::grant(const wire::ClearToSend& cts, std::uint64_t limit, Time now) {
  if (cts.blocksize > stu_log2_ + wire::kMaxStusOfBlockLog2) return -EINVAL;
  if (has_ended(cts.i_id, cts.r_id)) return -EALREADY;
  InboundTransfer* transfer = nullptr;
  if (auto const error = begin(cts, transfer); error != 0) return error;

  auto size = std::uint64_t{1} << transfer->blocksize;
  if (transfer->t_len != InboundTransfer::kUnknownLength) {
    if (cts.b_num >= transfer->block_count()) return -EINVAL;
    size = std::min(size, transfer->t_len - (std::uint64_t{cts.b_num} << transfer->blocksize));
  }
  if (transfer->has(cts.b_num)) return 0;
  if (cts.b_num - transfer->b_seq >= kMaxOpenBlocks) return -EINVAL;
  size = std::min(size, limit);

  auto const start = Address{cts.r_bufx, cts.r_offset}.linear(bufsize_);
  auto& blocks = transfer->blocks;
  if (auto const known = blocks.find(cts.b_num); known != blocks.end()) {
    if (known->second.start == start && transfer->mx == cts.r_mx) return 0;  // repeated
    drop_block(known->second);
    blocks.erase(known);
  }
  auto const stus = stu_count(start, size, stu_log2_);
  if (stus > kMaxStusOfBlock) return -EINVAL;
  if (tracked_ + stus > kMaxTrackedStus || open_count_ >= kMaxOpenBlocks) return -ENOBUFS;
  auto const bytes = memory_of_block(stus);
  if (!has_memory(bytes, transfer)) return -EDQUOT;
  StuMap map(static_cast<std::uint32_t>(stus));
  auto& block = blocks[cts.b_num];
  // From here on nothing can fail: there is so much memory.
  auto const paid = transfer->memory.add(purse_.get(), bytes);
  STP_ASSERT(paid, "the purse has what it said it has");
  block.transfer = transfer;
  block.b_num = cts.b_num;
  block.start = block.first_address = start;
  block.end = start + size;
  block.first_tile = start >> stu_log2_;
  block.tile_known = true;
  block.stus = std::move(map);
  block.r_id = cts.r_id;
  block.exact = transfer->t_len != InboundTransfer::kUnknownLength;
  block.cts = cts;
  block.progress = now;
  block.serial = ++next_serial_;
  open_.push_back(block);
  ++open_count_;
  if (account_.outstanding() == 0) silent_since_ = now;
  account_.grant(size);
  transfer->mx = cts.r_mx;
  transfer->tracked += stus;
  transfer->outstanding += size;
  tracked_ += stus;
  STP_ASSERT(transfer->tracked <= tracked_ && transfer->outstanding <= account_.outstanding(),
             "what a Transfer has granted its connection has granted");
  return 0;
}

// protocol: 7.13, 9.10
int Inbound::open_region(const wire::MemoryRegionAvailable& mra) {
  if (has_ended(mra.i_id, mra.r_id)) return -EALREADY;
  auto const start = Address{mra.r_bufx, mra.r_offset}.linear(bufsize_);
  auto const t_len = mra.t_len;
  if (auto const* const known = transfers_.find(mra.r_id); known != nullptr) {
    auto const& old = *known;
    if (old.region && old.i_id == mra.i_id && old.start == start && old.t_len == t_len &&
        old.mx == mra.r_mx && old.b_win == mra.b_win)
      return 0;  // repeated
    end(mra.r_id);
  }
  if (mra.b_win == 0 || mra.b_win > kMaxWindow || t_len == 0) return -EINVAL;
  auto const stus = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(stu_count(start, t_len, stu_log2_), kMaxStusOfBlock));
  auto const places = std::bit_ceil(std::uint32_t{mra.b_win});
  if (tracked_ + tracked(stus, places) > kMaxTrackedStus || !transfers_.make_room())
    return -ENOBUFS;
  WindowBytes memory;
  auto const bytes = memory_of_transfer(places) + memory_of_window(stus, places);
  if (!has_memory(bytes) || !memory.add(purse_.get(), bytes)) return -EDQUOT;
  auto& region = transfers_.add_region(mra.r_id);
  region.memory = std::move(memory);
  region.i_id = mra.i_id;
  region.mx = mra.r_mx;
  region.t_len = t_len;
  region.start = start;
  region.b_win = mra.b_win;
  region.most_stus = stus;
  tracked_ += tracked_by(region);
  return 0;
}

InboundBlock& Inbound::place_of(InboundTransfer& region, std::uint32_t b_num) {
  auto& window = region.window;
  if (window.empty()) window.resize(places_of(region));
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

Inbound::Demand Inbound::demand(const wire::ClearToSend& cts) const {
  auto const* const found = transfers_.find(cts.r_id);
  auto const* const offer = find_offer(cts.i_id);
  bool const begun = found != nullptr && !found->region;
  if (begun && (found->has(cts.b_num) || found->blocks.contains(cts.b_num))) return {};
  auto const block = std::uint64_t{1} << cts.blocksize;
  auto const before = std::uint64_t{cts.b_num} << cts.blocksize;
  if (offer != nullptr && before > offer->t_len) return {};
  Demand demand{.bytes = block, .remaining = block};
  if (offer != nullptr) {
    demand.remaining = offer->t_len - before;
    demand.bytes = std::min(block, demand.remaining);
  }
  auto const start = Address{cts.r_bufx, cts.r_offset}.linear(bufsize_);
  demand.memory = memory_of_block(stu_count(start, demand.bytes, stu_log2_));
  if (!begun)
    demand.memory += memory_of_transfer(
        offer != nullptr ? offer->t_len : InboundTransfer::kUnknownLength, cts.blocksize);
  return demand;
}

// protocol: 9.5
std::uint32_t Inbound::first_missing(const InboundBlock& block) const {
  auto const number = block.stus.first_missing();
  if (number == 0) return 0;
  return static_cast<std::uint32_t>(((block.first_tile + number) << stu_log2_) - block.start);
}

std::uint32_t Inbound::first_missing(std::uint32_t r_id, std::uint32_t b_num) const {
  auto const* const transfer = transfers_.find(r_id);
  if (transfer == nullptr) return 0;
  auto const found = transfer->blocks.find(b_num);
  return found == transfer->blocks.end() ? 0 : first_missing(found->second);
}

int Inbound::expect(const wire::Get& get, std::uint64_t length, bool value) {
  auto const name = key(get.r_id, get.g_num);
  if (gets_.contains(name)) return 0;
  if (get_is_over(get.g_num)) return -EALREADY;
  if (gets_.size() == kMaxGets) return -ENOBUFS;
  auto const start = Address{get.i_bufx, get.i_offset}.linear(bufsize_);
  StuMap map(static_cast<std::uint32_t>(stu_count(start, length, stu_log2_)));
  auto& block = gets_[name];
  block.b_num = get.g_num;
  block.r_id = get.r_id;
  block.start = block.first_address = start;
  block.end = block.start + length;
  block.first_tile = block.start >> stu_log2_;
  block.tile_known = block.exact = true;
  block.value = value;
  block.cts.r_mx = get.i_mx;
  block.stus = std::move(map);
  return 0;
}

// G_nums count up by one, so the newest and a window behind it tell which are over.
bool Inbound::get_is_over(std::uint32_t g_num) {
  auto const ahead = static_cast<std::int32_t>(g_num - newest_get_);
  if (!any_get_ || ahead > 0) {
    auto const shift = any_get_ ? static_cast<std::uint32_t>(ahead) : kMaxGets;
    gets_over_ = shift >= kMaxGets ? 0 : gets_over_ << shift;
    any_get_ = true;
    newest_get_ = g_num;
    return false;
  }
  auto const behind = newest_get_ - g_num;
  return behind >= kMaxGets || (gets_over_ >> behind & 1) != 0;
}

void Inbound::unexpect(std::uint32_t r_id, std::uint32_t g_num) {
  if (gets_.erase(key(r_id, g_num)) == 0) return;
  auto const behind = newest_get_ - g_num;
  if (any_get_ && behind < kMaxGets) gets_over_ |= std::uint64_t{1} << behind;
}

const InboundTransfer* Inbound::transfer(std::uint32_t r_id) const {
  return transfers_.find(r_id);
}

// protocol: 8.6
DropReason InboundBlock::check_stu(const wire::DataView& data, std::size_t length, unsigned bufsize,
                                   unsigned stu_log2) const {
  auto const at = Address{data.r_bufx(), data.r_offset()}.linear(bufsize);
  if (at < start || at + length > end) return DropReason::kOutsideGrant;
  auto const tile = at >> stu_log2;
  auto const size = std::uint64_t{1} << stu_log2;
  auto const in_tile = at & (size - 1);
  bool const is_last = data.has(wire::flag::kLast);
  // Every STU but the first begins its tile, every one but the last fills it to the end.
  if (tile < data.stu_num() || (data.stu_num() > 0 && in_tile != 0) || in_tile + length > size ||
      (!is_last && in_tile + length != size) || (data.stu_num() > 0 && length == 0))
    return DropReason::kBadStuNum;
  if (tile_known && tile - data.stu_num() != first_tile) return DropReason::kBadStuNum;
  if (!anywhere && data.stu_num() == 0 && at != first_address) return DropReason::kBadStuNum;
  switch (stus.check(data.stu_num(), is_last)) {
    case StuMap::Check::kImpossible:
      return DropReason::kBadStuNum;
    case StuMap::Check::kDuplicate:
      return DropReason::kDuplicateStu;
    case StuMap::Check::kNew:
      break;
  }
  // A scheduled Block of known length ends where its Transfer does, not before.
  if (exact && is_last != (at + length == end)) return DropReason::kBadStuNum;
  return DropReason::kNone;
}

// protocol: 8.6
bool Inbound::find_whole(const wire::DataView& data, std::size_t length,
                         InboundTransfer*& out) const {
  // What it answers, or completes, is a matter for find().
  if (data.stu_num() != 0 || !data.has(wire::flag::kLast) || !gets_.empty()) return false;
  auto* const region = transfers_.find(data.r_id());
  if (region == nullptr || !region->region || region->partial != 0) return false;
  if (data.r_mx() != region->mx || region->has(data.b_num()) ||
      data.b_num() - region->b_seq >= region->b_win)
    return false;
  auto const at = Address{data.r_bufx(), data.r_offset()}.linear(bufsize_);
  auto const tile = std::uint64_t{1} << stu_log2_;
  if (at < region->start || at + length > region->start + region->t_len) return false;
  if ((at & (tile - 1)) + length > tile) return false;
  out = region;
  return true;
}

// Once per STU: all that it needs in one function.
[[gnu::flatten]] DropReason Inbound::find(const wire::DataView& data, std::size_t length,
                                          InboundBlock*& out) {
  if (!gets_.empty() && is_answer(data, length, out))
    return out->check_stu(data, length, bufsize_, stu_log2_);
  if (recent_ != nullptr && recent_->r_id == data.r_id() && recent_->b_num == data.b_num()) {
    out = recent_;
  } else if (auto const why = find_granted(data, out); why != DropReason::kNone) {
    return why;
  }
  if (data.r_mx() != out->transfer->mx) return DropReason::kOutsideGrant;
  return out->check_stu(data, length, bufsize_, stu_log2_);
}

// A Get's answer carries the peer's id of its region. It may equal an id of ours, but not with the
// same B_num, Mx and place at once.
// protocol: 7.18
bool Inbound::is_answer(const wire::DataView& data, std::size_t length, InboundBlock*& out) {
  auto const get = gets_.find(key(data.r_id(), data.b_num()));
  if (get == gets_.end()) return false;
  out = &get->second;
  auto const at = Address{data.r_bufx(), data.r_offset()}.linear(bufsize_);
  return out->cts.r_mx == data.r_mx() && at >= out->start && at + length <= out->end;
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
  auto const block = transfer->blocks.find(data.b_num());
  if (block == transfer->blocks.end()) return DropReason::kBadBNum;
  out = recent_ = &block->second;
  return DropReason::kNone;
}

// Each sending of a Block has a Sync of its own: more of the one that had begun was not asked for.
// Of one of which nothing had come it is the CTS that was lost, or nothing at all, unless others
// overtook it.
// protocol: 10.14
bool Inbound::progress(InboundBlock& block, std::size_t length, std::uint32_t sync, Time now) {
  bool const begun = block.received > 0;
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
  STP_ASSERT(block.serial != 0 && block.serial <= next_serial_, "a granted Block has a number");
  block.transfer->outstanding -= length;
  account_.arrived();
  account_.settle(length);
  if (block.repeats != 0) block.asked_for = !begun || sync != block.sync;
  bool const lost = block.repeats != 0 && block.asked_for && (begun || block.overtaken);
  silence_.broken(block.serial, block.asked_for, now - silent_since_, now);
  silent_since_ = now;
  block.progress = now;
  block.repeats = 0;
  block.overtaken = false;
  block.sync = sync;
  latest_serial_ = std::max(latest_serial_, block.serial);
  last_arrival_ = now;
  return lost;
}

void Inbound::complete(InboundBlock& block) {
  STP_ASSERT(block.stus.complete(), "a Block that completes has all its STUs");
  if (block.transfer == nullptr) return unexpect(block.r_id, block.b_num);
  auto& transfer = *block.transfer;
  auto const b_num = block.b_num;
  if (transfer.region) {
    STP_ASSERT(transfer.partial > 0, "a Block that completes has begun");
    --transfer.partial;
    block.stus.reset();
    block.tile_known = false;
    block.has_append = false;
    block.received = 0;
  } else {
    auto const at = transfer.blocks.find(b_num);
    STP_ASSERT(at != transfer.blocks.end() && &at->second == &block,
               "a Block that completes is one of its Transfer");
    drop_block(at->second);
    transfer.blocks.erase(at);
  }
  transfer.complete(b_num);
  if (transfer.finished()) transfers_.finished(transfer);
}

}  // namespace stp
