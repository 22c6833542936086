// SPDX-License-Identifier: BSD-3-Clause
// The end of a link that has several shards, and frames that tell where they belong.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "stp/wire/frame.h"
#include "stp/wire/operations.h"
#include "tests/dpdk_port/link_pair.h"

namespace stp::port {

struct ShardedEnd {
  void open(const std::string& text) {
    LinkConfig config;
    std::string error;
    ASSERT_TRUE(parse_link(text, config, error)) << error;
    OpenError why;
    ports = Port::open_shards(config, why);
    ASSERT_FALSE(ports.empty()) << why.text;
    engines.clear();
    engines.resize(ports.size());
  }
  unsigned turn(std::size_t shard) {
    return static_cast<LinkPort&>(*ports[shard]).turn(engines[shard], now());
  }
  unsigned turn() {
    unsigned moved = 0;
    for (std::size_t i = 0; i < ports.size(); ++i) moved += turn(i);
    return moved;
  }
  [[nodiscard]] const MacAddr& mac() const { return ports[0]->info().mac; }
  Shards& shards() { return *ports[0]->info().shards; }
  [[nodiscard]] std::uint64_t total(const std::string& name) const {
    return std::accumulate(
        ports.begin(), ports.end(), std::uint64_t{0},
        [&](std::uint64_t sum, const auto& port) { return sum + counter(*port, name); });
  }

  std::vector<ScriptEngine> engines;
  std::vector<std::unique_ptr<Port>> ports;  // destroyed first
};

// An STP frame to a Port, with bytes that distinguish it from others.
inline Frame frame_for(std::uint16_t port, const MacAddr& to, const MacAddr& from,
                       unsigned seed = 0, std::size_t length = 100) {
  wire::Header header;
  header.op_flags = wire::op_flags(wire::Op::kData);
  header.d_port = port;
  Frame frame(length + 100);
  frame.resize(wire::emit({to, from, {}, false}, header, make_bytes(length, seed), {}, frame));
  return frame;
}

inline Frame request_for(std::uint32_t uport, const MacAddr& to, const MacAddr& from) {
  const auto header = wire::to_header(wire::RequestConnection{
      .i_slots = 8, .i_bufsize = 12, .i_key = 7, .i_max_stu = 9, .r_uport = uport});
  Frame frame(200);
  frame.resize(wire::emit({to, from, {}, false}, header, {}, {}, frame));
  return frame;
}

inline bool turn_until(ShardedEnd& a, ShardedEnd& b, const std::function<bool()>& done) {
  const Time end = now() + 30 * kSecond;
  while (!done()) {
    if (now() > end) return false;
    a.turn();
    b.turn();
  }
  return true;
}

inline void until_idle(ShardedEnd& end) {
  while (end.turn() > 0) {
  }
}
// Two links of several shards with a wire between them, and frames from each shard to each.
inline void expect_all_shards_reach_all(ShardedEnd& a, ShardedEnd& b, std::size_t length) {
  ASSERT_TRUE(turn_until(a, b, [&] {
    return a.ports[0]->link_up() && b.ports[0]->link_up() && a.ports.back()->link_up();
  }));
  constexpr unsigned kFrames = 300;
  std::vector<std::vector<Frame>> expected(b.ports.size());
  for (unsigned i = 0; i < kFrames; ++i) {
    const auto port = static_cast<std::uint16_t>(1 + i);
    const Frame frame = frame_for(port, b.mac(), a.mac(), i, length);
    a.engines[i / 7 % a.ports.size()].send(frame);
    expected[port % b.ports.size()].push_back(frame);
  }
  const auto arrived = [&] {
    std::size_t count = 0;
    for (const auto& engine : b.engines) count += engine.received.size();
    return count;
  };
  EXPECT_TRUE(turn_until(a, b, [&] { return arrived() == kFrames; })) << arrived();
  for (std::size_t i = 0; i < b.ports.size(); ++i) {
    auto received = b.engines[i].received;
    std::sort(received.begin(), received.end());
    std::sort(expected[i].begin(), expected[i].end());
    EXPECT_TRUE(received == expected[i]) << "shard " << i;
  }
}

inline void expect_each_shard_resolves(ShardedEnd& a, ShardedEnd& b, Ipv4 address) {
  for (const auto& port : a.ports) {
    EXPECT_TRUE(turn_until(a, b, [&] { return port->resolve(address, now()).has_value(); }));
    EXPECT_EQ(port->resolve(address, now()), b.mac());
  }
}

}  // namespace stp::port
