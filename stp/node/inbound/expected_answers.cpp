// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/inbound/expected_answers.h"

#include <cerrno>
#include <utility>

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
  block.end = block.start + length;
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

}  // namespace stp
