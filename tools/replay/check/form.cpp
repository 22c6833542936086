// SPDX-License-Identifier: BSD-3-Clause
// Checks the form of a single frame (docs/protocol.md, sections 2 to 4 and 12).
#include "stp/wire/padding.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using wire::Op;

struct FormRule {
  DropReason reason;
  Rule rule;
};
// Every reason of rule 12.2. An STU that is longer than a frame can be counts as too long.
constexpr std::array kFormRules{FormRule{DropReason::kTruncated, Rule::kTruncated},
                                FormRule{DropReason::kBadSource, Rule::kBadSource},
                                FormRule{DropReason::kUnknownOp, Rule::kOpCode},
                                FormRule{DropReason::kBadFlags, Rule::kIllegalFlags},
                                FormRule{DropReason::kStuTooLong, Rule::kStuTooLong},
                                FormRule{DropReason::kBadControlLength, Rule::kControlLength},
                                FormRule{DropReason::kBadChecksum, Rule::kBadChecksum},
                                FormRule{DropReason::kZeroPort, Rule::kZeroPort},
                                FormRule{DropReason::kBadExponent, Rule::kExponent},
                                FormRule{DropReason::kZeroLength, Rule::kZeroLength}};

std::string what_is_wrong(const Decoded& frame) {
  auto text = std::string(Counters::description(counter_of(frame.reason)));
  if (frame.has_header) text += ": " + operation_text(frame);
  return text + " (" + std::to_string(frame.wire_length) + " bytes)";
}

}  // namespace

void Checker::Impl::check_form(const Decoded& frame) {
  if (frame.cut_short)
    return report(frame, Rule::kCaptureCut, "",
                  "only " + std::to_string(frame.wire_length) +
                      "-byte frame's beginning is there; capture with -s 0");
  if (frame.reason != DropReason::kNone) {
    if (frame.reason == DropReason::kBadChecksum && is_late_repeat(frame)) return;
    for (const auto& form : kFormRules)
      if (form.reason == frame.reason)
        report(frame, form.rule, std::string(text_of(form.rule).text), what_is_wrong(frame));
    return;
  }
  // protocol: 2.10
  if (frame.frame.dst.is_group())
    report(frame, Rule::kOwnAddress, "a station's address", to_string(frame.frame.dst));
  check_encapsulation(frame);
  check_unused(frame);
}

// A datagram states its length.
// protocol: 2.4, 2.5, 13.1
void Checker::Impl::check_encapsulation(const Decoded& frame) {
  if (frame.ends) return;
  constexpr std::size_t kShort = wire::kMinPayload - wire::kHeaderSize;
  const bool data = frame.frame.header.op() == Op::kData;
  const auto length = frame.frame.stu.size() + frame.frame.append.size();
  const bool wants_snap = data && length < kShort;
  if (wants_snap && !frame.frame.snap)
    report(frame, Rule::kShortStuSnap, "802.3 + SNAP",
           "Ethernet II with " + std::to_string(length) + " bytes behind the header");
  if (!wants_snap && frame.frame.snap)
    report(frame, Rule::kSendEthernet2, "Ethernet II",
           "802.3 + SNAP with " + std::to_string(length) + " bytes behind the header");
}

// A refusal of a GET is the GET itself, sent back with Reject. Its flags are those of the original.
// protocol: 9.17
std::uint16_t Checker::Impl::flags_sent_back(const Decoded& frame) {
  const auto& h = frame.frame.header;
  if (h.op() != Op::kGet || !h.has(wire::flag::kReject)) return 0;
  auto* const c = connections.find(source_of(frame), target_of(frame));
  if (c == nullptr) return 0;
  const auto* const get = side_at(*c, target_of(frame)).with_traffic().gets.find(h.s_id);
  return get == nullptr ? 0 : get->header.op_flags;
}

// protocol: 3.3, 3.9, 3.14
void Checker::Impl::check_unused(const Decoded& frame) {
  const auto& h = frame.frame.header;
  const auto unused = [&](std::string_view name, std::uint64_t value) {
    if (value == 0) return;
    report(frame, Rule::kUnusedField,
           std::string(name) + " 0, which " + op_name(h) + " does not use",
           std::string(name) + ' ' + hex(value));
  };
  const bool refusal = h.has(wire::flag::kReject) && h.op() == Op::kConnectionAnswer;
  // Without padding, w7 says only that others have some.
  // protocol: 13.20
  const auto padding = wire::padding_of(h);
  const bool is_whole = frame.frame.padded ? h.op() == Op::kConnectionAnswer || padding.asked == 0
                                           : h.b_num == wire::Padding{.known = true}.word();
  const bool says_padding = frame.ends && padding.known && is_whole && h.b_num == padding.word();
  if (frame.frame.padded && !frame.ends)
    report(frame, Rule::kControlLength, std::string(text_of(Rule::kControlLength).text),
           operation_text(frame) + " on Ethernet");
  std::array<bool, 8> used{};
  used[static_cast<std::size_t>(Field::kBNum)] = says_padding;
  for (const auto& named : fields_of(h.op())) {
    if (named.word == Field::kTLen)
      used[static_cast<std::size_t>(Field::kSync)] = used[static_cast<std::size_t>(Field::kBNum)] =
          true;
    else
      used[static_cast<std::size_t>(named.word)] = named.name != "EtherType";
  }
  for (const auto field : {Field::kParam, Field::kMx, Field::kBufx, Field::kOffset, Field::kSync,
                           Field::kBNum, Field::kDId, Field::kSId})
    if (!used[static_cast<std::size_t>(field)]) unused(header_name(field), wire::word_of(h, field));
  if (h.op() == Op::kRequestConnection) {
    unused("D_Port", h.d_port);
    unused("D_Key", h.d_key);
  }
  // protocol: 5.6
  if (refusal && h.s_port != 0)
    report(frame, Rule::kRejectPort, "R_Port 0", named("R_Port", h.s_port));
  const auto extra = h.op_flags & wire::kFlagsMask & ~used_flags(h.op()) & ~flags_sent_back(frame);
  for (const auto& named : flag_names())
    if ((extra & named.flag) != 0)
      report(frame, Rule::kUnusedFlag, "no " + std::string(named.name) + " on " + op_name(h),
             operation_text(frame));
}

}  // namespace stp::replay
