// SPDX-License-Identifier: BSD-3-Clause
// What client and server both need on their link for one test: a queue and its events, and memory
// to send from, to receive into, and to open to the peer.
#pragma once

#include <array>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <stp/managed.hpp>
#include <string>

#include "tools/perf/plan.h"

namespace stp::perf {

// Waits for the events of a queue, by polling or by sleeping.
class Events {
 public:
  // `crowded`: there are more pollers than cores. A poll without result then yields the core.
  Events(stm_queue_t queue, bool sleeps, bool crowded);

  // Passes waiting events to `handle`. If there are none and `sleeps` is set, it first sleeps, for
  // 100 ms at most.
  template <typename Handle>
  void turn(Handle&& handle) {
    for (int left = take(), i = 0; i < left; ++i) handle(batch_[static_cast<std::size_t>(i)]);
  }

 private:
  int take();

  stm_queue_t queue_;
  bool sleeps_, crowded_;
  std::array<stm_event_t, 64> batch_;
};

struct Setup {
  std::string link;          // "": the link of STP_LINK
  unsigned buffer_log2 = 0;  // 0: libst's default
};

// What the command line or STP_LINK names cannot be: the exit status is 2.
struct WrongUsage : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// As checked(), of a call that takes what the user wrote: throws WrongUsage for -EINVAL.
int checked_usage(int result, const std::string& what);

Domain open_link(const Setup& setup);
// The rate of the link in 10^6 bits a second; 0: not known.
std::uint32_t rate_of_link(stm_domain_t domain);
// Returns whether there are more polling threads than cores. Through stpd, client, server and their
// two daemons need four.
bool is_crowded(const Setup& setup);

// What client and server both need on their link for one test: a queue, and memory to send from, to
// receive into, and to open to the peer.
class Room {
 public:
  Room(stm_domain_t domain, unsigned buffer_log2, const Plan& plan);

  [[nodiscard]] stm_domain_t domain() const { return domain_; }
  [[nodiscard]] stm_queue_t queue() const { return queue_; }
  [[nodiscard]] stm_memory_t memory() const { return memory_; }
  [[nodiscard]] unsigned char* source() const { return bytes_.get(); }
  [[nodiscard]] unsigned char* target() const { return bytes_.get() + part_; }
  // Two short messages of the control connection.
  static constexpr std::size_t kNote = 256;
  [[nodiscard]] unsigned char* outgoing_note() const { return bytes_.get() + 2 * part_; }
  [[nodiscard]] unsigned char* incoming_note() const { return outgoing_note() + kNote; }
  // The target, as the peer must name it.
  [[nodiscard]] const stm_remote_t& remote() const { return region_.remote; }

 private:
  struct Free {
    void operator()(void* bytes) const { std::free(bytes); }
  };
  stm_domain_t domain_;
  std::size_t part_;  // size of the source and of the target
  std::unique_ptr<unsigned char[], Free> bytes_;
  Queue queue_;
  Memory memory_;
  OpenRegion region_;
};

}  // namespace stp::perf
