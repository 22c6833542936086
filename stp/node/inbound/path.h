// SPDX-License-Identifier: BSD-3-Clause
// What is on its way along a path: what has been granted and has not arrived, and what has been
// sent without a proof that it arrived. Also the accounts of connections and owners.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "stp/base/assert.h"
#include "stp/base/linked_list.h"
#include "stp/base/timer_heap.h"
#include "stp/node/inbound/grant_limit.h"
#include "stp/node/node.h"
#include "stp/types.h"

namespace stp {

// The smallest value of a recent time: between one and two periods. A period has 8 values at least,
// or 500 us.
class RecentMinimum {
 public:
  void note(Time value, Time now, Time period);
  [[nodiscard]] Time value() const { return before_ < present_ ? before_ : present_; }

 private:
  Time since_ = 0, before_ = kNever, present_ = kNever;
  unsigned count_ = 0;
};

// How much the delay differs from one sample to the next: hosts that are busy delay what they do by
// chance, while a queue gets longer and shorter slowly. protocol: 13.10
class DelayNoise {
 public:
  void note(Time delay, Time now);
  [[nodiscard]] Time mean() const { return static_cast<Time>(mean_); }

 private:
  Time last_ = 0, at_ = 0;  // the first sample of those that came together
  double mean_ = 0;
};

// What losses come from: from a queue that overflows, if as much waits then as ever, else from
// chance. protocol: 13.12
class LossCause {
 public:
  // So much has waited for `excess`.
  void note(Time excess);
  // Something has been lost, for the first time in a round trip.
  void lost();
  [[nodiscard]] bool is_overflow() const;
  // For how long something waits when the queue overflows; 0: that has not been seen.
  [[nodiscard]] double overflow() const { return overflow_; }

 private:
  Time last_ = 0;
  double sum_ = 0, samples_ = 0;  // of `excess`; older ones count less
  double part_ = 1;               // of recent losses, as much waited
  double overflow_ = 0;
};

// How many bytes may be on their way along a path that others use, too. Grows while what is asked
// for arrives without waiting in the queues of routers, and shrinks when it waits or is lost
// (docs/protocol.md, section 13). The control is that of Copa (Arun and Balakrishnan, NSDI 2018):
// each sender keeps about two pieces in the queue, and moves around that, so that the queue is
// empty from time to time and everybody sees how long the path is without it.
class PathWindow {
 public:
  // `piece`: the bytes that the steps and the queue are counted in. `times`: of how many receivers'
  // shares this one is.
  explicit PathWindow(std::uint64_t piece, unsigned times = 1);

  // How much of the window is in use: so little that it does not grow, enough for that, or all of
  // it while more waits. Only what binds a sender shrinks because of a queue: what he sends beside
  // it is bound by his receivers, and they see the queue, too.
  enum class Use : std::uint8_t { kLittle, kFull, kBinds };

  // `bytes` have arrived. `delay`: the time since they were asked for; 0: not known.
  // protocol: 13.10, 13.11
  void arrived(std::uint64_t bytes, Time delay, Use use, Time now);
  // Something has been lost on the way, or has been marked there, or nothing has been heard.
  // protocol: 13.12, 13.22, 13.16
  void lost(Time now);
  void marked(Time now);
  void silent(Time now);

  [[nodiscard]] std::uint64_t bytes() const {
    return drains_ ? drained() : static_cast<std::uint64_t>(window_);
  }
  // It has been found out how much the path carries, at least once.
  [[nodiscard]] bool is_known() const { return !starts_; }
  // The mean time from asking to arrival; 0: not known.
  [[nodiscard]] Time round_trip() const { return round_trip_; }
  // The smallest of these times, which is that without a queue; 0: not known.
  [[nodiscard]] Time length() const { return round_trip_ == 0 ? 0 : shortest_; }

