// SPDX-License-Identifier: BSD-3-Clause
// The basis of the engine's tests: two Nodes, A and B, a wire between them that a test can cut, and
// users for both.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "stp/channel/rings.h"
#include "stp/node/node.h"
#include "stp/wire/frame.h"

namespace stp::test {

class SeededRandom : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint32_t next() override {  // splitmix64
    auto z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return static_cast<std::uint32_t>(z >> 32);
  }

 private:
  std::uint64_t state_;
};

// Zeroed, cache-line aligned memory of a channel.
class ChannelMemory {
 public:
  explicit ChannelMemory(const ChannelGeometry& geometry)
      : bytes_(static_cast<std::byte*>(
            ::operator new (geometry.size(), std::align_val_t{kCacheLine}))) {
    std::memset(bytes_, 0, geometry.size());
  }
  ~ChannelMemory() { ::operator delete (bytes_, std::align_val_t{kCacheLine}); }
  ChannelMemory(const ChannelMemory&) = delete;
  ChannelMemory& operator=(const ChannelMemory&) = delete;
  [[nodiscard]] std::byte* data() const { return bytes_; }

 private:
  std::byte* bytes_;
};

// Memory aligned to its buffers.
class Buffers {
 public:
  Buffers(unsigned bufsize, std::size_t count)
      : size_((std::size_t{1} << bufsize) * count),
        bytes_(static_cast<std::byte*>(::operator new (size_, std::align_val_t{4096}))) {
    std::memset(bytes_, 0, size_);
  }
  ~Buffers() { ::operator delete (bytes_, std::align_val_t{4096}); }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  [[nodiscard]] MutableBytes all() const { return {bytes_, size_}; }
  [[nodiscard]] std::byte* data() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void fill_pattern() const {
    for (std::size_t i = 0; i < size_; ++i) bytes_[i] = static_cast<std::byte>(i * 7 + i / 251);
  }

 private:
  std::size_t size_;
  std::byte* bytes_;
};

// One user's connection.
struct Connection {
  VcId id = kNoneId;
  std::unique_ptr<ChannelMemory> memory;
  UserChannel user;
};

// One Node with the host around it.
struct Host {
  Host(MacAddr mac, std::uint64_t seed, NodeConfig base)
      : random(seed),
        config([&] {
          base.mac = mac;
          return base;
        }()),
        node(config, random) {}

  SeededRandom random;
  NodeConfig config;
  Node node;
  std::vector<Event> events;
  std::vector<std::unique_ptr<ChannelMemory>> stocked;  // cookie - 1 is the place
  std::uint64_t attached_frames = 0;
  bool for_stranger = false, may_be_marked = false;  // the last frame that was taken
  Presence presence = Presence::kProven;             // of that one, too

  EndpointId open(EndpointConfig wanted = {}, std::uint64_t owner = 0) {
    EndpointId id = kNoneId;
    EXPECT_EQ(node.open_endpoint(wanted, id, owner), 0);
    return id;
  }
  void stock(EndpointId endpoint, unsigned count = 1) {
    EndpointConfig c;
    ASSERT_EQ(node.endpoint_config(endpoint, c), 0);
    for (unsigned i = 0; i < count; ++i) {
      stocked.push_back(std::make_unique<ChannelMemory>(ChannelGeometry{c.slots, c.credits}));
      ASSERT_EQ(node.stock(endpoint, stocked.back()->data(), stocked.size()), 0);
    }
  }
  [[nodiscard]] std::uint64_t count(Counter c) const { return node.counters().get(c); }
};

// As on a link over IP: each station is a source.
class EachStation final : public Sources {
 public:
  [[nodiscard]] MacAddr source_of(const MacAddr& station) const override { return station; }
};
inline const EachStation kEachStation;

class TwoNodes : public ::testing::Test {
 protected:
  static constexpr MacAddr kMacA{{2, 0, 0, 0, 0, 1}};
  static constexpr MacAddr kMacB{{2, 0, 0, 0, 0, 2}};
  using Frame = std::vector<std::byte>;
  // What the wire does to a frame: how often it arrives (0: lost, 2: twice).
  using Wire = std::function<unsigned(const Frame&, bool from_a)>;

  TwoNodes() : TwoNodes(NodeConfig{.mac = {}, .max_stu = 13, .vlan = {}, .attach_from = 512}) {}
  explicit TwoNodes(const NodeConfig& base) : TwoNodes(base, base) {}
  TwoNodes(const NodeConfig& of_a, const NodeConfig& of_b) : a(kMacA, 1, of_a), b(kMacB, 2, of_b) {}

  Host a, b;
  Time now = kSecond;
  Wire wire;
  std::vector<Frame> seen;  // every frame that was sent, in order

