// SPDX-License-Identifier: BSD-3-Clause
// Connections made by a Request_Connection whose peers have not yet proved that the answer reached
// them: anybody can ask under any address. Only a few are kept at a time.
#pragma once

#include <algorithm>
#include <vector>

#include "stp/node/node.h"

namespace stp {

// protocol: 5.34
class Unproven {
 public:
  static constexpr std::size_t kOfNode = 256, kOfListener = 16, kOfSource = 8;
  // The silence after which such a peer is asked, and after the same time again loses its place.
  // protocol: 5.40
  static constexpr Time kSilence = 10 * kMillisecond;
  static constexpr Time kLookInterval = kMillisecond;

  struct Entry {
    VcId vc = kNoneId;
    EndpointId listener = kNoneId;
    MacAddr source;  // Common::source_of()
    Time made = 0;
    Time asked = kNever;
  };

  Unproven() { entries_.reserve(kOfNode); }

  // Whether there is no place for one more from `source` at `listener`.
  [[nodiscard]] bool is_full(EndpointId listener, const MacAddr& source) const {
    if (entries_.size() == kOfNode) return true;
    std::size_t here = 0, from_there = 0;
    for (const auto& entry : entries_)
      if (entry.listener == listener) {
        ++here;
        from_there += entry.source == source;
      }
    return here >= kOfListener || from_there >= kOfSource;
  }
  void add(const Entry& entry) {
    if (entries_.size() == kOfNode) return;
    entries_.push_back(entry);
    has_grown_ = true;
  }
  // Whether new entries were added, or the last check is long ago.
  [[nodiscard]] bool is_worth_a_look(Time now) const {
    return has_grown_ || now - looked_at_ >= kLookInterval;
  }
  void looked_at(Time now) {
    has_grown_ = false;
    looked_at_ = now;
  }
  template <typename Is>
  void remove_if(Is&& is) {
    std::erase_if(entries_, is);
  }
  // Oldest first.
  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }

 private:
  std::vector<Entry> entries_;
  bool has_grown_ = false;
  Time looked_at_ = 0;
};

}  // namespace stp
