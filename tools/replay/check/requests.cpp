// SPDX-License-Identifier: BSD-3-Clause
// RTS, RTR, RMR and their answers; END and EA (docs/protocol.md, section 9).
#include "stp/wire/big_endian.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using wire::Op;

std::uint64_t pair_of(std::uint32_t d_id, std::uint32_t s_id) {
  return std::uint64_t{d_id} << 32 | s_id;
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

}  // namespace stp::replay
