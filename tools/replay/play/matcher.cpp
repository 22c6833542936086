// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/matcher.h"

#include <algorithm>
#include <functional>

#include "stp/wire/operations.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using wire::Header;
using wire::Op;

// The largest difference in time between two matching frames.
constexpr std::int64_t kWindow = 2'000'000'000;

// A value that the sender of an operation has chosen itself.
struct NamedField {
  Name kind;
  std::uint32_t value;
};
std::vector<NamedField> own_names(const Header& h) {
  std::vector<NamedField> names;
  const bool refusal = h.op() == Op::kConnectionAnswer && h.has(wire::flag::kReject);
  if (!refusal) names.push_back({Name::kPort, h.s_port});  // a refusal has no Port
  switch (wire::operation(h.op()).own) {
    case wire::Own::kKey:
      names.push_back({Name::kKey, h.offset});
      break;
    case wire::Own::kMx:
      // A refused GET carries the Mx of the one who asked.
      if (h.op() == Op::kGet && h.has(wire::flag::kReject)) break;
      names.push_back({Name::kMx, h.mx});
      break;
    case wire::Own::kSync:
      if (own_question(h)) names.push_back({Name::kSync, h.sync});
      break;
    case wire::Own::kNone:
      break;
  }
  return names;
}

// The header without values that are local choices.
Header neutral(Header h) {
  const auto names = own_names(h);
  h.cksum = 0;
  for (const auto& named : names) {
    if (named.kind == Name::kPort) h.s_port = 0;
    if (named.kind == Name::kKey) h.offset = 0;
    if (named.kind == Name::kMx) h.mx = 0;
    if (named.kind == Name::kSync) h.sync = 0;
  }
  // The free Slots depend on when the user reads its queue.
  if (h.op() == Op::kRequestStateResponse) h.param = 0;
  return h;
}

bool same_bytes(Bytes a, Bytes b) {
  return std::ranges::equal(a, b);
}

using Translate = std::function<std::uint32_t(Name, std::uint32_t)>;

// The frame with the live side's names. Repeats are recognized by it.
std::vector<std::byte> under_live_names(const wire::Frame& frame, const Translate& live) {
  auto h = neutral(frame.header);
  for (const auto& named : own_names(frame.header)) {
    const auto name = live(named.kind, named.value);
    if (named.kind == Name::kPort) h.s_port = static_cast<std::uint16_t>(name);
    if (named.kind == Name::kKey) h.offset = name;
    if (named.kind == Name::kMx) h.mx = static_cast<std::uint16_t>(name);
  }
  std::vector<std::byte> bytes(wire::kHeaderSize);
  wire::encode(h, bytes.data());
  for (const auto& part : {frame.option, frame.stu, frame.append})
    bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

std::vector<std::byte> live_bytes(const Decoded& live) {
  return under_live_names(live.frame, [](Name, std::uint32_t name) { return name; });
}

}  // namespace

// If both are the same frame, binds their names to each other.
bool Matcher::pair(const Decoded& in_trace, const Decoded& live) {
  const auto& a = in_trace.frame;
  const auto& b = live.frame;
  if (std::abs(in_trace.time - live.time) > kWindow) return false;
  if (a.dst != b.dst || a.snap != b.snap || a.vlan != b.vlan ||
      neutral(a.header) != neutral(b.header) || !same_bytes(a.option, b.option) ||
      !same_bytes(a.stu, b.stu) || !same_bytes(a.append, b.append) ||
      (a.header.cksum == 0) != (b.header.cksum == 0))
    return false;
  const auto mine = own_names(a.header), theirs = own_names(b.header);
  // A new connection may reuse the Port of an earlier one. Its Key distinguishes the two.
  const bool begins =
      a.header.op() == Op::kRequestConnection || a.header.op() == Op::kConnectionAnswer;
  for (std::size_t i = 0; i < mine.size(); ++i)
    if (!(begins && mine[i].kind == Name::kPort) &&
        !names_.agree(mine[i].kind, mine[i].value, theirs[i].value))
      return false;
  for (std::size_t i = 0; i < mine.size(); ++i)
    names_.bind(mine[i].kind, mine[i].value, theirs[i].value);
  return true;
}

void Matcher::expect(const Recorded& frame) {
  for (auto at = live_.begin(); at != live_.end(); ++at) {
    if (!pair(frame.decoded, at->decoded)) continue;
    done_.insert(live_bytes(at->decoded));
    live_.erase(at);
    ++matched_;
    return;
  }
  // Checked now and not only at the end, because names may be bound to others by then.
  if (!is_repeat(frame.decoded)) expected_.push_back(&frame);
}

bool Matcher::is_repeat(const Decoded& in_trace) const {
  return done_.contains(under_live_names(
      in_trace.frame, [&](Name kind, std::uint32_t name) { return names_.live(kind, name); }));
}

void Matcher::sent(const Recorded& frame) {
  for (auto at = expected_.begin(); at != expected_.end(); ++at) {
    if (!pair((*at)->decoded, frame.decoded)) continue;
    done_.insert(live_bytes(frame.decoded));
    expected_.erase(at);
    ++matched_;
    return;
  }
  if (over_) return;
  auto& live = live_.emplace_back();
  live.bytes = frame.bytes;
  Decoder decoder;
  live.decoded =
      decoder.decode({frame.decoded.number, frame.decoded.time, live.bytes, live.bytes.size()});
  live.reached = reached_;
}

void Matcher::question_over(std::uint32_t sync) {
  expected_.remove_if([&](const Recorded* frame) {
    const auto& h = frame->decoded.frame.header;
    return own_question(h) && h.sync == sync;
  });
}

std::vector<Difference> Matcher::differences() {
  expected_.remove_if([&](const Recorded* frame) {
    return own_question(frame->decoded.frame.header) || is_repeat(frame->decoded);
  });
  live_.remove_if([&](const Live& frame) {
    return own_question(frame.decoded.frame.header) || done_.contains(live_bytes(frame.decoded));
  });
  std::vector<Difference> found;
  for (const auto* const frame : expected_) {
    const auto& wanted = frame->decoded.frame.header;
    Difference difference{frame->decoded.number, operation_text(frame->decoded), ""};
    // If the live side sent the same operation on the same connection, it was sent instead.
    const auto instead = std::ranges::find_if(live_, [&](const Live& live) {
      const auto& h = live.decoded.frame.header;
      return h.op() == wanted.op() && h.d_port == wanted.d_port &&
             live.decoded.frame.dst == frame->decoded.frame.dst;
    });
    if (instead != live_.end()) {
      difference.live = operation_text(instead->decoded);
      live_.erase(instead);
    }
    found.push_back(std::move(difference));
  }
  for (const auto& live : live_) found.push_back({live.reached, "", operation_text(live.decoded)});
  std::ranges::stable_sort(found, {}, &Difference::frame);
  return found;
}

}  // namespace stp::replay
