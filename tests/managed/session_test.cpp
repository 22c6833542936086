// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/session.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "libst/managed/operations.h"
#include "stp/wire/operations.h"
#include "tests/managed/scripted_link.h"
#include "tests/managed/two_sessions.h"

namespace stp::managed {
namespace {

constexpr std::uint32_t kNumber = 70;

class ScriptedChannel : public OnScriptedLink {
 protected:
  void take(const ChannelGeometry& geometry = ScriptedLink::kChannel) {
    memory_ = ipc::SharedMemory::lend("stp-channel", geometry.size());
    node = NodeChannel(memory_->data(), geometry);
    channel.take({.vc = 42, .size = 0, .bell = kNumber, .reserved = 0}, memory_,
                 UserChannel::kSomebody);
  }
  // How many pages of the channel the kernel has allocated, and how many there are.
  [[nodiscard]] std::size_t pages() const {
    std::vector<unsigned char> there(all_pages());
    EXPECT_EQ(::mincore(memory_->data(), memory_->size(), there.data()), 0);
    return static_cast<std::size_t>(
        std::count_if(there.begin(), there.end(), [](auto page) { return (page & 1) != 0; }));
  }
  [[nodiscard]] std::size_t all_pages() const {
    return (memory_->size() + ipc::page_size() - 1) / ipc::page_size();
  }
  void post() {
    sequencer.notify(1);
    channel.send(sequencer, kSecond);
  }
  void request() {
    post();
    SendEntry entry;
    for (; node.peek(entry); node.skip()) {
    }
    node.publish_taken();
  }
  void deliver() {
    ReceivedEntry entry{};
    entry.header.op_flags = wire::op_flags(wire::Op::kNoOperation);
    EXPECT_TRUE(node.deliver(entry, NodeChannel::Place::kSlot));
  }
  void header() {
    deliver();
    channel.receive(sequencer, kSecond);
  }
  // Whether the bell of the channel has been rung since the last call.
  bool rung() const {
    bool any = false;
    client::ClientPage& page = link->page();
    ipc::Doorbells::Progress progress;
    page.bells.collect(ipc::kMaxChannels, progress,
                       [&any](std::uint32_t bell) { any |= bell == kNumber; });
    return any;
  }

