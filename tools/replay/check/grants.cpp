// SPDX-License-Identifier: BSD-3-Clause
// Grants of a receiver: CTS and MRA (docs/protocol.md, sections 7 and 9).
#include "stp/wire/tiling.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/managed_words.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

constexpr TraceTime kLeastDataTimeout = 1'000'000;  // protocol: 10.3
constexpr std::uint32_t kMostPutBlocks = 1024;      // protocol: 7.13

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
  if (again) {  // protocol: 10.3
    const auto gap = between(block->granted, now);
    if (!disturbed(said) && gap > kLinkCopies && gap < kLeastDataTimeout - kLeastDataTimeout / 5)
      report(said, Rule::kCtsTooSoon, "a repeated CTS after 1 ms", "after " + seconds(gap) + " s");
    block->granted = now;
    return;
  }
  Block fresh;
  fresh.start = start;
  fresh.length = length;
  fresh.exact = landing->t_len.has_value();
  fresh.mx = h.mx;
  fresh.granted = now;
  landing->blocks.put(h.b_num, std::move(fresh));
  landing->asked = 0;
  if (landing->faulty == h.b_num) landing->faulty.reset();
  if (offered) check_outstanding(said, *landing, *request);
}

}  // namespace stp::replay
