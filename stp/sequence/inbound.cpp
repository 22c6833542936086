// SPDX-License-Identifier: BSD-3-Clause
#include "stp/sequence/inbound.h"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace stp {

namespace {

// Places for so many Blocks of a region.
std::uint32_t places_of(const InboundTransfer& region) {
  return std::bit_ceil(region.b_win);
}

std::uint64_t tracked_by(const InboundTransfer& region) {
  return std::uint64_t{region.most_stus} * places_of(region);
}

}  // namespace

void Inbound::configure(unsigned bufsize, unsigned stu_log2, bool reuses_ids,
                        const GrantAccount& account) {
  reuses_ids_ = reuses_ids;
  bufsize_ = bufsize;
  stu_log2_ = stu_log2;
  account_ = account;
}

const Inbound::Offer* Inbound::find_offer(std::uint32_t i_id) const {
  auto const found =
      std::find_if(offers_.begin(), offers_.end(), [&](const Offer& o) { return o.i_id == i_id; });
  return found == offers_.end() ? nullptr : &*found;
}

void Inbound::offered(const wire::Header& rts) {
  auto const i_id = rts.s_id;
  auto const t_len = rts.t_len();
  bool const repeated = transfers_.under_way(i_id, t_len);
  Offer const offer{i_id, t_len, rts.mx, !repeated};
  if (auto const* const known = find_offer(i_id)) {
    offers_[static_cast<std::size_t>(known - offers_.data())] = offer;
  } else if (offers_.size() < kMaxOffers) {
    offers_.push_back(offer);
  } else {
    offers_[next_offer_++ % kMaxOffers] = offer;
  }
}

void Inbound::drop_blocks(InboundTransfer& transfer) {
  if (transfer.region) tracked_ -= tracked_by(transfer);
  transfer.window.clear();
  if (transfer.open_blocks == 0) return;
  std::erase_if(blocks_, [&](const auto& entry) {
    if (entry.second.transfer != &transfer) return false;
    drop_block(entry.second);
    return true;
  });
  transfer.open_blocks = 0;
}

void Inbound::end(std::uint32_t r_id) {
  auto* const found = transfers_.find(r_id);
  if (found == nullptr) return;
  drop_blocks(*found);
  transfers_.erase(*found);
}

void Inbound::drop_block(const InboundBlock& block) {
  if (recent_ == &block) recent_ = nullptr;
  tracked_ -= block.stus.capacity();
  account_.settle(block.end - block.start - block.received);
}

void Inbound::clear() {
  for (auto const& entry : blocks_) drop_block(entry.second);
  blocks_.clear();
  gets_.clear();
  any_get_ = false;
  transfers_.clear();
  offers_.clear();
  tracked_ = 0;
}

// The Transfer a CTS belongs to, begun anew where the CTS starts one.
int Inbound::begin(const wire::Header& cts, InboundTransfer*& out) {
  auto const* const offer = find_offer(cts.d_id);
  if (auto* const found = transfers_.find(cts.s_id); found != nullptr) {
    auto& old = *found;
    bool const same = !old.region && old.i_id == cts.d_id &&
                      !(reuses_ids_ && offer != nullptr && offer->fresh && old.has(cts.b_num));
    if (same) {
      out = &old;
      // protocol: 7.11
      return old.blocksize == cts.param ? 0 : -EINVAL;
    }
    end(cts.s_id);
  }
  if (offer != nullptr && cts.param > offer->max_block) return -EINVAL;
  if (!transfers_.make_room()) return -ENOBUFS;
  auto& transfer = transfers_.add(cts.s_id, false);
  transfer.i_id = cts.d_id;
  transfer.blocksize = cts.param;
  transfer.t_len = offer != nullptr ? offer->t_len : InboundTransfer::kUnknownLength;
  if (offer != nullptr) offers_[static_cast<std::size_t>(offer - offers_.data())].fresh = false;
  out = &transfer;
  return 0;
}

// protocol: 7.9, 7.10
int Inbound::grant(const wire::Header& cts, std::uint64_t limit, Time now) {
  if (cts.param > stu_log2_ + wire::kMaxStusOfBlockLog2) return -EINVAL;
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

  auto const start = Address{cts.bufx, cts.offset}.linear(bufsize_);
  auto const known = blocks_.find(key(cts.s_id, cts.b_num));
  if (known != blocks_.end()) {
    if (known->second.start == start && transfer->mx == cts.mx) return 0;  // repeated
    drop_block(known->second);
    blocks_.erase(known);
    --transfer->open_blocks;
  }
  auto const stus = stu_count(start, size, stu_log2_);
  if (stus > kMaxStusOfBlock) return -EINVAL;
  if (tracked_ + stus > kMaxTrackedStus || blocks_.size() >= kMaxOpenBlocks) return -ENOBUFS;
  auto& block = blocks_[key(cts.s_id, cts.b_num)];
  block.transfer = transfer;
  block.b_num = cts.b_num;
  block.start = block.first_address = start;
  block.end = start + size;
  block.first_tile = start >> stu_log2_;
  block.tile_known = true;
  block.stus = StuMap(static_cast<std::uint32_t>(stus));
  block.r_id = cts.s_id;
  block.exact = transfer->t_len != InboundTransfer::kUnknownLength;
  block.cts = cts;
  block.progress = now;
  block.serial = ++next_serial_;
  if (account_.outstanding() == 0) silent_since_ = now;
  account_.grant(size);
  transfer->mx = cts.mx;
  ++transfer->open_blocks;
  tracked_ += stus;
  return 0;
}

