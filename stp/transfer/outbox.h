// SPDX-License-Identifier: BSD-3-Clause
// The requests of this side on their way to the Node: owns those that are queued, the names of
// those that have been handed out and not taken by the Node, and when the Node took the last ones.
// Each request has a number, counting up. They are handed out in the order in which they were
// added, each once. One request that may leave silently asks for an answer for all like it before.
// Short Puts with nothing queued before them are drafts: written where the Node will read them.
#pragma once

#include <array>
#include <cstdint>

#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/base/ring_queue.h"
#include "stp/channel/rings.h"
#include "stp/transfer/clock.h"
#include "stp/types.h"
#include "stp/wire/operations.h"
#include "stp/wire/tiling.h"

namespace stp {

// The times when the Node took the last few requests: the clock of a repeat starts then.
// protocol: 10.20
class Departures {
 public:
  // Nothing that has left is waited for: nobody asks about it any more, and the next one takes the
  // first place. So a connection that has one request at a time uses the same cache line.
  void begin_again() { next_ = 0; }
  // At `when` the Node was seen to have taken request `number` and all before it.
  void add(std::uint64_t number, Time when) {
    const auto& newest = seen_[(next_ + seen_.size() - 1) % seen_.size()];
    STP_ASSERT(number > newest.number && when >= newest.when, "requests leave in their order");
    seen_[next_++ % seen_.size()] = {number, when};
  }
  // When request `number` was seen to be taken; 0: too long ago.
  [[nodiscard]] Time of(std::uint64_t number) const {
    Time when = 0;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const auto& seen = seen_[(next_ + seen_.size() - 1 - i) % seen_.size()];
      if (seen.number < number) return when;
      when = seen.when;
    }
    return 0;
  }
  // When request `number` was last known to wait for the Node; 0: too long ago.
  [[nodiscard]] Time before(std::uint64_t number) const {
    for (std::size_t i = 0; i < seen_.size(); ++i) {
      const auto& seen = seen_[(next_ + seen_.size() - 1 - i) % seen_.size()];
      if (seen.number < number) return seen.when;
    }
    return 0;
  }

 private:
  struct Seen {
    std::uint64_t number = 0;
    Time when = 0;
  };
  std::size_t next_ = 0;
  std::array<Seen, 16> seen_{};
};

// When Puts ask for an answer, all of it: without answers the window would fill up, and each answer
// costs as much as a short Put.
// protocol: 9.27
class Asking {
 public:
  // Of those that leave together, longer Puts keep their question.
  static constexpr std::uint32_t kShort = 4'096;
  // Longer Puts are never quiet.
  static constexpr std::uint64_t kQuietMost = 131'072;
  // So many bytes of quiet ones are asked about.
  static constexpr std::uint64_t kQuietBytes = 262'144;
  // The delay before the peer is asked about quiet Puts.
  static constexpr Time kQuietest = kMillisecond;

  // What has been sent and not asked about: the last so many Blocks, with so many bytes.
  struct Unasked {
    std::uint32_t blocks = 0, bytes = 0;
  };
  // Whether the Block sent last asks, a quiet one. `unasked`: it included. `told`: the peer's user
  // tells of such Blocks itself, so questions are for the case that it does not.
  static constexpr bool must(bool told, const Unasked& unasked, std::uint32_t sent,
                             std::uint32_t window) {
    return unasked.blocks * 4 >= window * (told ? 3 : 1) || unasked.bytes >= kQuietBytes ||
           sent == window;
  }
  // Whether a short Put asks when it leaves. `wanted`: somebody waits for its answer; `later`: the
  // next one will ask, and its answer covers this one.
  bool at_departure(bool wanted, bool later) {
    if ((!wanted || later) && ++not_asked_ != kOnce) [[likely]]
      return false;
    not_asked_ = 0;
    return true;
  }

 private:
  // Of short Puts that leave together, one in this many asks.
  static constexpr std::uint32_t kOnce = 32;

  std::uint32_t not_asked_ = 0;  // short Puts since the last one that asked
};

class Outbox {
 public:
  explicit Outbox(Clock& clock) : clock_(clock) {}

