// SPDX-License-Identifier: BSD-3-Clause
// Makes frames as an attacker would who knows the protocol, and perhaps a connection's Port and
// Key: headers that were seen, with one or two changed fields.
#pragma once

#include <vector>

#include "tests/fuzz/byte_code.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::fuzz {

inline constexpr MacAddr kStranger{{2, 0, 0, 0, 0, 0x99}};

class FrameMaker {
 public:
  using Frame = std::vector<std::byte>;

  // Remembers a frame's header as a pattern.
  void learn(const Frame& frame);
  // A frame for `to`, with the address of the peer of one of its connections, or of a stranger.
  Frame make(ByteCode& code, const test::Host& to);
  // `frame` with one field changed, and without a checksum, which would not match.
  static Frame changed(ByteCode& code, const Frame& frame);

 private:
  static constexpr std::size_t kPatterns = 32;

  wire::Header header(ByteCode& code);
  std::uint32_t value(ByteCode& code, unsigned field) const;
  void change(ByteCode& code, wire::Header& h) const;

  std::vector<wire::Header> patterns_;
  std::size_t next_ = 0;
};

// Some option payload, or none.
OptionPayload some_option(ByteCode& code);
// Changes some flags.
void flip_flags(ByteCode& code, wire::Header& h);
// The connections of a Node, in the order of their Ports.
std::vector<VcId> connections_of(const Node& node);
// What a peer would send next that follows the protocol and accepts everything.
wire::Header natural_answer(const wire::Header& seen, std::uint32_t id);

}  // namespace stp::fuzz
