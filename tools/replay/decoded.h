// SPDX-License-Identifier: BSD-3-Clause
// Decodes one captured frame, also of STP in a datagram of UDP.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "stp/wire/frame.h"
#include "tools/replay/capture.h"

namespace stp::replay {

enum class Cksum { kNone, kGood, kBad, kUnknown };  // kUnknown: the capture cut what it covers

struct Decoded {
  std::uint64_t number = 0;
  std::int64_t time = 0, epoch = 0;  // as of the CapturedFrame
  std::size_t wire_length = 0;
  bool cut = false;                         // the capture holds only a part of the frame
  std::optional<std::uint16_t> outer_vlan;  // the tag in front of the one that STP knows
  DropReason reason = DropReason::kNone;    // why a Node would drop it for its form
  bool cut_short = false;                   // too much is missing to know the header
  bool has_link = false;                    // frame.src and .dst are known
  bool has_header = false;                  // frame.header is known, though `reason` may be set
  // How many bytes behind the header the capture holds, of one that it cut; else more than there
  // are.
  std::size_t payload_held = std::numeric_limits<std::size_t>::max();
  Cksum cksum = Cksum::kNone;
  std::optional<DatagramEnds> ends;  // it came in a datagram; they point into the captured frame
  wire::Frame frame;                 // its spans have the lengths on the wire; missing bytes are 0

  [[nodiscard]] bool is_stp() const { return cut_short || reason != DropReason::kNotStp; }
  [[nodiscard]] bool well_formed() const { return !cut_short && reason == DropReason::kNone; }
  // The first bytes of an STU or option payload; empty if there are less, or the capture cut them.
  [[nodiscard]] Bytes beginning(Bytes payload, std::size_t length) const {
    return payload.size() < length || payload_held < length ? Bytes{} : payload.first(length);
  }
  // "truncated", "cut", ..., or nullptr for a well-formed frame.
  [[nodiscard]] const char* error() const;
};

// Keeps the bytes of a frame that was cut. The result of decode() points into the captured frame or
// into the Decoder, and is valid until the next call.
class Decoder {
 public:
  Decoded decode(const CapturedFrame& captured);

 private:
  void decode_whole(Bytes bytes, Decoded& out) const;
  CapturedFrame without_outer_tag(const CapturedFrame& captured, Decoded& out);
  std::vector<std::byte> whole_, untagged_, datagram_;
};

// The captured frame, if it is a datagram over IPv4 or IPv6 from or to the UDP port of STP or one
// of frame.udp_ports, or of any port in a trace that stpd made of a link over UDP, or one of IP
// protocol 118, as stations on Ethernet would have sent it: with a name for each address in the
// place of a MAC address (02:04 and the address, for IPv4 and that port; else a hash). A fragment
// is none, nor is a frame that is cut in front of its data. `buffer`: keeps the bytes of the
// result. protocol: 13.1, 13.2
std::optional<CapturedFrame> datagram_in(const CapturedFrame& frame,
                                         std::vector<std::byte>& buffer);

// 10.0.0.5/8181, [2001:db8::5]/8181; `port` 0: without it.
std::string end_text(Bytes address, std::uint16_t port);

}  // namespace stp::replay
