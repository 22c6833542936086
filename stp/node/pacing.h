// SPDX-License-Identifier: BSD-3-Clause
// Receiver-driven pacing: CTS wait while too many granted bytes are on their way, so that many
// senders to one receiver do not overflow its switch (docs/protocol.md, section 10). CTS also wait
// here while their owner has no memory to track them.
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
#include "stp/counters.h"
#include "stp/node/connection/port_table.h"
#include "stp/node/inbound/inbound.h"
#include "stp/node/node.h"

namespace stp {

// CTS held back by pacing or for lack of memory. CTS of one Transfer keep their order. Between
// Transfers, the one that lacks the fewest bytes or the one that has waited longest goes first.
// Only the next CTS of each owner is examined, and connections without credit or room are parked:
// choosing takes a few steps per owner, however many CTS are held.
class HeldGrants {
 public:
  using Transfer = std::pair<VcId, std::uint32_t>;  // connection, R_id
  // Whether a CTS may go now. kTooMuch: it needs too much. kNoRoom: nothing of its connection can
  // go until unpark(), for lack of credit or because its path is full.
  enum class Fit { kFits, kTooMuch, kNoRoom };

  struct Held {
    SendEntry entry;
    Inbound::Demand demand;
    std::uint32_t part = 0;  // grants so many STUs more; 0: its Block
    std::uint64_t serial = 0;
  };

  [[nodiscard]] bool empty() const { return vcs_.empty(); }
  [[nodiscard]] bool contains(const Transfer& transfer, std::uint32_t b_num) const;
  // Some CTS of the Transfer.
  [[nodiscard]] bool contains(const Transfer& transfer) const;
  // `held` has no serial number yet.
  void push(const Transfer& transfer, std::uint64_t owner, const Held& held);
  // The same for one that pop() has returned: it goes before the others of its Transfer.
  void put_back(const Transfer& transfer, std::uint64_t owner, const Held& held);
  // The Transfer whose first CTS goes next, among those for which `fits(connection, demand)`
  // returns kFits.
  template <typename Fits>
  [[nodiscard]] std::optional<Transfer> choose(bool by_age, Fits&& fits);
  // The connection has credit again, or its path may have room.
  void unpark(VcId vc);
  // Removes and returns the first CTS of `transfer`. There is one.
  Held pop(const Transfer& transfer);
  // Drops the CTS of a Transfer or of a connection. Returns how many.
  std::uint32_t drop(const Transfer& transfer);
  std::uint32_t drop(VcId vc);
  // Frees up to `most` dropped CTS. Returns how many.
  std::size_t tidy(std::size_t most);
  [[nodiscard]] bool untidy() const { return !dropped_.empty() || !dropped_vcs_.empty(); }

 private:
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
  OfVc& open(const Transfer& transfer, std::uint64_t owner, const Held& held);
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

class Pacing {
 public:
  // The most CTS in one burst, including those refused in the end.
  static constexpr unsigned kMostReleased = 32;

  // `limit`: of the bytes that may be granted over all connections in STUs of 2^`max_stu` bytes, or
  // in as many shorter STUs. `vcs` and `counters` must outlive this.
  // `paths`: there may be some.
  Pacing(const GrantLimit& limit, unsigned max_stu, PortTable& vcs, Counters& counters,
         bool paths = false)
      : max_stu_(max_stu), has_paths_(paths), vcs_(vcs), counters_(counters) {
    sums_.limit = limit;
  }

  // The paths that connections share; none if there is no control of congestion.
  PathTable& paths() { return paths_; }

  // account: for the new connection `vc`, whose peer is known, with STUs of 2^`stu_log2` bytes.
  // memory_freed: WindowPurse sets it when memory that was short is free again.
  // share_path: its way is shared with others, and it has no path yet.
  GrantAccount account(Vc& vc, unsigned stu_log2);
  Path& share_path(Vc& vc);
  bool& memory_freed() { return memory_freed_; }

