// SPDX-License-Identifier: BSD-3-Clause
// Capture files in memory, for tests of their readers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tools/replay/capture.h"

namespace stp::replay::test {

inline constexpr MacAddr kMacA{{2, 0, 0, 0, 0, 1}}, kMacB{{2, 0, 0, 0, 0, 2}};

// A pcap file with nanoseconds, in this machine's byte order.
class FrameFile {
 public:
  explicit FrameFile(std::uint32_t link_type = 1) {
    for (const auto word : {0xa1b23c4dU, 0x00040002U, 0U, 0U, 262'144U, link_type}) put(word);
  }
  void add(std::uint32_t seconds, Bytes frame, std::uint32_t wire_length = 0) {
    const auto size = static_cast<std::uint32_t>(frame.size());
    for (const auto word : {seconds, 0U, size, wire_length == 0 ? size : wire_length}) put(word);
    bytes_.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  }
  void garbage(const std::string& bytes) { bytes_ += bytes; }
  // The result is valid while this object exists.
  std::optional<Capture> open(std::string& error) {
    return Capture::read(fmemopen(bytes_.data(), bytes_.size(), "rb"), "test", error);
  }

 private:
  void put(std::uint32_t word) { bytes_.append(reinterpret_cast<const char*>(&word), sizeof word); }
  std::string bytes_;
};

// A pcapng file of one frame with a time in whole seconds, beyond the range of nanoseconds.
inline std::string far_away(std::uint64_t seconds, Bytes frame) {
  std::string file;
  const auto put = [&](std::uint32_t word) {
    file.append(reinterpret_cast<const char*>(&word), sizeof word);
  };
  const auto length = static_cast<std::uint32_t>(frame.size());
  const auto padding = (4 - length % 4) % 4;
  for (const auto word : {0x0a0d0d0aU,
                          28U,
                          0x1a2b3c4dU,
                          1U,
                          ~0U,
                          ~0U,
                          28U,  // section
                          1U,
                          32U,
                          1U,
                          0U,
                          0x00010009U,
                          0U,
                          0U,
                          32U,  // Ethernet, resolution 10^-0 s
                          6U,
                          32 + length + padding,
                          0U,
                          static_cast<std::uint32_t>(seconds >> 32),
                          static_cast<std::uint32_t>(seconds),
                          length,
                          length})
    put(word);
  file.append(reinterpret_cast<const char*>(frame.data()), frame.size());
  file.append(padding, '\0');
  put(32 + length + padding);
  return file;
}

inline std::vector<std::byte> frame_of(const wire::Header& header, Bytes payload = {}) {
  std::vector<std::byte> frame(20'000);
  frame.resize(wire::emit({kMacB, kMacA, {}, false}, header, payload, {}, frame));
  return frame;
}

inline wire::Header header_of(wire::Op op, std::uint16_t flags = 0) {
  wire::Header h;
  h.op_flags = wire::op_flags(op, flags);
  h.s_port = 101;
  h.d_port = 202;
  return h;
}

}  // namespace stp::replay::test
