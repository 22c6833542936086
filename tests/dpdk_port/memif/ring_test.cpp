// SPDX-License-Identifier: BSD-3-Clause
// A ring between two honest sides, and with a peer that writes arbitrary values.
#include "dpdk_port/memif/ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace stp::port::memif {
namespace {

constexpr unsigned kLog2 = 3;
constexpr std::uint32_t kBuffer = 256;
constexpr std::size_t kRingBytes = 1024;
static_assert(ring_bytes(kLog2) <= kRingBytes);

using Frame = std::vector<std::byte>;

Frame make_frame(std::size_t length, unsigned seed) {
  Frame frame(length);
  for (std::size_t i = 0; i < length; ++i) frame[i] = static_cast<std::byte>(i * 7 + seed);
  return frame;
}

// The memory of one ring and its buffers, as the client lays it out.
class MemifRing : public ::testing::Test {
 protected:
  void SetUp() override {
    SharedDescriptor file;
    std::string error;
    regions.push_back(
        Region::make(kRingBytes + (kBuffer << kLog2), std::make_shared<Closer>(), file, error));
    ASSERT_TRUE(regions[0]) << error;
    ring = Ring(regions[0].part(0, kRingBytes), kLog2);
    ring.clear();
    own = Buffers::own(regions[0], kRingBytes, kBuffer);
    peers = Buffers::of_peer(regions);
  }
  static bool put(Sender& sender, const Frame& frame) { return sender.put(Bytes(frame)); }
  static Receiver::Took take(Receiver& receiver, Frame& out) {
    std::array<std::byte, 1024> room;
    std::size_t length = 0;
    const auto took = receiver.take(room, length);
    out.assign(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(length));
    return took;
  }

  Regions regions;
  Ring ring;
  Buffers own, peers;
};

// Carries frames of different lengths, in one piece and in two, in different bursts, many times
// around the ring.
void carry(Sender sender, Receiver receiver) {
  std::mt19937 random(1);
  std::deque<Frame> under_way;
  unsigned sent = 0, received = 0;
  while (received < 5000) {
    for (auto burst = random() % 6; burst > 0; --burst) {
      Frame frame = make_frame(1 + random() % 1000, sent);
      const std::size_t middle = random() % frame.size();
      const std::array<Bytes, 2> parts{Bytes(frame).first(middle), Bytes(frame).subspan(middle)};
      if (!(sent % 2 == 0 ? sender.put(Bytes(frame)) : sender.put(parts))) break;
      under_way.push_back(std::move(frame));
      ++sent;
    }
    sender.publish();
    for (auto burst = random() % 6; burst > 0 && receiver.waiting(); --burst) {
      std::array<std::byte, 1024> room;
      std::size_t length = 0;
      ASSERT_EQ(receiver.take(room, length), Receiver::Took::kFrame);
      ASSERT_FALSE(under_way.empty());
      ASSERT_EQ(Frame(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(length)),
                under_way.front());
      under_way.pop_front();
      ++received;
    }
    receiver.release();
    ASSERT_FALSE(sender.broken() || receiver.broken());
  }
}

TEST_F(MemifRing, CarriesWhatTheClientSends) {
  carry(Sender(ring, own), Receiver(ring, peers));
}

TEST_F(MemifRing, CarriesWhatTheServerSends) {
  Receiver receiver(ring, own);
  receiver.begin();
  carry(Sender(ring, peers), receiver);
}

// Those behind the first few are written past the caches, in whole lines. Each buffer's line holds
// nothing of what stands behind the frame in this side's memory.
TEST(MemifBursts, CarryShortFramesOfAnyLengthAndNothingElse) {
  constexpr unsigned kLog2Long = 5;
  constexpr std::uint32_t kPlaces = 1U << kLog2Long, kEach = 256;
  constexpr std::size_t kRoom = 4096;
  static_assert(ring_bytes(kLog2Long) <= kRoom);
  for (const std::size_t off : {0U, 8U}) {  // one places its buffers where no line begins
    SharedDescriptor file;
    std::string error;
    Regions regions;
    regions.push_back(
        Region::make(kRoom + (kPlaces + 1) * kEach, std::make_shared<Closer>(), file, error));
    ASSERT_TRUE(regions[0]) << error;
    Ring ring(regions[0].part(0, kRoom), kLog2Long);
    ring.clear();
    const auto at = static_cast<std::uint32_t>(kRoom + off);
    Sender sender(ring, Buffers::own(regions[0], at, kEach));
    Receiver receiver(ring, Buffers::of_peer(regions));
    for (std::size_t length = 1; length <= 140; ++length) {
      Frame memory(length + 64, std::byte{0xee});
      const Frame frame = make_frame(length, static_cast<unsigned>(length));
      std::copy(frame.begin(), frame.end(), memory.begin());
      for (unsigned i = 0; i < kPlaces; ++i) ASSERT_TRUE(sender.put(Bytes(memory).first(length)));
      sender.publish();
      for (unsigned i = 0; i < kPlaces; ++i) {
        std::array<std::byte, kEach> room;
        std::size_t got = 0;
        ASSERT_EQ(receiver.take(room, got), Receiver::Took::kFrame);
        ASSERT_EQ(Frame(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(got)), frame);
      }
      for (unsigned i = 0; i < kPlaces; ++i)
        for (const std::byte behind : regions[0].part(at + i * kEach, kEach).subspan(length))
          ASSERT_EQ(behind, std::byte{0}) << length;
      receiver.release();
    }
  }
}

TEST_F(MemifRing, AFullRingTakesNothingUntilPlacesAreReleased) {
  Sender sender(ring, own);
  Receiver receiver(ring, peers);
  const Frame frame = make_frame(100, 1);
  for (unsigned i = 0; i < 1U << kLog2; ++i) EXPECT_TRUE(put(sender, frame));
  EXPECT_FALSE(put(sender, frame));
  sender.publish();
  Frame got;
  EXPECT_EQ(take(receiver, got), Receiver::Took::kFrame);
  EXPECT_FALSE(put(sender, frame)) << "not released yet";
  receiver.release();
  EXPECT_TRUE(put(sender, frame));
  EXPECT_FALSE(sender.broken());
}

TEST_F(MemifRing, AFrameThatDoesNotFitIsLeftOutAndTheNextComes) {
  Sender sender(ring, own);
  Receiver receiver(ring, peers);
  EXPECT_TRUE(put(sender, make_frame(700, 1)));
  EXPECT_TRUE(put(sender, make_frame(60, 2)));
  sender.publish();
  std::array<std::byte, 600> room;
  std::size_t length = 0;
  EXPECT_EQ(receiver.take(room, length), Receiver::Took::kTooLong);
  EXPECT_EQ(receiver.take(room, length), Receiver::Took::kFrame);
  EXPECT_EQ(length, 60U);
}

// ---- long frames whose head alone is copied ----

// The same memory with buffers that hold long frames.
class MemifLongFrames : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kLongBuffer = 4096;
  static constexpr std::size_t kLength = 3000;