  // The user of `vc` wants to send the CTS `entry`. True: it waits here, or the CTS that it repeats
  // does; next() returns it when it may go. False: it may go now.
  // protocol: 10.8
  bool hold(Vc& vc, const SendEntry& entry, Time now);
  // Call when `entry` was refused because its owner has no memory to track the Block. False: too
  // many wait.
  // protocol: 7.19
  bool hold_for_memory(Vc& vc, const SendEntry& entry, Time now);
  // No CTS waits.
  [[nodiscard]] bool empty() const { return held_.empty(); }
  // One waits that may go at once: a part of a Block that was asked for whole.
  [[nodiscard]] bool may_go() const { return may_go_; }
  // Call before the first next() of a burst.
  void begin_burst(Time now);
  struct Grant {
    Vc& vc;
    HeldGrants::Held held;
  };
  // Takes the CTS that goes next: the one of the Transfer nearest to its end, from time to time the
  // oldest. Examines at most `left` CTS and reduces `left`. nullopt: no other may go now.
  // protocol: 10.9
  std::optional<Grant> next(unsigned& left, Time now);
  // Call when the CTS needs more memory than when it was held, e.g. because its Transfer was
  // forgotten. It waits again.
  void hold_again(const Grant& grant, Time now);
  // Call when a part of the Block has been granted and `left` bytes of it have not: the rest waits.
  // protocol: 13.19
  void hold_rest(const Grant& grant, std::uint64_t left);
  // The peer of `vc` has Slots again.
  void has_credit(Vc& vc);
  // `vc` or its Transfer `r_id` has ended: drops its CTS, so that none starts the Transfer again.
  void drop(Vc& vc);
  void drop(Vc& vc, std::uint32_t r_id);
  // Frees up to `most` dropped CTS. Returns how many.
  std::size_t tidy(std::size_t most) { return held_.tidy(most); }
  [[nodiscard]] bool untidy() const { return held_.untidy(); }

  // A CTS of `vc` leaves: checks from now on whether its grants make progress.
  void watch(Vc& vc, Time now);
  // Grants without progress for long no longer delay others, and CTS that waited for a path may
  // go. Call when deadline() has passed, and before transmit().
  void expire(Time now);
  // Time of the next check; kNever while no CTS is held.
  [[nodiscard]] Time deadline() const { return empty() ? kNever : deadline_of_held(); }

 private:
  [[nodiscard]] Time deadline_of_held() const;
  void hold(Vc& vc, const HeldGrants::Held& held);
  [[nodiscard]] bool is_off() const { return sums_.limit.is_none() && !has_paths_; }
  [[nodiscard]] bool fits_memory(const Vc& vc, std::uint64_t bytes) const {
    return sums_.limit.is_none() || vc.endpoint->owner->granted == 0 ||
           vc.inbound.account().fits(bytes);
  }
  [[nodiscard]] bool has_room() const {
    return sums_.room() >= least_ || sums_.room_beyond() >= least_beyond_;
  }
  // protocol: 10.12
  void write_off(Time now);
  bool path_takes(Vc& vc, std::uint64_t bytes, Time now);
  void look_at_paths(Time now);
  static Time patience(const Vc& vc);
  void look_at_memory_by(Time time) { memory_look_ = std::min(memory_look_, time); }
  void forget_idle_transfers();

  const unsigned max_stu_;
  const bool has_paths_;
  PortTable& vcs_;
  Counters& counters_;
  NodeGrants sums_;
  PathTable paths_;
  HeldGrants held_;
  bool memory_freed_ = false;  // memory that was short is free again
  bool may_go_ = false;        // one that was held a moment ago, as a part of its Block
  // Time to check whether there is memory for a held CTS: others may have returned some to the
  // budget.
  Time memory_look_ = kNever;
  std::size_t idle_look_ = 0;  // the Port that the check has reached
  // No held CTS can go while there is less room than that.
  std::uint64_t least_ = 0, least_beyond_ = 0;
  std::uint64_t releases_ = 0;
  LinkedList<Vc, IsWatched> watched_;  // connections with grants, ordered by next check
};

}  // namespace stp
