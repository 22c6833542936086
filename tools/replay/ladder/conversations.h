// SPDX-License-Identifier: BSD-3-Clause
// Numbers the connections of a trace, for pictures: which connection each frame belongs to, by the
// stations and Ports that it names. A Port pair that is requested anew begins another connection.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/replay/check/connection_table.h"

namespace stp::replay {

struct Conversation {
  EndName first, second;    // first: who spoke first; the Port of `second` is 0 until it is known
  std::uint16_t uport = 0;  // what an RC asked for, or 0
};

class Conversations {
 public:
  // The index of the conversation that a frame with a header belongs to. Call it in order.
  std::size_t of(const Decoded& frame);
  [[nodiscard]] const std::vector<Conversation>& all() const { return all_; }

 private:
  struct Name {
    EndName low, high;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const {
      return EndHash()(name.low) * 31 + EndHash()(name.high);
    }
  };
  struct Request {
    std::size_t conversation = 0;
    std::uint32_t key = 0;
    bool answered = false;
  };
  std::size_t of_request(const Decoded& frame, const EndName& from, const EndName& to);
  std::size_t begin(const EndName& first, const EndName& second, std::uint16_t uport);

  std::vector<Conversation> all_;
  std::unordered_map<Name, std::size_t, NameHash> by_ends_;
  // By who asks, and the station that is asked, with Port 0.
  std::unordered_map<Name, Request, NameHash> requests_;
};

}  // namespace stp::replay
