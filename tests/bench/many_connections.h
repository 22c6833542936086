// SPDX-License-Identifier: BSD-3-Clause
// One Node with any number of idle connections, all to one peer that exists only as frames, and a
// region that the peer may put into on the first of them.
#pragma once

#include <memory>
#include <vector>

#include "stp/channel/user_side.h"
#include "stp/node.h"
#include "stp/wire/frame.h"

namespace stp::bench {

class CountingRandom : public Random {
 public:
  std::uint32_t next() override { return ++value_; }

 private:
  std::uint32_t value_ = 0;
};

class ManyConnections {
 public:
  static constexpr MacAddr kMac{{2, 0, 0, 0, 0, 1}}, kPeer{{2, 0, 0, 0, 0, 2}};

  explicit ManyConnections(std::size_t count);
  ~ManyConnections();
  ManyConnections(const ManyConnections&) = delete;
  ManyConnections& operator=(const ManyConnections&) = delete;

  [[nodiscard]] Node& node() { return node_; }
  // Bytes of the channels, which are the users' and not the Node's.
  [[nodiscard]] std::size_t channel_bytes() const { return channel_bytes_; }
  [[nodiscard]] VcId connection(std::size_t i) const { return ids_[i]; }

  // Opens an 8-byte window for Puts on connection `i`; afterwards frames[k] is the peer's k-th.
  void open_region(std::size_t i);
  // The 8-byte Put number `b_num` of connection `i` as the peer sends it, Silent.
  [[nodiscard]] std::vector<std::byte> put_frame(std::size_t i, std::uint32_t b_num) const;

 private:
  static constexpr unsigned kBufsize = 12;
  static constexpr std::uint32_t kRegionId = 7;
  void request_connection(std::size_t i);
  void discard_frames();

  CountingRandom random_;
  Node node_;
  EndpointId endpoint_ = kNoneId;
  ChannelGeometry geometry_;
  std::size_t channel_bytes_;
  std::byte* channels_;
  std::byte* memory_;
  RegionId region_ = kNoneId;
  std::uint16_t mx_ = 0;
  std::vector<VcId> ids_;
  Time now_ = kSecond;
};

}  // namespace stp::bench
