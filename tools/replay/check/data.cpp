// SPDX-License-Identifier: BSD-3-Clause
// Checks DATA against its grant and against the tiling (docs/protocol.md, sections 7 and 8).
#include <string_view>

#include "stp/wire/tiling.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

namespace flag = wire::flag;

std::uint64_t address_of(const Said& said) {
  return Address{said.h.bufx, said.h.offset}.linear(said.to.bufsize);
}

unsigned stu_log2(const Said& said) {
  return stu_size_log2(said.to.max_stu, said.from.max_stu, said.to.bufsize);
}

bool answers(const Said& said, const GetRequest& get) {
  if (!get.answer.start || said.h.mx != get.answer.mx) return false;
  const auto at = address_of(said);
  return at >= *get.answer.start && at < *get.answer.start + get.answer.length;
}

std::string bytes_text(std::uint64_t at, std::uint64_t length) {
  return std::to_string(length) + " bytes at linear address " + hex(at);
}

}  // namespace

// protocol: 8.11
void Checker::Impl::check_last_flags(const Said& said) {
  if (!said.h.has(flag::kLast) && said.h.has(flag::kSendState | flag::kInterrupt))
    report(said, Rule::kBlockFlags, "Send_state and Interrupt on Last only",
           operation_text(said.frame));
}

// Whether B_seq has passed the Block. A repeat that was still queued then may carry changed bytes.
// protocol: 9.7
bool Checker::Impl::is_late_repeat(const Decoded& frame) {
  const auto& h = frame.frame.header;
  auto* const c = connections.find(source_of(frame), target_of(frame));
  if (h.op() != wire::Op::kData || c == nullptr) return false;
  const auto* const landing = side_at(*c, target_of(frame)).with_traffic().landings.find(h.d_id);
  return landing != nullptr && ahead_of(*landing, h.b_num) < 0;
}

void Checker::Impl::on_data(const Said& said) {
  const auto& h = said.h;
  auto& traffic = said.to.with_traffic();
  // A region that is put into stays known, however many Transfers there are meanwhile.
  auto* const landing = traffic.landings.find_again(h.d_id);
  // A Transfer of one side and a region of the other may have the same number, and so may a Block
  // and a Get.
  // protocol: 7.18
  if (auto* const get = traffic.gets.find(h.b_num);
      get != nullptr && get->header.d_id == h.d_id && (landing == nullptr || answers(said, *get)))
    return once(get->faulty, [&] {
      check_last_flags(said);
      on_get_data(said, *get);
    });
  if (landing == nullptr) {
    check_last_flags(said);
    if (said.c.managed && traffic.landings.forgot()) count_no_more(said);
    if (!surely(said, traffic.landings.forgot(), Kept::kLandings) ||
        !surely(said, traffic.gets.forgot(), Kept::kGets))
      return;
    report(said, Rule::kNoGrant, "the id of a CTS, MRA or GET", operation_text(said.frame));
    Landing unknown;
    unknown.over = unknown.unknown = true;
    traffic.landings.put(h.d_id, std::move(unknown));
    return;
  }
  if (landing->unknown) return;
  // The answer to a Get that was forgotten, and whose region has the number of this one.
  if (traffic.gets.forgot() && landing->region && h.mx != landing->mx) {
    surely(said, true, Kept::kGets);
    return;
  }
  // protocol: 9.18
  bool faulty = landing->faulty == h.b_num;
  once(faulty, [&] {
    check_last_flags(said);
    if (landing->sender_ended != kNotYet && between(landing->sender_ended, said.now) > kReordering)
      return report(said, Rule::kAfterEnd, "no DATA of a Transfer that its sender has ended",
                    operation_text(said.frame));
    if (said.to.sized && said.from.sized && check_block_data(said, *landing))
      on_managed_data(said, *landing);
  });
  if (faulty) landing->faulty = h.b_num;
}

// protocol: 7.6, 9.11
bool Checker::Impl::check_block_data(const Said& said, Landing& landing) {
  const auto& h = said.h;
  const auto ahead = ahead_of(landing, h.b_num);
  if (ahead < 0) return true;  // a late repeat of a complete Block
  auto* block = landing.blocks.find(h.b_num);
  if (block == nullptr && !landing.region) {
    if (!surely(said, landing.forgot(), Kept::kBlocks)) return true;
    report(said, Rule::kBlockNotGranted, "a Block that a CTS names", named("B_num", h.b_num));
    return false;
  }
  if (landing.region && ahead >= std::int64_t{landing.b_win} &&
      (!landing.partial || surely(said, true, Kept::kLandings))) {
    report(said, Rule::kPutUnacknowledged,
           "B_num below " + std::to_string(landing.b_seq + landing.b_win), named("B_num", h.b_num));
    return false;
  }
  const auto mx = landing.region ? landing.mx : block->mx;
  if (h.mx != mx) {
    report(said, Rule::kWrongMx, named("R_Mx", mx), named("R_Mx", h.mx));
    return false;
  }
  if (!check_buffer(said)) return false;
  if (block == nullptr) {
    Block put;
    put.length = *landing.t_len;
    put.mx = mx;
    block = &landing.blocks.put(h.b_num, std::move(put));
  }
  const auto low = landing.region ? landing.start : *block->start;
  if (!place(said, *block, low, low + (landing.region ? *landing.t_len : block->length)))
    return false;
  check_bytes(said, *block);
  return true;
}