  std::shared_ptr<ipc::SharedMemory> memory_;
  Channel channel{*link};
  NodeChannel node;
  Sequencer sequencer{SequencerConfig{}};
};

TEST_F(ScriptedChannel, OneThatWasNotMadeHoldsNothing) {
  EXPECT_FALSE(channel.is_taken());
  EXPECT_TRUE(channel.let_go());
  take();
  EXPECT_TRUE(channel.is_taken());
  EXPECT_EQ(channel.number(), kNumber);
  EXPECT_TRUE(node.gathered()) << "the domain looks at all of its channels at once";
  channel.leave();
  EXPECT_FALSE(node.gathered());
}

TEST_F(ScriptedChannel, RequestsOfTheSequencerReachTheNodeInOrderAndOneBellRings) {
  take();
  EXPECT_FALSE(channel.send(sequencer, kSecond));
  EXPECT_FALSE(rung()) << "nothing to send";
  for (std::uint32_t i = 1; i <= 3; ++i) sequencer.notify(i);
  EXPECT_TRUE(channel.send(sequencer, kSecond));
  EXPECT_TRUE(rung());
  EXPECT_EQ(link->rings, 0U) << "the caller rings for several channels";
  SendEntry entry;
  unsigned got = 0;
  for (; node.peek(entry); node.skip()) ++got;
  node.publish_taken();
  EXPECT_GT(got, 0U);
  EXPECT_FALSE(channel.send(sequencer, kSecond)) << "each once";
}

// The rings have room for bursts. Each page that is touched by itself is a page fault, in the
// middle of the program's work; and a connection without bursts should not have them.
TEST_F(ScriptedChannel, OneWithABurstGetsThePagesOfItsRingsAtOnceAndOneWithoutDoesNot) {
  take({.slots = 192, .credits = 64});
  for (int i = 0; i < 300; ++i) request(), header();
  EXPECT_LE(pages(), 3U) << "of " << all_pages();
  for (int i = 0; i < 16; ++i) post();
  EXPECT_EQ(pages(), all_pages());
}

TEST_F(ScriptedChannel, OneThatOnlyReceivesGetsThePagesOfItsRingsAtOnce) {
  take({.slots = 192, .credits = 64});
  for (int i = 0; i < 300; ++i) header();
  EXPECT_LE(pages(), 3U) << "of " << all_pages();
  for (int i = 0; i < 16; ++i) deliver();
  channel.receive(sequencer, kSecond);
  EXPECT_EQ(pages(), all_pages());
}

// protocol: 13.13
TEST_F(ScriptedChannel, TheSequencerLearnsWhichBlocksSuitThePath) {
  take();
  node.suggest_block(12);
  channel.receive(sequencer, kSecond);
  ASSERT_EQ(sequencer.write(1, {}, 100), 0);
  ASSERT_TRUE(channel.send(sequencer, kSecond));
  SendEntry entry;
  ASSERT_TRUE(node.peek(entry));
  EXPECT_EQ(wire::decode_as<wire::RequestToSend>(entry.header).cts_req, 64U) << "short ones";
}

// A receive that the program has cancelled. The Node gets the last Block, takes the END, and tells
// the peer what it got.
// protocol: 9.43
TEST_F(ScriptedChannel, WhatArrivedBeforeTheEndLeftIsReadBeforeTheEndCounts) {
  take();
  const auto hear = [&](const wire::Header& header) {
    ReceivedEntry entry{};
    entry.header = header;
    ASSERT_TRUE(node.deliver(entry, NodeChannel::Place::kSlot));
  };
  ASSERT_EQ(sequencer.post_receive(5, {.mx = 1, .at = {}, .length = 100}), 0);
  hear(wire::to_header(
      wire::RequestToSend{.max_block = 12, .t_len = 100, .rtr_i_id = wire::kNoId, .i_id = 9}));
  channel.receive(sequencer, kSecond);
  ASSERT_TRUE(channel.send(sequencer, kSecond));
  SendEntry grant;
  ASSERT_TRUE(node.peek(grant));
  const auto cts = wire::decode_as<wire::ClearToSend>(grant.header);
  ASSERT_EQ(sequencer.cancel(5), 0);
  ASSERT_TRUE(channel.send(sequencer, kSecond));
  hear(wire::to_header(wire::Data{.r_mx = 1, .r_id = cts.r_id}));
  for (SendEntry entry; node.peek(entry);) node.skip();
  node.publish_taken();
  channel.send(sequencer, kSecond);
  Completion c{};
  EXPECT_FALSE(sequencer.next_completion(c)) << "what has arrived has not been read";
  channel.receive(sequencer, kSecond);
  ASSERT_TRUE(sequencer.next_completion(c));
  EXPECT_EQ(c.context, 5U);
  EXPECT_EQ(c.status, 0);
}

TEST_F(ScriptedChannel, LetGoOnceTheNodeUsesNoMemoryForThemAnyMore) {
  take();
  EXPECT_TRUE(channel.let_go()) << "nothing was sent";
  sequencer.notify(1);
  ASSERT_TRUE(channel.send(sequencer, kSecond));
  EXPECT_FALSE(channel.let_go());
  SendEntry entry;
  while (node.peek(entry)) node.skip();
  node.publish_taken();
  EXPECT_FALSE(channel.let_go()) << "a frame may still read";
  node.complete(node.taken());
  EXPECT_TRUE(channel.let_go());
}

TEST_F(ScriptedChannel, LetGoAtTheEndOfTheChannelOrOfTheService) {
  take();
  sequencer.notify(1);
  ASSERT_TRUE(channel.send(sequencer, kSecond));
  node.set_state(ChannelState::kPeerClosed);
  EXPECT_FALSE(channel.let_go());
  link->lost = -ENODEV;
  EXPECT_TRUE(channel.let_go());
  link->lost = 0;
  EXPECT_FALSE(channel.let_go());
  node.set_state(ChannelState::kClosed);
  EXPECT_TRUE(channel.let_go());
}

TEST_F(ScriptedChannel, TheErrorIsThatOfTheNode) {
  take();
  node.set_state(ChannelState::kFailed, -ETIMEDOUT);
  EXPECT_EQ(channel.state(), ChannelState::kFailed);
  EXPECT_EQ(channel.error(), -ETIMEDOUT);
}

TEST_F(ScriptedChannel, CloseSaysHowAndWhy) {
  take();
  ipc::WireOption why{};
  why.length = 1;
  why.bytes[0] = std::byte{5};
  for (const bool at_once : {true, false}) {
    channel.close(at_once, why);
    const auto& request = link->requests.back();
    EXPECT_EQ(request.kind, Kind::kClose);
    EXPECT_EQ(request.vc, 42U);
    EXPECT_EQ(request.at_once, at_once ? 1U : 0U);
    EXPECT_EQ(request.option.bytes[0], std::byte{5});
  }
}

// A ring, and what arrives in it.
class Eager : public testing::Test {
 protected:
  Eager() {
    pages.add(page_memory.data(), nullptr, 1, false);
    in.lies_in(ring);
  }
  struct Put {
    std::uint32_t slot = 0;
    EagerHead head;
  };
  // What the sender puts; the caller delivers it.
  Put send(std::uint32_t message, std::uint32_t length) {
    return {out.use(length), {message, length, 0, 0}};
  }
  bool arrives(const Put& put, std::uint64_t bytes, std::uint64_t offset) {
    encode(put.head, ring.slot(put.slot));
    EagerHead head;
    return in.arrived(0, offset, bytes, head);
  }
  bool arrives(const Put& put) {
    return arrives(put, kEagerHead + put.head.length, std::uint64_t{put.slot} * kEagerSlot);
  }
  // A lie: a message of `length` in `slot`, in a Block of `bytes`.
  bool arrives(std::uint32_t slot, std::uint32_t message, std::uint32_t length,
               std::uint64_t bytes) {
    return arrives({slot, {message, length, 0, 0}}, bytes, std::uint64_t{slot} * kEagerSlot);
  }
  bool take(std::uint32_t message) {
    const auto* const found = in.find(message);
    if (found == nullptr || !in.in_turn(*found)) return false;
    in.take(*found);
    return true;
  }

  std::byte* page(std::uint32_t number) { return &page_memory[number * kEagerSlot]; }

