// SPDX-License-Identifier: BSD-3-Clause
// Transfers and regions: requests and their answers, grants, DATA, Get and FetchOp.
#include <string_view>

#include "stp/wire/big_endian.h"
#include "stp/wire/missing_stus.h"
#include "stp/wire/tiling.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/check/connection.h"
#include "tools/replay/text.h"

namespace stp::replay {

// --- RTS, RTR, RMR and their answers; END and EA (docs/protocol.md, section 9)

namespace {

using wire::Op;

std::uint64_t pair_of(std::uint32_t d_id, std::uint32_t s_id) {
  return std::uint64_t{d_id} << 32 | s_id;
}

// Whether the sender of the RTS `frame` sends no more than a CTS names.
// protocol: 13.19
std::optional<bool> heeds_parts(const Decoded& frame) {
  if (frame.frame.option.empty()) return false;
  const auto words =
      frame.beginning(frame.frame.option, wire::kAbilitiesAt + sizeof(std::uint32_t));
  if (words.empty()) return std::nullopt;
  return (wire::load32(words.data() + wire::kAbilitiesAt) & wire::kSendsParts) != 0;
}

std::uint32_t second_word(const Decoded& frame) {
  const auto words = frame.beginning(frame.frame.option, 2 * sizeof(std::uint32_t));
  return words.empty() ? 0 : wire::load32(words.data() + sizeof(std::uint32_t));
}

}  // namespace

std::uint32_t option_word(const Decoded& frame) {
  const auto word = frame.beginning(frame.frame.option, sizeof(std::uint32_t));
  return word.empty() ? 0 : wire::load32(word.data());
}

// protocol: 9.1, 9.9
void Checker::Impl::on_request(const Said& said) {
  const auto& h = said.h;
  auto& requests = said.from.with_traffic().requests;
  if (h.s_id == wire::kNoId) return report(said, Rule::kIdNone, "an I_id", "0xffffffff");
  if (h.op() == Op::kRequestToSend && h.d_id != wire::kNoId) {
    auto& asked = said.to.with_traffic().requests;
    auto* const read = asked.find(h.d_id);
    if (read == nullptr || read->op != Op::kRequestToReceive) {
      if (surely(said, asked.forgot(), Kept::kRequests))
        report(said, Rule::kReadUnasked, "the I_id of an RTR, or none",
               named_hex("RTR_I_id", h.d_id));
    } else {
      if (h.t_len() > read->t_len)
        report(said, Rule::kReadUnasked, "no more than T_len " + std::to_string(read->t_len),
               named("T_len", h.t_len()));
      read->over = true;  // the RTS replaces it
    }
  }
  Request made;
  made.op = h.op();
  made.t_len = h.t_len();
  made.max_block = h.mx;
  made.cts_req = h.param;
  made.word = option_word(said.frame);
  if (h.op() == Op::kRequestMemoryRegion) made.least = second_word(said.frame);
  made.heeds_parts = heeds_parts(said.frame);
  auto* known = requests.find(h.s_id);
  const bool fresh = known == nullptr || known->over;
  if (fresh) {
    known = &requests.put(h.s_id, made);
  } else if (known->op != made.op || known->t_len != made.t_len ||
             known->max_block != made.max_block) {
    report(said, Rule::kIdInUse, "another I_id, or the same request again",
           operation_text(said.frame));
  }
  if (h.op() == Op::kRequestToSend) on_managed_request(said, *known, fresh);
}

// protocol: 9.2
void Checker::Impl::on_answer(const Said& said) {
  const auto& h = said.h;
  auto& requests = said.to.with_traffic().requests;
  auto* const request = requests.find(h.d_id);
  if (request == nullptr || request->op == Op::kRequestMemoryRegion) {
    if (surely(said, requests.forgot(), Kept::kRequests))
      report(said, Rule::kAnswerUnasked, "the I_id of an RTS or RTR", operation_text(said.frame));
    return;
  }
  request->tries.answered = true;
  if (h.has(wire::flag::kReject))
    request->over = true;
  else if (h.s_id == wire::kNoId)
    report(said, Rule::kIdNone, "an R_id", "0xffffffff");
}

// Either side may end a Transfer: its sender names the peer's R_id, its receiver the peer's I_id.
// protocol: 9.18, 9.20
void Checker::Impl::on_end(const Said& said) {
  const auto& h = said.h;
  auto& mine = said.from.with_traffic();
  auto& theirs = said.to.with_traffic();
  auto* end = mine.ends.find(pair_of(h.d_id, h.s_id));
  if (end == nullptr) end = &mine.ends.put(pair_of(h.d_id, h.s_id), {});
  auto& tries = end->tries;
  if (tries.count == 0 || tries.answered) tries = {said.now, said.now, said.frame.number, 0, false};
  tries.last = said.now;
  ++tries.count;
  if (auto* const sent = theirs.landings.find(h.d_id); sent != nullptr && sent->i_id == h.s_id) {
    sent->over = true;
    if (sent->sender_ended == kNotYet) sent->sender_ended = said.now;
  }
  if (auto* const received = mine.landings.find(h.s_id);
      received != nullptr && (received->i_id == h.d_id || h.d_id == wire::kNoId))
    received->over = true;
  if (auto* const request = mine.requests.find(h.s_id)) {
    check_withdrawal(said, *request);
    request->over = true;
  }
  if (auto* const request = theirs.requests.find(h.d_id)) request->over = true;
}

void Checker::Impl::on_end_ack(const Said& said) {
  const auto& h = said.h;
  auto& theirs = said.to.with_traffic();
  auto* end = theirs.ends.find(pair_of(h.s_id, h.d_id));
  if (end == nullptr) end = theirs.ends.find(pair_of(wire::kNoId, h.d_id));
  if (end != nullptr) {
    end->tries.answered = true;
  } else if (surely(said, theirs.ends.forgot(), Kept::kEnds)) {
    report(said, Rule::kEaUnasked, "the ids of an END", operation_text(said.frame));
  }
  if (auto* const sent = theirs.landings.find(h.d_id); sent != nullptr && sent->i_id == h.s_id) {
    sent->over = true;
    if (sent->sender_ended == kNotYet) sent->sender_ended = said.now;
  }
}

// --- grants of a receiver: CTS and MRA (docs/protocol.md, sections 7 and 9)

namespace {

constexpr TraceTime kLeastDataTimeout = 1'000'000;  // protocol: 10.3
// What is at least so many STUs behind a Last is lost.
constexpr std::uint32_t kLeastReordering = 8;   // protocol: 10.22
constexpr std::uint32_t kMostPutBlocks = 1024;  // protocol: 7.13

// Whether a repeated R_id refers to the same Transfer as before.
bool continues(const Landing& known, bool region, std::uint32_t i_id) {
  return known.region == region && known.i_id == i_id && !known.over;
}

// Whether a grant for that request, with an R_id that is not known, may belong to a Transfer or
// region that was forgotten.
bool may_continue(const ByKind<Landing>& landings, const ByKind<Request>& requests,
                  const Request* request) {
  return request == nullptr ? landings.forgot() && requests.forgot()
                            : landings.forgot() && request->granted;
}

}  // namespace

// protocol: 7.13
void Checker::Impl::on_region(const Said& said) {
  const auto& h = said.h;
  auto& requests = said.to.with_traffic().requests;
  auto* const request = requests.find(h.d_id);
  const bool asked = request != nullptr && request->op == wire::Op::kRequestMemoryRegion;
  if (!asked && surely(said, requests.forgot(), Kept::kRequests))
    report(said, Rule::kAnswerUnasked, "the I_id of an RMR", operation_text(said.frame));
  if (h.has(wire::flag::kReject)) {
    if (asked) request->over = true;
    return;
  }
  if (h.mx == 0) report(said, Rule::kMxZero, "an Mx other than 0", "R_Mx 0");
  if (h.s_id == wire::kNoId) report(said, Rule::kIdNone, "an R_id", "0xffffffff");
  if (h.param == 0 || h.param > kMostPutBlocks)
    report(said, Rule::kPutWindowSize, "B_win from 1 to 1024", named("B_win", h.param));
  if (!said.from.sized) return;
  if (h.offset >= std::uint64_t{1} << said.from.bufsize)
    report(said, Rule::kGrantOffset, "R_Offset below 2^" + std::to_string(said.from.bufsize),
           named_hex("R_Offset", h.offset));
  auto& landings = said.from.with_traffic().landings;
  const bool partial = may_continue(landings, said.to.with_traffic().requests, request);
  if (asked) request->granted = true;
  if (auto* const known = landings.find(h.s_id)) {
    if (continues(*known, true, h.d_id)) return;  // a repeated answer
    if (!known->over)
      report(said, Rule::kIdInUse, "an R_id that is free", named_hex("R_id", h.s_id));
  }
  Landing region;
  region.i_id = h.d_id;
  region.ring = said.c.managed && asked && request->word == managed::kRingName;
  region.region = true;
  region.partial = partial;
  region.t_len = h.t_len();
  region.start = Address{h.bufx, h.offset}.linear(said.from.bufsize);
  region.b_win = h.param;
  region.mx = h.mx;
  if (asked) on_managed_region(said, *request, region);
  landings.put(h.s_id, std::move(region));
}

void Checker::Impl::on_clear_to_send(const Said& said) {
  const auto& [frame, h, c, from, to, now] = said;
  if (h.mx == 0) report(said, Rule::kMxZero, "an Mx other than 0", "R_Mx 0");
  if (h.s_id == wire::kNoId) report(said, Rule::kIdNone, "an R_id", "0xffffffff");
  if (!from.sized) return;
  // protocol: 7.8
  if (h.offset >= std::uint64_t{1} << from.bufsize)
    report(said, Rule::kGrantOffset, "R_Offset below 2^" + std::to_string(from.bufsize),
           named_hex("R_Offset", h.offset));
  if (to.sized) {  // protocol: 3.12
    const auto most =
        stu_size_log2(from.max_stu, to.max_stu, from.bufsize) + wire::kMaxStusOfBlockLog2;
    if (h.param > most)
      report(said, Rule::kStusOfBlock, "Blocksize of at most " + std::to_string(most),
             named("Blocksize", h.param));
  }
  auto* const request = to.with_traffic().requests.find(h.d_id);
  const bool offered = request != nullptr && request->op == wire::Op::kRequestToSend;
  if (offered) request->tries.answered = true;
  // protocol: 9.4
  if (offered && h.param > request->max_block)
    report(said, Rule::kBlocksize,
           "Blocksize of at most Max_Block " + std::to_string(request->max_block),
           named("Blocksize", h.param));
  auto& landings = from.with_traffic().landings;
  const bool partial = may_continue(landings, to.with_traffic().requests, request);
  if (offered) request->granted = true;
  auto* landing = landings.find_again(h.s_id);
  if (landing != nullptr && !continues(*landing, false, h.d_id)) {
    if (!landing->over)
      report(said, Rule::kIdInUse, "an R_id that is free", named_hex("R_id", h.s_id));
    landing = nullptr;
  }
  if (landing == nullptr) {
    Landing transfer;
    transfer.i_id = h.d_id;
    transfer.blocksize = h.param;
    transfer.partial = partial;
    if (offered && !request->over) transfer.t_len = request->t_len;
    landing = &landings.put(h.s_id, std::move(transfer));
  }
  if (landing->blocksize != h.param)
    report(said, Rule::kBlocksize,
           named("Blocksize", *landing->blocksize) + ", as in the first CTS",
           named("Blocksize", h.param));
  if (ahead_of(*landing, h.b_num) < 0) return;  // it is complete
  // protocol: 7.9
  auto length = std::uint64_t{1} << *landing->blocksize;
  const auto begins = std::uint64_t{h.b_num} << *landing->blocksize;
  if (landing->t_len) {
    const bool empty = *landing->t_len == 0 && h.b_num == 0;
    if (begins >= *landing->t_len && !empty)
      return report(said, Rule::kGrantBeyond, "a Block of T_len " + std::to_string(*landing->t_len),
                    named("B_num", h.b_num));
    length = std::min(length, *landing->t_len - begins);
  }
  const auto start = Address{h.bufx, h.offset}.linear(from.bufsize);
  auto* block = landing->blocks.find(h.b_num);
  const bool again = block != nullptr && block->start == start && block->mx == h.mx;
  // protocol: 9.5
  if (!again && h.sync != 0 && surely(said, landing->forgot(), Kept::kBlocks))
    report(said, Rule::kFOffset, "F_Offset 0 in a Block's first CTS",
           named_hex("F_Offset", h.sync));
  if (h.sync != 0 && h.sync >= length)
    report(said, Rule::kFOffset, "F_Offset below " + std::to_string(length),
           named("F_Offset", h.sync));
  if (again && on_later_part(said, *block)) {
    block->granted = now;
    return;
  }
  if (again) {  // protocol: 10.3, 10.22
    const auto gap = between(block->granted, now);
    const bool passed =
        block->granted <= from.with_traffic().passed || block->last.value_or(0) >= kLeastReordering;
    const bool soon = gap > kLinkCopies && gap < kLeastDataTimeout - kLeastDataTimeout / 5;
    if (soon && !passed && !disturbed(said))
      report(
          said, Rule::kCtsTooSoon,
          "a repeated CTS after 1 ms, or after a Block that was granted later, or a Last 8 STUs on",
          "after " + seconds(gap) + " s");
    block->granted = now;
    return;
  }
  Block fresh;
  fresh.start = start;
  fresh.length = fresh.granted_end = length;
  fresh.exact = landing->t_len.has_value();
  fresh.mx = h.mx;
  fresh.granted = now;
  on_first_part(said, *landing, offered ? request : nullptr, fresh);
  landing->blocks.put(h.b_num, std::move(fresh));
  landing->asked = 0;
  if (landing->faulty == h.b_num) landing->faulty.reset();
  if (offered) check_outstanding(said, *landing, *request);
}

// --- DATA, against its grant and against the tiling (docs/protocol.md, sections 7 and 8)

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
    put.length = put.granted_end = *landing.t_len;
    put.mx = mx;
    block = &landing.blocks.put(h.b_num, std::move(put));
  }
  const auto low = landing.region ? landing.start : *block->start;
  if (!place(said, *block, low, low + (block->heeded ? block->granted_end : block->length)))
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
    // Of several datagrams that were captured as one and cut, nothing tells where the first ends.
    if (said.frame.cut && said.frame.ends) {
      tell_joined(said.frame);
      return false;
    }
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
  block.seen.add(h.param);
  if (h.has(flag::kLast)) block.last = h.param;
  if (block.whole()) {
    auto& passed = said.to.with_traffic().passed;
    passed = std::max(passed, block.granted);
  }
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

