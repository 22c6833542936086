// SPDX-License-Identifier: BSD-3-Clause
// What the mechanisms of a Sequencer share, without a Sequencer: the test plays the Node, which
// takes requests, and the peer, which sends headers.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <vector>

#include "stp/transfer/endings.h"
#include "stp/transfer/ids.h"
#include "stp/transfer/repeats.h"

namespace stp::test {

class Parts : public ::testing::Test {
 protected:
  using Kind = Completion::Kind;
  using Op = wire::Op;
  static constexpr std::uint32_t kSlots = 100;

  SequencerConfig config{.max_block = 12, .remote_slots = kSlots};
  Clock clock;
  Ids ids;
  Outbox outbox{clock};
  Completions completions{outbox};
  Repeats repeats{kSlots, clock, outbox};
  Endings endings{outbox, completions, repeats};
  Finished finished{outbox};
  std::uint32_t count = 0;  // requests handed out

  Parts() { clock.tell(kSecond); }

  void pass(Time span) { clock.tell(clock.now() + span); }
  // The next request to the Node. nullopt: there is none.
  std::optional<SendEntry> next_entry() {
    SendEntry entry{};
    if (!outbox.transmit(entry)) return std::nullopt;
    ++count;
    return entry;
  }
  std::optional<wire::Header> next() {
    const auto entry = next_entry();
    return entry ? std::optional(entry->header) : std::nullopt;
  }
  // The same, of an operation that the test expects.
  template <typename Operation>
  Operation next_is() {
    const auto header = next();
    EXPECT_TRUE(header && header->op() == Operation::kOp);
    return header ? wire::decode_as<Operation>(*header) : Operation{};
  }
  // The Node takes all requests. Returns their operations.
  std::vector<Op> node_takes() {
    std::vector<Op> ops;
    while (const auto header = next()) ops.push_back(header->op());
    taken();
    return ops;
  }
  void taken() {
    outbox.taken(count);
    completions.release();
  }
  std::optional<Completion> completion() {
    Completion c{};
    return completions.next(c) ? std::optional(c) : std::nullopt;
  }
  // The peer's Node answers the question whether it has seen everything. False: it was not asked.
  bool answer_question() {
    while (const auto header = next()) {
      if (header->op() != Op::kRequestState) continue;
      taken();
      const auto rs = wire::decode_as<wire::RequestState>(*header);
      repeats.on_slots({.r_slots = kSlots, .sync = rs.sync});
      return true;
    }
    return false;
  }
  template <typename Operation>
  static ReceivedEntry received(const Operation& operation, std::uint16_t flags = 0) {
    ReceivedEntry entry{};
    entry.header = wire::to_header(operation, flags);
    return entry;
  }
};

}  // namespace stp::test