 private:
  // It is of what a sender sends by itself (13.16), not of what a receiver asks for.
  [[nodiscard]] bool is_of_sender() const { return times_ != 1; }
  void measure(Time delay, bool full, Time now);
  void look_at_path(Time delay, Time now);
  [[nodiscard]] Time host_delay() const;
  [[nodiscard]] Time waits() const;
  [[nodiscard]] double queued() const;
  // It is of a receiver, whose path is so long that windows yield.
  [[nodiscard]] bool is_long() const;
  [[nodiscard]] bool may_grow() const;
  [[nodiscard]] double growth() const;
  [[nodiscard]] double shrinkage(double calm) const;
  [[nodiscard]] double most_growth() const;
  [[nodiscard]] bool was_burst(double carries) const;
  void weigh(std::uint64_t bytes, Time now);
  [[nodiscard]] std::uint64_t drained() const;
  void turn(bool up, Time now);
  void shrink(double factor, Time now);

  const double piece_;
  const double times_;
  double window_;
  DelayNoise noise_;
  LossCause cause_;
  Time most_host_delay_;  // hosts may need no more of a delay; less where queues are short
  bool starts_ = true;    // nothing has waited or been lost: the window doubles each round trip
  Time round_trip_ = 0;
  // Of half a round trip: the queue, without what comes in bursts. A sender has fewer samples, and
  // takes those of two round trips.
  RecentMinimum standing_;
  // The path without a queue: the smallest delay, and when it was last as small. If that is long
  // ago, the window is smaller until the queue of this sender is gone.
  Time shortest_ = kNever, seen_ = 0;
  bool drains_ = false;
  Time drained_ = 0;     // then it is gone
  Time least_ = kNever;  // the smallest delay since
  // What the path carries in a round trip, as far as it was seen while it had a queue.
  double carried_ = 0, most_carried_ = 0;
  bool carries_more_ = false;  // more than that has come since, and nothing waited
  std::uint64_t came_ = 0;     // bytes, since then
  Time weighed_ = 0;
  // The steps double while the window keeps its direction.
  double step_ = 1;
  bool up_ = true;
  unsigned same_ = 0;        // round trips in this direction
  Time looked_ = 0;          // when the direction was last looked at
  double window_then_ = 0;   // the window at that time
  Time recovers_until_ = 0;  // losses before that time have been answered
  double floor_ = 0;         // before that time, chance makes the window no smaller
  Time calm_until_ = 0;      // a router has marked: the window grows slowly until then
};

// What this station sends along a path, and no answer proves to have arrived. Only the receiver
// paces what it asks for, and a sender must not depend on that: it asks from time to time (RS),
// with a Sync that nobody can guess, and the answers make a window of its own. A receiver that
// paces asks for less than that window holds. protocol: 13.16
class SentWindow : public TimerNode {
 public:
  // As many times what a receiver's window would be.
  static constexpr unsigned kTimes = 8;
  // `stu`: bytes of the longest STU. `piece`: as in PathWindow.
  SentWindow(std::uint64_t stu, std::uint64_t piece) : window_(piece, kTimes), stu_(stu) {}

  // How many STUs may leave.
  [[nodiscard]] std::uint64_t room() const {
    return window_.bytes() > unproven() ? (window_.bytes() - unproven()) / stu_ : 0;
  }
  [[nodiscard]] bool has_room() const { return room() != 0; }
  void sent(std::uint64_t bytes) { sent_ += bytes; }
  // Whether a question is due: enough has been sent since the last one, or there is no room and
  // none is open.
  [[nodiscard]] bool asks() const {
    return sent_ - asked_ >= std::max(window_.bytes() / kAsks, stu_) || (!has_room() && !is_open());
  }
  // A question leaves now, marked with `sync`, on the connection `vc`.
  void ask(std::uint32_t sync, VcId vc, Time now);
  // An answer marked with `sync` has arrived. False: it is not to one of the last questions.
  bool answered(std::uint32_t sync, Time now);
  // A question is open.
  [[nodiscard]] bool is_open() const { return opened_ != 0; }
  // When to ask again. Requires is_open().
  [[nodiscard]] Time patience() const {
    return waits() ? std::min(again_, silence_ends()) : silence_ends();
  }
  // That time has come. If the open questions count as lost now, the next interval is longer.
  void silent(Time now);
  // Nobody is left to ask about what is unproven: it counts as arrived.
  void give_up();

