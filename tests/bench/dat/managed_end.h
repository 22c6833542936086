// SPDX-License-Identifier: BSD-3-Clause
// One side of dat-bench on the managed API.
#pragma once

#include <stp/managed.hpp>

#include <string>

#include "tests/bench/dat/memory.h"
#include "tests/bench/dat/patience.h"
#include "tests/bench/dat/plan.h"

namespace stp::bench {

class ManagedEnd {
 public:
  ManagedEnd(const std::string& link, bool sleep);
  void listen();
  void accept();
  void connect(const std::string& host);
  void send();
  // Takes a message. Posts the next receive before the message is answered.
  void receive();
  void write();
  void await_write() { await(STM_PUT); }
  // Waits until the peer has disconnected.
  void await_end();

  Patience patience;

 private:
  void await(unsigned kind);
  stm_event_t next();
  void begin();

  AlignedBytes bytes_{2 * kWriteSize};
  Domain domain_;
  Queue queue_;
  Memory memory_;
  Region region_;
  Listener listener_;
  Connection connection_;
  stm_remote_t remote_{};
  bool sleep_;
  unsigned counts_[STM_HIGH + 1] = {};  // of events that arrived before somebody waited for them
};

}  // namespace stp::bench
