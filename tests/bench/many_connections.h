// SPDX-License-Identifier: BSD-3-Clause
// One Node with any number of idle connections to a peer that exists only as frames.
#pragma once

#include <vector>

#include "stp/channel/rings.h"
#include "stp/node/node.h"
#include "tests/stp/node/two_nodes.h"

namespace stp::bench {

class ManyConnections {
 public:
  using Frame = std::vector<std::byte>;

  explicit ManyConnections(std::size_t count);

  [[nodiscard]] Node& node() { return host_.node; }
  [[nodiscard]] Time now() const { return now_; }
  // Bytes of the users' rings, which do not count as memory of the Node.
  [[nodiscard]] std::size_t channel_bytes() const { return channels_.size(); }
  // Opens a region on connection `i` to the peer, for one Put Block at a time.
  void open_region(std::size_t i);
  // A Silent Put of the peer on connection `i` with number `b_num` and `length` bytes. set_b_num()
  // changes the number.
  [[nodiscard]] Frame put(std::size_t i, std::uint32_t b_num, std::size_t length = 8);
  static void set_b_num(Frame& frame, std::uint32_t b_num);
  // A NOP of the peer for the user.
  [[nodiscard]] Frame no_operation(std::size_t i);
  // The user's side of connection `i`. Use only one at a time, before the first header.
  [[nodiscard]] UserChannel user(std::size_t i) const;

 private:
  static constexpr MacAddr kMac{{2, 0, 0, 0, 0, 1}}, kPeer{{2, 0, 0, 0, 0, 2}};
  static constexpr unsigned kBufsize = 13;
  static constexpr std::uint32_t kRegion = 7;
  void connect(std::size_t i);
  [[nodiscard]] Frame frame(std::size_t i, wire::Header header, Bytes payload);
  void prove(VcId id);
  void discard_frames();

  Time now_ = kSecond;
  EndpointConfig config_{.bufsize = kBufsize, .slots = 1, .credits = 1};
  ChannelGeometry geometry_{config_.slots, config_.credits};
  std::size_t channel_size_ = (geometry_.size() + kCacheLine - 1) / kCacheLine * kCacheLine;
  test::Buffers channels_, memory_{kBufsize, 1};
  test::Host host_;
  EndpointId endpoint_ = kNoneId;
  std::uint16_t mx_ = 0;
  std::vector<VcId> ids_;
};

}  // namespace stp::bench
