// SPDX-License-Identifier: BSD-3-Clause
// stp-paths COUNT...: runs each path of frames through the engine COUNT times, for a tool that
// counts instructions (tests/bench/instructions). Each run is a process of its own, forked from
// this one, which has paid for its start once. Prints the pid, the path and COUNT of each. Does not
// depend on time or random numbers; only how much of what libst does falls to a thread of its own
// varies a little.
// stp-paths lines COUNT: one Put on each of COUNT connections, which have been used before, for a
// tool that simulates caches: it is told when they are to be empty.
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stp/channel/rings.h"
#include "tests/bench/command_line.h"
#include "tests/bench/level0_pair.h"
#include "tests/bench/lone_puts.h"
#include "tests/bench/managed_pair.h"
#include "tests/bench/many_connections.h"
#include "tests/bench/put_pair.h"
#include "tests/bench/steps_of_time.h"

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
  const char* name;
  void (*walk)(std::uint32_t count);
  bool counted_apart = false;  // by a function of its own, beside threads of libst
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
    Path{"managed_put", managed_put, true},
    Path{"managed_lone", managed_lone, true},
    Path{"managed_list", managed_list, true},
    Path{"level0_put", level0_put, true},
    Path{"idle_turn", idle_turn, true},
};

}  // namespace

// The tool counts from its beginning to its end, which comes after that of the path.
[[gnu::noinline]] std::uint32_t count_all(void (*walk)(std::uint32_t), std::uint32_t count) {
  walk(count);
  return count;
}

namespace {

// In a process of its own. Whether it ended well.
bool walk_apart(const Path& path, std::uint32_t count) {
  const auto child = ::fork();
  if (child == 0) {
    std::printf("%d %s %u\n", ::getpid(), path.name, count);
    std::fflush(stdout);
    let_time_step_here();
    if (path.counted_apart)
      path.walk(count);
    else
      count_all(path.walk, count);
    std::exit(0);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

void lines(std::uint32_t count) {
  LonePuts puts(count);
  puts.round();  // opens the region on each connection
  puts.round();
  CALLGRIND_START_INSTRUMENTATION;
  puts.round();
  CALLGRIND_STOP_INSTRUMENTATION;
}

constexpr const char* kUsage = "usage: stp-paths COUNT... | lines COUNT\n";

std::uint32_t number(char** argv, const char* word) {
  char* rest = nullptr;
  const auto value = std::strtoul(word, &rest, 10);
  if (value == 0 || value > 1'000'000'000 || *rest != 0)
    refuse(argv[0], std::string(word) + " is no number from 1 on", kUsage);
  return static_cast<std::uint32_t>(value);
}

}  // namespace
}  // namespace stp::bench

int main(int argc, char** argv) {
  using namespace stp::bench;
  hold_to(kUsage, argc, argv);
  if (argc < 2) refuse(argv[0], "a number is missing", kUsage);
  if (argc == 3 && std::strcmp(argv[1], "lines") == 0) {
    lines(number(argv, argv[2]));
    return 0;
  }
  std::vector<std::uint32_t> counts;
  for (int i = 1; i < argc; ++i) counts.push_back(number(argv, argv[i]));
  for (const auto& path : kPaths)
    for (const auto count : counts)
      if (!walk_apart(path, count)) {
        std::fprintf(stderr, "%s failed with %u rounds\n", path.name, count);
        return 1;
      }
}
