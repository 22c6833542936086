// SPDX-License-Identifier: BSD-3-Clause
// Datagrams that a capture shows as one: a kernel hands several of one length to its NIC at once
// (UDP_SEGMENT), and joins those that have come (UDP_GRO), and a capture there has a single packet
// with all of their data. All but the last are equally long, so they can be told apart again where
// each begins with a header. stpd's own traces have none.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "tools/replay/capture.h"

namespace stp::replay {

class JoinedDatagrams {
 public:
  // If `frame` has several, it becomes the first of them, and next() gives the others, with the
  // same number and time. If it may have, but where each begins is not sure, it is marked.
  void look(CapturedFrame& frame);
  // The next of them, valid until the next call of either. False: there is none.
  bool next(CapturedFrame& out);

 private:
  [[nodiscard]] std::size_t find_length(Bytes data) const;
  [[nodiscard]] bool has_second(Bytes data) const;
  [[nodiscard]] bool divides(Bytes data, std::size_t length) const;
  [[nodiscard]] bool is_known(const std::byte* header) const;
  void know(Bytes data);
  void give(CapturedFrame& out);

  std::unordered_set<std::uint64_t> known_;  // D_Port, S_Port and D_Key of earlier headers
  CapturedFrame joined_;
  std::vector<std::byte> bytes_;                // of that
  std::vector<std::byte> one_;                  // of what was given last
  std::size_t head_ = 0, length_ = 0, at_ = 0;  // in front of the data; of each; the next
};

}  // namespace stp::replay
