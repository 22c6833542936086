// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints of one program on the loop, connected at level 0. Measures st_tx and st_rx without
// a link. One thread uses both.
#pragma once

#include <stp/st.h>

#include <cstdint>

namespace stp::bench {

class Level0Pair {
 public:
  Level0Pair();
  ~Level0Pair();
  Level0Pair(const Level0Pair&) = delete;
  Level0Pair& operator=(const Level0Pair&) = delete;

  // Puts `count` Blocks of `length` bytes into the peer's memory, a window of them at a time, until
  // the last is confirmed. Not inlined, for tools that count the instructions of a function.
  [[gnu::noinline]] void puts(std::uint32_t count, int length);

 private:
  struct Side {
    explicit Side(const char* name);
    void map(int direction, int* mx);

    st_ehandle_t endpoint = nullptr;
    st_chandle_t connection = nullptr;
  };

  Side a_, b_;
  st_header_t data_{};  // to B's memory
};

}  // namespace stp::bench
