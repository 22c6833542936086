// SPDX-License-Identifier: BSD-3-Clause
// Registered memory: bound to the same Bufx values on every endpoint of its domain.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "libst/client/backend.h"
#include "libst/client/handle_table.h"
#include "libst/managed/stand_in.h"
#include "stp/base/assert.h"
#include "stp/transfer/sequencer.h"

namespace stp::managed {

class Domain;

class Memory {
 public:
  static constexpr client::Kind kKind = client::Kind::kMemory;

  Memory(std::shared_ptr<Domain> domain, MutableBytes bytes, unsigned access);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Call these under the domain's control mutex. They return 0 or a negative errno.
  int bind();  // to all existing endpoints
  int bind_to(EndpointId endpoint);
  void unbind_from(EndpointId endpoint);
  void unbind();  // may wait until no frame uses the memory
  // The program has released it: waits until no frame of this process uses the memory, and ends
  // what peers can reach of it, but leaves it bound for take_over(). False: it has to be unbound.
  bool rest();
  // Becomes bound as `from`, which rests and is of the same bytes and access, is bound. False: the
  // memory is not what it was, or not bound to all endpoints; `from` has to be unbound.
  bool take_over(Memory& from);

  [[nodiscard]] MutableBytes bytes() const { return bytes_; }
  [[nodiscard]] std::size_t bound_size() const { return bound_.size(); }
  [[nodiscard]] bool contains(const void* ptr, std::size_t length) const;
  [[nodiscard]] bool writable() const;
  [[nodiscard]] unsigned access() const { return access_; }
  [[nodiscard]] Address at(const void* ptr) const;
  // The link may work on a copy of the memory. Call `fetch` before an operation sends the program's
  // bytes, and `store` before reporting that the peer's bytes have arrived.
  void fetch(const void* ptr, std::size_t length) const;
  void store(void* ptr, std::size_t length) const;
  // Where data of a connection on `endpoint` lands.
  [[nodiscard]] Landing landing(EndpointId endpoint, void* ptr, std::size_t length) const;
  // The region on `endpoint` that receives a peer's data; kNoneId: none.
  [[nodiscard]] RegionId receive_region(EndpointId endpoint) const;
  [[nodiscard]] const std::shared_ptr<Domain>& domain() const { return domain_; }

  // Operations and regions that use it. Under the domain's mutex.
  unsigned uses = 0, regions = 0;
  // The program has taken it back while receives are posted in it: messages for them fail.
  bool withdrawn = false;
  // An operation in it has failed: its peer may still hold a grant. Or peers were let into a region
  // of it: frames may read it that no operation waits for.
  bool failed = false, exposed = false;

 private:
  struct Binding {
    RegionId transmit = kNoneId, receive = kNoneId;
    std::shared_ptr<client::Hold> keep_transmit, keep_receive;
    std::uint16_t mx = 0;
    bool resume(std::span<const client::AreaAt> areas) const;
  };
  int bind_as_it_is(EndpointId endpoint);
  bool copy_instead();
  int map(EndpointId endpoint, Direction direction, RegionId& out,
          std::shared_ptr<client::Hold>& keep);
  void unmap(RegionId region);
  bool settle(RegionId region);
  void release(Binding& binding);

  const std::shared_ptr<Domain> domain_;
  const MutableBytes bytes_;  // as the user gave it
  const unsigned access_;
  MutableBytes bound_;  // extended to whole buffers
  StandIn stand_in_;    // copy of bound_; empty: bound_ itself is lent
  std::uint32_t first_ = 0, count_ = 0;
  bool has_place_ = false;
  std::map<EndpointId, Binding> bindings_;  // written under both mutexes, read under either
};

// Holds memory for an operation.
class MemoryUse {
 public:
  MemoryUse() = default;
  explicit MemoryUse(std::shared_ptr<Memory> memory) : memory_(std::move(memory)) {
    if (memory_) ++memory_->uses;
  }
  MemoryUse(MemoryUse&&) noexcept = default;
  MemoryUse& operator=(MemoryUse&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~MemoryUse() {
    STP_ASSERT(!memory_ || memory_->uses > 0, "memory that is let go of was in use");
    if (memory_) --memory_->uses;
  }
  [[nodiscard]] explicit operator bool() const { return memory_ != nullptr; }
  Memory* operator->() const { return memory_.get(); }
  [[nodiscard]] bool is(const Memory& memory) const { return memory_.get() == &memory; }

 private:
  std::shared_ptr<Memory> memory_;
};

}  // namespace stp::managed