  // `vc` has something to send, and there is no room.
  void wait(VcId vc) { waiting_.push_back(vc); }
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }
  // Takes the connection that has waited longest. Requires waits().
  VcId next() {
    const auto vc = waiting_.front();
    waiting_.pop_front();
    return vc;
  }
  // The connection that asked last.
  [[nodiscard]] VcId asker() const { return asker_; }

 private:
  static constexpr unsigned kAsks = 4;  // in a window
  static constexpr unsigned kFull = 3;  // it grows while more than this part of it is used
  struct Ask {
    std::uint32_t sync = 0;
    bool open = false, any = false;
    std::uint64_t sent = 0;  // before it
    Time left = 0;
  };
  [[nodiscard]] std::uint64_t unproven() const { return sent_ - proven_; }
  // Then the open questions count as lost.
  [[nodiscard]] Time silence_ends() const { return heard_ + interval_; }
  void close(Ask& ask) {
    opened_ -= ask.open ? 1 : 0;
    ask.open = false;
  }
  [[nodiscard]] Time first_interval() const;

  PathWindow window_;
  const std::uint64_t stu_;
  std::uint64_t sent_ = 0, asked_ = 0, proven_ = 0;  // bytes; never more than the one before
  std::array<Ask, 16> asks_{};                       // the last questions
  std::size_t next_ = 0;
  unsigned opened_ = 0;
  VcId asker_ = kNoneId;
  Time heard_ = 0;  // the last answer, or when the first open question left
  Time interval_ = 0;
  // While something waits to be sent, it asks again then, at intervals that double; kNever: not.
  Time again_ = 0;
  unsigned repeats_ = 0;
  bool silent_ = false;  // what was lost in this silence has been answered
  std::deque<VcId> waiting_;
};

struct HasRoom;  // paths with room, along which CTS wait

// The path from one station to this one, if it leads through a network that others use, too: what
// has been granted along it and has not arrived, its window, and the connections whose CTS wait for
// room. The connections with that station share it.
class Path : public ListHook<HasRoom>, public TimerNode {
 public:
  using Roomy = LinkedList<Path, HasRoom>;
  // A window is counted in pieces: STUs of the path, or this if they are shorter. Other senders
  // have such packets, too, and what waits for a core at a host has no part in the length of STUs.
  // protocol: 13.10
  static constexpr std::uint64_t kLeastPiece = 1'024;

  // `stu`: bytes of the longest STU. `roomy` must outlive this.
  Path(std::uint64_t stu, Roomy& roomy)
      : piece_(std::max(stu, kLeastPiece)), window_(piece_), roomy_(roomy), sent_(stu, piece_) {}

