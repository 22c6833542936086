// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/subject.h"

namespace stp::replay {

std::optional<std::deque<Recorded>> record(Capture& capture, std::string& error,
                                           const std::function<void(const Decoded&)>& see) {
  constexpr std::size_t kMostFrames = 1'000'000;
  std::deque<Recorded> frames;
  Decoder decoder;
  CapturedFrame captured;
  while (capture.next(captured)) {
    const auto fail = [&](const std::string& why) {
      error = "frame " + std::to_string(captured.number) + ' ' + why;
      return std::nullopt;
    };
    if (captured.cut())
      return fail("was cut by the capture; whole frames are needed: capture with -s 0");
    if (frames.size() == kMostFrames)
      return fail("is one too many to play; cut the trace down with editcap");
    auto& frame = frames.emplace_back();
    // A datagram becomes the frame that a station on Ethernet would have sent.
    auto own = datagram_in(captured, frame.bytes).value_or(captured);
    if (!own.ends) frame.bytes.assign(captured.bytes.begin(), captured.bytes.end());
    own.bytes = frame.bytes;
    frame.decoded = decoder.decode(own);
    if (!frame.decoded.is_stp()) {
      frames.pop_back();
      continue;
    }
    see(frame.decoded);
    frame.decoded.ends.reset();  // they point into the capture
    if (frame.decoded.outer_vlan)
      return fail("has two VLAN tags, and a Node takes one; remove the outer one: editcap -C 12:4");
    if (frames.size() > 1 && frame.decoded.time < frames[frames.size() - 2].decoded.time)
      return fail("is dated before the one in front of it; sort the trace with reordercap");
  }
  if (!capture.error().empty()) {
    error = capture.error();
    return std::nullopt;
  }
  return frames;
}

}  // namespace stp::replay
