// SPDX-License-Identifier: BSD-3-Clause
// What a connection receives: messages, and the peer's requests to read.
#pragma once

#include <map>
#include <optional>

#include "libst/managed/queue.h"
#include "libst/managed/session.h"
#include "stp/base/ring_queue.h"
#include "stp/transfer/sequencer.h"

namespace stp::managed {

// Owns the receives of a connection, and matches messages with them in the order of sending. It
// promises that the program learns of its messages in that order too, although a short message may
// be complete before a longer one that was sent earlier.
//
// A receive is posted on the connection, or taken from its pool when a message needs one. With
// STM_ON_ARRIVAL a message takes a receive from the pool as soon as it is announced, even if
// earlier messages are still missing.
class Receives {
 public:
  // How a message can break the protocol.
  enum class Breach : std::uint8_t {
    kNone,
    kUnnumbered,  // a Write without a number: the peer does not speak the managed layer's protocol
    kRing,        // what is in the ring contradicts the protocol, so messages are missing or wrong
  };
  struct Progress {
    bool any = false;  // something was matched
    Breach breach = Breach::kNone;
  };

  explicit Receives(Reports& reports) : reports_(reports) {}

  // ---- receives of the program ----
  // The receive has an id, and its event a reserved place.
  void post(PostedReceive receive) { posted_.push_back(std::move(receive)); }
  // Receives that wait for a message, or whose message is arriving.
  [[nodiscard]] std::size_t size() const { return posted_.size() + matched_.size(); }
  // How many messages lie between the oldest matched one and the newest.
  [[nodiscard]] std::uint64_t span(const Session* session) const;
  // A message is arriving in that memory.
  [[nodiscard]] bool uses(const Memory& memory) const;
  // The oldest receive of that context whose message is arriving and that is not cancelled yet, if
  // its id is below `before`.
  [[nodiscard]] std::optional<Context> find_matched(std::uint64_t context,
                                                    std::uint64_t before) const;
  // Its Write has been cancelled, but may still be completed by what arrives.
  void cancelled(Context id) { matched_.at(id).cancelled = true; }
  // Cancels the oldest one of that context that waits for a message, if its id is below `before`.
  bool cancel(std::uint64_t context, std::uint64_t before);
  // Reports STM_HIGH once when more receives of the pool than that are matched. Returns -EAGAIN if
  // there is no place for that event.
  int set_watermark(std::uint64_t receives);

  // ---- messages ----
  // Matches what has come by both ways, and reports what is complete.
  Progress match(Session& session);
  // Matches only messages in the ring.
  Progress match_arrived(Session& session);
  // A Write for a matched receive is complete.
  void on_received(const Session& session, const Completion& c);
  // Starts or stops the timeout of a message that finds no receive.
  // protocol: 9.35
  void watch_wait(Session& session, Time now, bool open);
  // When that timeout expires.
  [[nodiscard]] Time starved_at() const { return starved_at_; }

  // ---- the end ----
  // Complete messages behind an incomplete one get `status` too: reporting them would leave a gap
  // in the order of messages.
  void drop_behind_gap(const Session* session, int status);
  // Completes all that is left with `status`.
  void flush(int status);
  [[nodiscard]] bool has_matched() const { return !matched_.empty(); }

 private:
  Progress match_some(Session& session);
  // A receive with its message. Its completion is reported after those of all receives before it.
  struct Matched {
    PostedReceive receive;
    stm_event_t told{};
    bool done = false, cancelled = false;
  };
  struct Outcome {
    int status = 0;
    std::uint64_t length = 0;
    std::uint32_t message = 0, tag = 0;
  };

  [[nodiscard]] bool has_receive() const;
  bool take(std::uint32_t message, PostedReceive& out);
  Breach match_eager(Session& session, const EagerIn::Arrived& arrived, bool& matched);
  Breach match_offer(Session& session, const Offer& offer, bool& matched);
  Context name_of(std::uint32_t message);
  [[nodiscard]] static bool is_ahead(const Session& session, Context id);
  bool match_ahead(Session& session);
  [[nodiscard]] bool can_spare_receive(const Session& session, const Offer& offer) const;
  [[nodiscard]] stm_event_t event(const PostedReceive& receive, int status) const;
  [[nodiscard]] stm_event_t conclusion(PostedReceive& receive, const Outcome& outcome) const;
  void conclude(const Session& session, Matched& matched, const Outcome& outcome);
  void tell(const Session& session);
  void check_watermark();

  RingQueue<PostedReceive> posted_;           // in order; unused with a pool
  std::optional<std::uint64_t> watermark_;    // has a place among the events
  std::uint64_t last_message_ = 0;            // the last one matched, with a pool; in 64 bits
  std::map<std::uint64_t, Matched> matched_;  // by id, which is the order of the messages
  Time starved_at_ = kNever;  // each turn looks at it, and whether what is before it is empty
  Reports& reports_;
};

// Owns the peer's requests to read that the program has not been told of yet, because its queue has
// no place. It promises to keep at most kMost, whatever the peer does.
class ReadRequests {
 public:
  // As many as can be open at the Sequencer. A peer that ends its requests and sends new ones could
  // otherwise fill the memory of a program that does not poll.
  static constexpr std::size_t kMost = 1024;

  // Returns false if kMost wait: the caller refuses this one.
  [[nodiscard]] bool add(const Completion& c) {
    if (untold_.size() == kMost) return false;
    untold_.push_back(c);
    return true;
  }
  [[nodiscard]] bool empty() const { return untold_.empty(); }
  void clear() { untold_.clear(); }

  // Reports as many as the queue has places for.
  void tell(Reports& reports) {
    while (!untold_.empty() && reports.events().reserve()) {
      const auto& c = untold_.front();
      auto told = reports.event(STM_READ_REQUEST);
      told.length = c.length;
      told.request = c.request;
      reports.events().push(told);
      untold_.pop_front();
    }
  }

 private:
  RingQueue<Completion> untold_;
};

}  // namespace stp::managed
