// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/rdm/landing.h"

#include <endian.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

namespace stp::fi::rdm {

LaneMemory::~LaneMemory() {
  if (memory != nullptr) stm_memory_release(memory);
}

int Lanes::take(OfHost& host, std::unique_ptr<LaneMemory>& out) {
  const auto most = host.lanes < kFew ? kMost : kMost - kForOthers;
  if (taken_ >= most) return -ENOBUFS;
  const auto error = find(out);
  if (error != 0) return error;
  ++taken_;
  ++host.lanes;
  return 0;
}

int Lanes::find(std::unique_ptr<LaneMemory>& out) {
  if (!free_.empty()) {
    out = std::move(free_.front());
    free_.pop_front();
    return 0;
  }
  auto made = std::make_unique<LaneMemory>();
  made->pages = long_ < kLong ? kLongLane : kShortLane;
  const auto bytes = made->pages * kLanePage;
  made->bytes = allocate(bytes);
  if (!made->bytes) return -ENOMEM;
  const auto error = stm_memory_register(domain_, made->bytes.get(), bytes,
                                         STM_LOCAL_WRITE | STM_REMOTE_WRITE, &made->memory);
  if (error != 0) return error;
  long_ += made->pages == kLongLane ? 1 : 0;
  out = std::move(made);
  return 0;
}

void Lanes::give_back(OfHost& host, std::unique_ptr<LaneMemory> lane) {
  --taken_;
  --host.lanes;
  if (lane->pages == kLongLane)
    free_.push_front(std::move(lane));
  else
    free_.push_back(std::move(lane));
}

LaneIn::LaneIn(Lanes& lanes, OfHost& host) : lanes_(lanes), host_(host) {
  std::random_device seed;
  base_ = std::uint64_t{seed()} << 32 | seed();
}

LaneIn::~LaneIn() {
  if (region_ != nullptr) stm_region_close(region_);
  if (memory_) lanes_.give_back(host_, std::move(memory_));
}

int LaneIn::open(stm_connection_t connection) {
  if (const auto error = lanes_.take(host_, memory_); error != 0) return error;
  pages_ = LanePages(memory_->pages);
  stm_remote_t remote{};
  const auto error =
      stm_region_open(memory_->memory, memory_->bytes.get(), pages_.count() * kLanePage,
                      STM_REMOTE_WRITE, connection, 0, &region_, &remote);
  key_ = remote.key;
  return error;
}

Head LaneIn::told() const {
  return {.data = base_, .length = pages_.count() * kLanePage, .id = key_, .flags = kRests};
}

// The peer may write there at any time. What it puts last is visible after all other bytes.
bool LaneIn::has(std::uint64_t place, std::size_t put) const {
  std::uint64_t mark = 0;
  std::memcpy(&mark, at(place) + put - kLaneTail, kLaneTail);
  std::atomic_thread_fence(std::memory_order_acquire);
  return be64toh(mark) == lane_mark(base_, place);
}

std::byte* LaneIn::take(std::uint64_t place, std::size_t length, std::size_t put,
                        const std::byte* tail) {
  pages_.use(place, lane_pages(length));
  pieces_.push_back({place, place + lane_pages(length), false});
  std::memcpy(at(place) + put - kLaneTail, tail, kLaneTail + (length - put));
  return at(place);
}

bool LaneIn::done(std::uint64_t place) {
  const auto piece = std::ranges::find(pieces_, place, &Piece::begin);
  if (piece != pieces_.end()) piece->done = true;
  while (!pieces_.empty() && pieces_.front().done) {
    pages_.free(pieces_.front().end);
    pieces_.pop_front();
  }
  return pages_.freed() - told_ >= kTold;
}

bool LaneOut::open(const Head& told) {
  if (open_ || key_ != 0 || told.id == 0 || !is_lane(told.length)) return false;
  open_ = true;
  pages_ = LanePages(static_cast<std::uint32_t>(told.length / kLanePage));
  key_ = told.id;
  base_ = told.data;
  takes_rests_ = (told.flags & kRests) != 0;
  return true;
}

int Buffers::add_block() {
  auto& block = blocks_.emplace_front();
  if (const auto error = block.make(domain_, of_block_, size_); error != 0) {
    blocks_.pop_front();
    return error;
  }
  for (auto& buffer : block.buffers) block.free.push_back(&buffer);
  return 0;
}

int Buffers::take(RxBuffer*& out) {
  auto with_room =
      std::ranges::find_if(blocks_, [](const auto& each) { return !each.free.empty(); });
  if (with_room == blocks_.end()) {
    if (const auto error = add_block(); error != 0) return error;
    with_room = blocks_.begin();
  }
  out = with_room->free.back();
  with_room->free.pop_back();
  return 0;
}

int Buffers::take_further(OfHost& host, RxBuffer*& out) {
  const auto most = host.buffers < kFew ? kShared : kShared - kForOthers;
  if (shared_ >= most) return -ENOBUFS;
  if (const auto error = take(out); error != 0) return error;
  ++shared_;
  ++host.buffers;
  return 0;
}

void Buffers::give_back_further(OfHost& host, RxBuffer& buffer) {
  --shared_;
  --host.buffers;
  give_back(buffer);
}

// One block that is free as a whole stays, for who connects next.
void Buffers::give_back(RxBuffer& buffer) {
  buffer.owner = nullptr;
  auto& block = *buffer.block;
  block.free.push_back(&buffer);
  const auto is_free = [this](const RxBlock& each) { return each.free.size() == of_block_; };
  if (!is_free(block) || std::ranges::count_if(blocks_, is_free) == 1) return;
  blocks_.remove_if([&](const RxBlock& each) { return &each == &block; });
}

}  // namespace stp::fi::rdm
