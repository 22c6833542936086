// SPDX-License-Identifier: BSD-3-Clause
// Slots and state: credit, RS and RSR (docs/protocol.md, section 6).
#include <algorithm>

#include "tools/replay/check/checker_impl.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

// The shortest timeout, and up to which the intervals double. protocol: 5.23
constexpr TraceTime kLeastAskTimeout = 200'000, kLongestAskInterval = 500'000'000;
// protocol: 5.22
constexpr TraceTime kAskPatience = 4'000'000'000;

// The number of Blocks of a Transfer with known length.
std::optional<std::uint64_t> number_of_blocks(const Landing& landing) {
  if (!landing.t_len || !landing.blocksize) return {};
  const auto rest = *landing.t_len & ((std::uint64_t{1} << *landing.blocksize) - 1);
  return std::max<std::uint64_t>((*landing.t_len >> *landing.blocksize) + (rest != 0 ? 1 : 0), 1);
}

}  // namespace

// protocol: 6.2, 6.3
void Checker::Impl::spend_slot(const Said& said) {
  auto& from = said.from;
  ++from.slots_used;
  if (!said.c.certain() || !from.slots_limit || from.slots_used <= *from.slots_limit) return;
  once(from.no_credit, [&] {
    report(
        said, Rule::kNoCredit,
        "at most " + std::to_string(*from.slots_limit) + " Slots used since the connection began",
        std::to_string(from.slots_used) + " with " + operation_text(said.frame));
  });
  from.slots_limit = from.slots_used;
}

void Checker::Impl::on_question(const Said& said, bool is_rs) {
  const auto& h = said.h;
  auto& questions = said.from.with_traffic().questions;
  auto* question = questions.find(h.sync);
  const bool fresh = question == nullptr;
  if (fresh) {
    question = &questions.put(h.sync, {});
    question->asked = said.now;
    question->own_rs = is_rs && h.d_id == wire::kNoId && h.b_num == wire::kNoId;
  }
  const bool of_transfer = is_rs || h.op() == wire::Op::kData;
  const auto r_id = of_transfer ? h.d_id : wire::kNoId, b_num = of_transfer ? h.b_num : wire::kNoId;
  question->several =
      question->several || (!fresh && (question->r_id != r_id || question->b_num != b_num));
  question->r_id = r_id;
  question->b_num = b_num;
  question->used = said.from.slots_used;
  if (is_rs) count_question(said);
  if (!is_rs) return;
  if (question->own_rs)
    return repeat(said, question->tries, {kLeastAskTimeout, kLongestAskInterval}, kAskPatience,
                  "RS");
  auto& tries = question->tries;
  if (tries.count == 0) tries = {said.now, said.now, said.frame.number, 0, false};
  tries.last = said.now;
  ++tries.count;
}

// protocol: 6.4, 6.5
void Checker::Impl::on_state_response(const Said& said) {
  const auto& h = said.h;
  auto& asker = said.to;
  if (said.from.sized && h.param > said.from.slots)
    report(said, Rule::kRsrSlots, "at most " + std::to_string(said.from.slots) + " free Slots",
           named("R_Slots", h.param));
  auto& questions = asker.with_traffic().questions;
  auto* const question = questions.find(h.sync);
  // protocol: 13.21
  const bool proves = said.frame.ends && h.has(wire::flag::kReject) && h.b_num == wire::kNoId &&
                      said.from.key == h.sync;
  if (question == nullptr && proves) return;
  if (question == nullptr) {
    if (surely(said, questions.forgot(), Kept::kQuestions))
      report(said, Rule::kRsrUnasked, "the Sync of a question", named_hex("Sync", h.sync));
    // What was asked when is not known: the most that the answer can allow.
    if (questions.forgot())
      asker.slots_limit = std::max(asker.slots_limit.value_or(0), asker.slots_used + h.param);
  } else {
    question->tries.answered = true;
    asker.no_credit = false;
    asker.slots_limit = std::max(asker.slots_limit.value_or(0), question->used + h.param);
  }
  if (h.has(wire::flag::kReject) || h.d_id == wire::kNoId) return;
  auto* const landing = said.from.with_traffic().landings.find(h.s_id);
  if (landing == nullptr) return;
  // B_seq must not decrease, but answers may overtake each other: only the answer to a later
  // question is checked.
  const bool later = question != nullptr && question->asked > landing->b_seq_told;
  if (ahead_of(*landing, h.offset) < 0 && landing->b_seq_told != kNotYet && later)
    report(said, Rule::kRsrBSeqBack, "B_seq of at least " + std::to_string(landing->b_seq),
           named("B_seq", h.offset));
  if (question != nullptr) check_b_num(said, *question, *landing);
  check_b_seq(said, *landing);
}

