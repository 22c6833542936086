// SPDX-License-Identifier: BSD-3-Clause
// What the peer asks this side's user for: reads and regions. Owns the requests that the user has
// not answered, of which it is told once, and the regions that it has opened, whose memory it gets
// back when they end. Both are bounded; more requests are refused.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "stp/transfer/completions.h"
#include "stp/transfer/endings.h"
#include "stp/transfer/finished.h"
#include "stp/transfer/ids.h"
#include "stp/transfer/puts.h"
#include "stp/transfer/sequencer.h"

namespace stp {

class AsksIn {
 public:
  AsksIn(const SequencerConfig& config, Ids& ids, Outbox& outbox, Completions& completions,
         Endings& endings, Finished& finished)
      : config_(config),
        ids_(ids),
        outbox_(outbox),
        completions_(completions),
        endings_(endings),
        finished_(finished) {}

  // --- the user's answers. -ECANCELED: the request no longer exists.
  // The user serves a read of `length` bytes. Sets the peer's `i_id` of it.
  int take_read(std::uint32_t request, std::uint64_t length, std::uint32_t& i_id);
  int serve_region(std::uint32_t request, const Landing& landing, std::uint32_t window,
                   const RegionTerms& terms);
  int refuse(std::uint32_t request);
  // Ends a region opened as `request`.
  int close_region(std::uint32_t request);

  // --- headers of the peer
  void on_read_request(const wire::RequestToReceive& rtr);
  void on_region_request(const ReceivedEntry& entry);
  // The header of a Put Block that was sent to wake its receiver.
  void on_put(const ReceivedEntry& entry);
  // Our id of the open region that the peer asked for as `i_id`.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t i_id) const;
  // Ends a request or an open region. False: it is no open region.
  bool on_end(const wire::End& end);

  // The connection has ended: requests are gone.
  void fail() { requests_.clear(); }

 private:
  struct Request {
    bool region = false;
    std::uint32_t i_id = 0;
    std::uint64_t length = 0;
    std::uint32_t window = 0;
    std::uint32_t name = 0;
  };

  const SequencerConfig& config_;
  Ids& ids_;
  Outbox& outbox_;
  Completions& completions_;
  Endings& endings_;
  Finished& finished_;
  std::map<std::uint32_t, Request> requests_;  // by a number of ours
  std::map<std::uint32_t, SendEntry> opened_;  // MRA sent, by the peer's I_id
};

}  // namespace stp
