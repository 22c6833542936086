// SPDX-License-Identifier: BSD-3-Clause
// Learns the sizes of a connectionless endpoint from the frames that are sent to it: no frame
// carries them.
#pragma once

#include <cstdint>
#include <optional>

#include "stp/wire/header.h"

namespace stp::replay {

struct SeenStu {
  std::uint32_t number = 0, bufx = 0, offset = 0;
  std::uint64_t length = 0;
  bool last = false;

  static SeenStu of(const wire::Header& data, std::uint64_t length) {
    return {data.param, data.bufx, data.offset, length, data.has(wire::flag::kLast)};
  }
};

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

}  // namespace stp::replay
