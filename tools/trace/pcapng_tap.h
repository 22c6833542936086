// SPDX-License-Identifier: BSD-3-Clause
// Connects a link to a trace.
#pragma once

#include <chrono>

#include "dpdk_port/port.h"
#include "tools/trace/pcapng_writer.h"

namespace stp::trace {

class PcapngTap final : public port::Tap {
 public:
  explicit PcapngTap(PcapngWriter& writer) : writer_(writer) {}
  void frame(Bytes head, Bytes rest, bool sent) override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    writer_.frame(static_cast<Time>(time), head, rest,
                  sent ? PcapngWriter::Way::kSent : PcapngWriter::Way::kReceived);
  }

 private:
  PcapngWriter& writer_;
};

}  // namespace stp::trace