  void SetUp() override {
    SharedDescriptor file;
    std::string error;
    regions.push_back(
        Region::make(kRingBytes + (kLongBuffer << kLog2), std::make_shared<Closer>(), file, error));
    ASSERT_TRUE(regions[0]) << error;
    ring = Ring(regions[0].part(0, kRingBytes), kLog2);
    ring.clear();
    sender = Sender(ring, Buffers::own(regions[0], kRingBytes, kLongBuffer));
    receiver = Receiver(ring, Buffers::of_peer(regions));
  }
  void send(std::size_t length, unsigned seed) {
    const Frame frame = make_frame(length, seed);
    const Bytes part(frame);
    EXPECT_TRUE(sender.put(std::span(&part, 1)));
    sender.publish();
  }
  Receiver::Took take(bool may_stay) {
    const auto yes = [](std::span<const std::byte, Receiver::kHead>) { return true; };
    const auto no = [](std::span<const std::byte, Receiver::kHead>) { return false; };
    return receiver.take(room, length, may_stay ? +yes : +no, rest);
  }
  [[nodiscard]] Frame copied() const {
    return {room.begin(), room.begin() + static_cast<std::ptrdiff_t>(length)};
  }

  Regions regions;
  Ring ring;
  Sender sender;
  Receiver receiver;
  std::array<std::byte, kLength> room{};
  std::size_t length = 0;
  Bytes rest;
};

TEST_F(MemifLongFrames, TheHeadIsACopyAndTheRestStaysInTheRing) {
  send(kLength, 1);
  const Frame frame = make_frame(kLength, 1);
  ASSERT_EQ(take(true), Receiver::Took::kFrame);
  EXPECT_EQ(copied(), Frame(frame.begin(), frame.begin() + Receiver::kHead));
  EXPECT_EQ(Frame(rest.begin(), rest.end()), Frame(frame.begin() + Receiver::kHead, frame.end()));
  const auto shared = regions[0].part(kRingBytes, kLength);
  EXPECT_EQ(rest.data(), shared.data() + Receiver::kHead);
  std::fill(shared.begin(), shared.end(), std::byte{0xff});
  EXPECT_EQ(copied(), Frame(frame.begin(), frame.begin() + Receiver::kHead));
}

