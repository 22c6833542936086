// SPDX-License-Identifier: BSD-3-Clause
// What the checker knows of one Port without a connection, and what the frames that are sent to it
// tell of its sizes.
#pragma once

#include <cstdint>
#include <optional>

#include "stp/wire/header.h"
#include "tools/replay/check/connection.h"

namespace stp::replay {

struct SeenStu {
  std::uint32_t number = 0, bufx = 0, offset = 0;
  std::uint64_t length = 0;
  bool last = false;

  static SeenStu of(const wire::Header& data, std::uint64_t length) {
    return {data.param, data.bufx, data.offset, length, data.has(wire::flag::kLast)};
  }
};

// Learns the sizes of a connectionless endpoint from the frames that are sent to it: no frame
// carries them.
class EndpointSizes {
 public:
  // Learns the STU size, a power of two, from lengths and places. Returns false if no size fits
  // this STU and all earlier ones.
  bool allow(const SeenStu& stu);
  // Learns Bufsize from two STUs of a Block in different buffers. Returns false if no Bufsize fits
  // both. The STU size must be known.
  bool span(const SeenStu& one, const SeenStu& other);

  [[nodiscard]] bool stu_known() const { return least_ == most_; }
  [[nodiscard]] unsigned stu_log2() const { return most_; }  // the largest possible value
  [[nodiscard]] std::optional<unsigned> bufsize() const { return bufsize_; }

 private:
  unsigned least_ = wire::kMinMaxStu, most_ = wire::kMaxMaxStu;
  std::optional<unsigned> bufsize_;
};

struct BlockName {
  EndName sender;
  std::uint32_t d_id = 0, b_num = 0;
  friend bool operator==(const BlockName&, const BlockName&) = default;
};
struct BlockNameHash {
  std::size_t operator()(const BlockName& name) const {
    return EndHash()(name.sender) * 31 + (std::uint64_t{name.d_id} << 32 ^ name.b_num);
  }
};

struct SentBlock {
  Block block;
  SeenStu newest;
  TraceTime sent = kNotYet;   // its newest STU
  TraceTime whole = kNotYet;  // since when all of it has been sent
  bool faulty = false;        // a fault of it has been reported
};

// What the checker knows of one Port without a connection. No frame carries its Key and sizes: they
// are learnt from the frames that others send to it (docs/protocol.md, section 11).
struct Endpoint {
  std::optional<std::uint32_t> key;
  // The Key that was used before, and the sender that first used the present one.
  std::optional<std::uint32_t> key_before;
  EndName key_by;
  TraceTime key_since = kNotYet;
  std::uint64_t key_frame = 0;
  EndName sender;        // the first that was seen
  bool certain = false;  // it is not a connection from before the capture
  EndpointSizes sizes;
  Recent<BlockName, SentBlock, 512, BlockNameHash> blocks;
};

}  // namespace stp::replay