// --- Get and FetchOp (docs/protocol.md, sections 7 and 9)

namespace {

using wire::Function;
constexpr std::size_t kMostGets = 64;  // protocol: 9.16
constexpr std::uint32_t kOperand = 8;

std::uint64_t length_of(const wire::Header& h) {
  return h.param == 0 ? 65'536 : h.param;
}

}  // namespace

void Checker::Impl::on_get(const Said& said) {
  const auto& h = said.h;
  if (h.has(wire::flag::kReject)) {  // protocol: 9.17
    auto& gets = said.to.with_traffic().gets;
    if (auto* const get = gets.find(h.s_id))
      get->tries.answered = true;
    else if (surely(said, gets.forgot(), Kept::kGets))
      report(said, Rule::kRefusalUnasked, "the G_num of a GET", named("G_num", h.s_id));
    return;
  }
  if (h.function() == Function::kFetchOpComplete) {
    if (auto* const get = said.from.with_traffic().gets.find(h.s_id)) get->taken_back = true;
    return;
  }
  on_get_request(said);
}

// protocol: 7.15, 7.17
void Checker::Impl::on_get_request(const Said& said) {
  const auto& h = said.h;
  auto& traffic = said.from.with_traffic();
  const bool fetch = h.function() != Function::kGet;
  if (fetch && (h.param != kOperand || h.offset % kOperand != 0))
    report(said, Rule::kFetchOperand, "8 bytes at a multiple of 8", operation_text(said.frame));
  if (auto* const known = traffic.gets.find(h.s_id)) {
    known->tries.last = said.now;
    ++known->tries.count;
    auto repeated = h;
    repeated.cksum = known->header.cksum;
    if (repeated != known->header)
      report(said, Rule::kIdInUse, "another G_num, or the same request again",
             operation_text(said.frame));
    return;
  }
  if (said.to.sized) {
    auto& landings = said.to.with_traffic().landings;
    const auto* const region = landings.find(h.d_id);
    const auto at = Address{h.bufx, h.offset}.linear(said.to.bufsize);
    const bool known = region != nullptr && region->region;
    const bool inside = known && at >= region->start &&
                        at + length_of(h) <= region->start + region->t_len.value_or(0);
    if (!inside && (known || surely(said, landings.forgot(), Kept::kLandings)))
      report(said, Rule::kGetOutside, "a region that an MRA opened", operation_text(said.frame));
  }
  note_g_num(said, traffic);
  GetRequest get;
  get.header = h;
  get.tries = {said.now, said.now, said.frame.number, 1, false};
  get.answer.length = length_of(h);
  get.answer.exact = true;
  get.answer.mx = h.mx;
  if (said.from.sized) {
    get.answer.start = Address{h.sync, h.b_num}.linear(said.from.bufsize);
    if (h.b_num >= std::uint64_t{1} << said.from.bufsize)
      report(said, Rule::kGetOutside, "I_Offset below 2^" + std::to_string(said.from.bufsize),
             named_hex("I_Offset", h.b_num));
  }
  traffic.gets.put(h.s_id, std::move(get));
  if (traffic.gets.size() <= kMostGets) return;
  std::size_t outstanding = 0;
  for (const auto& [g_num, other] : traffic.gets)
    outstanding += !other.tries.answered && !other.taken_back ? 1 : 0;
  if (outstanding > kMostGets)
    report(said, Rule::kTooManyGets, "at most 64 outstanding", std::to_string(outstanding));
}

