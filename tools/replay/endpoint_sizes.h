// SPDX-License-Identifier: BSD-3-Clause
// The sizes of an endpoint without connections are in no frame. What is sent to it tells them.
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
  // Learns the STU size, a power of two, from lengths and places. False: no size that the STUs
  // before allow lets this one stand there.
  bool allow(const SeenStu& stu);
  // Learns Bufsize where two STUs of a Block lie in different buffers. False: there is none that
  // lets both stand where they do. The STU size has to be known.
  bool span(const SeenStu& one, const SeenStu& other);

  [[nodiscard]] bool stu_known() const { return least_ == most_; }
  [[nodiscard]] unsigned stu_log2() const { return most_; }  // the largest that it can be
  [[nodiscard]] std::optional<unsigned> bufsize() const { return bufsize_; }

 private:
  unsigned least_ = wire::kMinMaxStu, most_ = wire::kMaxMaxStu;
  std::optional<unsigned> bufsize_;
};

}  // namespace stp::replay
