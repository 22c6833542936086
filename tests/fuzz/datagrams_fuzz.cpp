// SPDX-License-Identifier: BSD-3-Clause
// Datagrams to a link over UDP with a Node behind it: of any length and content, also many that the
// kernel has joined. They come from strangers, beside a connection that must not be hurt, and from
// the peer's own socket, which may end its own connection only.
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dpdk_port/port.h"
#include "tests/dpdk_port/open_port.h"
#include "tests/fuzz/frame_maker.h"

namespace stp::fuzz {
namespace {

// Learns from what is sent: packets of IP.
class Learning final : public port::Tap {
 public:
  explicit Learning(FrameMaker& maker) : maker_(maker) {}
  void frame(Bytes head, Bytes rest, bool sent) override {
    constexpr std::size_t kPacketHead = 14 + 20 + 8;
    if (!sent || head.size() < kPacketHead) return;
    FrameMaker::Frame frame(head.begin(), head.begin() + 12);
    frame.push_back(std::byte{wire::kEtherType >> 8});
    frame.push_back(std::byte{wire::kEtherType & 0xff});
    frame.insert(frame.end(), head.begin() + kPacketHead, head.end());
    frame.insert(frame.end(), rest.begin(), rest.end());
    maker_.learn(frame);
  }

 private:
  FrameMaker& maker_;
};

class Attacker {
 public:
  explicit Attacker(std::uint16_t port) {
    const auto to = loopback(port);
    ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  ~Attacker() { ::close(fd_); }
  Attacker(const Attacker&) = delete;
  Attacker& operator=(const Attacker&) = delete;

  // Datagrams of `segment` bytes each, the last perhaps shorter; 0: one.
  void send(Bytes bytes, int segment) const {
    ::setsockopt(fd_, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
    ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  // The same from the socket of this process that has `port`: the link's own.
  static void send_as(std::uint16_t port, std::uint16_t to_port, Bytes bytes, int segment) {
    const auto socket = socket_of(port);
    const auto to = loopback(to_port);
    ::setsockopt(socket, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
    ::sendto(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&to), sizeof to);
    const int off = 0;
    ::setsockopt(socket, IPPROTO_UDP, UDP_SEGMENT, &off, sizeof off);
  }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    return to;
  }
  static int socket_of(std::uint16_t port) {
    constexpr int kMost = 1024;
    for (int fd = 0; fd < kMost; ++fd) {
      sockaddr_in name{};
      socklen_t size = sizeof name;
      if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
          name.sin_family == AF_INET && name.sin_port == htons(port))
        return fd;
    }
    ADD_FAILURE() << "no socket has port " << port;
    return -1;
  }

  const int fd_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

// A Node with its link.
struct Station {
  explicit Station(std::uint64_t seed) {
    port::LinkConfig config;
    std::string error;
    EXPECT_TRUE(port::parse_link("udp:127.0.0.1,port=0,mtu=1500", config, error)) << error;
    port = port::open_port(config, error);
    EXPECT_TRUE(port) << error;
    host = std::make_unique<test::Host>(
        port->info().mac, seed,
        NodeConfig{.mac = {}, .max_stu = port->info().max_stu, .vlan = {}, .attach_from = 512});
  }
  unsigned turn(Time now) const {
    const auto moved = port->poll(host->node, now);
    Event event{};
    while (host->node.next_event(event)) continue;
    return moved;
  }

  std::unique_ptr<test::Host> host;
  std::unique_ptr<port::Port> port;  // destroyed first
};

class World {
 public:
  World() {
    listener_ = b_.host->open({});
    EXPECT_EQ(b_.host->node.listen(listener_, 3000), 0);
    b_.host->stock(listener_, 4);
    const auto endpoint = a_.host->open({});
    auto address = *port::parse_internet_address("127.0.0.1");
    address.port = b_.port->info().udp_port;
    const auto to = a_.port->find_station(address, now_);
    EXPECT_TRUE(to);
    caller_.memory = std::make_unique<test::ChannelMemory>(ChannelGeometry{64, 64});
    EXPECT_EQ(
        a_.host->node.connect(endpoint, *to, 3000, caller_.memory->data(), 7, caller_.id, now_), 0);
    caller_.user = UserChannel(caller_.memory->data());
    b_.port->set_tap(&learning_);
    settle();
    EXPECT_EQ(caller_.user.state(), ChannelState::kOpen);
  }

  void step(ByteCode& code) {
    const auto& attacker = attackers_[code.below(3)];
    const auto what = code.u8();
    if (what >= kPeerLies) return lie(code);
    switch (what % 4) {
      case 0:
        return attacker.send(code.take(what), static_cast<int>(code.below(64)));
      case 1:
        return attacker.send(std::vector<std::byte>(code.u16() % 60'000, std::byte{what}),
                             code.u16() % 1'500);
      case 2:
        return attacker.send(joined(code), kShortest);
      default:
        now_ += Time{code.u8()} << (code.below(3) * 8);
        return settle();
    }
  }

  // The connection has lived through it, unless its own peer lied. In any case all of it ends.
  void finish() {
    settle();
    if (!peer_lied_) expect_alive();
    for (const auto* const station : {&a_, &b_})
      for (const auto id : connections_of(station->host->node))
        station->host->node.close(id, true, now_);
    for (int second = 0; second < 20; ++second) {
      now_ += kSecond;
      settle();
    }
    EXPECT_EQ(a_.host->node.vc_count(), 0U);
    EXPECT_EQ(b_.host->node.vc_count(), 0U);
  }

 private:
  static constexpr std::uint8_t kPeerLies = 224;
  static constexpr int kShortest = 40;  // a header without payload

  void expect_alive() {
    EXPECT_EQ(caller_.user.state(), ChannelState::kOpen);
    SendEntry nothing{};
    nothing.header.op_flags = wire::op_flags(wire::Op::kNoOperation);
    const auto before = b_.host->count(Counter::kRxControl);
    EXPECT_TRUE(caller_.user.send(nothing));
    a_.host->node.kick(caller_.id);
    settle();
    EXPECT_GT(b_.host->count(Counter::kRxControl), before);
  }
  // Forged frames of equal length, joined.
  std::vector<std::byte> joined(ByteCode& code, std::size_t each = kShortest) {
    std::vector<std::byte> all;
    for (auto left = 1 + code.below(40); left > 0; --left) {
      auto frame = maker_.make(code, *b_.host);
      frame.resize(wire::kEthernetSize + each);
      all.insert(all.end(), frame.begin() + wire::kEthernetSize, frame.end());
    }
    return all;
  }
  // The peer's own socket sends forged frames whose ends are not where the kernel joins them.
  void lie(ByteCode& code) {
    peer_lied_ = true;
    const auto each = kShortest + code.below(256) * 5;
    auto bytes = joined(code, each);
    bytes.resize(std::min<std::size_t>(bytes.size(), 60'000) - code.below(kShortest));
    const auto segment = static_cast<int>(code.chance(192) ? each : each + code.below(100));
    Attacker::send_as(a_.port->info().udp_port, b_.port->info().udp_port, bytes, segment);
    settle();
  }
  void settle() {
    constexpr int kMost = 10'000;
    int turns = 0;
    while (a_.turn(now_) + b_.turn(now_) > 0 && ++turns < kMost) continue;
    EXPECT_LT(turns, kMost) << "they never come to rest";
  }

  Time now_ = kSecond;
  bool peer_lied_ = false;
  FrameMaker maker_;
  Learning learning_{maker_};
  Station a_{1}, b_{2};
  const Attacker attackers_[3]{Attacker(b_.port->info().udp_port),
                               Attacker(b_.port->info().udp_port),
                               Attacker(b_.port->info().udp_port)};
  EndpointId listener_ = kNoneId;
  test::Connection caller_;
};

}  // namespace
}  // namespace stp::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  stp::fuzz::ByteCode code(std::as_bytes(std::span(data, size)));
  stp::fuzz::World world;
  while (!code.done()) world.step(code);
  world.finish();
  return 0;
}