  std::vector<std::byte> memory = std::vector<std::byte>(kStagingBlock),
                         ring_memory = std::vector<std::byte>(kEagerRing),
                         page_memory = std::vector<std::byte>(kEagerRing);
  Staging staging{memory.data(), nullptr};
  RingMemory ring{ring_memory.data(), nullptr};
  SendPages pages;
  EagerOut out{&pages};
  EagerIn in;
};

constexpr auto kLongest = static_cast<std::uint32_t>(eager_most(kEagerSpan));

// The ring of a link in this process.
class RingHere : public Eager {
 protected:
  RingHere() {
    ring.base = static_cast<std::byte*>(
        ::mmap(nullptr, kEagerRing, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ring.keepers = &keepers;
    out.open(kEagerSpan);
    in.be_frugal();
    in.lies_in(ring);
  }
  ~RingHere() override { ::munmap(ring.base, kEagerRing); }
  void fill_keepers() {
    while (keepers.add()) {
    }
  }
  // That message comes and is taken.
  void pass(std::uint32_t message, std::uint32_t length) {
    const auto put = send(message, length);
    const auto slots = static_cast<std::uint32_t>(eager_slots(length));
    for (auto slot = put.slot; slot < put.slot + slots; ++slot) *last_of(slot) = std::byte{1};
    ASSERT_TRUE(arrives(put));
    out.delivered(put.slot, length);
    ASSERT_TRUE(take(message));
  }
  std::byte* last_of(std::uint32_t slot) { return ring.slot(slot) + kEagerSlot - 1; }
  // The slots that hold what once came.
  std::vector<std::uint32_t> held() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t slot = 0; slot < kEagerSlots; ++slot)
      if (*last_of(slot) != std::byte{}) all.push_back(slot);
    return all;
  }
  using Slots = std::vector<std::uint32_t>;

