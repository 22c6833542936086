// SPDX-License-Identifier: BSD-3-Clause
// Two domains of one program on the loop, with many connections between them that are used now and
// then: what a Put reads and writes of its connection was used long ago. One thread polls both.
#pragma once

#include <stp/managed.h>

#include <cstddef>
#include <vector>

namespace stp::bench {

class LonePuts {
 public:
  explicit LonePuts(std::size_t connections);
  ~LonePuts();
  LonePuts(const LonePuts&) = delete;
  LonePuts& operator=(const LonePuts&) = delete;

  // Puts 8 bytes on each connection in turn, and waits for the completion of each. Not inlined, for
  // tools that count what a function does.
  [[gnu::noinline]] void round();

 private:
  struct Side {
    Side();
    // Takes events. Returns how many Puts are complete.
    unsigned take();

    stm_domain_t domain = nullptr;
    stm_queue_t queue = nullptr;
    stm_memory_t memory = nullptr;
    std::vector<unsigned char> bytes;
    std::size_t connected = 0;
    const stm_connection_attr_t* accept = nullptr;  // who connects to this side gets this
  };

  Side a_, b_;
  std::vector<stm_connection_t> connections_;
  stm_remote_t remote_{};
};

}  // namespace stp::bench
