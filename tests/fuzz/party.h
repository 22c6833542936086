// SPDX-License-Identifier: BSD-3-Clause
// One Node of the API target, with all memory of its users. Memory is freed as soon as the Node has
// released it, so that a later access is detected.
#pragma once

#include <algorithm>
#include <map>

#include "tests/fuzz/frame_maker.h"

namespace stp::fuzz {

template <typename T>
T pick(ByteCode& code, const std::vector<T>& from, T otherwise) {
  const auto at = code.u8();
  return from.empty() || at == 255 ? otherwise : from[at % from.size()];
}

class Party {
 public:
  Party(MacAddr mac, MacAddr peer, std::uint64_t seed)
      : peer_(peer),
        host_(mac, seed,
              {.mac = {}, .max_stu = 10, .vlan = {}, .attach_from = 256, .granted_limit = 5'000}) {}

  [[nodiscard]] const test::Host& host() const { return host_; }

  // A useful start: an endpoint with memory that listens, and a connection to the other party.
  void begin() {
    const auto endpoint = host_.open({.bufsize = 8, .slots = 8, .credits = 8, .recover = true});
    endpoints_.push_back(endpoint);
    EXPECT_EQ(host_.node.listen(endpoint, 1), 0);
    stock(endpoint);
    for (const auto direction : {Direction::kReceive, Direction::kTransmit}) {
      auto memory = std::make_unique<test::Buffers>(8, 16);
      const auto piece = memory->all();
      RegionId id = kNoneId;
      EXPECT_EQ(host_.node.map(endpoint, direction, 0, {&piece, 1}, id), 0);
      regions_.emplace(id, std::move(memory));
      std::uint16_t mx = 0;
      if (direction == Direction::kReceive) {
        EXPECT_EQ(host_.node.alloc_mx(id, kNoneId, permit::kAll, mx), 0);
      }
    }
  }
  void connect_to_peer(Time now) { connect(endpoints_.front(), peer_, 1, now); }

  void call(ByteCode& code, Time now) {
    auto& node = host_.node;
    const auto endpoint = pick(code, endpoints_, EndpointId{12345});
    const auto vc = pick(code, connections_of(node), VcId{0x70001});
    switch (code.below(20)) {
      case 0:
        return open_endpoint(code);
      case 1:
        node.configure(endpoint, config(code));
        break;
      case 2:
        return close_endpoint(endpoint);
      case 3:
      case 4:
        return map(code, endpoint);
      case 5:
        node.unmap(pick(code, region_ids(), RegionId{9}));
        break;
      case 6:
      case 7: {
        std::uint16_t mx = 0;
        node.alloc_mx(pick(code, region_ids(), RegionId{9}), code.chance(128) ? kNoneId : vc,
                      static_cast<std::uint8_t>(code.below(8)), mx);
        break;
      }
      case 8:
        node.free_mx(endpoint, static_cast<std::uint16_t>(code.below(16)));
        break;
      case 9:
        node.listen(endpoint, code.below(4));
        break;
      case 10:
        return stock(endpoint);
      case 11: {
        std::uint64_t cookie = 0;
        if (node.unstock(endpoint, cookie)) channels_.erase(cookie);
        break;
      }
      case 12: {
        VcId id = kNoneId;
        node.accept(endpoint, id);
        break;
      }
      case 13:
      case 14:
        return connect(endpoint, code.chance(240) ? peer_ : MacAddr{}, code.below(4), now,
                       some_option(code));
      case 15:
        node.close(vc, code.chance(128), now);
        break;
      case 16: {
        VcInfo info{};
        node.vc_info(vc, info);
        break;
      }
      case 17:
        if (code.chance(160))
          node.admit(vc, some_option(code), now);
        else
          node.refuse(vc, some_option(code), now);
        break;
      default:
        scribble(code);
        for (const auto id : connections_of(node)) node.kick(id);
    }
    take_events();
  }
  void receive(Bytes frame, Time now) {
    host_.node.receive({&frame, 1}, now);
    take_events();
  }
  // A burst to send. The link keeps what is attached until release().
  std::vector<FrameMaker::Frame> transmit(unsigned burst, Time now) {
    std::vector<FrameMaker::Frame> heads(burst, FrameMaker::Frame(host_.node.frame_room()));
    std::vector<TxFrame> frames(burst);
    for (unsigned i = 0; i < burst; ++i) frames[i].head = heads[i].data();
    const auto count = host_.node.transmit(frames, now);
    heads.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      heads[i].resize(frames[i].head_length);
      heads[i].insert(heads[i].end(), frames[i].attached.begin(), frames[i].attached.end());
      if (frames[i].token.region != kNoneId)
        on_link_.push_back({frames[i].token, frames[i].attached});
    }
    take_events();
    return heads;
  }
  // The link releases the memory of the oldest `count` frames, after it has read it once more.
  void release(std::size_t count) {
    for (count = std::min(count, on_link_.size()); count > 0; --count) {
      for (const auto byte : on_link_.front().bytes) sum_ = sum_ + static_cast<unsigned>(byte);
      host_.node.transmitted(on_link_.front().token);
      on_link_.erase(on_link_.begin());
    }
    take_events();
  }
  void expire(Time now) {
    host_.node.expire(now);
    take_events();
  }
  void close_all(Time now) {
    release(on_link_.size());
    for (const auto id : connections_of(host_.node)) host_.node.close(id, true, now);
    take_events();
  }
  void expect_nothing_left() {
    release(on_link_.size());
    auto& node = host_.node;
    EXPECT_EQ(node.vc_count(), 0U);
    EXPECT_EQ(node.next_deadline(), kNever);
    for (const auto id : region_ids()) node.unmap(id);
    take_events();
    EXPECT_TRUE(regions_.empty());
    while (!endpoints_.empty()) {
      const auto before = endpoints_.size();
      close_endpoint(endpoints_.back());
      ASSERT_LT(endpoints_.size(), before);
    }
    EXPECT_TRUE(channels_.empty());
  }
  // Puts a Sequencer's request into some user's ring.
  void send(ByteCode& code, const SendEntry& entry) {
    if (auto* const channel = some_channel(code)) append(*channel, entry);
    for (const auto id : connections_of(host_.node)) host_.node.kick(id);
  }

 private:
  struct Channel {
    std::unique_ptr<test::ChannelMemory> memory;
    ChannelGeometry geometry;
    EndpointId endpoint = kNoneId;
  };
  struct OnLink {
    TxToken token;
    Bytes bytes;
  };

  static EndpointConfig config(ByteCode& code) {
    EndpointConfig c;
    c.bufsize = code.chance(240) ? 8 + code.below(3) : code.u8();
    c.max_stu = code.chance(240) ? 8 + code.below(4) : code.u8();
    c.slots = code.chance(240) ? 1 + code.below(12) : 0;
    c.credits = code.chance(240) ? 1 + code.below(12) : 0;
    if (code.chance(32)) c.port = static_cast<std::uint16_t>(code.number());
    if (code.chance(32)) c.key = code.number();
    c.rx_bufx_base = code.chance(128) ? 0 : code.number();
    c.tx_bufx_base = code.chance(128) ? 0 : code.number();
    c.rx_bufx_count = c.tx_bufx_count = 1 + code.below(64);
    const auto flags = code.u8();
    c.checksum = (flags & 1) != 0;
    c.recover = (flags & 2) != 0;
    c.inspect = (flags & 4) != 0;
    c.connect_patience = (flags & 8) != 0 ? kSecond : 0;
    return c;
  }
  void open_endpoint(ByteCode& code) {
    EndpointId id = kNoneId;
    if (endpoints_.size() < 8 && host_.node.open_endpoint(config(code), id) == 0)
      endpoints_.push_back(id);
  }
  // Takes stocked channels back first, because they cannot be named afterwards.
  void close_endpoint(EndpointId endpoint) {
    for (std::uint64_t cookie = 0; host_.node.unstock(endpoint, cookie);) channels_.erase(cookie);
    if (host_.node.close_endpoint(endpoint) == 0) std::erase(endpoints_, endpoint);
  }
  [[nodiscard]] std::vector<RegionId> region_ids() const {
    std::vector<RegionId> ids;
    for (const auto& [id, memory] : regions_) ids.push_back(id);
    return ids;
  }
  void map(ByteCode& code, EndpointId endpoint) {
    EndpointConfig c;
    if (host_.node.endpoint_config(endpoint, c) != 0) return;
    const auto direction = code.chance(128) ? Direction::kReceive : Direction::kTransmit;
    const auto base = direction == Direction::kReceive ? c.rx_bufx_base : c.tx_bufx_base;
    auto memory = std::make_unique<test::Buffers>(c.bufsize, 1 + code.below(8));
    auto piece = memory->all();
    if (code.chance(8)) piece = piece.first(piece.size() - 1);
    RegionId id = kNoneId;
    if (host_.node.map(endpoint, direction, base + code.below(16), {&piece, 1}, id) == 0)
      regions_.emplace(id, std::move(memory));
  }
  std::byte* new_channel(EndpointId endpoint) {
    EndpointConfig c;
    if (host_.node.endpoint_config(endpoint, c) != 0 || channels_.size() >= 16) return nullptr;
    const ChannelGeometry geometry{c.slots, c.credits};
    auto& channel = channels_[++cookie_];
    channel = {std::make_unique<test::ChannelMemory>(geometry), geometry, endpoint};
    return channel.memory->data();
  }
  void stock(EndpointId endpoint) {
    auto* const memory = new_channel(endpoint);
    if (memory == nullptr) return;
    EXPECT_EQ(host_.node.stock(endpoint, memory, cookie_), 0);
  }
  void connect(EndpointId endpoint, const MacAddr& to, std::uint32_t uport, Time now,
               const OptionPayload& option = {}) {
    auto* const memory = new_channel(endpoint);
    if (memory == nullptr) return;
    VcId id = kNoneId;
    if (host_.node.connect(endpoint, to, uport, memory, cookie_, id, now, option) != 0)
      channels_.erase(cookie_);
  }
  Channel* some_channel(ByteCode& code) {
    if (channels_.empty()) return nullptr;
    auto at = channels_.begin();
    std::advance(at, code.u8() % channels_.size());
    return &at->second;
  }
  // Writes an entry where the user's end of the channel would write it.
  static void append(Channel& channel, const SendEntry& entry) {
    auto& control = *reinterpret_cast<ChannelControl*>(channel.memory->data());
    const auto head = control.tx_head.load();
    const auto at = (head - control.tx_first.load()) & (channel.geometry.tx_capacity() - 1);
    std::memcpy(channel.memory->data() + channel.geometry.tx_at() + at * sizeof entry, &entry,
                sizeof entry);
    control.tx_head.store(head + 1);
  }
  // A user may change the memory that it shares with the Node in any way.
  void scribble(ByteCode& code) {
    auto* const channel = some_channel(code);
    if (channel == nullptr) return;
    auto& control = *reinterpret_cast<ChannelControl*>(channel->memory->data());
    switch (code.below(8)) {
      case 0:
        control.rx_tail.store(control.rx_tail.load() + code.number());
        return;
      case 1:
        control.tx_head.store(control.tx_head.load() + code.number());
        return;
      case 2:
        control.sleepers.store(code.number());
        return;
      case 3: {
        const auto bytes = code.take(code.below(64));
        const auto room = channel->geometry.size() - bytes.size();
        const auto at = (code.chance(128) ? code.u8() : code.u16()) % room;
        if (!bytes.empty()) std::memcpy(channel->memory->data() + at, bytes.data(), bytes.size());
        return;
      }
      case 4:
        control.rx_tail.store(control.rx_head.load());
        return;
      default:
        append(*channel, garbage(code));
    }
  }
  SendEntry garbage(ByteCode& code) const {
    SendEntry e{};
    auto& h = e.header;
    static constexpr wire::Op kOften[]{wire::Op::kClearToSend, wire::Op::kData, wire::Op::kGet,
                                       wire::Op::kMemoryRegionAvailable};
    h.op_flags = code.chance(160)
                     ? wire::op_flags(kOften[code.below(4)])
                     : static_cast<std::uint16_t>((0x10 + code.below(16)) << wire::kOpShift);
    if (code.chance(96)) flip_flags(code, h);
    if (code.chance(8)) h.op_flags = code.u16();
    h.param = static_cast<std::uint16_t>(code.chance(128) ? 8 + code.below(6) : code.number());
    h.mx = static_cast<std::uint16_t>(code.chance(192) ? 1 + code.below(6) : code.number());
    h.bufx = code.chance(192) ? code.below(16) : code.number();
    h.offset = code.chance(192) ? code.below(32) * 8 : code.number();
    h.sync = code.chance(192) ? code.below(16) : code.number();
    h.b_num = code.number();
    h.d_id = code.chance(192) ? code.below(4) : code.number();
    h.s_id = code.chance(192) ? code.below(4) : code.number();
    e.length = code.chance(192) ? code.u16() % 4096U : code.number();
    e.bufx = code.chance(192) ? code.below(16) : code.number();
    e.offset = code.chance(192) ? code.u8() : code.number();
    static constexpr std::uint8_t kLengths[]{0, 32, 64, 255};
    e.payload_length = kLengths[code.below(4)];
    return e;
  }
  void take_events() {
    Event event{};
    while (host_.node.next_event(event)) {
      if (event.kind == Event::Kind::kVcGone) {
        EXPECT_EQ(channels_.erase(event.cookie), 1U);
      }
      if (event.kind == Event::Kind::kRegionGone) {
        EXPECT_EQ(regions_.erase(event.id), 1U);
      }
    }
  }

  MacAddr peer_;
  std::map<std::uint64_t, Channel> channels_;
  std::map<RegionId, std::unique_ptr<test::Buffers>> regions_;
  test::Host host_;
  std::vector<EndpointId> endpoints_;
  std::vector<OnLink> on_link_;
  std::uint64_t cookie_ = 0;
  volatile unsigned sum_ = 0;  // keeps the compiler from removing the link's reads
};

}  // namespace stp::fuzz
