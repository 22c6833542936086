// SPDX-License-Identifier: BSD-3-Clause
// CTS held back by pacing or for lack of memory. CTS of one Transfer keep their order. Between
// Transfers, the one that lacks the fewest bytes or the one that has waited longest goes first.
// Only the next CTS of each owner is examined, and connections without credit or room are parked:
// choosing takes a few steps per owner, however many CTS are held.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "stp/base/work_meter.h"
#include "stp/channel/layout.h"
#include "stp/node/inbound/inbound.h"
#include "stp/node/node.h"

namespace stp {

class HeldGrants {
 public:
  using Transfer = std::pair<VcId, std::uint32_t>;  // connection, R_id
  // Whether a CTS may go now. kTooMuch: it needs too much. kNoRoom: nothing of its connection can
  // go until unpark(), for lack of credit or because its path is full.
  enum class Fit { kFits, kTooMuch, kNoRoom };

  [[nodiscard]] bool empty() const { return vcs_.empty(); }
  [[nodiscard]] bool contains(const Transfer& transfer, std::uint32_t b_num) const;
  void push(const Transfer& transfer, std::uint64_t owner, const SendEntry& entry,
            const Inbound::Demand& demand);
  // The Transfer whose first CTS goes next, among those for which `fits(connection, demand)`
  // returns kFits.
  template <typename Fits>
  [[nodiscard]] std::optional<Transfer> choose(bool by_age, Fits&& fits);
  // The connection has credit again, or its path may have room.
  void unpark(VcId vc);
  // Removes and returns the first CTS of `transfer`. There is one.
  SendEntry pop(const Transfer& transfer);
  // Drops the CTS of a Transfer or of a connection. Returns how many.
  std::uint32_t drop(const Transfer& transfer);
  std::uint32_t drop(VcId vc);
  // Frees up to `most` dropped CTS. Returns how many.
  std::size_t tidy(std::size_t most);
  [[nodiscard]] bool untidy() const { return !dropped_.empty() || !dropped_vcs_.empty(); }

 private:
  struct Held {
    SendEntry entry;
    Inbound::Demand demand;
    std::uint64_t serial;
  };
  struct Queue {
    std::deque<Held> grants;
    std::set<std::uint32_t> numbers;  // their B_nums
  };
  using Queues = std::map<std::uint32_t, Queue>;  // by R_id; none is empty
  // Entries are: bytes lacking (by_remaining only), serial number and name, of each first CTS.
  template <typename Name>
  struct Order {
    std::set<std::tuple<std::uint64_t, std::uint64_t, Name>> by_remaining;
    std::set<std::tuple<std::uint64_t, Name>> by_age;
    void enter(const Held& first, Name name) {
      by_remaining.emplace(first.demand.remaining, first.serial, name);
      by_age.emplace(first.serial, name);
    }
    void leave(const Held& first, Name name) {
      by_remaining.erase({first.demand.remaining, first.serial, name});
      by_age.erase({first.serial, name});
    }
    [[nodiscard]] Name first(bool oldest) const {
      return oldest ? std::get<1>(*by_age.begin()) : std::get<2>(*by_remaining.begin());
    }
  };
  struct OfVc {
    std::uint64_t owner = 0;
    Queues transfers;
    Order<std::uint32_t> order;  // of R_ids
    std::uint32_t count = 0;
    bool parked = false;
  };
  using Vcs = std::map<VcId, OfVc>;
  // Connections, by the first CTS of each.
  using OfOwner = Order<VcId>;

  static const Held& first_of(const OfVc& of, bool by_age) {
    return of.transfers.find(of.order.first(by_age))->second.grants.front();
  }
  void enter(VcId vc, const OfVc& of);
  void leave(VcId vc, const OfVc& of);

  Vcs vcs_;                                  // each has a CTS
  std::map<std::uint64_t, OfOwner> owners_;  // each has a connection that is not parked
  std::uint64_t last_serial_ = 0;
  std::vector<Queues::node_type> dropped_;
  std::vector<Vcs::node_type> dropped_vcs_;
};

template <typename Fits>
std::optional<HeldGrants::Transfer> HeldGrants::choose(bool by_age, Fits&& fits) {
  std::optional<Transfer> chosen;
  std::tuple<std::uint64_t, std::uint64_t> best;
  for (auto at = owners_.begin(); at != owners_.end();) {
    work::count("owners of CTS that are held");
    auto& owner = at->second;
    const auto vc = owner.first(by_age);
    auto& of = vcs_.at(vc);
    const auto& held = first_of(of, by_age);
    const auto fit = fits(vc, held.demand);
    if (fit == Fit::kNoRoom) {
      const auto next = owner.by_age.size() == 1 ? std::next(at) : at;
      leave(vc, of);
      of.parked = true;
      at = next;
      continue;
    }
    const std::tuple key{by_age ? 0 : held.demand.remaining, held.serial};
    if (fit == Fit::kFits && (!chosen || key < best)) {
      chosen = Transfer{vc, of.order.first(by_age)};
      best = key;
    }
    ++at;
  }
  return chosen;
}

}  // namespace stp