  // The S_ids of the frames that A sends in one call with room for `most`.
  std::vector<std::uint32_t> sent_by_a(std::size_t most) {
    std::vector<Frame> heads(most, Frame(a.node.frame_room()));
    std::vector<TxFrame> frames(most);
    for (std::size_t i = 0; i < most; ++i) frames[i].head = heads[i].data();
    frames.resize(a.node.transmit(frames, now));
    std::vector<std::uint32_t> numbers;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      heads[i].resize(frames[i].head_length);
      numbers.push_back(parsed(heads[i]).header.s_id);
    }
    return numbers;
  }

  // Moves frames until both sides have nothing more to send.
  void settle() {
    for (int round = 0; round < 10'000; ++round)
      if (pump(a, b, true) + pump(b, a, false) == 0) return;
    FAIL() << "the Nodes never come to rest";
  }
  // Advances the time by `span` and handles everything that is due meanwhile.
  void pass(Time span) {
    const auto end = now + span;
    settle();
    for (;;) {
      const auto next = std::min(a.node.next_deadline(), b.node.next_deadline());
      if (next > end) break;
      now = std::max(now, next);
      a.node.expire(now);
      b.node.expire(now);
      settle();
    }
    now = end;
    settle();
  }

  // B listens on UPort 3000 and A connects; both ends are ready for data afterwards.
  void connect(EndpointConfig of_a = {}, EndpointConfig of_b = {}) {
    listener = b.open(of_b);
    ASSERT_EQ(b.node.listen(listener, 3000), 0);
    b.stock(listener);
    endpoint_a = a.open(of_a);
    begin_connect();
    settle();
    accept();
  }
  void begin_connect() {
    EndpointConfig c;
    ASSERT_EQ(a.node.endpoint_config(endpoint_a, c), 0);
    ca.memory = std::make_unique<ChannelMemory>(ChannelGeometry{c.slots, c.credits});
    ASSERT_EQ(a.node.connect(endpoint_a, kMacB, 3000, ca.memory->data(), 77, ca.id, now), 0);
    ca.user = UserChannel(ca.memory->data());
  }
  void accept() {
    ASSERT_EQ(b.node.accept(listener, cb.id), 0);
    VcInfo info{};
    ASSERT_EQ(b.node.vc_info(cb.id, info), 0);
    cb.user = UserChannel(b.stocked.at(info.cookie - 1)->data());
  }

  EndpointId listener = kNoneId, endpoint_a = kNoneId;
  Connection ca, cb;

  // The user's calls: a request into the queue, a header out of it.
  static void put(Host& host, Connection& connection, const SendEntry& entry) {
    ASSERT_TRUE(connection.user.send(entry));
    host.node.kick(connection.id);
  }
  static SendEntry control(wire::Op op, std::uint16_t flags = 0) {
    SendEntry entry{};
    entry.header.op_flags = wire::op_flags(op, flags);
    return entry;
  }
  static std::optional<ReceivedEntry> get(Connection& connection) {
    ReceivedEntry entry;
    if (!connection.user.receive(entry)) return std::nullopt;
    return entry;
  }

  // Builds a frame as another host might and lets `to` receive it.
  void inject(Host& to, const MacAddr& src, const wire::Header& header, Bytes payload = {},
              Bytes append = {}) {
    Frame frame(20'000);
    frame.resize(wire::emit({to.config.mac, src, {}, false}, header, payload, append, frame));
    arrive(to, frame);
  }
  void arrive(Host& to, const Frame& frame) {
    const Bytes bytes(frame);
    to.node.receive({&bytes, 1}, now);
    drain(to);
  }
  // The next frame that `from` sends, without letting it arrive.
  std::optional<Frame> take(Host& from) {
    Frame head(from.node.frame_room());
    TxFrame tx{.head = head.data(), .attached = {}, .token = {}};
    drain(from);
    if (from.node.transmit({&tx, 1}, now) == 0) return std::nullopt;
    head.resize(tx.head_length);
    head.insert(head.end(), tx.attached.begin(), tx.attached.end());
    if (tx.token.region != kNoneId) ++from.attached_frames;
    from.for_stranger = tx.for_stranger;
    from.presence = tx.presence;
    from.may_be_marked = tx.may_be_marked;
    from.node.transmitted(tx.token);
    drain(from);
    return head;
  }
  // The operations that `from` sends in one burst. They arrive at `to` unless that is nullptr.
  std::vector<wire::Op> burst(Host& from, Host* to = nullptr) {
    constexpr std::size_t kFrames = 8;
    std::vector<Frame> heads(kFrames, Frame(from.node.frame_room()));
    std::array<TxFrame, kFrames> frames;
    for (std::size_t i = 0; i < kFrames; ++i) frames[i].head = heads[i].data();
    const auto count = from.node.transmit(frames, now);
    std::vector<wire::Op> ops;
    for (std::size_t i = 0; i < count; ++i) {
      heads[i].resize(frames[i].head_length);
      ops.push_back(parsed(heads[i]).header.op());
      if (to != nullptr) arrive(*to, heads[i]);
    }
    return ops;
  }
  static wire::Frame parsed(const Frame& bytes) {
    wire::Frame out;
    EXPECT_EQ(wire::parse(bytes, 16, out), DropReason::kNone);
    return out;
  }

 private:
  std::size_t pump(Host& from, Host& to, bool from_a) {
    std::size_t moved = 0;
    while (auto frame = take(from)) {
      ++moved;
      seen.push_back(*frame);
      for (auto copies = wire ? wire(*frame, from_a) : 1; copies > 0; --copies) arrive(to, *frame);
    }
    return moved;
  }
  static void drain(Host& host) {
    Event event{};
    while (host.node.next_event(event)) host.events.push_back(event);
  }
};

inline bool has_event(const Host& host, Event::Kind kind) {
  for (const auto& e : host.events)
    if (e.kind == kind) return true;
  return false;
}

}  // namespace stp::test
