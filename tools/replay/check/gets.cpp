// SPDX-License-Identifier: BSD-3-Clause
// Get and FetchOp (docs/protocol.md, sections 7 and 9).
#include "stp/wire/big_endian.h"
#include "stp/wire/tiling.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/text.h"

namespace stp::replay {
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