// protocol: 7.13, 9.10
int Inbound::open_region(const wire::Header& mra) {
  auto const start = Address{mra.bufx, mra.offset}.linear(bufsize_);
  auto const t_len = mra.t_len();
  if (auto const* const known = transfers_.find(mra.s_id); known != nullptr) {
    auto const& old = *known;
    if (old.region && old.i_id == mra.d_id && old.start == start && old.t_len == t_len &&
        old.mx == mra.mx && old.b_win == mra.param)
      return 0;  // repeated
    end(mra.s_id);
  }
  if (mra.param == 0 || mra.param > kMaxWindow || t_len == 0) return -EINVAL;
  auto const stus = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(stu_count(start, t_len, stu_log2_), kMaxStusOfBlock));
  auto const places = std::bit_ceil(std::uint32_t{mra.param});
  if (tracked_ + std::uint64_t{stus} * places > kMaxTrackedStus || !transfers_.make_room())
    return -ENOBUFS;
  auto& region = transfers_.add(mra.s_id, true);
  region.i_id = mra.d_id;
  region.mx = mra.mx;
  region.t_len = t_len;
  region.start = start;
  region.b_win = mra.param;
  region.most_stus = stus;
  tracked_ += tracked_by(region);
  return 0;
}

InboundBlock& Inbound::place_of(InboundTransfer& region, std::uint32_t b_num) {
  auto& window = region.window;
  if (window.empty()) {
    window.resize(places_of(region));
    for (auto& block : window) {
      block.transfer = &region;
      block.start = region.start;
      block.end = region.start + region.t_len;
      block.anywhere = true;
      block.stus = StuMap(region.most_stus);
    }
  }
  return window[b_num & (window.size() - 1)];
}

Inbound::Demand Inbound::demand(const wire::Header& cts) const {
  auto const* const found = transfers_.find(cts.s_id);
  auto const* const offer = find_offer(cts.d_id);
  bool const begun = found != nullptr && !found->region;
  if (begun && (found->has(cts.b_num) || blocks_.contains(key(cts.s_id, cts.b_num)))) return {};
  auto const block = std::uint64_t{1} << cts.param;
  auto const before = std::uint64_t{cts.b_num} << cts.param;
  if (offer == nullptr) return {block, block};
  if (before > offer->t_len) return {};
  auto const left = offer->t_len - before;
  return {std::min(block, left), left};
}

// protocol: 9.5
std::uint32_t Inbound::first_missing(const InboundBlock& block) const {
  auto const number = block.stus.first_missing();
  if (number == 0) return 0;
  return static_cast<std::uint32_t>(((block.first_tile + number) << stu_log2_) - block.start);
}

std::uint32_t Inbound::first_missing(std::uint32_t r_id, std::uint32_t b_num) const {
  auto const found = blocks_.find(key(r_id, b_num));
  return found == blocks_.end() ? 0 : first_missing(found->second);
}