  // Whether `bytes` more may be granted.
  // protocol: 13.9
  [[nodiscard]] bool has_room(std::uint64_t bytes) const {
    return charged_ == 0 || charged_ + bytes <= window_.bytes();
  }
  // Whether the next CTS is due: those of a window are spread over a part of the round trip.
  // protocol: 13.18
  [[nodiscard]] bool is_due(Time now) const { return charged_ == 0 || now >= due_; }
  [[nodiscard]] Time due() const { return due_; }
  // A CTS for `bytes` leaves now.
  void leaves(std::uint64_t bytes, Time now);
  void grant(std::uint64_t bytes) { charged_ += bytes; }
  // `bytes` have arrived, will not arrive, or no longer count.
  void settle(std::uint64_t bytes) {
    STP_ASSERT(bytes <= charged_, "no more is settled than was granted");
    charged_ -= bytes;
    look();
  }
  // As PathWindow::arrived(), before the bytes are settled.
  void arrived(std::uint64_t bytes, Time delay, Time now) {
    const bool full = !waiting_.empty() || 2 * charged_ >= window_.bytes();
    window_.arrived(bytes, delay, full ? PathWindow::Use::kBinds : PathWindow::Use::kLittle, now);
  }
  void lost(Time now) { window_.lost(now); }
  void marked(Time now) { window_.marked(now); }
  [[nodiscard]] Time round_trip() const { return window_.round_trip(); }
  [[nodiscard]] Time length() const { return window_.length(); }
  // What is granted along a long path comes over its length, not at once. It is charged as what
  // comes in kAtOnce at most: this is the exponent by which it is divided.
  // protocol: 13.23
  static constexpr unsigned kMostSpread = 8;
  [[nodiscard]] unsigned spread() const {
    constexpr Time kAtOnce = 2 * kMillisecond;
    return std::min(static_cast<unsigned>(std::bit_width(length() / kAtOnce)), kMostSpread);
  }
  // Exponent of the Block that suits the window: an eighth of it, but a piece at least; four pieces
  // while nothing is known.
  // protocol: 13.13
  [[nodiscard]] unsigned block_log2() const;
  // Bytes of the part of a Block that suits it: no more than comes in a millisecond, so that it
  // does not wait for itself for long, but four pieces, and a 64th of the window, at least.
  // protocol: 13.19
  [[nodiscard]] std::uint64_t part() const;

  // The other direction.
  SentWindow& sent() { return sent_; }

  // The first CTS of `vc` grants `bytes`, and there is no room for it.
  void wait(VcId vc, std::uint64_t bytes) { waiting_.push_back({vc, bytes}); }
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }
  // Puts it among the paths with room if it has some and a CTS waits.
  void look() {
    if (waits() && !linked() && has_room(waiting_.front().bytes)) roomy_.push_back(*this);
  }
  // Takes the connection that has waited longest, if the next CTS is due and there is room for its
  // CTS beside those that were taken before. kNoneId: none; this is no longer among the paths with
  // room.
  VcId next(Time now) {
    if (!waits() || !is_due(now) || !has_room(promised_ + waiting_.front().bytes)) {
      promised_ = 0;
      unlink();
      return kNoneId;
    }
    const auto first = waiting_.front();
    waiting_.pop_front();
    promised_ += first.bytes;
    return first.vc;
  }

 private:
  const std::uint64_t piece_;
  PathWindow window_;
  Roomy& roomy_;
  std::uint64_t charged_ = 0;  // granted, not arrived, and not written off
  Time due_ = 0;               // the next CTS
  struct Waiting {
    VcId vc;
    std::uint64_t bytes;
  };
  std::deque<Waiting> waiting_;
  std::uint64_t promised_ = 0;  // to those that next() has returned
  SentWindow sent_;
};

// The paths of a Node. One lives as long as a connection with its station has a share in it.
class PathTable {
  struct Entry;
  struct Leave {
    void operator()(Path* path) const;
  };

 public:
  using Share = std::unique_ptr<Path, Leave>;

  PathTable() = default;
  PathTable(const PathTable&) = delete;
  PathTable& operator=(const PathTable&) = delete;
  // The table must outlive the share.
  Share find(const MacAddr& station, std::uint64_t stu);
  [[nodiscard]] Path::Roomy& roomy() { return roomy_; }
  [[nodiscard]] const Path::Roomy& roomy() const { return roomy_; }
  // The Paths whose next CTS waits until it is due.
  [[nodiscard]] TimerHeap& due() { return due_; }
  [[nodiscard]] const TimerHeap& due() const { return due_; }
  // Of the SentWindows of its paths.
  [[nodiscard]] TimerHeap& timers() { return timers_; }

 private:
  struct Entry : Path {
    Entry(PathTable& all, const MacAddr& of, std::uint64_t stu)
        : Path(stu, all.roomy_), table(all), station(of) {}
    PathTable& table;
    const MacAddr station;
    std::size_t shares = 0;
  };
  Path::Roomy roomy_;
  TimerHeap due_, timers_;
  std::map<MacAddr, Entry> paths_;
};

