// SPDX-License-Identifier: BSD-3-Clause
// Memory of a domain: what the program has registered, and the parts of it that peers may access.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "libst/client/backend.h"
#include "libst/client/handle_table.h"
#include "libst/include/stp/managed.h"
#include "stp/base/assert.h"
#include "stp/transfer/sequencer.h"
#include "stp/types.h"

namespace stp::managed {

class Connection;
class Domain;

// Whole pages of the library's own that replace memory of the program that cannot be lent: memory
// in a shared mapping, executable memory, or the stack.
class StandIn {
 public:
  static constexpr std::size_t kMost = 64 * 1024;  // copying more does not pay

  StandIn() = default;
  // Allocates as many bytes as `pages`, whole pages of the program. Empty if there is no memory.
  explicit StandIn(MutableBytes pages);

  [[nodiscard]] explicit operator bool() const { return bytes_ != nullptr; }
  [[nodiscard]] MutableBytes pages() const { return {bytes_.get(), bytes_.get_deleter().size}; }
  // The byte that corresponds to `ptr`.
  [[nodiscard]] std::byte* at(const void* ptr) const {
    return bytes_.get() + (static_cast<const std::byte*>(ptr) - original_);
  }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Unmap> bytes_;
  const std::byte* original_ = nullptr;
};

// Tracks the allocated Bufx values of a domain. The same range serves for sending and receiving, on
// every endpoint of the domain.
class BufxSpace {
 public:
  static constexpr std::uint32_t kEntries = std::uint32_t{1} << 22;

  // Allocates the lowest free range of `count` values and returns its first one. Lowest, because
  // tables reach up to their highest entry.
  std::optional<std::uint32_t> take(std::uint32_t count) {
    STP_ASSERT(count > 0, "memory takes a Bufx at least");
    for (auto at = free_.begin(); at != free_.end(); ++at) {
      const auto [first, length] = *at;
      if (length < count) continue;
      free_.erase(at);
      if (length > count) free_[first + count] = length - count;
      return first;
    }
    return std::nullopt;
  }

  void give_back(std::uint32_t first, std::uint32_t count) {
    STP_ASSERT(count > 0 && std::uint64_t{first} + count <= kEntries,
               "what is given back was taken");
    const auto next = free_.lower_bound(first);
    STP_ASSERT(next == free_.end() || first + count <= next->first, "what is given back was taken");
    if (next != free_.end() && next->first == first + count) {
      count += next->second;
      free_.erase(next);
    }
    const auto after = free_.lower_bound(first);
    if (after != free_.begin()) {
      const auto before = std::prev(after);
      STP_ASSERT(before->first + before->second <= first, "what is given back was taken");
      if (before->first + before->second == first) {
        before->second += count;
        return;
      }
    }
    free_[first] = count;
  }

 private:
  std::map<std::uint32_t, std::uint32_t> free_{{0, kEntries}};  // first -> count; neighbours merged
};

// Registered memory: bound to the same Bufx values on every endpoint of its domain.
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
  [[nodiscard]] bool contains(const void* ptr, std::size_t length) const {
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
    const auto at = reinterpret_cast<std::uintptr_t>(ptr) - begin;
    return at <= bytes_.size() && length <= bytes_.size() - at;
  }
  [[nodiscard]] bool writable() const { return (access_ & ~unsigned{STM_LOCAL_READ}) != 0; }
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

// Registrations that the program has released, for programs and layers that register the same
// memory again and again. They stay bound, so that the next registration of the same bytes with the
// same access costs no request. No peer reaches them. What is mapped at their address is looked at
// before one is used again: if it is not what was registered, the registration is made anew.
//
// They count in the quotas and budgets of this program, and give way when it needs those. The
// oldest one gives way when there are too many. All under the control mutex of the domain.
class MemoryCache {
 public:
  // The most registrations and bytes that are kept.
  static constexpr std::size_t kMost = 64, kMostBytes = std::size_t{64} << 20;

  MemoryCache();
  // STM_CACHE_ON, or why it is off: the environment has that text (nullptr: none), or the kernel
  // cannot tell what is mapped at an address.
  static std::uint32_t state_of(const char* environment, bool kernel_tells);

  // Takes a registration that nothing uses, or unbinds it.
  void keep(std::shared_ptr<Memory> memory);
  // Binds `memory` as a registration that was kept. False: there is none.
  bool restore(Memory& memory);
  // Unbinds all. False: there was none.
  bool clear();
  [[nodiscard]] std::uint32_t state() const { return state_; }
  [[nodiscard]] bool on() const { return state_ == STM_CACHE_ON; }
  [[nodiscard]] std::size_t size() const { return kept_.size(); }