  // --- adding a request. The Node fills in the peer's addresses.
  SendEntry& add();  // to be filled in: all of it is 0
  void add(const wire::Header& header) { add().header = header; }
  void add(const SendEntry& entry);
  // A Put into the peer's region `r_id`, to be filled in: header, and where the bytes are. It has
  // no option payload. `short_one`: whether it asks for an answer is decided when it leaves, so its
  // header does not say so. `asks`: somebody waits for that answer.
  SendEntry& add_put(std::uint32_t r_id, bool short_one, bool asks) {
    STP_ASSERT(ended_ == 0, "nothing is requested once the connection has ended");
    if (clock_.is_idle()) departures_.begin_again();
    if (short_one && ring_ != nullptr && queue_.empty())
      if (auto* const place = ring_->draft(drafts_); place != nullptr) {
        if (drafts_++ != 0) settle_draft(asks && draft_->header.d_id == r_id);
        ++last_number_;
        draft_ = place;
        draft_is_wanted_ = asks;
        clear(*place);
        place->destination_mac = 0;
        return *place;
      }
    return queue_put(r_id, short_one, asks);
  }
  // From now on all leaves through `ring`, by transmit(): drafts are written there.
  void write_to(UserChannel& ring) { ring_ = &ring; }
  // A notice, in the place of the last one, if that still waits: so at most one waits, however much
  // a peer sends that gives no Slots for it.
  // protocol: 9.31
  void add_notice(const wire::Header& header);
  // Adds an answer to the peer, unless the same one is queued, or too many requests are: however
  // often the peer repeats its request, the queue does not grow. It asks again for what is dropped
  // here.
  void answer(const SendEntry& entry);
  void answer(const wire::Header& header);
  // RA: the request `i_id` of the peer has been seen, and is called `r_id` here.
  void tell_seen(std::uint32_t i_id, std::uint32_t r_id);
  // Refuses the request `i_id` of the peer, by an operation `answer`.
  void refuse(wire::Op answer, std::uint32_t i_id);
  // RS about a Transfer or region. Returns its Sync, which the RSR repeats.
  std::uint32_t ask_state(std::uint32_t r_id, std::uint32_t i_id, std::uint32_t b_num);
  std::uint32_t next_sync() { return next_sync_++; }

  // --- what is queued
  [[nodiscard]] bool empty() const { return drafts_ == 0 && queue_.empty(); }
  // So many requests wait that an answer to the peer is dropped.
  [[nodiscard]] bool crowded() const { return queue_.size() >= kMaxAnswers; }
  // More wait than an honest peer's CTS could have caused.
  [[nodiscard]] bool overfull() const { return queue_.size() >= kMaxGranted; }
  // The number of the request added last.
  [[nodiscard]] std::uint64_t last_number() const { return last_number_; }
  // Takes back the unsent DATA of the Transfer or region with the peer's id `r_id`.
  void forget_data(std::uint32_t r_id);
  // Makes the request added last ask for an answer, if it is DATA of `r_id` that has not left.
  // False: it is not.
  bool ask_with_last(std::uint32_t r_id);
  // Whether `length` bytes of `data`, or a request that contains them, have not been taken by the
  // Node yet.
  [[nodiscard]] bool is_leaving(const wire::Data& data, std::uint64_t length,
                                unsigned remote_bufsize) const;

  // --- to the Node
  // Hands out the next request. False: there is none.
  bool transmit(SendEntry& out);
  // All, as far as there is room. Returns true if there were some.
  bool transmit(UserChannel& to);
  // The Node has taken `count` requests since the connection began. False: no more than before.
  bool taken(std::uint32_t count);
  // The number of the last request taken.
  [[nodiscard]] std::uint64_t taken_number() const { return taken_number_; }
  // The first request that the Node has not taken; kNone: it has taken all.
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  [[nodiscard]] std::uint64_t first_not_taken() const {
    if (any_in_ring_) return in_ring_.front().first();
    if (puts_.count != 0) return puts_.first();
    if (drafts_ != 0) return drafts().first();
    return queue_.empty() ? kNone : queue_.front().number();
  }
  // Whether requests have been handed out that the Node has not taken.
  [[nodiscard]] bool waits_for_node() const { return puts_.count != 0 || any_in_ring_; }
  [[nodiscard]] const Departures& departures() const { return departures_; }
  // Looks whether the Node takes anything.
  void expire();
  // The Node has taken nothing for too long.
  [[nodiscard]] bool is_stuck() const { return stuck_; }

