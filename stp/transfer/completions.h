// SPDX-License-Identifier: BSD-3-Clause
// The completions until the caller takes them: owns those that are ready, and those that return
// memory to which the peer may still write. The latter become ready once the Node has taken the
// request that forbids the peer to write.
#pragma once

#include <utility>

#include "stp/base/ring_queue.h"
#include "stp/transfer/outbox.h"
#include "stp/transfer/sequencer.h"

namespace stp {

class Completions {
 public:
  explicit Completions(const Outbox& outbox) : outbox_(outbox) {}

  // Appends one that is ready. What is returned may be filled in further.
  Completion& add(Completion::Kind kind, Context context, int status, std::uint64_t length = 0);
  void add(const Completion& completion) { ready_.place() = completion; }
  // Ready once the Node has taken all requests added so far.
  void add_once_taken(const Completion& completion);
  // Call after the Node has taken requests.
  void release() {
    if (!held_.empty()) release(outbox_.first_not_taken());
  }
  // The connection has ended.
  void release_all() { release(Outbox::kNone); }

  [[nodiscard]] bool has_ready() const { return !ready_.empty(); }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  bool next(Completion& out);

 private:
  void release(std::uint64_t before);

  const Outbox& outbox_;
  RingQueue<std::pair<std::uint64_t, Completion>> held_;  // with the number of the last request
  RingQueue<Completion> ready_;
};

}  // namespace stp
