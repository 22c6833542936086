// SPDX-License-Identifier: BSD-3-Clause
// Two ends of a connection without a link and without a Node: a test carries the requests of one
// Sequencer to the other. For tests of the mechanisms of a connection alone.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "libst/managed/domain.h"
#include "libst/managed/queue.h"
#include "libst/managed/session.h"
#include "tests/managed/no_link.h"

namespace stp::managed {

class TwoSessions : public testing::Test {
 protected:
  static constexpr EndpointId kEndpoint = 3;
  static constexpr std::size_t kPlaces = 16;

  struct Side {
    Side() {
      stm_domain_attr_t attr{};
      attr.buffer_log2 = kPageLog2;
      domain = std::make_shared<Domain>(std::make_shared<NoLink>(), attr);
      queue = std::make_shared<Queue>(domain, kPlaces);
      own = std::make_shared<Memory>(domain, MutableBytes(block), STM_LOCAL_WRITE);
      memory = std::make_shared<Memory>(domain, MutableBytes(bytes), STM_LOCAL_WRITE);
      SequencerConfig config;
      config.local_bufsize = config.remote_bufsize = kPageLog2;
      pages.add(block.data() + kStagingBlock + kEagerRing, own.get(), 1, false);
      session.emplace(config, Staging{block.data(), own.get(), &pages}, kEndpoint);
      // The handshake's messages have the first numbers.
      session->sequencer.take_message();
      session->sequencer.pass_message();
      reports.open(outlets());
    }
    [[nodiscard]] Outlets outlets() const {
      Outlets outlets;
      outlets.events = QueueUse(queue);
      outlets.sends = QueueUse(queue);
      outlets.receives = QueueUse(queue);
      return outlets;
    }
    // The next event; kind 0: none.
    stm_event_t event() const {
      stm_event_t event{};
      queue->take(&event, 1);
      return event;
    }
    std::vector<Completion> completions() {
      std::vector<Completion> all;
      for (Completion c; session->sequencer.next_completion(c);) all.push_back(c);
      return all;
    }

    // Answers the peer's request for its ring.
    void serve_ring(std::uint32_t request) {
      EXPECT_TRUE(session->eager_in.ask(request));
      EXPECT_TRUE(session->eager_in.serve(session->sequencer,
                                          {block.data() + kStagingBlock, own.get()}, kEndpoint));
    }
    // That address of its block.
    std::byte* in_block(const Address& address) {
      return block.data() + static_cast<std::ptrdiff_t>(address.linear(kPageLog2) -
                                                        own->at(block.data()).linear(kPageLog2));
    }

    std::vector<std::byte*> sources;  // of what was taken last
    // With its ring, and pages to send from.
    std::vector<std::byte> block = std::vector<std::byte>(kStagingBlock + 2 * kEagerRing);
    SendPages pages;
    std::vector<std::byte> bytes = std::vector<std::byte>(std::size_t{1} << 16);
    std::shared_ptr<Domain> domain;
    std::shared_ptr<Queue> queue;
    std::shared_ptr<Memory> own, memory;
    std::optional<Session> session;
    Reports reports;
    std::uint32_t taken = 0;  // requests that the Node has taken
  };

  // Takes the requests of a side, as its Node would.
  std::vector<ReceivedEntry> take(Side& from) {
    std::vector<ReceivedEntry> all;
    for (SendEntry sent; from.session->sequencer.transmit(sent, now);) {
      from.session->sequencer.taken(++from.taken, now);
      auto& entry = all.emplace_back();
      entry.header = sent.header;
      std::memcpy(entry.payload, sent.payload, sizeof entry.payload);
      entry.payload_length = sent.payload_length;
      entry.length = sent.length;
      from.sources.push_back(from.in_block({sent.bufx, sent.offset}));
    }
    return all;
  }
  // Hands all requests of `from` to `to`, with the bytes in the ring. Returns their operations.
  std::vector<wire::Op> carry(Side& from, Side& to) {
    std::vector<wire::Op> ops;
    from.sources.clear();
    const auto all = take(from);
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& entry = all[i];
      ops.push_back(entry.header.op());
      if (entry.header.op() == wire::Op::kData && entry.header.has(wire::flag::kInterrupt))
        std::memcpy(to.in_block({entry.header.bufx, entry.header.offset}), from.sources[i],
                    entry.length);
      to.session->sequencer.receive(entry, now);
    }
    return ops;
  }

  // `owner` opens its ring to `user`. Returns the number of that request.
  std::uint32_t serve_ring(Side& owner, Side& user) {
    std::uint32_t number = 0;
    user.session->eager_out.ask(user.session->sequencer);
    carry(user, owner);
    for (const auto& c : owner.completions()) {
      number = c.request;
      owner.serve_ring(number);
    }
    carry(owner, user);
    for (const auto& c : user.completions()) user.session->eager_out.on_answer(c);
    EXPECT_EQ(user.session->eager_out.most(), eager_most(kEagerSpan));
    return number;
  }

  Time now = kSecond;
  Side a, b;
};

}  // namespace stp::managed
