// SPDX-License-Identifier: BSD-3-Clause
// The peer's Gets and FetchOps on one connection: the FetchOps executed with their results, so that
// each is executed once however often the peer repeats it, and the answers still to be sent.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "stp/base/work_meter.h"
#include "stp/channel/layout.h"

namespace stp {

// The request that a connection is sending, and its progress.
struct Sending {
  bool active = false;  // a DATA of several STUs is partly sent
  SendEntry entry;
  enum class Source : std::uint8_t { kUser, kRegion, kValue };
  Source source = Source::kUser;  // the user's transmit buffers; an answer's region; `payload`
  std::uint64_t done = 0;         // bytes
  std::uint32_t stu_num = 0;      // of the next STU

  [[nodiscard]] bool appends() const {
    return source == Source::kUser && entry.payload_length == wire::kAppendSize;
  }
};

class OneSided {
 public:
  static constexpr std::uint32_t kWindow = 64;  // results kept; the most answers waiting

  // State of the FetchOp with a G_num.
  enum class Fetch : std::uint8_t {
    kNew,        // not executed: call done() or refuse()
    kDone,       // executed: result() is its answer
    kRefused,    // refused: refuse it again
    kConfirmed,  // the requester has its answer
    kStale,      // too old to tell whether it was executed
  };
  // Call when a FetchOp arrives, or the confirmation that its answer arrived.
  // protocol: 9.16
  Fetch seen(std::uint32_t g_num) {
    if (!any_ || static_cast<std::int32_t>(g_num - newest_) > 0) newest_ = g_num;
    any_ = true;
    if (newest_ - g_num >= kWindow) return Fetch::kStale;
    const auto& result = at(g_num);
    return result.g_num == g_num ? result.state : Fetch::kNew;
  }
  void done(std::uint32_t g_num, std::uint64_t value) { at(g_num) = {g_num, Fetch::kDone, value}; }
  void refuse(std::uint32_t g_num) { at(g_num) = {g_num, Fetch::kRefused, 0}; }
  // The requester has the answer of a kDone FetchOp: it is not sent again.
  void confirm(std::uint32_t g_num) { at(g_num).state = Fetch::kConfirmed; }
  // The old value, for a kDone FetchOp.
  [[nodiscard]] std::uint64_t result(std::uint32_t g_num) { return at(g_num).value; }

  struct Reply {
    SendEntry entry;
    Sending::Source source;
  };
  // Whether an answer to `g_num` waits to be sent.
  [[nodiscard]] bool owes(std::uint32_t g_num) const {
    work::count("answers that a connection owes", replies_.size());
    for (const auto& reply : replies_)
      if (reply.entry.header.b_num == g_num) return true;
    return false;
  }
  // Queues an answer. False: kWindow already wait.
  bool owe(const Reply& reply) {
    if (replies_.size() == kWindow) return false;
    replies_.push_back(reply);
    return true;
  }
  // The answer to send next; nullptr: none. Call pop() when it leaves.
  [[nodiscard]] const Reply* next() const { return replies_.empty() ? nullptr : &replies_.front(); }
  void pop() { replies_.pop_front(); }

 private:
  struct Result {
    std::uint32_t g_num = 0;
    Fetch state = Fetch::kNew;
    std::uint64_t value = 0;
  };
  Result& at(std::uint32_t g_num) { return results_[g_num % kWindow]; }

  bool any_ = false;
  std::uint32_t newest_ = 0;               // the highest G_num seen
  std::array<Result, kWindow> results_{};  // FetchOp g at g % kWindow
  std::deque<Reply> replies_;
};

}  // namespace stp
