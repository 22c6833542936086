// SPDX-License-Identifier: BSD-3-Clause
// Work on memory files that a peer shares, each in a thread of its own: the kernel makes whoever
// maps or seals a file wait for others who work on it, and a peer can do that for as long as it
// likes (as by taking pages out of a file that it has mapped very often).
//
// When both sides have mapped a file, it is sealed (Linux 5.1): then nobody can take a page of it
// away, so that this side never waits when it uses the memory.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "dpdk_port/memif/closer.h"
#include "dpdk_port/memif/region.h"

namespace stp::port::memif {

class MemoryWork {
 public:
  // Maps memory of the peer, and seals it. nullptr: there is no thread for it.
  static std::shared_ptr<MemoryWork> map(SharedDescriptor file, std::uint64_t size);
  // Seals this side's memory, which the peer has mapped. It uses a copy of the descriptor.
  static std::shared_ptr<MemoryWork> seal(const SharedDescriptor& file);

  // The members below are final. Whoever does not want to wait for that lets go of this object: the
  // thread has it until it ends.
  [[nodiscard]] bool done() const { return done_.load(std::memory_order_acquire); }
  Region region;
  std::string error;  // why there is none

  // Only begin() makes one.
  explicit MemoryWork(SharedDescriptor file) : file_(std::move(file)) {}

 private:
  template <typename Work>
  static std::shared_ptr<MemoryWork> begin(SharedDescriptor file, Work work);
  SharedDescriptor file_;
  std::atomic<bool> done_{false};
};

}  // namespace stp::port::memif
