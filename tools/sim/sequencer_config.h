// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "stp/node/node.h"
#include "stp/transfer/sequencer.h"

namespace stp::sim {

// The parameters that the two Nodes have negotiated.
inline SequencerConfig sequencer_config(const VcInfo& info, unsigned max_block,
                                        std::uint32_t cts_window) {
  SequencerConfig config;
  config.local_bufsize = info.local_bufsize;
  config.remote_bufsize = info.remote_bufsize;
  config.remote_slots = info.remote_slots;
  config.send_stu_log2 =
      stu_size_log2(info.remote_max_stu, info.local_max_stu, info.remote_bufsize);
  config.receive_stu_log2 =
      stu_size_log2(info.local_max_stu, info.remote_max_stu, info.local_bufsize);
  config.max_block = max_block;
  config.cts_window = cts_window;
  return config;
}

}  // namespace stp::sim