// The bytes that a connection granted by CTS and that have not arrived. They are charged to the
// sums of its owner and of the Node, which pacing uses.
class GrantAccount {
 public:
  GrantAccount() = default;
  // A frame takes one place at the receiver, however short it is. So the bytes of a connection with
  // STUs of 2^n bytes are charged `shorter` times doubled where the longest have 2^(n + shorter).
  // Those that come over a long path are charged less.
  // protocol: 10.8, 13.23
  GrantAccount(NodeGrants& node, std::uint64_t& owner, unsigned shorter = 0)
      : node_(&node), owner_(&owner), shorter_(shorter & kMostExponent) {}

  // The bytes are also charged to `path`, as they are. There is none yet.
  Path& join(PathTable::Share path) {
    STP_ASSERT(path_ == nullptr, "a connection has one path");
    path_ = std::move(path);
    path_->grant(counted_);
    return *path_;
  }

  // Not 0 unless there are no bytes.
  [[nodiscard]] std::uint64_t charge_of(std::uint64_t bytes) const {
    const auto charge = bytes << shorter_;
    return (charge >> spread_) + ((charge & ((std::uint64_t{1} << spread_) - 1)) != 0 ? 1 : 0);
  }

  void grant(std::uint64_t bytes) {
    if (path_ != nullptr && path_->spread() != spread_) charge_anew(path_->spread());
    if (fits_beyond(bytes)) {
      node_->beyond += charge_of(beyond_ + bytes) - charge_of(beyond_);
      beyond_ += static_cast<std::uint32_t>(bytes);
    }
    const auto charge = charge_of(counted_ + bytes) - charge_of(counted_);
    counted_ += bytes;
    node_->charged += charge;
    *owner_ += charge;
    if (path_ != nullptr) path_->grant(bytes);
  }
  // `bytes` have arrived or will not arrive.
  void settle(std::uint64_t bytes) {
    STP_ASSERT(bytes <= outstanding(), "no more is settled than was granted");
    const auto silent = std::min(bytes, silent_);
    leave_silence(silent);
    take(bytes - silent);
  }
  // The peer is silent: moves the outstanding bytes from `charged` to `silent` until something
  // arrives. False: more than `most` would be silent.
  bool write_off(std::uint64_t most) {
    if (!forgotten_ && node_->silent + charge_of(counted_) > most) return false;
    if (!forgotten_) node_->silent += charge_of(silent_ + counted_) - charge_of(silent_);
    silent_ += take(counted_);
    return true;
  }
  // The peer has been silent for so long that its bytes will not come: removes them from both sums
  // until something arrives.
  void forget() {
    leave_sum(silent_);
    silent_ += take(counted_);
    forgotten_ = silent_ != 0;
  }
  void arrived() {
    if (silent_ == 0) return;
    const auto bytes = silent_;
    leave_silence(bytes);
    grant(bytes);
  }
  // The first STU of a Block of `bytes` has come `delay` after its CTS; 0: that is not known.
  // The length of a path is no waiting, and that of a long one has a window for what waits.
  // protocol: 10.24, 13.23
  void began(std::uint64_t bytes, Time delay) {
    if (delay == 0 || node_->limit.is_fixed()) return;
    if (spread_ != 0 || delay <= kSoon + (path_ != nullptr ? path_->length() : 0)) {
      const bool shows = prompt_.came_soon(bytes, counted_);
      const bool grows = node_->limit.came_soon(charge_of(bytes), charge_of(counted_));
      if (shows || grows) node_->look_again = true;
    } else {
      if (shares_in_growth()) node_->limit.came_late(charge_of(bytes));
      prompt_.came_late(bytes);
    }
  }
  // Along a path, its window answers. `told`: it knows of it.
  // protocol: 10.24, 13.12
  void lost(Time now, bool told = false) {
    if (path_ != nullptr) {
      if (!told) path_->lost(now);
      return;
    }
    if (shares_in_growth()) node_->limit.lost();
    prompt_.lost();
  }
  // Whether `bytes` more may be granted within the limit of the Node.
  // protocol: 10.8, 10.24
  [[nodiscard]] bool fits(std::uint64_t bytes) const {
    return charge_of(bytes) <= node_->room() || fits_beyond(bytes);
  }
  // Whether `bytes` more may stand in what the limit has grown by, if there is room.
  [[nodiscard]] bool may_go_beyond(std::uint64_t bytes) const {
    return counted_ + bytes <= prompt_.bytes() && node_->limit.is_large(charge_of(counted_));
  }
  [[nodiscard]] std::uint64_t outstanding() const { return counted_ + silent_; }
  // nullptr: the way from the peer is not shared with others.
  [[nodiscard]] Path* path() const { return path_.get(); }