int Inbound::expect(const wire::Header& get, std::uint64_t length) {
  auto const name = key(get.d_id, get.s_id);
  if (gets_.contains(name)) return 0;
  if (get_is_over(get.s_id)) return -EALREADY;
  if (gets_.size() == kMaxGets) return -ENOBUFS;
  auto& block = gets_[name];
  block.b_num = get.s_id;
  block.r_id = get.d_id;
  block.start = block.first_address = Address{get.sync, get.b_num}.linear(bufsize_);
  block.end = block.start + length;
  block.first_tile = block.start >> stu_log2_;
  block.tile_known = block.exact = true;
  block.value = get.has(wire::flag::kFunction);
  block.cts.mx = get.mx;
  block.stus = StuMap(static_cast<std::uint32_t>(stu_count(block.start, length, stu_log2_)));
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
Counter InboundBlock::check_stu(const wire::Header& data, std::size_t length, unsigned bufsize,
                                unsigned stu_log2) const {
  auto const at = Address{data.bufx, data.offset}.linear(bufsize);
  if (at < start || at + length > end) return Counter::kOutsideGrant;
  auto const tile = at >> stu_log2;
  auto const size = std::uint64_t{1} << stu_log2;
  auto const in_tile = at & (size - 1);
  bool const is_last = data.has(wire::flag::kLast);
  // Every STU but the first begins its tile, every one but the last fills it to the end.
  if (tile < data.param || (data.param > 0 && in_tile != 0) || in_tile + length > size ||
      (!is_last && in_tile + length != size) || (data.param > 0 && length == 0))
    return Counter::kBadStuNum;
  if (tile_known && tile - data.param != first_tile) return Counter::kBadStuNum;
  if (!anywhere && data.param == 0 && at != first_address) return Counter::kBadStuNum;
  switch (stus.check(data.param, is_last)) {
    case StuMap::Check::kImpossible:
      return Counter::kBadStuNum;
    case StuMap::Check::kDuplicate:
      return Counter::kDuplicateStu;
    case StuMap::Check::kNew:
      break;
  }
  // A scheduled Block of known length ends where its Transfer does, not before.
  if (exact && is_last != (at + length == end)) return Counter::kBadStuNum;
  return Counter::kNone;
}

// protocol: 8.6
bool Inbound::find_whole(const wire::Header& data, std::size_t length,
                         InboundTransfer*& out) const {
  // What it answers, or completes, is a matter for find().
  if (data.param != 0 || !data.has(wire::flag::kLast) || !gets_.empty()) return false;
  auto* const region = transfers_.find(data.d_id);
  if (region == nullptr || !region->region || region->partial != 0) return false;
  if (data.mx != region->mx || region->has(data.b_num) ||
      data.b_num - region->b_seq >= region->b_win)
    return false;
  auto const at = Address{data.bufx, data.offset}.linear(bufsize_);
  auto const tile = std::uint64_t{1} << stu_log2_;
  if (at < region->start || at + length > region->start + region->t_len) return false;
  if ((at & (tile - 1)) + length > tile) return false;
  out = region;
  return true;
}

// Once per STU: all that it needs in one function.
[[gnu::flatten]] Counter Inbound::find(const wire::Header& data, std::size_t length,
                                       InboundBlock*& out) {
  if (!gets_.empty() && is_answer(data, length, out))
    return out->check_stu(data, length, bufsize_, stu_log2_);
  if (recent_ != nullptr && recent_->r_id == data.d_id && recent_->b_num == data.b_num) {
    out = recent_;
  } else if (auto const why = find_granted(data, out); why != Counter::kNone) {
    return why;
  }
  if (data.mx != out->transfer->mx) return Counter::kOutsideGrant;
  return out->check_stu(data, length, bufsize_, stu_log2_);
}

// A Get's answer carries the peer's id of its region. It may equal an id of ours, but not with the
// same B_num, Mx and place at once.
// protocol: 7.18
bool Inbound::is_answer(const wire::Header& data, std::size_t length, InboundBlock*& out) {
  auto const get = gets_.find(key(data.d_id, data.b_num));
  if (get == gets_.end()) return false;
  out = &get->second;
  auto const at = Address{data.bufx, data.offset}.linear(bufsize_);
  return out->cts.mx == data.mx && at >= out->start && at + length <= out->end;
}

Counter Inbound::find_granted(const wire::Header& data, InboundBlock*& out) {
  auto* const transfer = transfers_.find(data.d_id);
  if (transfer == nullptr) return Counter::kNoGrant;
  // protocol: 8.10
  if (transfer->has(data.b_num)) return Counter::kDuplicateBlock;
  if (transfer->region) {
    if (data.b_num - transfer->b_seq >= transfer->b_win) return Counter::kBadBNum;
    out = &place_of(*transfer, data.b_num);
    if (out->stus.placed() == 0) out->b_num = data.b_num;
    return Counter::kNone;
  }
  auto const block = blocks_.find(key(data.d_id, data.b_num));
  if (block == blocks_.end()) return Counter::kBadBNum;
  out = recent_ = &block->second;
  return Counter::kNone;
}

// Each sending of a Block has a Sync of its own: more of the one that had begun was not asked for.
// Of one of which nothing had come it is the CTS that was lost, or nothing at all, unless others
// overtook it.
// protocol: 10.14
bool Inbound::progress(InboundBlock& block, std::size_t length, std::uint32_t sync, Time now) {
  bool const begun = block.received > 0;
  block.received += length;
  if (block.transfer == nullptr) return false;
  if (block.transfer->region) {
    if (block.stus.placed() == 1) ++block.transfer->partial;
    return false;
  }
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
  if (block.transfer == nullptr) return unexpect(block.r_id, block.b_num);
  auto& transfer = *block.transfer;
  auto const b_num = block.b_num;
  if (transfer.region) {
    --transfer.partial;
    block.stus.reset();
    block.tile_known = false;
    block.has_append = false;
    block.received = 0;
  } else {
    drop_block(block);
    --transfer.open_blocks;
    blocks_.erase(key(transfer.r_id, b_num));
  }
  transfer.complete(b_num);
  if (transfer.finished()) transfers_.finished(transfer);
}

}  // namespace stp