  RingKeepers keepers;
};

TEST_F(RingHere, PagesGoBackBeforeThePeerHearsThatTheyAreTaken) {
  fill_keepers();
  pass(0, 10);
  pass(1, 5'000);  // two slots
  const auto waits = send(2, 10);
  ASSERT_TRUE(arrives(waits));
  *last_of(waits.slot) = std::byte{1};
  EXPECT_EQ(held(), (Slots{0, 1, 2, 3}));
  EXPECT_EQ(in.tell(), 3U);
  EXPECT_EQ(held(), Slots{3}) << "that of a message that waits stays";
  ASSERT_TRUE(take(2));
  in.rest();
  EXPECT_EQ(held(), Slots{});
}

TEST_F(RingHere, PagesOnBothSidesOfItsEndGoBack) {
  fill_keepers();
  for (std::uint32_t i = 0; i < 3; ++i) pass(i, 16'384);  // five slots each
  out.taken(in.tell());
  *last_of(15) = std::byte{1};  // is left out
  *last_of(5) = std::byte{1};   // free
  pass(3, 16'384);
  in.rest();
  EXPECT_EQ(held(), Slots{5});
}

TEST_F(RingHere, TheFirstThatAreUsedKeepTheirPagesUntilTheyEnd) {
  EagerIn others;
  others.be_frugal();
  others.lies_in(ring);
  ASSERT_TRUE(keepers.add());
  pass(0, 10);
  in.rest();
  EXPECT_EQ(held(), Slots{0});
  std::size_t more = 0;
  while (keepers.add()) ++more;
  EXPECT_EQ(more, RingKeepers::kMost - 2) << "this connection is one of them";
  pass(1, 10);
  in.rest();
  EXPECT_EQ(held(), (Slots{0, 1}));
  others.leave();  // it has kept none
  EXPECT_FALSE(keepers.add());
  in.leave();
  EXPECT_TRUE(keepers.add());
}

TEST_F(Eager, AMessageTakesAsManySlotsAsItNeeds) {
  EXPECT_EQ(eager_slots(0), 1U);
  EXPECT_EQ(eager_slots(4'080), 1U);
  EXPECT_EQ(eager_slots(4'081), 2U);
  EXPECT_EQ(eager_slots(8'176), 2U);
  EXPECT_EQ(eager_slots(kLongest), kEagerSpan);
  EXPECT_EQ(eager_slots(0xffffffff), 1U << 20 | 1U);
}

// protocol: 9.41
TEST_F(Eager, ASenderKeepsToWhatItsPeerAllows) {
  EXPECT_FALSE(out.has_room(0)) << "there is no ring yet";
  out.open(0);  // the peer knows nothing of longer messages
  EXPECT_EQ(out.most(), 4'080U);
  EXPECT_TRUE(out.has_room(4'080));
  EXPECT_FALSE(out.has_room(4'081));
  out.open(3);
  EXPECT_EQ(out.most(), 3 * 4'096U - 16);
  EXPECT_TRUE(out.has_room(out.most()));
  EXPECT_FALSE(out.has_room(out.most() + 1));
  out.open(~std::uint64_t{0});
  EXPECT_EQ(out.most(), kLongest);
  EXPECT_FALSE(out.has_room(kLongest + 1U));
  out.close();
  EXPECT_FALSE(out.has_room(0));
}

// protocol: 9.41
TEST_F(Eager, SlotsAtTheEndThatAreTooFewAreLeftOut) {
  out.open(kEagerSpan);
  std::vector<std::uint32_t> slots;
  for (std::uint32_t i = 0; i < 6; ++i) {
    const auto put = send(i, 16'384);  // five slots
    slots.push_back(put.slot);
    ASSERT_TRUE(arrives(put));
    out.delivered(put.slot, put.head.length);
    ASSERT_TRUE(take(i));
    out.taken(in.tell());
  }
  EXPECT_EQ(slots, (std::vector<std::uint32_t>{0, 5, 10, 0, 5, 10}));
  EXPECT_EQ(in.taken(), 31U) << "the slot that was left out counts once it is passed";
}

// protocol: 9.31, 9.41
TEST_F(Eager, TheSlotsThatAreNotTakenLimitWhatIsSent) {
  out.open(kEagerSpan);
  std::vector<Put> puts;
  for (std::uint32_t i = 0; i < 3; ++i) puts.push_back(send(i, 16'384));
  for (const auto& put : puts) out.delivered(put.slot, put.head.length);
  EXPECT_FALSE(out.has_room(8'000)) << "one slot is left, and it is the last one of the ring";
  EXPECT_TRUE(out.has_room(4'080));
  for (const auto& put : puts) ASSERT_TRUE(arrives(put));
  ASSERT_TRUE(take(0));
  out.taken(in.tell());
  EXPECT_FALSE(out.has_room(16'384 + 4'096)) << "it would leave out one and take six";
  EXPECT_TRUE(out.has_room(16'384 - 16)) << "one and four";
  out.taken(16 + 6);
  EXPECT_FALSE(out.has_room(16'384 + 4'096)) << "more than was sent cannot have been taken";
}

TEST_F(Eager, AMessageIsTakenWhenThePeerSaysSo) {
  out.open(kEagerSpan);
  send(0, 100);
  const auto first = out.sent();
  send(1, 16'384);
  const auto second = out.sent();
  EXPECT_FALSE(out.has_taken(first));
  out.taken(1);
  EXPECT_TRUE(out.has_taken(first));
  EXPECT_FALSE(out.has_taken(second));
  out.taken(6);
  EXPECT_TRUE(out.has_taken(second));
  out.taken(7);  // more than was sent
  EXPECT_FALSE(out.has_taken(second + 1));
}

// protocol: 9.27
TEST_F(Eager, ASenderKnowsHowManyMessagesArePassed) {
  out.open(kEagerSpan);
  for (std::uint32_t round = 0; round < 5; ++round) {
    const auto before = out.messages_taken();
    std::vector<Put> puts;
    for (std::uint32_t i = 0; i < 3; ++i) puts.push_back(send(3 * round + i, i == 1 ? 16'384 : 8));
    for (const auto& put : puts) ASSERT_TRUE(arrives(put));
    for (const auto& put : puts) out.delivered(put.slot, put.head.length);
    ASSERT_TRUE(take(3 * round));
    out.taken(in.tell());
    EXPECT_EQ(out.messages_taken(), before + 1);
    out.taken(in.taken() + 4);
    EXPECT_EQ(out.messages_taken(), before + 1) << "not all slots of the second one";
    ASSERT_TRUE(take(3 * round + 1) && take(3 * round + 2));
    out.taken(in.tell());
    EXPECT_EQ(out.messages_taken(), before + 3);
  }
}

TEST_F(Eager, SlotsWhosePutIsNotCompleteAreNotUsedAgain) {
  out.open(kEagerSpan);
  const auto first = send(0, kLongest);
  const auto second = send(1, kLongest);
  out.taken(16);
  out.delivered(second.slot, kLongest);
  EXPECT_FALSE(out.has_room(0));
  out.delivered(first.slot, kLongest);
  EXPECT_TRUE(out.has_room(kLongest));
}

TEST_F(Eager, ShortMessagesLeaveFromOnePage) {
  out.open(kEagerSpan);
  std::set<std::byte*> places;
  for (std::uint32_t i = 0; i < kEagerSlots; ++i) {
    const auto put = send(i, kEagerCell - kEagerHead);
    auto* const at = out.source(staging, put.slot, put.head.length);
    EXPECT_GE(at, staging.cell_out(0));
    EXPECT_LE(at + kEagerCell, staging.small_ring());
    places.insert(at);
  }
  EXPECT_EQ(places.size(), kEagerSlots) << "each has its own";
}

// However many there are, one after the other.
TEST_F(Eager, LongMessagesLeaveFromTheFirstPagesThatAreFree) {
  out.open(kEagerSpan);
  for (std::uint32_t i = 0; i < 10; ++i) {
    const auto put = send(i, 16'384);
    EXPECT_EQ(out.source(staging, put.slot, 16'384), page(0)) << i;
    ASSERT_TRUE(arrives(put));
    out.delivered(put.slot, 16'384);
    ASSERT_TRUE(take(i));
    out.taken(in.tell());
  }
}

TEST_F(Eager, PagesOfAMessageUnderWayAreNotUsedByAnother) {
  out.open(kEagerSpan);
  const std::array<std::uint32_t, 3> lengths{300, 16'384, 8'000};
  std::array<Put, 3> puts;
  for (std::uint32_t i = 0; i < 3; ++i) puts[i] = send(i, lengths[i]);
  for (std::uint32_t i = 0, first = 0; i < 3; ++i) {
    EXPECT_EQ(out.source(staging, puts[i].slot, lengths[i]), page(first));
    first += static_cast<std::uint32_t>(eager_slots(lengths[i]));
    ASSERT_TRUE(arrives(puts[i]));
  }
  // The one in the middle is complete first.
  out.delivered(puts[1].slot, lengths[1]);
  for (std::uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(take(i));
  out.taken(in.tell());
  EXPECT_EQ(out.source(staging, send(3, 4'080).slot, 4'080), page(1));
  EXPECT_EQ(out.source(staging, send(4, 16'384).slot, 16'384), page(8));
  EXPECT_TRUE(out.has_room(8'176)) << "in two of the four pages between them";
  EXPECT_EQ(out.source(staging, send(5, 200).slot, 200), staging.cell_out(14));
}

// A connection that ends has messages under way, and they are nobody's any more.
TEST_F(Eager, PagesOfAConnectionThatEndsAreOthers) {
  out.open(kEagerSpan);
  for (std::uint32_t i = 0; i < 3; ++i) send(i, 16'384);
  EagerOut others(&pages);
  others.open(kEagerSpan);
  EXPECT_FALSE(others.has_room(16'384));
  EXPECT_TRUE(others.lacks_pages(16'384));
  out.leave();
  EXPECT_TRUE(pages.has(SendPages::kBlock));
  EXPECT_FALSE(others.lacks_pages(16'384));
}

// protocol: 9.31, 9.41
TEST_F(Eager, AMessageThatContradictsItselfIsRefused) {
  EXPECT_FALSE(arrives(0, 2, 10, 15)) << "shorter than its words";
  EXPECT_FALSE(arrives(0, 2, 10, 25)) << "shorter than it says";
  EXPECT_FALSE(arrives(0, 2, 4'080, 4'097)) << "more slots than it says";
  EXPECT_FALSE(arrives(0, 2, 10, 2 * kEagerSlot));
  EXPECT_FALSE(arrives(0, 2, 8'000, kEagerSlot)) << "fewer";
  EXPECT_FALSE(arrives(0, 2, kLongest + 1, kEagerHead + kLongest + 1)) << "more than is allowed";
  EXPECT_FALSE(arrives(0, 2, 0xffffffff, 16 * kEagerSlot));
  EXPECT_FALSE(arrives(0, 2, 0xfffffff0, 16 * kEagerSlot)) << "16 more is 0 in 32 bits";
  EXPECT_FALSE(arrives(15, 2, 4'081, 4'097)) << "beyond the end of the ring";
  EXPECT_FALSE(arrives({0, {2, 1, 0, 0}}, 17, 100)) << "no slot begins there";
  EXPECT_FALSE(arrives({0, {2, 1, 0, 0}}, 17, 16 * kEagerSlot)) << "behind the ring";
  EXPECT_EQ(in.find(2), nullptr);
  EXPECT_TRUE(arrives(0, 2, kLongest, kEagerHead + std::uint64_t{kLongest}));
}

// protocol: 9.41
TEST_F(Eager, AMessageOverOneThatWaitsIsRefused) {
  ASSERT_TRUE(arrives(4, 2, 8'000, 8'016));  // 4 and 5
  EXPECT_FALSE(arrives(4, 3, 1, 17));
  EXPECT_FALSE(arrives(5, 3, 1, 17)) << "its second slot";
  EXPECT_FALSE(arrives(3, 3, 5'000, 5'016)) << "its first slot, from below";
  EXPECT_FALSE(arrives(0, 3, kLongest, kEagerHead + std::uint64_t{kLongest})) << "all of it";
  EXPECT_FALSE(arrives(6, 2, 1, 17)) << "the same number";
  EXPECT_TRUE(arrives(6, 4, 1, 17));
  EXPECT_TRUE(arrives(3, 3, 4'000, 4'016));
}

// protocol: 9.41
TEST_F(Eager, MessagesAreTakenInTheOrderOfTheirSlots) {
  ASSERT_TRUE(arrives(1, 2, 1, 17));
  EXPECT_FALSE(take(2)) << "slot 0 is the first one";
  ASSERT_TRUE(arrives(0, 3, 1, 17));
  EXPECT_TRUE(take(3));
  EXPECT_TRUE(take(2));
  ASSERT_TRUE(arrives(0, 4, 1, 17));
  EXPECT_FALSE(take(4)) << "slots are left out at the end of the ring only";
}

// A sender and a receiver that follow the rules always agree, whatever overtakes what.
// protocol: 9.31, 9.41
TEST_F(Eager, BothSidesAgreeWhereTheNextMessageStands) {
  std::mt19937 random(41);
  const auto dice = [&](std::uint32_t below) {
    return static_cast<std::uint32_t>(random() % below);
  };
  out.open(kEagerSpan);
  std::deque<Put> leaving, confirmed;
  std::deque<std::uint32_t> told;
  std::uint32_t sent = 0, taken = 0, longest = 0;
  for (int step = 0; step < 200'000; ++step) {
    const auto length = dice(2) == 0 ? dice(5'000) : dice(kLongest + 1);
    if (dice(2) == 0 && out.has_room(length)) {
      leaving.push_back(send(sent++, length));
      longest = std::max(longest, length);
    }
    if (!leaving.empty() && dice(2) == 0) {  // Blocks overtake each other
      const auto at = leaving.begin() + dice(static_cast<std::uint32_t>(leaving.size()));
      ASSERT_TRUE(arrives(*at)) << step;
      confirmed.push_back(*at);
      leaving.erase(at);
    }
    if (!confirmed.empty() && dice(2) == 0) {
      out.delivered(confirmed.front().slot, confirmed.front().head.length);
      confirmed.pop_front();
    }
    if (in.find(taken) != nullptr && dice(2) == 0) {
      ASSERT_TRUE(take(taken++)) << step;
      if (in.should_tell()) told.push_back(in.tell());
    }
    if (!told.empty() && dice(2) == 0) {  // and so do notices, or they are lost
      const auto at = told.begin() + dice(static_cast<std::uint32_t>(told.size()));
      if (dice(4) != 0) out.taken(*at);
      told.erase(at);
    }
    // What an offered message does when the ring is full.
    if (leaving.empty() && taken == sent && in.has_untold()) told.push_back(in.tell());
    if (leaving.empty() && taken == sent && told.empty()) out.taken(in.taken());
  }
  EXPECT_GT(taken, 5'000U);
  EXPECT_GT(longest, eager_most(kEagerSpan - 1));
}

using Sessions = TwoSessions;

TEST(SessionMessages, ThoseOfTheProgramAreCountedFromOne) {
  EXPECT_EQ(program_message(0), 0U) << "none";
  EXPECT_EQ(program_message(1), 0U) << "the handshake's";
  EXPECT_EQ(program_message(2), 1U);
  EXPECT_EQ(program_message(0xffffffff), 0xfffffffeU);
}

TEST(SessionContexts, OfOneKindAreNoneOfAnother) {
  constexpr auto operation = OperationList::kMark, message = context::kMessageMark,
                 key = context::kKeyMark;
  EXPECT_EQ((2 * operation - 1) & (message | key), 0U);
  EXPECT_EQ((message | 0xffffffff) & (operation | key), 0U);
  EXPECT_EQ((key | 0xffffffff) & (operation | message), 0U);
  EXPECT_LT(context::kHelloIn, context::kFirstReceive);
  EXPECT_NE(context::kHelloIn, context::kHelloOut);
}

TEST_F(Sessions, WithoutMemoryAnEmptyMessageLandsInTheLibrarysOwn) {
  const auto& session = *a.session;
  const auto hello = session.hello_landing();
  EXPECT_EQ(hello.at, a.own->at(a.block.data() + kHelloSize));
  EXPECT_EQ(hello.length, kHelloSize);
  PostedReceive receive;
  EXPECT_EQ(session.landing(receive).at, hello.at);
  receive.memory = MemoryUse(a.memory);
  receive.ptr = a.bytes.data() + 10;
  receive.length = 20;
  EXPECT_EQ(session.landing(receive).at, a.memory->at(a.bytes.data() + 10));
  EXPECT_EQ(session.landing(receive).length, 20U);
}

class RingOfASession : public TwoSessions {
 protected:
  void SetUp() override { served = serve_ring(a, b); }
  // The peer has put a message into the first slot of a's ring.
  void put(const EagerHead& head) { encode(head, a.session->eager_in.ring().slot(0)); }
  bool arrived(std::uint32_t request, std::uint64_t length) {
    Completion c{};
    c.request = request;
    c.length = length;
    return a.session->on_arrived(c);
  }
  std::uint32_t served = 0;
};

TEST_F(RingOfASession, BytesInOtherRegionsAreNoMessages) {
  put({.message = a.session->sequencer.expected_message(), .length = 10});
  EXPECT_TRUE(arrived(served + 1, 3)) << "whatever they are";
  EXPECT_EQ(a.session->arrived(), nullptr);
  ASSERT_TRUE(arrived(served, kEagerHead + 10));
  ASSERT_NE(a.session->arrived(), nullptr);
  EXPECT_EQ(a.session->arrived()->head.length, 10U);
}

TEST_F(RingOfASession, AMessageThatIsNotTheNextWaits) {
  put({.message = a.session->sequencer.expected_message() + 1, .length = 10});
  ASSERT_TRUE(arrived(served, kEagerHead + 10));
  EXPECT_EQ(a.session->arrived(), nullptr);
}

TEST_F(RingOfASession, WhatBreaksItsRulesIsABreach) {
  const auto message = a.session->sequencer.expected_message();
  put({.message = message, .length = 11});
  EXPECT_FALSE(arrived(served, kEagerHead + 10)) << "longer than what arrived";
  EXPECT_FALSE(arrived(served, kEagerHead - 1)) << "not even a header";
  EXPECT_EQ(a.session->arrived(), nullptr);
}

TEST_F(RingOfASession, AMessageFreesTheSlotsThatThePeerHasTaken) {
  auto& b_out = b.session->eager_out;
  for (std::uint32_t i = 0; i < kEagerSlots; ++i) {
    const auto slot = b_out.use(10);
    b_out.delivered(slot, 10);
  }
  ASSERT_FALSE(b_out.has_room(10));
  serve_ring(b, a);
  encode({.message = b.session->sequencer.expected_message(), .length = 10, .taken = 3},
         b.session->eager_in.ring().slot(0));
  Completion c{};
  c.length = kEagerHead + 10;
  for (c.request = 1; !b.session->eager_in.is_served_as(c.request); ++c.request)
    ASSERT_LT(c.request, 100U);
  ASSERT_TRUE(b.session->on_arrived(c));
  EXPECT_TRUE(b_out.has_room(10));
}

// A sends to B, which has opened a small ring.
class SmallRings : public TwoSessions {
 protected:
  void SetUp() override {
    out().ask(a.session->sequencer, true);
    carry(a, b);
    const auto asked = b.completions();
    ASSERT_EQ(asked.size(), 1U);
    ASSERT_TRUE(in().ask(asked[0].request));
    ASSERT_TRUE(
        in().serve_small(b.session->sequencer, b.session->staging, kEndpoint, asked[0].offset));
    answer();
  }
  EagerOut& out() { return a.session->eager_out; }
  EagerIn& in() { return b.session->eager_in; }
  // What B answers reaches A.
  void answer() {
    carry(b, a);
    for (const auto& c : a.completions()) out().on_answer(c);
  }
  // Puts a message of that length, all of its bytes alike.
  void put(std::size_t length) {
    Operation& sending = sent[next];
    sending.id = next++;
    sending.length = length;
    std::fill_n(a.bytes.begin(), length, std::byte(sending.id));
    const iovec bytes{a.bytes.data(), length};
    ASSERT_EQ(out().send(a.session->sequencer, a.session->staging, sending,
                         {.head = nullptr, .head_length = 0, .parts = {&bytes, 1}},
                         a.session->eager_in, false),
              0);
  }
  // Brings B what A has to say.
  void bring() {
    carry(a, b);
    hear();
  }
  void hear() {
    for (const auto& c : b.completions()) {
      if (c.kind == Completion::Kind::kArrived) {
        ASSERT_TRUE(b.session->on_arrived(c));
      } else if (c.kind == Completion::Kind::kRegionRequest) {
        wanted = c.request;
      }
    }
  }
  // B takes its next message, which is the one of that number. Returns false if it has not come.
  bool take(std::uint64_t number) {
    const auto* const found = b.session->arrived();
    if (found == nullptr) return false;
    EXPECT_TRUE(in().in_turn(*found));
    EXPECT_EQ(found->head.length, sent[number].length);
    const auto* const at = in().bytes(*found);
    EXPECT_EQ(std::count(at, at + found->head.length, std::byte(number)),
              static_cast<std::ptrdiff_t>(found->head.length));
    in().take(*found);
    b.session->sequencer.pass_message();
    return true;
  }
  // A hears what B has taken.
  void tell() {
    a.session->taken(in().tell());
    for (const auto& c : a.completions())
      if (c.kind == Completion::Kind::kPut)
        out().delivered(sent[c.context].sent.slot, sent[c.context].length);
  }
  void pass(std::size_t length) {
    put(length);
    bring();
    ASSERT_TRUE(take(next - 1));
    ASSERT_TRUE(in().should_tell()) << "the peer has room for little";
    tell();
  }
  // B's whole ring, for which A has asked.
  void grow() {
    bring();
    ASSERT_NE(wanted, 0U);
    b.serve_ring(wanted);
    answer();
  }

  std::map<std::uint64_t, Operation> sent;
  std::uint64_t next = 1;
  std::uint32_t wanted = 0;  // the request for the whole ring
};

// protocol: 9.41
TEST_F(SmallRings, TakeTwoSlotsAndNoMore) {
  EXPECT_TRUE(out().is_small());
  EXPECT_EQ(out().most(), eager_most(kSmallSlots));
  EXPECT_TRUE(out().has_room(8'000));
  put(10);
  EXPECT_FALSE(out().has_room(8'000));
  put(10);
  EXPECT_FALSE(out().has_room(10));
  bring();
  ASSERT_TRUE(take(1));
  ASSERT_TRUE(take(2));
  tell();
  pass(8'000);
  pass(4'000);
  EXPECT_FALSE(out().has_room(8'000)) << "it would leave out a slot, and that has to be taken";
  EXPECT_EQ(wanted, 0U);
}

// protocol: 9.41
TEST_F(SmallRings, GrowOnceTheyAreUsed) {
  for (int i = 0; i < 7; ++i) pass(100);
  EXPECT_EQ(wanted, 0U);
  pass(100);
  grow();
  EXPECT_FALSE(out().is_small());
  EXPECT_EQ(out().most(), eager_most(kEagerSpan));
  for (int round = 0; round < 3; ++round) {
    const auto first = next;
    for (std::uint32_t i = 0; i < kEagerSlots; ++i) {
      ASSERT_TRUE(out().has_room(100 + i));
      put(100 + i);
    }
    EXPECT_FALSE(out().has_room(100));
    bring();
    for (auto number = first; number < next; ++number) ASSERT_TRUE(take(number));
    tell();
  }
  wanted = 0;
  put(8'000);
  bring();
  ASSERT_TRUE(take(next - 1));
  EXPECT_FALSE(in().should_tell()) << "there is room for many";
  tell();
  EXPECT_EQ(wanted, 0U) << "it is as large as it may be";
}

// protocol: 9.41
TEST_F(SmallRings, GrowWhereAMessageFindsNoRoom) {
  EXPECT_FALSE(out().opens_for(a.session->sequencer, 20'000)) << "it goes otherwise";
  EXPECT_FALSE(out().opens_for(a.session->sequencer, 20'000));
  grow();
  EXPECT_TRUE(out().has_room(20'000));
}

// The slots that are left out before it were too many for a message of several, which then never
// went there.
// protocol: 9.41
TEST_F(SmallRings, LeaveTheWholeOfTheNewOneToALongMessage) {
  pass(100);
  put(100);
  EXPECT_FALSE(out().opens_for(a.session->sequencer, 20'000));
  grow();
  EXPECT_FALSE(out().has_room(20'000)) << "a message in the old ring is not taken";
  ASSERT_TRUE(take(next - 1));
  tell();
  ASSERT_TRUE(out().has_room(20'000));
  put(20'000);
  bring();
  ASSERT_TRUE(take(next - 1));
  EXPECT_EQ(in().taken(), kEagerSlots + 5);
  tell();
  EXPECT_TRUE(out().has_room(eager_most(kEagerSpan)));
}

// A peer that answers with a small ring again is not asked a third time.
TEST_F(SmallRings, GrowOnce) {
  EXPECT_FALSE(out().opens_for(a.session->sequencer, 20'000));
  Completion small_again{};
  small_again.region = out().ring();
  small_again.region.r_id += 100;
  out().on_answer(small_again);
  EXPECT_TRUE(out().is_open());
  carry(a, b);
  EXPECT_FALSE(out().opens_for(a.session->sequencer, 20'000));
  EXPECT_TRUE(carry(a, b).empty());
}

// Blocks of both rings overtake each other.
// protocol: 9.41
TEST_F(SmallRings, AreReadToTheirEndBeforeTheNewOne) {
  pass(100);
  put(100);
  put(100);
  const auto old = TwoSessions::take(a);
  EXPECT_FALSE(out().opens_for(a.session->sequencer, 100));
  grow();
  // Those in the old ring have not arrived, so their slots are not used again.
  EXPECT_FALSE(out().has_room(100));
  a.session->eager_out.delivered(sent[2].sent.slot, 100);
  a.session->eager_out.delivered(sent[3].sent.slot, 100);
  put(200);
  bring();
  EXPECT_EQ(b.session->arrived(), nullptr);
  ASSERT_EQ(old.size(), 2U);
  std::uint32_t message = b.session->sequencer.expected_message();
  for (const auto& entry : old) {  // they come
    encode({.message = message++, .length = 100},
           b.in_block({entry.header.bufx, entry.header.offset}));
    b.session->sequencer.receive(entry, now);
  }
  hear();
  for (int i = 0; i < 2; ++i) {
    const auto* const found = b.session->arrived();
    ASSERT_NE(found, nullptr);
    ASSERT_TRUE(in().in_turn(*found));
    in().take(*found);
    b.session->sequencer.pass_message();
  }
  ASSERT_TRUE(take(4));
}

// protocol: 9.41
TEST_F(SmallRings, OfWhichTheOwnerRefusesALargerOneGoOn) {
  for (int i = 0; i < 8; ++i) pass(100);
  for (int again = 0; again < 2; ++again) {
    bring();
    ASSERT_NE(wanted, 0U);
    ASSERT_TRUE(in().ask(std::exchange(wanted, 0)));
    in().refuse(b.session->sequencer);
    answer();
    EXPECT_TRUE(out().is_small());
    EXPECT_FALSE(out().opens_for(a.session->sequencer, 20'000));
    for (int i = 0; i < 255; ++i) pass(100);
    bring();
    EXPECT_EQ(wanted, 0U) << "not yet again";
    pass(100);
  }
  grow();
  put(100);
  bring();
  EXPECT_TRUE(take(next - 1));
}

// protocol: 9.41
TEST_F(SmallRings, WhatBreaksTheirRulesIsABreach) {
  const auto small = [&] {
    std::uint32_t number = 1;
    while (!in().is_served_as(number)) ++number;
    return number;
  }();
  EagerHead head;
  auto* const ring = b.session->staging.small_ring();
  encode({.message = 2, .length = 10}, ring);
  encode({.message = 3, .length = 5'000}, ring + kEagerSlot);
  EXPECT_FALSE(in().arrived(small, kSmallRing, 26, head)) << "behind the ring";
  EXPECT_FALSE(in().arrived(small, kEagerSlot, 5'016, head)) << "beyond its end";
  EXPECT_TRUE(in().arrived(small, 0, 26, head));
  EXPECT_FALSE(in().arrived(small, 0, 26, head)) << "over one that waits";
  ASSERT_TRUE(in().in_turn(*in().find(2)));
  in().take(*in().find(2));
  EXPECT_FALSE(out().opens_for(a.session->sequencer, 20'000));
  grow();
  encode({.message = 3, .length = 10}, in().ring().slot(0));
  ASSERT_TRUE(in().arrived(wanted, 0, 26, head));
  ASSERT_TRUE(in().in_turn(*in().find(3)));
  in().take(*in().find(3));
  EXPECT_EQ(in().taken(), 17U) << "the new ring begins with its first slot";
  encode({.message = 4, .length = 10}, ring + kEagerSlot);
  ASSERT_TRUE(in().arrived(small, kEagerSlot, 26, head));
  EXPECT_FALSE(in().in_turn(*in().find(4))) << "the old ring is over";
}

}  // namespace
}  // namespace stp::managed