// A number that was skipped may still arrive if the link reorders frames.
// protocol: 9.16
void Checker::Impl::note_g_num(const Said& said, Traffic& traffic) {
  const auto g_num = said.h.s_id;
  if (traffic.skipped_get == g_num) {
    traffic.skipped_get.reset();
    return;
  }
  if (traffic.skipped_get && between(traffic.skipped_at, said.now) > kReordering) {
    report(said, Rule::kGNum, named("G_num", *traffic.skipped_get) + " some time",
           named("G_num", g_num));
    traffic.skipped_get.reset();
  }
  if (traffic.newest_get && static_cast<std::int32_t>(g_num - *traffic.newest_get) > 1) {
    traffic.skipped_get = *traffic.newest_get + 1;
    traffic.skipped_frame = said.frame.number;
    traffic.skipped_at = said.now;
  }
  if (!traffic.newest_get || static_cast<std::int32_t>(g_num - *traffic.newest_get) > 0)
    traffic.newest_get = g_num;
}

// protocol: 9.12, 9.15
void Checker::Impl::on_get_data(const Said& said, GetRequest& get) {
  const auto& h = said.h;
  get.tries.answered = true;
  if (h.has(wire::flag::kSilent) != get.header.has(wire::flag::kSilent))
    report(
        said, Rule::kGetFlags,
        get.header.has(wire::flag::kSilent) ? "Silent, as on its GET" : "no Silent, as on its GET",
        operation_text(said.frame));
  if (h.mx != get.answer.mx)
    return report(said, Rule::kWrongMx, named("R_Mx", get.answer.mx), named("R_Mx", h.mx));
  if (!get.answer.start || !said.from.sized) return;
  if (!check_buffer(said)) return;
  const auto low = *get.answer.start;
  if (!place(said, get.answer, low, low + get.answer.length)) return;
  if (get.header.function() == Function::kGet || said.frame.cut ||
      said.frame.frame.stu.size() != kOperand)
    return;
  const auto* const bytes = said.frame.frame.stu.data();
  const auto value = std::uint64_t{wire::load32(bytes)} << 32 | wire::load32(bytes + 4);
  if (!get.value) get.value = value;
  if (*get.value != value)
    report(said, Rule::kFetchOnce, named_hex("the value", *get.value) + " once more",
           named_hex("the value", value));
}

}  // namespace stp::replay
