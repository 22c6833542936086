// SPDX-License-Identifier: BSD-3-Clause
// What the checker knows of one Port without a connection. No frame carries its Key and sizes: they
// are learnt from the frames that others send to it (docs/protocol.md, section 11).
#pragma once

#include "tools/replay/check/connection_table.h"
#include "tools/replay/endpoint_sizes.h"

namespace stp::replay {

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
