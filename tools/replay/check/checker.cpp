// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/check/checker.h"

#include <array>
#include <utility>

#include "tools/json/json.h"
#include "tools/replay/capture.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/check/rules.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

constexpr std::array kRules{
#define STP_REPLAY_RULE_TEXT(id, section, name, certainty, text) \
  RuleText{Rule::k##id, section, name, Certainty::certainty, text},
    STP_REPLAY_RULES(STP_REPLAY_RULE_TEXT)
#undef STP_REPLAY_RULE_TEXT
};

}  // namespace

std::span<const RuleText> rules() {
  return kRules;
}

const RuleText& text_of(Rule rule) {
  return kRules.at(static_cast<std::size_t>(rule));
}

namespace {

using wire::Op;

// Requests made before the capture began are not repeated for longer than this.
constexpr TraceTime kBeforeCapture = 3'000'000'000;
// How much shorter than specified an interval may be, due to capture clocks and busy machines.
constexpr TraceTime slack(TraceTime interval) {
  return interval / 5;
}
// Intervals shorter than this are judged only if a side has repeated too soon so often.
constexpr TraceTime kStampedLate = 1'000'000;
constexpr unsigned kHastyTries = 3;
// So long frames may wait at their sender for the link. They leave together then.
constexpr TraceTime kQueued = 100'000'000;

// Operations that only the two sides of a connection exchange.
bool is_scheduled(Op op) {
  return op == Op::kRequestDisconnect || op == Op::kDisconnectAnswer ||
         op == Op::kDisconnectComplete || op == Op::kClearToSend ||
         op == Op::kMemoryRegionAvailable;
}

// Operations that a side sends only in answer to its peer and at once. CTS and DA are also sent by
// timers, and a user may delay RA and MRA.
bool is_answer(Op op) {
  return op == Op::kRequestStateResponse || op == Op::kEndAck;
}

const char* text_of(Kept kept) {
  switch (kept) {
    case Kept::kRequests:
      return "requests of this side";
    case Kept::kLandings:
      return "Transfers and regions of this side";
    case Kept::kBlocks:
      return "Blocks of this Transfer";
    case Kept::kGets:
      return "Gets of this side";
    case Kept::kEnds:
      return "ENDs of this side";
    case Kept::kQuestions:
      return "questions of this side";
    default:
      return "connections";
  }
}

}  // namespace

std::string named(const char* name, std::uint64_t value) {
  return std::string(name) + ' ' + std::to_string(value);
}

std::string named_hex(const char* name, std::uint64_t value) {
  return std::string(name) + ' ' + hex(value);
}

std::string line_of(const Finding& finding) {
  const auto& rule = text_of(finding.rule);
  auto text = std::to_string(finding.frame) + ": ";
  if (finding.is_note()) return text + "note: " + std::string(rule.name) + ": " + finding.seen;
  text += std::string(rule.section) + ' ' + std::string(rule.name);
  return text + ": expected " + finding.expected + "; seen " + finding.seen;
}

std::string json_of(const Finding& finding) {
  const auto& rule = text_of(finding.rule);
  Json json;
  json.object().value("frame", finding.frame).number("time", seconds(finding.time, finding.epoch));
  json.value("kind", finding.is_note() ? "note" : "finding");
  json.value("section", rule.section).value("rule", rule.name);
  return json.value("expected", finding.expected).value("seen", finding.seen).end().text();
}

Checker::Impl::Impl(Sink given_sink, const CheckerOptions& given_options)
    : sink(std::move(given_sink)),
      options(given_options),
      connections([this](Connection& gone) { say_farewell(gone); }) {}

Checker::Checker(Sink sink, const CheckerOptions& options)
    : impl_(std::make_unique<Impl>(std::move(sink), options)) {}
Checker::~Checker() = default;

void Checker::frame(const Decoded& frame) {
  auto& impl = *impl_;
  if (!frame.is_stp()) return;
  if (impl.start_of_trace == kNotYet) impl.start_of_trace = frame.time;
  impl.epoch = frame.epoch;
  if (impl.newest != kNotYet && frame.time < impl.newest)
    impl.report(frame, Rule::kClockBackwards, "",
                "dated " + seconds(between(frame.time, impl.newest)) +
                    " s before the frame in front of it");
  impl.newest = frame.time;
  if (frame.perhaps_joined) return impl.tell_joined(frame);
  impl.check_form(frame);
  // A frame to a group address belongs to no connection.
  if (!frame.well_formed() || frame.frame.dst.is_group()) return;
  impl.note_direction(frame);
  impl.follow(frame);
}

void Checker::lose(const Decoded& frame, std::uint64_t dropped) {
  if (std::exchange(impl_->options.lossy, true)) return;
  impl_->sink(
      {frame.number, frame.time, frame.epoch, Rule::kCaptureLoss, "",
       "the capturing program has dropped " + std::to_string(dropped) +
           " frames: faults that a missing frame could explain are notes, as with --lossy"});
}

