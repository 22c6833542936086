// SPDX-License-Identifier: BSD-3-Clause
// Frames to Nodes in every state. Two Nodes have connections to each other: open ones, one in the
// handshake, closing ones, one without free Slots; or a connectionless endpoint each. Further
// requests wait at inspecting listeners for a decision. Users grant, open and request. Frames
// between the Nodes are lost, duplicated and changed, and an attacker adds forged ones.
#include "tests/fuzz/doorkeeper.h"
#include "tests/fuzz/estate.h"
#include "tests/fuzz/frame_maker.h"
#include "tests/fuzz/user_request.h"

namespace stp::fuzz {
namespace {

class World : public test::TwoNodes {
 public:
  explicit World(ByteCode& code)
      : TwoNodes(NodeConfig{
            .mac = {}, .max_stu = 10, .vlan = {}, .attach_from = 512, .granted_limit = 6'000}) {
    const auto scenario = code.u8();
    EndpointConfig both{.bufsize = Estate::kBufsize, .slots = 8, .credits = 8};
    both.checksum = (scenario & 1) != 0;
    both.recover = (scenario & 2) != 0;
    connect(both, both);
    estates_[0].map(a.node, endpoint_a);
    estates_[1].map(b.node, listener);
    keep_pair();
    if ((scenario & 4) != 0) open_another();
    if ((scenario & 8) != 0) leave_connecting();
    if ((scenario & 16) != 0) leave_closing(a, 0);
    if ((scenario & 32) != 0) leave_closing(b, 1);
    if ((scenario & 64) != 0) fill_slots();
    if ((scenario & 128) != 0) b.stock(listener, 2);
    if ((scenario & 136) == 136) open_ports();
  }

  void step(ByteCode& code) {
    const auto side = code.below(2);
    const auto what = code.u8();
    if (what >= kDoor) return doors_[side].step(code, now, users_[side], users_[1 - side]);
    switch (what % 10) {
      case 0:
        return settle();
      case 1:
        return deliver_one(code, side);
      case 2:
      case 3:
      case 4:
        return inject(code, side);
      case 5:
        return raw(code, side);
      case 6:
        return pass(Time{code.u8()} << (code.below(4) * 8));
      case 7:
        return read(code, side);
      case 8:
        return request(code, side);
      default:
        return close(code, side);
    }
  }

  // Whatever happened, users that close get everything back, and no byte was written elsewhere.
  void finish() {
    wire = nullptr;
    for (auto* const host : {&a, &b})
      for (const auto id : connections_of(host->node)) host->node.close(id, true, now);
    pass(20 * kSecond);
    for (auto side : {0U, 1U}) {
      auto& node = host(side).node;
      EXPECT_EQ(node.vc_count(), 0U);
      EXPECT_EQ(node.next_deadline(), kNever);
      EXPECT_TRUE(estates_[side].intact());
      estates_[side].unmap(node);
    }
    for (auto& unconnected : unconnected_) {
      EXPECT_TRUE(unconnected.estate.intact());
      auto& node = host(unconnected.side).node;
      unconnected.estate.unmap(node);
      EXPECT_EQ(node.close_endpoint(unconnected.endpoint), 0);
    }
    for (const auto& door : doors_) door.close();
    for (std::uint64_t cookie = 0; b.node.unstock(listener, cookie);) {
    }
    EXPECT_EQ(a.node.close_endpoint(endpoint_a), 0);
    EXPECT_EQ(b.node.close_endpoint(listener), 0);
  }

 private:
  struct Unconnected {
    unsigned side = 0;
    EndpointId endpoint = kNoneId;
    VcId port = kNoneId;
    VcInfo name{};
    Estate estate;
  };

  void TestBody() override {}
  test::Host& host(unsigned side) { return side == 0 ? a : b; }

  void keep_pair() {
    users_[0].push_back(std::move(ca));
    users_[1].push_back(std::move(cb));
  }
  void open_another() {
    b.stock(listener);
    begin_connect();
    settle();
    accept();
    keep_pair();
  }
  // Opens a connectionless endpoint on each side. Both know each other's names.
  void open_ports() {
    EndpointConfig config{
        .connectionless = true, .bufsize = Estate::kBufsize, .slots = 8, .credits = 8};
    for (auto side : {0U, 1U}) {
      auto& unconnected = unconnected_.emplace_back();
      auto& node = host(side).node;
      unconnected.side = side;
      unconnected.endpoint = host(side).open(config);
      test::Connection port;
      port.memory = std::make_unique<test::ChannelMemory>(ChannelGeometry{8, 8});
      EXPECT_EQ(node.open_port(unconnected.endpoint, port.memory->data(), 99, port.id, now), 0);
      port.user = UserChannel(port.memory->data());
      unconnected.port = port.id;
      EXPECT_EQ(node.vc_info(port.id, unconnected.name), 0);
      unconnected.estate.map_middle(node, unconnected.endpoint);
      users_[side].push_back(std::move(port));
    }
  }
  void leave_connecting() {
    wire = [](const Frame&, bool) { return 0U; };
    begin_connect();
    settle();
    wire = nullptr;
    users_[0].push_back(std::move(ca));
  }
  void leave_closing(test::Host& who, unsigned side) {
    open_another();
    // Its RD arrives; the answer does not.
    wire = [side](const Frame&, bool from_a) { return from_a == (side == 0) ? 1U : 0U; };
    EXPECT_EQ(who.node.close(users_[side].back().id, true, now), 0);
    settle();
    wire = nullptr;
  }
  void fill_slots() {
    for (int i = 0; i < 8; ++i) put(a, users_[0].front(), control(wire::Op::kNoOperation));
    settle();
  }

  void learn() {
    for (; learnt_ < seen.size(); ++learnt_) maker_.learn(seen[learnt_]);
  }
  void inject(ByteCode& code, unsigned side) {
    learn();
    const auto frame = maker_.make(code, host(side));
    maker_.learn(frame);
    attack(side, frame);
  }
  void raw(ByteCode& code, unsigned side) {
    const auto bytes = code.take(code.below(120));
    Frame frame(bytes.begin(), bytes.end());
    attack(side, frame);
  }
  // Injects a forged frame. A sender without a connection gets no more back than it has sent.
  void attack(unsigned side, const Frame& frame) {
    auto& target = host(side);
    settle();
    const bool known = knows(target, kStranger);
    const auto before = seen.size();
    arrive(target, frame);
    settle();
    EXPECT_LE(target.node.vc_count(), kMaxConnections);
    if (known || knows(target, kStranger)) return;
    std::size_t sent = 0;
    for (auto i = before; i < seen.size(); ++i)
      if (std::memcmp(seen[i].data(), kStranger.octets.data(), 6) == 0) sent += seen[i].size();
    EXPECT_LE(sent, std::max(frame.size(), wire::kEthernetSize + wire::kMinPayload));
  }
  static bool knows(const test::Host& who, const MacAddr& mac) {
    for (const auto id : connections_of(who.node)) {
      VcInfo info{};
      if (who.node.vc_info(id, info) == 0 && info.peer_mac == mac) return true;
    }
    return false;
  }
  // Delivers one frame of the wire, or loses, duplicates or changes it.
  void deliver_one(ByteCode& code, unsigned side) {
    const auto frame = take(host(side));
    if (!frame) return;
    auto& to = host(1 - side);
    const auto fate = code.below(4);
    if (fate == 1) arrive(to, *frame);
    if (fate == 2) arrive(to, *frame);
    if (fate == 2) arrive(to, *frame);
    if (fate == 3) arrive(to, FrameMaker::changed(code, *frame));
  }
  test::Connection& pick(ByteCode& code, unsigned side) {
    return users_[side][code.u8() % users_[side].size()];
  }
  void read(ByteCode& code, unsigned side) {
    auto& connection = pick(code, side);
    for (auto left = code.below(20); left > 0 && get(connection); --left) {
    }
  }
  void request(ByteCode& code, unsigned side) {
    auto& connection = pick(code, side);
    auto entry = user_request(code, estates_[side]);
    for (const auto& unconnected : unconnected_)
      if (unconnected.port == connection.id) address(entry, unconnected_[1 - side]);
    if (connection.user.send(entry)) host(side).node.kick(connection.id);
  }
  void address(SendEntry& entry, const Unconnected& to) {
    entry.destination_mac = host(to.side).config.mac.to_u64();
    entry.header.d_port = to.name.local_port;
    entry.header.d_key = to.name.local_key;
    if (entry.header.op() == wire::Op::kData) entry.header.mx = to.estate.mx();
  }
  void close(ByteCode& code, unsigned side) {
    const auto id = pick(code, side).id;
    const bool at_once = code.chance(128);
    if (code.chance(64)) host(side).node.close(id, at_once, now);
  }

  // Connections made here or with a stocked channel.
  static constexpr std::size_t kMaxConnections =
      8 + Doorkeeper::kMostAsking + Doorkeeper::kMostStocked;
  static constexpr unsigned kDoor = 240;  // from here to 255: steps of a Doorkeeper
  std::vector<test::Connection> users_[2];
  Estate estates_[2];
  Doorkeeper doors_[2]{{a, b}, {b, a}};
  std::deque<Unconnected> unconnected_;  // A's, then B's; or none
  FrameMaker maker_;
  std::size_t learnt_ = 0;
};

}  // namespace
}  // namespace stp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  stp::fuzz::ByteCode code(std::as_bytes(std::span(data, size)));
  stp::fuzz::World world(code);
  while (!code.done()) world.step(code);
  world.finish();
  return 0;
}
