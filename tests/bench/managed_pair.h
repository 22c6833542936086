// SPDX-License-Identifier: BSD-3-Clause
// Two connected domains of one program, on the loop or on the two ends of a link. Measures the
// managed layer and the path to the Node, without a link or with it. One thread polls both domains,
// or only A if each has its own shard.
#pragma once

#include <stp/managed.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace stp::bench {

// Where the two domains are. Shards: as in stm_domain_attr_t.
struct PairPlaces {
  std::string link_a = "loop", link_b = "loop";
  std::uint32_t shard_a = 0, shard_b = 0;
  std::string host;  // of B, for A; "": the same
  std::string port = ":3000";
};

class ManagedPair {
 public:
  explicit ManagedPair(const PairPlaces& places = {});
  ~ManagedPair();
  ManagedPair(const ManagedPair&) = delete;
  ManagedPair& operator=(const ManagedPair&) = delete;

  static constexpr std::size_t kMost = 1 << 16;
  // A message of `length` bytes there and one back.
  void round_trip(std::size_t length);
  // Puts `length` bytes into the peer's memory and waits for the completion.
  void put(std::size_t length);
  // Makes `count` puts, `window` of them at a time. This thread posts them, makes the progress and
  // takes the completions. Not inlined, for tools that count the instructions of a function.
  // `listed`: posts with stm_post_list.
  [[gnu::noinline]] void puts(std::uint32_t count, std::size_t length, bool listed = false,
                              std::uint32_t window = 64);
  // Polls A's queue `count` times while nothing happens. Not inlined, as puts().
  [[gnu::noinline]] void idle(std::uint32_t count);
  // Makes puts, a window of them at a time, until `stop`. This thread posts them, and polls A and
  // the B of `served`, if any. Returns how many are complete.
  std::uint64_t puts_until(const std::atomic<bool>& stop, std::uint32_t window, std::size_t length,
                           ManagedPair* served = nullptr);
  // Polls only B until `stop`, for another thread.
  void serve_until(const std::atomic<bool>& stop);

 private:
  struct Side {
    Side(const std::string& link, std::uint32_t shard);
    void await(unsigned kind, Side& other);
    bool take(unsigned kind);

    stm_domain_t domain = nullptr;
    stm_queue_t queue = nullptr;
    stm_memory_t memory = nullptr;
    stm_connection_t connection = nullptr;
    std::vector<unsigned char> bytes;
    std::vector<stm_event_t> seen;
  };
  static void message(Side& from, Side& to, std::size_t length);

  Side a_, b_;
  stm_remote_t remote_{};
};

}  // namespace stp::bench