// What stands behind the first datagram is missing.
void Checker::Impl::tell_joined(const Decoded& frame) {
  if (std::exchange(joined_told, true)) return;
  options.lossy = true;
  sink({frame.number, frame.time, frame.epoch, Rule::kCaptureLoss, "",
        "perhaps joined datagrams (" + std::to_string(frame.wire_length) +
            " bytes): capture whole packets, with stpctl trace, or with tx-udp-segmentation off "
            "(ethtool -K); faults that a missing frame could explain are notes, as with --lossy"});
}

void Checker::finish() {
  impl_->connections.clear();
  impl_->tell_one_sided();
}

bool Checker::Impl::settled(TraceTime now) const {
  return options.endpoints || between(start_of_trace, now) > kBeforeCapture;
}

void Checker::Impl::report(const Decoded& frame, Rule rule, std::string expected, std::string seen,
                           bool explained) {
  ++faults;
  if (hushed) return;
  if (explained && text_of(rule).certainty == Certainty::kIfAll) {
    seen = "not judged by " + std::string(text_of(rule).name) +
           ", as frames may be missing or come twice: " + seen;
    rule = Rule::kCaptureLoss;
  }
  sink({frame.number, frame.time, epoch, rule, std::move(expected), std::move(seen)});
}

void Checker::Impl::report(const Said& said, Rule rule, std::string expected, std::string seen) {
  if (said.c.mute) return;
  report(said.frame, rule, std::move(expected), std::move(seen),
         options.lossy || said.c.lossy || disturbed(said));
}

bool Checker::Impl::surely(const Decoded& frame, bool forgotten, Kept kept) {
  if (!forgotten) return true;
  if (!std::exchange(told_forgotten.at(static_cast<std::size_t>(kept)), true))
    sink({frame.number, frame.time, epoch, Rule::kForgotten, "",
          std::string("only the newest ") + text_of(kept) +
              " are kept; this frame names an older one, and rules that need it are not judged: " +
              operation_text(frame)});
  return false;
}

// Counts one more try and checks its time against the retry intervals.
// protocol: 5.21, 5.22
void Checker::Impl::repeat(const Said& said, Tries& tries, const Pace& pace, TraceTime patience,
                           const char* what) {
  constexpr unsigned kTries = 8;
  const auto gap = between(tries.last, said.now);
  if (tries.count == 0) {
    tries = {.first = said.now, .last = said.now, .first_frame = said.frame.number, .count = 1};
    return;
  }
  if (gap < kLinkCopies) return;
  const bool spoke = said.from.heard > tries.last;  // something else, since the last try
  tries.last = said.now;
  ++tries.count;
  if (disturbed(said)) return;
  auto wanted = pace.first;
  for (unsigned i = 2; i < tries.count && wanted < pace.longest; ++i) wanted *= 2;
  wanted = std::min(wanted, pace.longest);
  if (gap < wanted - slack(wanted)) {
    --tries.count;  // not counted, so that it does not lengthen the next interval
    // A queue that is sent out at once also has other frames of that side.
    if (spoke && wanted < kQueued) return;
    // A busy machine stamps a frame after it was sent: one short interval below a millisecond is
    // none.
    if (wanted < kStampedLate && ++said.from.hasty < kHastyTries) return;
    once(tries.too_soon, [&] {
      report(said, Rule::kRetryTooSoon,
             std::string(what) + " again after " + seconds(wanted) + " s",
             "after " + seconds(gap) + " s");
    });
  }
  const auto whole = between(tries.first, said.now);
  if (tries.count <= kTries || whole <= patience + slack(patience)) return;
  once(tries.too_often, [&] {
    report(said, Rule::kRetryTooOften, std::string("no more than 8 tries of ") + what,
           "try " + std::to_string(tries.count) + ", " + seconds(whole) + " s after the first");
  });
}

// Reports a request without an answer whose peer has answered later ones.
void Checker::Impl::owed(const Connection& c, const Tries& tries, const Side& debtor, Rule rule,
                         std::string what) {
  if (tries.answered || tries.count < kOwedTries || debtor.answered < tries.last) return;
  if (between(tries.first, tries.last) < kOwedTime) return;
  Decoded frame;
  frame.number = tries.first_frame;
  frame.time = tries.first;
  report(frame, rule, "an answer to " + what,
         "none to " + std::to_string(tries.count) + " tries in " +
             seconds(between(tries.first, tries.last)) + " s, from a peer that answers others",
         options.lossy || c.lossy);
}

void Checker::Impl::follow(const Decoded& frame) {
  const auto op = frame.frame.header.op();
  if (op == Op::kRequestConnection) return on_request_connection(frame);
  if (op == Op::kConnectionAnswer) return on_connection_answer(frame);
  auto* const c = connection_of(frame);
  if (c == nullptr) return;
  const bool by_first =
      end_of(c->sides[0]) == source_of(frame) || end_of(c->sides[1]) == target_of(frame);
  auto& from = c->sides[by_first ? 0 : 1];
  auto& to = c->sides[by_first ? 1 : 0];
  const Said said{frame, frame.frame.header, *c, from, to, frame.time};
  c->scheduled = c->scheduled || is_scheduled(said.h.op());
  c->mute = !c->certain();
  if (!check_names(said)) return;
  dispatch(said);
  // Called last: the answer counts the Slot that this operation uses.
  if (said.h.has(wire::flag::kSendState)) on_question(said, false);
  from.heard = said.now;
  if (is_answer(said.h.op())) from.answered = said.now;
  connections.touch(*c, said.now);
}

