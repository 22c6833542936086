// SPDX-License-Identifier: BSD-3-Clause
// What the managed layer says in a frame: requests and answers of connections, numbers and tags of
// messages, slots taken, names of regions. It follows a trace just far enough to know that: which
// connections are managed, and what each id stands for.
#pragma once

#include <vector>

#include "tools/replay/check/connection.h"
#include "tools/replay/text.h"

namespace stp::replay {

class ManagedView {
 public:
  // Call it with each frame of a trace, in order. Empty if the frame says nothing of that kind.
  std::vector<Detail> look(const Decoded& frame);

 private:
  enum class What { kWrite, kRegion, kRing };
  struct Place {
    What what = What::kWrite;
    std::uint32_t i_id = 0, word = 0;  // number of the message, or name of the region
  };
  struct Side {
    Recent<std::uint32_t, std::uint32_t, 256> writes, regions;  // asked for: the word of each I_id
    Recent<std::uint32_t, Place, 256> places;                   // where it receives, by R_id
  };
  struct Pair {
    bool managed = false;
    Side low, high;  // of the lower and the higher end
  };
  struct PairName {
    EndName low, high;
    friend bool operator==(const PairName&, const PairName&) = default;
  };
  struct PairHash {
    std::size_t operator()(const PairName& name) const {
      return EndHash()(name.low) * 31 + EndHash()(name.high);
    }
  };
  struct Said {
    const Decoded& frame;
    const wire::Header& h;
    Pair& pair;
    Side& from;
    Side& to;
  };

  static std::vector<Detail> on_request(const Said& said);
  static std::vector<Detail> on_region(const Said& said);
  static std::vector<Detail> on_data(const Said& said);
  static std::vector<Detail> on_hello(const Said& said);

  Recent<PairName, Pair, 1024, PairHash> pairs_;
};

}  // namespace stp::replay