 private:
  // What it has shown is enough for going beyond the least limit. A connection with less says
  // nothing about the limit: many with little could keep it small.
  [[nodiscard]] bool shares_in_growth() const {
    return node_->limit.is_large(charge_of(prompt_.bytes()));
  }
  [[nodiscard]] bool fits_beyond(std::uint64_t bytes) const {
    return may_go_beyond(bytes) && charge_of(bytes) <= node_->room_beyond();
  }
  // The path turns out to be longer or shorter than it was charged for.
  void charge_anew(unsigned spread) {
    const auto silent = forgotten_ ? 0 : silent_;
    node_->charged -= charge_of(counted_);
    node_->beyond -= charge_of(beyond_);
    node_->silent -= charge_of(silent);
    *owner_ -= charge_of(counted_);
    spread_ = spread & kMostExponent;
    node_->charged += charge_of(counted_);
    node_->beyond += charge_of(beyond_);
    node_->silent += charge_of(silent);
    *owner_ += charge_of(counted_);
    node_->look_again = true;
  }
  // Returns `bytes`. The least limit is free first, for others. But what is beyond a limit that has
  // become smaller goes before that.
  std::uint64_t take(std::uint64_t bytes) {
    const auto charge = charge_of(counted_) - charge_of(counted_ - bytes);
    STP_ASSERT(charge <= *owner_ && *owner_ <= node_->charged,
               "a connection's grants are in its owner's sum, and these in the Node's");
    STP_ASSERT(beyond_ <= counted_, "what stands beyond the least is a part of what is granted");
    if (beyond_ != 0) {
      const bool too_much = node_->beyond > node_->limit.beyond() || beyond_ > prompt_.bytes();
      const auto others = counted_ - beyond_;
      const auto gone = too_much ? std::min<std::uint64_t>(bytes, beyond_)
                                 : bytes - std::min<std::uint64_t>(bytes, others);
      node_->beyond -= charge_of(beyond_) - charge_of(beyond_ - gone);
      beyond_ -= static_cast<std::uint32_t>(gone);
    }
    counted_ -= bytes;
    node_->charged -= charge;
    *owner_ -= charge;
    if (*owner_ == 0) node_->look_again = true;
    if (path_ != nullptr) path_->settle(bytes);
    return bytes;
  }
  void leave_silence(std::uint64_t bytes) {
    leave_sum(bytes);
    silent_ -= bytes;
    if (silent_ == 0) forgotten_ = false;
  }
  void leave_sum(std::uint64_t bytes) const {
    if (forgotten_) return;
    const auto charge = charge_of(silent_) - charge_of(silent_ - bytes);
    STP_ASSERT(charge <= node_->silent, "what is written off is in the Node's sum");
    node_->silent -= charge;
  }

  NodeGrants* node_ = nullptr;
  std::uint64_t* owner_ = nullptr;
  PathTable::Share path_;
  std::uint64_t counted_ = 0;  // in `charged`
  std::uint64_t silent_ = 0;   // in `silent`, or forgotten
  std::uint32_t beyond_ = 0;   // a part of `counted_`, and of `beyond` of the Node
  Promptness prompt_;
  static constexpr unsigned kMostExponent = 15;
  std::uint8_t shorter_ : 4 = 0, spread_ : 4 = 0;
  bool forgotten_ = false;
};

}  // namespace stp