void Checker::Impl::dispatch(const Said& said) {
  const auto& h = said.h;
  if (wire::consumes_slot(h) && h.op() != Op::kData) spend_slot(said);
  switch (h.op()) {
    case Op::kRequestDisconnect:
    case Op::kDisconnectAnswer:
    case Op::kDisconnectComplete:
      return on_disconnection(said);
    case Op::kRequestState:
      return on_question(said, true);
    case Op::kRequestStateResponse:
      return on_state_response(said);
    case Op::kRequestToSend:
    case Op::kRequestToReceive:
    case Op::kRequestMemoryRegion:
      return on_request(said);
    case Op::kRequestAnswer:
      return on_answer(said);
    case Op::kMemoryRegionAvailable:
      return on_region(said);
    case Op::kClearToSend:
      return on_clear_to_send(said);
    case Op::kGet:
      return on_get(said);
    case Op::kData:
      return on_data(said);
    case Op::kEnd:
      return on_end(said);
    case Op::kEndAck:
      return on_end_ack(said);
    case Op::kNoOperation:
      return on_notice(said);
    case Op::kRequestConnection:
    case Op::kConnectionAnswer:
      return;
  }
}

// --- whether a capture has the frames of one direction only, as it is made on a host whose
// own frames pass the capturing program by

namespace {

using wire::Op;

// Of one direction. Further ones are of the same kind.
constexpr std::size_t kMostHeld = 64;

// Whether the sender has heard from the receiver: a connection is up, or ends. Others may be the
// frames of a station that nobody answers, or of one that speaks to an endpoint.
bool presupposes_answer(Op op) {
  return op != Op::kRequestConnection && op != Op::kRequestDisconnect && op != Op::kData &&
         op != Op::kRequestState && op != Op::kNoOperation;
}

}  // namespace

void Checker::Impl::note_direction(const Decoded& frame) {
  const auto src = frame.frame.src.to_u64(), dst = frame.frame.dst.to_u64();
  if (src == dst) return;
  const StationPair pair{std::min(src, dst), std::max(src, dst)};
  auto* seen = stations.find(pair);
  if (seen == nullptr) seen = &stations.put(pair, {});
  auto& way = src < dst ? seen->up : seen->down;
  if (++way.frames == 1) {
    for (auto& held : std::exchange(seen->held, {})) {
      Decoded earlier;
      earlier.number = held.frame;
      earlier.time = held.time;
      report(earlier, held.rule, std::move(held.expected), std::move(held.seen), options.lossy);
    }
  }
  if (way.first != 0 || !presupposes_answer(frame.frame.header.op())) return;
  way.first = frame.number;
  way.time = frame.time;
  if (!frame.ends) return;
  way.from = end_text(frame.ends->source, frame.ends->from);
  way.to = end_text(frame.ends->destination, frame.ends->to);
}

bool Checker::Impl::was_answered(const Decoded& frame) {
  const auto src = frame.frame.src.to_u64(), dst = frame.frame.dst.to_u64();
  const auto* const seen = stations.find({std::min(src, dst), std::max(src, dst)});
  return src == dst || seen == nullptr || (src < dst ? seen->down : seen->up).frames != 0;
}

void Checker::Impl::report_if_answered(const Decoded& frame, Rule rule, std::string expected,
                                       std::string seen) {
  if (was_answered(frame))
    return report(frame, rule, std::move(expected), std::move(seen), options.lossy);
  const auto src = frame.frame.src.to_u64(), dst = frame.frame.dst.to_u64();
  auto& held = stations.find({std::min(src, dst), std::max(src, dst)})->held;
  if (held.size() < kMostHeld)
    held.push_back({frame.number, frame.time, rule, std::move(expected), std::move(seen)});
}

void Checker::Impl::tell_one_sided() {
  for (const auto& [pair, seen] : stations) {
    const bool up = seen.up.first != 0 && seen.down.frames == 0;
    const bool down = seen.down.first != 0 && seen.up.frames == 0;
    if (!up && !down) continue;
    const auto& way = up ? seen.up : seen.down;
    const bool udp = !way.from.empty();
    const auto from = udp ? way.from : to_string(MacAddr::from_u64(up ? pair.low : pair.high));
    const auto to = udp ? way.to : to_string(MacAddr::from_u64(up ? pair.high : pair.low));
    sink(
        {way.first, way.time, epoch, Rule::kOneSided, "",
         "the capture has " + std::to_string(way.frames) + " frames from " + from + " to " + to +
             ", and none back, so most rules cannot be applied; " +
             (udp ? "a filter of tcpdump by source or destination leaves one direction out, and so "
                    "may ways that differ: capture at one of the two hosts, or with stpctl trace"
                  : "tcpdump and dumpcap on a host that runs stpd see only what it receives: "
                    "capture with stpctl trace")});
  }
}

}  // namespace stp::replay
