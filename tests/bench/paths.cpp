// SPDX-License-Identifier: BSD-3-Clause
// stp-paths PATH COUNT: runs one path of frames through the engine COUNT times, for a tool that
// counts instructions (tests/bench/instructions). Does not depend on time, random numbers or
// threads.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "stp/channel/rings.h"
#include "tests/bench/level0_pair.h"
#include "tests/bench/managed_pair.h"
#include "tests/bench/many_connections.h"
#include "tests/bench/put_pair.h"

namespace stp::bench {
namespace {

constexpr std::size_t kJumbo = 8192;

// Receives DATA in bursts of 32 frames, as from a link.
void receive_data(std::uint32_t count, std::size_t length) {
  constexpr std::uint32_t kBurst = 32;
  ManyConnections one(1);
  one.open_region(0);
  std::vector<ManyConnections::Frame> frames(kBurst, one.put(0, 0, length));
  const std::vector<Bytes> burst(frames.begin(), frames.end());
  for (std::uint32_t b_num = 0; b_num < count; b_num += kBurst) {
    for (std::uint32_t i = 0; i < kBurst; ++i) ManyConnections::set_b_num(frames[i], b_num + i);
    one.node().receive(burst, one.now());
  }
}

// Receives control frames into the user's queue and reads them.
void receive_control(std::uint32_t count) {
  ManyConnections one(1);
  const auto frame = one.no_operation(0);
  const Bytes bytes(frame);
  auto user = one.user(0);
  ReceivedEntry entry{};
  for (std::uint32_t i = 0; i < count; ++i) {
    one.node().receive({&bytes, 1}, one.now());
    user.receive(entry);
  }
}

void send_data(std::uint32_t count, std::uint32_t length) {
  PutPair pair;
  for (std::uint32_t i = 0; i < count; ++i) pair.send(length);
}

void node_to_node(std::uint32_t count, std::uint32_t length) {
  PutPair pair;
  for (std::uint32_t i = 0; i < count; ++i) pair.put(length);
}

// Puts a user's request into the ring: the last step of st_tx.
void request_to_ring(std::uint32_t count) {
  const ChannelGeometry geometry{64, 64};
  test::ChannelMemory const memory(geometry);
  NodeChannel node(memory.data(), geometry);
  UserChannel user(memory.data());
  SendEntry entry{};
  for (std::uint32_t i = 0; i < count; ++i) {
    user.send(entry);
    node.skip();
    node.publish_taken();
  }
}

// Takes a header out of the ring: the first step of st_rx.
void ring_to_user(std::uint32_t count) {
  const ChannelGeometry geometry{64, 64};
  test::ChannelMemory const memory(geometry);
  NodeChannel node(memory.data(), geometry);
  UserChannel user(memory.data());
  ReceivedEntry entry{};
  for (std::uint32_t i = 0; i < count; ++i) {
    node.deliver(entry, NodeChannel::Place::kSlot);
    user.receive(entry);
  }
}

// Puts through the managed API on the loop, with both ends: posting, sending, receiving, answering
// and reporting. Only puts() is counted, which runs in this thread.
void managed_put(std::uint32_t count) {
  ManagedPair pair;
  pair.puts(count, 8);
}

// The same, one at a time: each has an answer and a turn of its own.
void managed_lone(std::uint32_t count) {
  ManagedPair pair;
  pair.puts(count, 8, false, 1);
}

// The same, posted in lists of up to 64.
void managed_list(std::uint32_t count) {
  ManagedPair pair;
  pair.puts(count, 8, true);
}

// A poll of a managed queue while nothing happens, with the turns of the link and of the domain.
void idle_turn(std::uint32_t count) {
  ManagedPair pair;
  pair.idle(count);
}

// The same with st_tx at level 0.
void level0_put(std::uint32_t count) {
  Level0Pair pair;
  pair.puts(count, 8);
}

// The cost of copying the bytes of a long STU, for subtraction. As in the receiver, the C library
// copies them from behind the headers of a frame.
void copy(std::uint32_t count) {
  constexpr std::size_t kHead = wire::kEthernetSize + wire::kHeaderSize;
  test::Buffers const from(13, 2), to(13, 1);
  decltype(&std::memmove) const volatile move = std::memmove;
  for (std::uint32_t i = 0; i < count; ++i) move(to.data(), from.data() + kHead, kJumbo);
}

struct Path {
  std::string_view name;
  void (*walk)(std::uint32_t count);
};
constexpr std::array kPaths{
    Path{"receive_data_8", [](std::uint32_t n) { receive_data(n, 8); }},
    Path{"receive_data_8192", [](std::uint32_t n) { receive_data(n, kJumbo); }},
    Path{"copy_8192", copy},
    Path{"receive_control", receive_control},
    Path{"send_data_8", [](std::uint32_t n) { send_data(n, 8); }},
    Path{"send_data_8192", [](std::uint32_t n) { send_data(n, kJumbo); }},
    Path{"node_to_node_8", [](std::uint32_t n) { node_to_node(n, 8); }},
    Path{"request_to_ring", request_to_ring},
    Path{"ring_to_user", ring_to_user},
    Path{"managed_put", managed_put},
    Path{"managed_lone", managed_lone},
    Path{"managed_list", managed_list},
    Path{"level0_put", level0_put},
    Path{"idle_turn", idle_turn},
};

}  // namespace
}  // namespace stp::bench

int main(int argc, char** argv) {
  using stp::bench::kPaths;
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const auto& path : kPaths) std::puts(path.name.data());
    return 0;
  }
  const auto* const path =
      argc == 3 ? std::find_if(kPaths.begin(), kPaths.end(),
                               [&](const auto& each) { return each.name == argv[1]; })
                : kPaths.end();
  if (path == kPaths.end()) {
    std::fprintf(stderr, "usage: %s --list | PATH COUNT\n", argv[0]);
    return 2;
  }
  path->walk(static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)));
}