TEST_F(MemifLongFrames, ItsPlaceIsNotUsedAgainBeforeItIsReleased) {
  for (unsigned i = 0; i < 1U << kLog2; ++i) send(kLength, i);
  ASSERT_EQ(take(true), Receiver::Took::kFrame);
  const Frame next = make_frame(kLength, 9);
  const Bytes part(next);
  EXPECT_FALSE(sender.put(std::span(&part, 1)));
  receiver.release();
  EXPECT_TRUE(sender.put(std::span(&part, 1)));
}

TEST_F(MemifLongFrames, OthersAreCopiedWhole) {
  send(kLength, 1);
  ASSERT_EQ(take(false), Receiver::Took::kFrame);
  EXPECT_EQ(copied(), make_frame(kLength, 1)) << "its head does not say that it may stay";
  EXPECT_TRUE(rest.empty());
  send(Receiver::kLong - 1, 2);
  ASSERT_EQ(take(true), Receiver::Took::kFrame);
  EXPECT_EQ(copied(), make_frame(Receiver::kLong - 1, 2)) << "it is short";
  EXPECT_TRUE(rest.empty());
}

TEST_F(MemifLongFrames, OneInSeveralPiecesIsCopiedWhole) {
  constexpr std::uint32_t kPiece = 1500;
  for (unsigned i = 0; i < 2; ++i) {
    const auto at = static_cast<std::uint32_t>(kRingBytes + i * kPiece);
    const auto bytes = make_frame(kPiece, i);
    std::copy(bytes.begin(), bytes.end(), regions[0].part(at, kPiece).begin());
    ring.set_descriptor(
        static_cast<std::uint16_t>(i),
        {.flags = i == 0 ? Descriptor::kMore : std::uint16_t{0}, .length = kPiece, .offset = at});
  }
  ring.set_head(2);
  ASSERT_EQ(take(true), Receiver::Took::kFrame);
  auto whole = make_frame(kPiece, 0);
  const auto second = make_frame(kPiece, 1);
  whole.insert(whole.end(), second.begin(), second.end());
  EXPECT_EQ(copied(), whole);
  EXPECT_TRUE(rest.empty());
}

TEST_F(MemifLongFrames, OneThatDoesNotFitIsLeftOut) {
  send(kLength + 1, 1);
  EXPECT_EQ(take(true), Receiver::Took::kTooLong);
  EXPECT_TRUE(rest.empty());
}

// ---- what a hostile client writes, and the server reads ----

struct Lie {
  const char* what;
  Descriptor descriptor;
};