 private:
  using Kept = std::list<std::shared_ptr<Memory>>;  // the one released last is the first
  std::shared_ptr<Memory> remove(Kept::iterator at);

  const std::uint32_t state_;
  Kept kept_;
  std::size_t bytes_ = 0;
};

// A part of registered memory that peers may access by its key.
class Access {
 public:
  static constexpr client::Kind kKind = client::Kind::kAccess;

  struct Terms {
    MutableBytes bytes;
    unsigned access = 0;
    std::uint64_t address = 0;
    const Connection* only = nullptr;  // nullptr: any connection
    std::uint64_t group = 0;           // 0: any; else only connections of that group
  };
  Access(std::shared_ptr<Memory> memory, const Terms& terms, std::uint32_t key)
      : memory_(std::move(memory)), terms_(terms), key_(key) {}

  [[nodiscard]] const Terms& terms() const { return terms_; }
  [[nodiscard]] bool permits(const Connection& connection, std::uint64_t group) const {
    if (terms_.only != nullptr && terms_.only != &connection) return false;
    return terms_.group == 0 || terms_.group == group;
  }
  [[nodiscard]] std::uint32_t key() const { return key_; }
  [[nodiscard]] const std::shared_ptr<Domain>& domain() const { return memory_->domain(); }

  // Under the domain's mutex. Grants the peer of a connection on `endpoint` access. Returns 0 or a
  // negative errno.
  int landing(EndpointId endpoint, Landing& out);
  // Ends the access of all peers.
  void revoke();

 private:
  const std::shared_ptr<Memory> memory_;
  const Terms terms_;
  const std::uint32_t key_;
  std::map<EndpointId, std::uint16_t> mxs_;
  bool revoked_ = false;
};

// Requests of peers for regions whose keys are wrong: none has that key, or not for that
// connection. Keys have 32 bits, so a peer that may try a hundred thousand a second finds one of a
// thousand regions within a minute. Peers that keep to their keys name a wrong one only when a
// region has been closed. So a domain refuses some of them at once, and then so many a second,
// whichever connections they come on. Until then, the next requests of that connection wait behind,
// and nobody looks at their keys: else who gets an answer would know that a key is right. No
// refusal waits longer than a second, so there may be one more a second for each connection. Under
// the domain's mutex.
class WrongKeys {
 public:
  static constexpr unsigned kASecond = 256, kAtOnce = 1024;
  static constexpr Time kLongest = kSecond;
  // Requests that wait on a connection; a peer of this library has no more regions.
  static constexpr std::size_t kMost = 64;
  using Requests = std::vector<Completion>;

  // When the next wrong key may be told of: now, or later.
  Time next(Time now) {
    constexpr auto kEach = kSecond / kASecond, kAhead = kEach * kAtOnce;
    told_ = std::min(std::max(told_, now) + kEach, now + kAhead + kLongest);
    return told_ <= now + kAhead ? now : told_ - kAhead;
  }
  // The request is refused at `then`.
  void hold(Connection& connection, const Completion& request, Time then) {
    held_[&connection] = {then, {request}};
    times_.emplace(then, &connection);
  }
  // Requests of the connection wait.
  [[nodiscard]] bool holds(const Connection& connection) const {
    return !held_.empty() && held_.contains(const_cast<Connection*>(&connection));
  }
  // One more waits behind them. False: they are too many.
  [[nodiscard]] bool add(Connection& connection, const Completion& request) {
    auto& requests = held_[&connection].requests;
    if (requests.size() == kMost) return false;
    requests.push_back(request);
    return true;
  }
  [[nodiscard]] Time next_deadline() const {
    return times_.empty() ? kNever : times_.begin()->first;
  }
  // A connection whose first request is to be refused by now, which waits no more with those behind
  // it; nullptr: there is none.
  Connection* take(Time now, Requests& out) {
    if (next_deadline() > now) return nullptr;
    auto* const connection = times_.begin()->second;
    out = std::move(held_[connection].requests);
    forget(*connection);
    return connection;
  }
  void forget(Connection& connection) {
    const auto found = held_.find(&connection);
    if (found == held_.end()) return;
    times_.erase({found->second.then, &connection});
    held_.erase(found);
  }

 private:
  struct Held {
    Time then = 0;
    Requests requests;
  };
  Time told_ = 0;
  std::map<Connection*, Held> held_;
  std::set<std::pair<Time, Connection*>> times_;
};

}  // namespace stp::managed
