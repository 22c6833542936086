// SPDX-License-Identifier: BSD-3-Clause
// How the two sides of a memif wake each other. memif lets who sleeps ask for interrupts by a flag
// in the ring that it empties. Of two sides of this implementation, each says in the first ring of
// the client how often it has gone to sleep: a line that the other one reads anyway, as it sends or
// receives.
//
// Nobody depends on a signal. A frame may come as its receiver goes to sleep, and its sender not
// see that: it has no fence, which each frame would pay for. And a peer may never send one. So
// whoever sleeps looks for frames now and then.
#pragma once

#include <cstdint>

#include "dpdk_port/link/engine.h"
#include "dpdk_port/memif/closer.h"
#include "stp/types.h"

namespace stp::port::memif {

// Signals an eventfd that a peer shares, without ever waiting. The peer may have filled it, and
// made its writers wait, so nobody writes to it: the kernel adds to it when it reports the end of
// an asynchronous operation (Linux 4.19). Any thread may call this. False: it is no eventfd, or the
// kernel does not permit that here.
bool send_signal(int eventfd);

// Where a side says whether it sleeps, and what wakes it.
struct SleepSign {
  std::uint16_t* sleeps = nullptr;  // counts its sleeps and its awakenings. Odd: it sleeps
  int bell = -1;                    // an eventfd
};

// One side's end. One thread uses it; those of other shards only find that there is nobody to wake.
class alignas(kCacheLine) Waking {
 public:
  Waking() : all_(make()) {}

  // With a peer that has connected; its eventfds stay open until end(). They may be anything.
  void begin(const SleepSign& own, const SleepSign& peer);
  void end();

  // Readable after a signal of the peer, until woke_up(). The same for all peers; -1: there is
  // none.
  [[nodiscard]] int descriptor() const { return all_.get(); }
  // The peer has sent a signal before.
  [[nodiscard]] bool is_woken() const { return is_woken_; }
  // Then look for frames once more, before you sleep.
  void fall_asleep();
  void woke_up();

  // Call after frames have become visible to the peer. Wakes it if it sleeps, once.
  void wake_peer() {
    if (peer_.sleeps == nullptr) return;
    const auto sleeps = __atomic_load_n(peer_.sleeps, __ATOMIC_RELAXED);
    if (sleeps % 2 != 0 && sleeps != told_) tell(sleeps);
  }

  // A peer can make the kernel work for each signal, by waiting for it very often. The first and
  // every kMeasured-th signal is measured. After one that takes longer the next ones are, and so
  // many of them in a row end all signals to this peer. It gets them again when it connects anew,
  // kPause later at the soonest.
  static constexpr Time kMost = 200 * kMicrosecond, kPause = 10 * kSecond;
  static constexpr unsigned kMeasured = 8, kInARow = 3;

 private:
  static FileDescriptor make();
  void tell(std::uint16_t sleeps);

  const FileDescriptor all_;  // an epoll of the own bell: so it is the same for all peers
  SleepSign own_, peer_;
  std::uint16_t sleeps_ = 0;  // as told by this side
  std::uint16_t told_ = 0;    // the sleep of the peer that was ended last
  unsigned signals_ = 0;
  unsigned slow_ = 0;  // signals in a row that took long
  Time quiet_until_ = 0;
  bool is_woken_ = false;
};

}  // namespace stp::port::memif