TEST_F(MemifRing, DescriptorsThatPointOutsideBreakTheReceiver) {
  const auto size = static_cast<std::uint32_t>(regions[0].size());
  for (const Lie& lie : {Lie{"no such region", {.region = 1, .length = 60}},
                         Lie{"beyond the end", {.length = 60, .offset = size - 59}},
                         Lie{"far away", {.length = 60, .offset = 0xffff'ffff}},
                         Lie{"longer than all", {.length = 0xffff'ffff, .offset = 0}}}) {
    ring.clear();
    ring.set_descriptor(0, lie.descriptor);
    ring.set_head(1);
    Receiver receiver(ring, peers);
    Frame got;
    EXPECT_EQ(take(receiver, got), Receiver::Took::kNothing) << lie.what;
    EXPECT_TRUE(receiver.broken()) << lie.what;
    EXPECT_FALSE(receiver.waiting()) << lie.what;
  }
}

TEST_F(MemifRing, AHeadThatRunsAwayBreaksTheReceiver) {
  Receiver receiver(ring, peers);
  ring.set_head((1U << kLog2) + 1);
  EXPECT_FALSE(receiver.waiting());
  EXPECT_TRUE(receiver.broken());
}

// However the head advances, no more frames are taken than places were released to the peer.
TEST_F(MemifRing, AHeadThatDoesNotWaitForReleasesBreaksTheReceiver) {
  Receiver receiver(ring, peers);
  for (std::uint16_t i = 0; i < 1U << kLog2; ++i)
    ring.set_descriptor(i, {.length = 60, .offset = kRingBytes});
  unsigned taken = 0;
  Frame got;
  for (; !receiver.broken() && taken < 100; ++taken) {
    ring.set_head(static_cast<std::uint16_t>(taken + 1));
    if (take(receiver, got) != Receiver::Took::kFrame) break;
  }
  EXPECT_EQ(taken, 1U << kLog2);
  EXPECT_TRUE(receiver.broken());
}

TEST_F(MemifRing, PiecesWithoutBytesBreakTheReceiver) {
  ring.set_descriptor(0, {.flags = Descriptor::kMore, .length = 0, .offset = kRingBytes});
  ring.set_descriptor(1, {.length = 60, .offset = kRingBytes});
  ring.set_head(2);
  Receiver receiver(ring, peers);
  Frame got;
  EXPECT_EQ(take(receiver, got), Receiver::Took::kNothing);
  EXPECT_TRUE(receiver.broken());
}

// DPDK's client does not clear the flag of a longer frame when a short one uses the place later.
TEST_F(MemifRing, TheMarkOfALongFrameIsGoneWhenItsPlaceIsUsedAgain) {
  Receiver receiver(ring, peers);
  ring.set_descriptor(0, {.flags = Descriptor::kMore, .length = 60, .offset = kRingBytes});
  ring.set_descriptor(1, {.length = 60, .offset = kRingBytes});
  ring.set_head(2);
  Frame got;
  ASSERT_EQ(take(receiver, got), Receiver::Took::kFrame);
  EXPECT_EQ(got.size(), 120U);
  receiver.release();
  EXPECT_EQ(ring.descriptor(0).flags, 0U);
}

TEST_F(MemifRing, AFrameWithoutAnEndBreaksTheReceiver) {
  for (const unsigned head : {1U, 3U, 8U}) {
    for (std::uint16_t i = 0; i < 1U << kLog2; ++i)
      ring.set_descriptor(i, {.flags = Descriptor::kMore, .length = 1, .offset = kRingBytes});
    ring.set_head(static_cast<std::uint16_t>(head));
    Receiver receiver(ring, peers);
    Frame got;
    EXPECT_EQ(take(receiver, got), Receiver::Took::kNothing);
    EXPECT_TRUE(receiver.broken());
  }
}

TEST_F(MemifRing, BuffersThatAreNoneBreakTheServersSender) {
  for (const Descriptor& lie :
       {Descriptor{.region = 9, .length = 2048},
        Descriptor{.length = Sender::kLeastBuffer - 1, .offset = kRingBytes},
        Descriptor{.length = 0, .offset = kRingBytes},
        Descriptor{.length = 2048, .offset = 0xffff'0000}}) {
    ring.clear();
    ring.set_descriptor(0, lie);
    ring.set_head(1);
    Sender sender(ring, peers);
    EXPECT_FALSE(put(sender, make_frame(60, 1)));
    EXPECT_TRUE(sender.broken());
  }
}

// ---- what a hostile server writes, and the client reads ----

TEST_F(MemifRing, TheClientsBuffersAreWhereItKnowsThemWhateverTheRingSays) {
  Receiver receiver(ring, own);
  receiver.begin();
  Sender sender(ring, peers);
  ASSERT_TRUE(put(sender, make_frame(60, 1)));
  Descriptor descriptor = ring.descriptor(0);
  descriptor.region = 77;
  descriptor.offset = 0xffff'ff00;
  ring.set_descriptor(0, descriptor);
  sender.publish();
  Frame got;
  EXPECT_EQ(take(receiver, got), Receiver::Took::kFrame);
  EXPECT_EQ(got, make_frame(60, 1));
}

TEST_F(MemifRing, MoreThanABufferHoldsBreaksTheClientsReceiver) {
  Receiver receiver(ring, own);
  receiver.begin();
  ring.set_descriptor(0, {.length = kBuffer + 1});
  ring.set_tail(1);
  Frame got;
  EXPECT_EQ(take(receiver, got), Receiver::Took::kNothing);
  EXPECT_TRUE(receiver.broken());
}

TEST_F(MemifRing, ATailThatRunsAwayBreaksTheClientsSender) {
  Sender sender(ring, own);
  ring.set_tail(0x8000);
  EXPECT_FALSE(put(sender, make_frame(60, 1)));
  EXPECT_TRUE(sender.broken());
}

// Whatever the ring contains, nothing beyond its memory is accessed: AddressSanitizer and the
// kernel would detect it.
TEST_F(MemifRing, NoiseInTheRingDoesNoHarm) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    const auto memory = regions[0].part(0, kRingBytes);
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (random() % 4 == 0) memory[i] = static_cast<std::byte>(random());
    Sender sender(ring, random() % 2 == 0 ? own : peers);
    Receiver receiver(ring, random() % 2 == 0 ? own : peers);
    for (int i = 0; i < 12; ++i) {
      Frame got;
      put(sender, make_frame(random() % 900 + 1, 3));
      if (receiver.waiting()) take(receiver, got);
    }
  }
}

}  // namespace
}  // namespace stp::port::memif
