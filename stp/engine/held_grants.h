// SPDX-License-Identifier: BSD-3-Clause
// CTS that pacing holds back. Those of one Transfer keep their order; between Transfers the one
// that lacks the fewest bytes goes first, or the one that waits longest.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "stp/channel/layout.h"
#include "stp/node.h"
#include "stp/sequence/inbound.h"

namespace stp {

class HeldGrants {
 public:
  using Transfer = std::pair<VcId, std::uint32_t>;  // connection, R_id

  [[nodiscard]] bool empty() const { return transfers_.empty(); }
  [[nodiscard]] bool contains(const Transfer& transfer, std::uint32_t b_num) const;
  void push(const Transfer& transfer, const SendEntry& entry, const Inbound::Demand& demand);
  // The Transfer whose first CTS goes next, of those that `fits(connection, bytes)` says may go.
  template <typename Fits>
  [[nodiscard]] std::optional<Transfer> choose(bool by_age, Fits&& fits) const {
    auto const first_of = [&](const auto& order) -> std::optional<Transfer> {
      for (auto const& place : order) {
        auto const& transfer = std::get<Transfer>(place);
        if (fits(transfer.first, transfers_.at(transfer).front().demand.bytes)) return transfer;
      }
      return std::nullopt;
    };
    return by_age ? first_of(by_age_) : first_of(by_remaining_);
  }
  // The first CTS of `transfer` goes.
  SendEntry pop(const Transfer& transfer);
  // Forgets those of a Transfer, or of a connection. How many those were.
  std::uint32_t drop(const Transfer& transfer);
  std::uint32_t drop(VcId vc);

 private:
  struct Held {
    SendEntry entry;
    Inbound::Demand demand;
    std::uint64_t serial;
  };
  using Queue = std::deque<Held>;
  void enter(const Transfer& transfer, const Held& first);
  void leave(const Transfer& transfer, const Held& first);

  std::map<Transfer, Queue> transfers_;  // none is empty
  std::set<std::tuple<std::uint64_t, std::uint64_t, Transfer>> by_remaining_;
  std::set<std::tuple<std::uint64_t, Transfer>> by_age_;
  std::uint64_t last_serial_ = 0;
};

}  // namespace stp
