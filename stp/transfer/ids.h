// SPDX-License-Identifier: BSD-3-Clause
// The numbers of Transfers and of messages, and the order of messages.
#pragma once

#include <cstdint>
#include <set>

#include "stp/base/assert.h"
#include "stp/channel/layout.h"
#include "stp/wire/big_endian.h"
#include "stp/wire/header.h"
#include "stp/wire/missing_stus.h"

namespace stp {

// Names what this side begins: owns the ids of its Transfers, regions and requests. They count up,
// so that no id is reused while a duplicate of an old frame may exist.
// protocol: 8.13, 9.1
class Ids {
 public:
  // Never 0 nor kNoId.
  std::uint32_t next() {
    const auto id = next_++;
    if (next_ == wire::kNoId) next_ = 1;
    return id;
  }

 private:
  std::uint32_t next_ = 1;
};

// The Message Sequence Number of a managed write: the first word of the option payload of its RTS,
// and of an END that takes the write back (docs/protocol.md, section 9). 0: not numbered.
inline void store_msn(SendEntry& entry, std::uint32_t msn, std::uint32_t abilities = 0) {
  entry.payload_length = wire::kOptionSize;
  auto* const at = reinterpret_cast<std::byte*>(entry.payload);
  wire::store32(at, msn);
  wire::store32(at + wire::kAbilitiesAt, abilities);
}

inline std::uint32_t load_msn(const ReceivedEntry& entry) {
  if (entry.payload_length != wire::kOptionSize) return 0;
  return wire::load32(reinterpret_cast<const std::byte*>(entry.payload));
}

// What the sender of a managed write can do: wire::kRepeatsMissing, kSendsParts.
// protocol: 10.23, 13.19
inline std::uint32_t load_abilities(const ReceivedEntry& entry) {
  if (entry.payload_length != wire::kOptionSize) return 0;
  return wire::load32(reinterpret_cast<const std::byte*>(entry.payload) + wire::kAbilitiesAt);
}

// The order of the peer's messages: owns the number of the next one, and which of those after it
// need no turn any more, because they were taken back or got their receive ahead of it.
// protocol: 9.21
class MessageOrder {
 public:
  static constexpr std::uint32_t kMaxAhead = 4096;  // from the next message to the newest

  [[nodiscard]] std::uint32_t next() const { return next_; }
  // Whether it had its turn. 0, which is no number, had none.
  [[nodiscard]] bool is_past(std::uint32_t msn) const { return msn != 0 && distance(msn) < 0; }
  // Whether earlier ones come first.
  [[nodiscard]] bool is_ahead(std::uint32_t msn) const { return msn != 0 && distance(msn) > 0; }
  // Whether it is the next one or one of those that may follow it so far.
  [[nodiscard]] bool is_near(std::uint32_t msn) const { return msn - next_ < kMaxAhead; }
  [[nodiscard]] bool is_skipped(std::uint32_t msn) const { return skipped_.contains(msn); }
  // Whether `a` has its turn before `b`. Without a number, there is no order.
  [[nodiscard]] static bool is_before(std::uint32_t a, std::uint32_t b) {
    return a != 0 && b != 0 && static_cast<std::int32_t>(b - a) > 0;
  }

  // The next message has had its turn.
  void pass() {
    do {
      ++next_;
    } while (skipped_.erase(next_) > 0);
    STP_ASSERT(skipped_.size() < kMaxAhead, "only messages ahead of the next one are skipped");
  }
  // The message needs no turn. Ignores one that is past or too far ahead.
  void skip(std::uint32_t msn) {
    if (!is_near(msn)) return;
    if (msn == next_)
      pass();
    else
      skipped_.insert(msn);
    STP_ASSERT(!is_skipped(next_), "the next message is not skipped");
  }

 private:
  [[nodiscard]] std::int32_t distance(std::uint32_t msn) const {
    return static_cast<std::int32_t>(msn - next_);
  }

  std::uint32_t next_ = 1;  // beside what stands before it in Offers, which is read with it
  std::set<std::uint32_t> skipped_;
};

}  // namespace stp
