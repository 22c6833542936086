// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints of one program on the loop, connected at level 0: what st_tx and st_rx cost,
// without a link. One thread uses both.
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

  // So many Blocks of `length` bytes into the other side's memory, a window of them at once, until
  // the last is known to be there. A function of its own whatever the compiler does, for tools that
  // count what it takes.
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
