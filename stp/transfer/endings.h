// SPDX-License-Identifier: BSD-3-Clause
// How operations end: completions, what is remembered of them, and ENDs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"
#include "stp/base/ring_queue.h"
#include "stp/transfer/outbox.h"
#include "stp/transfer/repeats.h"
#include "stp/transfer/sequencer.h"

namespace stp {

// The completions until the caller takes them: owns those that are ready, and those that return
// memory to which the peer may still write. The latter become ready once the Node has taken the
// request that forbids the peer to write.
class Completions {
 public:
  explicit Completions(const Outbox& outbox) : outbox_(outbox) {}

  // Appends one that is ready. What is returned may be filled in further.
  Completion& add(Completion::Kind kind, Context context, int status, std::uint64_t length = 0);
  void add(const Completion& completion) { ready_.place() = completion; }
  // One of a put. As long as no others are ready puts are kept apart, and the first one of them
  // takes no line of a queue.
  void add_put(Context context, int status, std::uint64_t length) {
    if (!ready_.empty())
      fill_in({context, length, status}, ready_.place());
    else if (first_.is_ready || has_more_puts())
      more_puts().place() = {context, length, status};
    else
      first_ = {context, length, status, true};
  }
  // The same of puts that complete together.
  void add_puts(std::span<const PutDone> puts);
  // Ready once the Node has taken all requests added so far.
  void add_once_taken(const Completion& completion);
  // Call after the Node has taken requests.
  void release() {
    if (!held_.empty()) release(outbox_.first_not_taken());
  }
  // The connection has ended.
  void release_all() { release(Outbox::kNone); }

  [[nodiscard]] bool has_ready() const {
    return first_.is_ready || has_more_puts() || !ready_.empty();
  }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  bool next(Completion& out);
  // Those of puts that come before all others, as far as there is room. Returns how many.
  std::size_t next_puts(std::span<PutDone> out);

 private:
  struct First {
    Context context = 0;
    std::uint64_t length = 0;
    int status = 0;
    bool is_ready = false;
  };
  [[nodiscard]] bool has_more_puts() const { return more_ != nullptr && !more_->empty(); }
  RingQueue<PutDone>& more_puts() {
    if (more_ == nullptr) [[unlikely]]
      more_ = std::make_unique<RingQueue<PutDone>>();
    return *more_;
  }
  // All but the region, which it has not.
  static void fill_in(const PutDone& put, Completion& c) {
    c.kind = Completion::Kind::kPut;
    c.status = put.status;
    c.context = put.context;
    c.length = put.length;
    c.request = c.tag = c.message = 0;
    c.offset = 0;
  }
  std::size_t next_more_puts(std::span<PutDone> out);
  void release(std::uint64_t before);

  const Outbox& outbox_;
  // Of puts, before those of `ready_`: the first one, then the others.
  First first_;
  std::unique_ptr<RingQueue<PutDone>> more_;
  RingQueue<Completion> ready_;
  RingQueue<std::pair<std::uint64_t, Completion>> held_;  // with the number of the last request
};

// The requests of the peer that are over: owns the ids of the last few thousand, so that a late
// repeat of one starts nothing. A repeat of a request that was refused is refused again, because
// the refusal may have been lost.
// protocol: 9.24, 10.2
class Finished {
 public:
  explicit Finished(Outbox& outbox) : outbox_(outbox) {}

  void remember(std::uint32_t i_id, bool refused = false) {
    const auto [known, added] = refused_.emplace(i_id, refused);
    known->second = refused;
    STP_ASSERT(refused_.size() == order_.size() + (added ? 1U : 0U),
               "each request that is remembered has its place in the order");
    if (!added) return;
    order_.push_back(i_id);
    if (order_.size() <= kMost) return;
    refused_.erase(order_.front());
    order_.pop_front();
  }
  // Refuses a request now and each time that it is repeated. `answer`: the operation that answers.
  void refuse(wire::Op answer, std::uint32_t i_id) {
    outbox_.refuse(answer, i_id);
    remember(i_id, true);
  }
  // Whether the request `i_id` was handled before.
  [[nodiscard]] bool is_over(std::uint32_t i_id, wire::Op answer) {
    const auto found = refused_.find(i_id);
    if (found == refused_.end()) return false;
    if (found->second) outbox_.refuse(answer, i_id);
    return true;
  }

 private:
  static constexpr std::size_t kMost = 4096;

  Outbox& outbox_;
  RingQueue<std::uint32_t> order_;
  std::map<std::uint32_t, bool> refused_;  // true: it was refused
};

// The ENDs of this side: owns each one until the peer has confirmed it, repeats it, and gives it up
// after a while. The completion of what was ended follows the confirmation. Also owns what is
// remembered of the peer's requests.
class Endings {
 public:
  Endings(Outbox& outbox, Completions& completions, Repeats& repeats)
      : outbox_(outbox), completions_(completions), repeats_(repeats), finished_(outbox) {}

  [[nodiscard]] Finished& finished() { return finished_; }

  // Ends the Transfer or region that the peer calls `r_id` (kNoId: not known) and this side calls
  // `i_id`. `completion` follows the peer's answer. `msn`: the message that is taken back; 0: none.
  void end(std::uint32_t r_id, std::uint32_t i_id, const std::optional<Completion>& completion,
           std::uint32_t msn = 0);
  void on_end_ack(const wire::EndAck& ea);
  void expire();
  // The connection has ended: gives all completions.
  void fail();
  [[nodiscard]] bool empty() const { return endings_.empty(); }
  // The number of completions that are still to come.
  [[nodiscard]] std::size_t outstanding() const;

 private:
  struct Ending {
    std::optional<Completion> completion;
    SendEntry request;
    Awaited awaited{Alarm::kEndings};
  };

  Outbox& outbox_;
  Completions& completions_;
  Repeats& repeats_;
  Finished finished_;
  std::map<std::uint32_t, Ending> endings_;  // by our id
};

}  // namespace stp
