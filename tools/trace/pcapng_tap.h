// SPDX-License-Identifier: BSD-3-Clause
// Connects a link to a trace. Threads of several shards may bring frames: they wait for each other
// as long as it takes to copy one.
#pragma once

#include <chrono>
#include <mutex>

#include "dpdk_port/port.h"
#include "tools/trace/pcapng_writer.h"

namespace stp::trace {

class PcapngTap final : public port::Tap {
 public:
  explicit PcapngTap(PcapngWriter& writer) : writer_(writer) {}
  void frame(Bytes head, Bytes rest, bool sent) override {
    const std::lock_guard guard(mutex_);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    writer_.frame(static_cast<Time>(time), head, rest,
                  sent ? PcapngWriter::Way::kSent : PcapngWriter::Way::kReceived);
  }

 private:
  PcapngWriter& writer_;
  std::mutex mutex_;
};

}  // namespace stp::trace