// A Block before B_seq must be reported as complete. Another one may be complete only if all of it
// has been sent.
// protocol: 6.13
void Checker::Impl::check_b_num(const Said& said, const Question& question, Landing& landing) {
  const auto& h = said.h;
  if (question.several || question.r_id != h.s_id) return;
  const auto asked = question.b_num;
  auto* const block = landing.blocks.find(asked);
  const bool behind =
      asked != wire::kNoId && ahead_of(landing, asked) < ahead_of(landing, h.offset);
  const bool sent = block != nullptr && block->last;
  const bool known = said.c.complete && !landing.forgot() && landing.faulty != asked;
  if (h.b_num == wire::kNoId ? !behind : h.b_num == asked && (behind || sent || !known)) return;
  report(said, Rule::kRsrBNum, behind ? named("B_num", asked) : "B_num none",
         h.b_num == wire::kNoId ? "B_num none" : named("B_num", h.b_num));
}

// The managed layer asks about Transfers that make no progress, at growing intervals.
// protocol: 10.16
void Checker::Impl::count_question(const Said& said) {
  constexpr std::uint32_t kMost = 64;
  constexpr TraceTime kWithin = 30'000'000'000;
  auto* const landing = said.c.managed && said.h.d_id != wire::kNoId
                            ? said.to.with_traffic().landings.find(said.h.d_id)
                            : nullptr;
  if (landing == nullptr) return;
  if (landing->asked == 0 || between(landing->asked_since, said.now) > kWithin) {
    landing->asked = 0;
    landing->asked_since = said.now;
  }
  if (++landing->asked <= kMost) return;
  once(landing->asked_too_often, [&] {
    report(said, Rule::kPacedRepeats, "some 40 RS in 30 s without progress",
           "the " + std::to_string(landing->asked) + "th in " +
               seconds(between(landing->asked_since, said.now)) + " s");
  });
}

// Each Block before B_seq must have been sent up to its Last. If its Last was seen but other STUs
// were not, the capture lacks frames.
// protocol: 9.6
void Checker::Impl::check_b_seq(const Said& said, Landing& landing) {
  const auto b_seq = said.h.offset;
  if (ahead_of(landing, b_seq) <= 0) return;
  const auto end = number_of_blocks(landing);
  if (end && b_seq > *end)
    return report(said, Rule::kBSeqAhead, "B_seq of at most " + std::to_string(*end),
                  named("B_seq", b_seq));
  landing.asked = 0;
  const bool sure = surely(said, landing.forgot(), Kept::kBlocks);
  if (!sure)
    landing.blocks.erase_if(
        [&](std::uint32_t k) { return ahead_of(landing, k) < ahead_of(landing, b_seq); });
  for (auto k = landing.b_seq; k != b_seq && sure; ++k) {
    auto* const block = landing.blocks.find(k);
    if (landing.faulty == k) {
      landing.blocks.erase(k);
      continue;
    }
    if (block == nullptr || !block->last) {
      report(said, Rule::kBSeqAhead, "B_seq of at most " + std::to_string(k),
             named("B_seq", b_seq));
      break;
    }
    if (!block->whole() && !said.c.lossy) {
      said.c.lossy = true;
      report(said, Rule::kCaptureLoss, "",
             "Block " + std::to_string(k) + " is acknowledged, and " +
                 std::to_string(*block->last + 1 - block->seen.size()) +
                 " of its STUs are not in the capture");
    }
    landing.blocks.erase(k);  // all later frames of it are duplicates
  }
  landing.b_seq = b_seq;
  landing.b_seq_told = said.now;
  if (!end || b_seq < *end) return;
  landing.over = true;
  if (auto* const request = said.to.with_traffic().requests.find(landing.i_id))
    request->over = true;
}

}  // namespace stp::replay