// protocol: 9.7
void Checker::Impl::check_bytes(const Said& said, Block& block) {
  if (said.frame.cut || disturbed(said)) return;
  const auto& stu = said.frame.frame.stu;
  const auto sum =
      std::hash<std::string_view>()({reinterpret_cast<const char*>(stu.data()), stu.size()});
  const auto [at, fresh] = block.sums.try_emplace(said.h.param, sum);
  if (at->second == sum) return;
  at->second = sum;
  report(said, Rule::kBytesChanged, "STU " + std::to_string(said.h.param) + " as it was before",
         "other bytes, though no B_seq has passed " + named("B_num", said.h.b_num));
}

// protocol: 7.6, 8.7
bool Checker::Impl::check_buffer(const Said& said) {
  const auto length = said.frame.frame.stu.size();
  const auto bufsize = std::uint64_t{1} << said.to.bufsize;
  if (said.h.offset >= bufsize) {
    report(said, Rule::kBadOffset, "R_Offset below " + std::to_string(bufsize),
           named("R_Offset", said.h.offset));
    return false;
  }
  const auto longest = std::uint64_t{1} << std::min(said.to.max_stu, said.from.max_stu);
  if (length > longest) {
    report(said, Rule::kStuTooLong, "at most " + std::to_string(longest) + " bytes",
           std::to_string(length));
    return false;
  }
  if (said.h.offset + length > bufsize) {
    report(said, Rule::kCrossesBuffer, "an end inside the buffer of " + std::to_string(bufsize),
           std::to_string(length) + " bytes at " + named("R_Offset", said.h.offset));
    return false;
  }
  return true;
}

// `low` to `high` are the bytes that the grant covers.
bool Checker::Impl::place(const Said& said, Block& block, std::uint64_t low, std::uint64_t high) {
  const auto& h = said.h;
  const auto at = address_of(said);
  const auto length = said.frame.frame.stu.size();
  if (at < low || at + length > high) {
    report(said, Rule::kOutsideGrant, bytes_text(low, high - low) + ", or a part of them",
           bytes_text(at, length));
    return false;
  }
  const auto of_block = static_cast<std::uint16_t>(h.op_flags & (flag::kOrder | flag::kSilent));
  if (!block.flags) block.flags = of_block;
  if (*block.flags != of_block)
    report(said, Rule::kBlockFlags, "Order and Silent as on the Block's other STUs",
           operation_text(said.frame));
  if (!check_tiling(said, block)) return false;
  if (block.seen.size() <= h.param) block.seen.resize(std::size_t{h.param} + 1);
  if (!block.seen[h.param]) {
    block.seen[h.param] = true;
    ++block.seen_count;
  }
  if (h.has(flag::kLast)) block.last = h.param;
  count_data_slot(said, block);
  return true;
}

// protocol: 8.2, 8.3, 8.6
bool Checker::Impl::check_tiling(const Said& said, Block& block) {
  const auto& h = said.h;
  const auto log2 = stu_log2(said);
  const auto size = std::uint64_t{1} << log2;
  const auto at = address_of(said);
  const auto length = said.frame.frame.stu.size();
  const bool last = h.has(flag::kLast);
  const auto wrong = [&](Rule rule, std::string expected) {
    report(
        said, rule, std::move(expected),
        "STU " + std::to_string(h.param) + (last ? " with Last, " : ", ") + bytes_text(at, length));
    return false;
  };
  if (!block.tile) {  // a Put: any of its STUs determines it
    if (block.start) block.tile = *block.start >> log2;
    if (!block.start && (at >> log2) < h.param)
      return wrong(Rule::kStuPlace, "room for the STUs in front of it");
    if (!block.start) block.tile = (at >> log2) - h.param;
  }
  if ((at >> log2) - *block.tile != h.param)
    return wrong(Rule::kStuPlace,
                 "STU " + std::to_string((at >> log2) - *block.tile) + " at that address");
  if (h.param == 0 && !block.start) block.start = at;
  if (h.param == 0 && at != *block.start)
    return wrong(Rule::kStuPlace, "STU 0 at " + hex(*block.start));
  if (h.param != 0 && at % size != 0) return wrong(Rule::kStuPlace, "the beginning of a tile");
  if (at % size + length > size)
    return wrong(Rule::kStuLength, "at most " + std::to_string(size - at % size) + " bytes there");
  const auto end = at + length;
  const bool block_ends = block.exact && end == *block.start + block.length;
  if (last && block.exact && !block_ends)
    return wrong(Rule::kLastStu,
                 "Last on the STU that ends at " + hex(*block.start + block.length));
  if (!last && block_ends) return wrong(Rule::kLastStu, "Last, as the Block ends here");
  if (!last && end % size != 0)
    return wrong(Rule::kStuLength, "an STU that fills its tile, as it is not the Last");
  if (length == 0 && h.param != 0) return wrong(Rule::kStuLength, "at least one byte");
  if (block.last && (last ? h.param != *block.last : h.param >= *block.last))
    return wrong(Rule::kLastStu, "Last on STU " + std::to_string(*block.last) + " only");
  return true;
}

// protocol: 6.2
void Checker::Impl::count_data_slot(const Said& said, Block& block) {
  if (!said.h.has(flag::kLast) || said.h.has(flag::kSilent) || block.slot_counted) return;
  block.slot_counted = true;
  spend_slot(said);
}

}  // namespace stp::replay