  // The connection has ended, because of `error`: drops what is queued. Nothing may be added any
  // more.
  void close(int error);
  // Why it has ended; 0: it has not.
  [[nodiscard]] int ended() const { return ended_; }

 private:
  // A request in the queue. What only a connectionless Port fills in has its number, so that one
  // without payload takes one cache line.
  struct Outgoing : SendEntry {
    // Whether it asks for an answer: as its header says; or that is decided when it leaves, and
    // nobody or somebody waits.
    enum Question : std::uint8_t { kDecided, kNobodyWaits, kSomebodyWaits };
    void mark(std::uint64_t number, Question question) {
      destination_mac = number;
      reserved[0] = question;
    }
    [[nodiscard]] std::uint64_t number() const { return destination_mac; }
    [[nodiscard]] bool is_decided() const { return reserved[0] == kDecided; }
    [[nodiscard]] bool is_wanted() const { return reserved[0] == kSomebodyWaits; }
    // The request as it was added.
    void copy_to(SendEntry& out) const;
  };
  // Requests in the ring: one, or short Puts in a row, of which only the numbers are known, of the
  // last one and how many they are. Nobody asks whether these are leaving.
  struct Run {
    std::uint64_t number = 0;
    std::uint32_t count = 0;
    [[nodiscard]] std::uint64_t first() const { return number + 1 - count; }
  };
  struct HandedOut : Run {
    wire::Op op{};  // none: short Puts
    std::uint32_t d_id = 0, b_num = 0;
    Address at;  // where it begins to land
    std::uint32_t length = 0;
  };

  static constexpr std::size_t kMaxAnswers = 1024;
  // Twice as many as a connection may have Blocks open.
  static constexpr std::size_t kMaxGranted = 8192;

  // The request of that number, as long as it has not been handed out.
  [[nodiscard]] SendEntry* waiting(std::uint64_t number);
  static void clear(SendEntry& put) {
    put.payload_length = put.limited = put.may_be_marked = put.reserved[0] = 0;
  }
  SendEntry& queue_put(std::uint32_t r_id, bool short_one, bool asks);
  // The drafts, whose numbers are in a row, before those of the queue.
  [[nodiscard]] Run drafts() const {
    return {queue_.empty() ? last_number_ : queue_.front().number() - 1, drafts_};
  }
  // Decides about the last draft. `later`: the next one will ask, and its answer covers this one.
  void settle_draft(bool later) {
    if (asking_.at_departure(draft_is_wanted_, later))
      draft_->header.op_flags |= wire::flag::kSendState;
  }
  bool send_drafts();
  void queue_drafts();
  void hand_out(SendEntry& out);
  void hand_out_put(const Outgoing& put, SendEntry& out);
  void await_node();
  void add_run(const Run& run);
  void end_run();
  std::uint32_t take(Run& run, std::uint32_t count);

  // What each Put uses is in front, so that there are few cache lines of it.
  Clock& clock_;
  int ended_ = 0;
  Asking asking_;
  std::uint32_t taken_count_ = 0;
  std::uint32_t next_sync_ = 1;
  std::uint32_t drafts_ = 0;
  bool draft_is_wanted_ = false;   // the last one: somebody waits for its answer,
  bool draft_is_covered_ = false;  // which the first one of the queue brings
  bool any_in_ring_ = false;       // in_ring_ has some
  bool stuck_ = false;
  std::uint64_t last_number_ = 0;
  std::uint64_t taken_number_ = 0;
  Time taken_at_ = 0;            // or when the first one was handed out since
  Run puts_;                     // behind those of in_ring_: most connections need no line for them
  SendEntry* draft_ = nullptr;   // the last one
  UserChannel* ring_ = nullptr;  // where drafts are; nullptr: there are none
  RingQueue<Outgoing> queue_;
  Departures departures_;
  RingQueue<HandedOut> in_ring_;
  std::uint64_t last_notice_ = 0;  // its number
};

}  // namespace stp
