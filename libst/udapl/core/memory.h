// SPDX-License-Identifier: BSD-3-Clause
// Memory of DAT: zones, what a program and its peers may access, and lists of its segments.
#pragma once

#include <stp/managed.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "libst/udapl/core/object.h"

namespace stp::udapl {

class Ep;

// A Protection Zone: groups memory and EPs.
class Pz : public Object {
 public:
  explicit Pz(Ia& ia) : Object(Kind::kPz, ia) {}
  static Result create(Ia& ia, std::shared_ptr<Pz>& out);
  Result free();
  // The group that the managed API has for the EPs of this zone.
  [[nodiscard]] std::uint64_t group() const { return reinterpret_cast<std::uintptr_t>(this); }
};

// A part of an LMR. Addresses are virtual, or relative to the LMR's first byte if it is zero-based.
// It is not set to 0: calls have lists of 64, of which they use one or two.
struct LmrTriplet {
  std::uint64_t address;
  std::uint64_t length;
  std::uint32_t context;
};

struct RmrTriplet {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t context = 0;
};

// A Local Memory Region: registered memory, and the region that peers of the zone's EPs may access
// if its privileges allow that.
class Lmr : public Object {
 public:
  struct Attr {
    void* start = nullptr;
    std::uint64_t length = 0;
    unsigned privileges = 0;
    bool zero_based = false;
  };

  Lmr(Ia& ia, std::shared_ptr<Pz> pz, const Attr& attr)
      : Object(Kind::kLmr, ia), pz_(std::move(pz)), attr_(attr) {}
  static Result create(Ia& ia, const std::shared_ptr<Pz>& pz, const Attr& attr,
                       std::shared_ptr<Lmr>& out);
  // kInvalidState: RMRs use it. Messages for receives posted in it fail; other operations in it
  // break their connections.
  Result free();
  void abandon() override;

  [[nodiscard]] const Pz& pz() const { return *pz_; }
  [[nodiscard]] const Attr& attr() const { return attr_; }
  [[nodiscard]] std::uint32_t context() const { return context_; }
  [[nodiscard]] std::uint32_t rmr_context() const { return remote_.key; }
  [[nodiscard]] stm_memory_t memory() const { return memory_; }
  // The address of its first byte, as triplets use it.
  [[nodiscard]] std::uint64_t base() const {
    return attr_.zero_based ? 0 : reinterpret_cast<std::uint64_t>(attr_.start);
  }
  // Write permission includes read permission locally, as programs expect of RDMA adapters.
  [[nodiscard]] bool allows(unsigned privilege) const {
    const auto sufficient = privilege == kLocalRead ? kLocalRead | kLocalWrite : privilege;
    return (attr_.privileges & sufficient) != 0;
  }
  // Returns the address of the triplet's bytes; nullptr: outside the LMR.
  [[nodiscard]] std::byte* part(const LmrTriplet& triplet) const;

 private:
  int open();
  int close();

  const std::shared_ptr<Pz> pz_;
  const Attr attr_;
  std::uint32_t context_ = 0;
  stm_memory_t memory_ = nullptr;
  stm_region_t region_ = nullptr;
  stm_remote_t remote_{};
};

// Converts these privileges for the managed API.
unsigned access_of(unsigned privileges);

// A Remote Memory Region: a part of an LMR that the peer of one EP may access, until it is bound
// to something else or freed.
class Rmr : public Object {
 public:
  struct Param {
    std::shared_ptr<Pz> pz;
    LmrTriplet triplet;
    unsigned privileges;
    std::uint32_t context;
  };

  Rmr(Ia& ia, std::shared_ptr<Pz> pz) : Object(Kind::kRmr, ia), pz_(std::move(pz)) {}
  static Result create(Ia& ia, const std::shared_ptr<Pz>& pz, std::shared_ptr<Rmr>& out);
  Result free();
  // A length of 0 unbinds. Revokes the previous binding before it returns.
  Result bind(const LmrTriplet& triplet, unsigned privileges, bool zero_based, Ep& ep,
              std::uint64_t cookie, Flags flags, std::uint32_t& context);
  Result query(Param& out);
  void abandon() override;

 private:
  Result open(const LmrTriplet& triplet, unsigned privileges, bool zero_based, const Ep& ep);
  void unbind();

  const std::shared_ptr<Pz> pz_;
  std::shared_ptr<Lmr> lmr_;
  stm_region_t region_ = nullptr;
  LmrTriplet triplet_{};
  unsigned privileges_ = 0;
  std::uint32_t context_ = 0;
};

// Segment lists, and the registered memory that stands in for those of several segments.

// Registered memory for messages of several segments.
class StagingPool;

// One buffer, returned to its pool on destruction.
class Staging {
 public:
  Staging() = default;
  Staging(StagingPool& pool, std::byte* data, std::size_t size, stm_memory_t memory)
      : pool_(&pool), data_(data), size_(size), memory_(memory) {}
  Staging(Staging&& other) noexcept { *this = std::move(other); }
  Staging& operator=(Staging&& other) noexcept;
  ~Staging() { reset(); }
  void reset();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] stm_memory_t memory() const { return memory_; }

 private:
  friend class StagingPool;
  StagingPool* pool_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  stm_memory_t memory_ = nullptr;
};

// Buffers with sizes of powers of two. Returned buffers are reused.
class StagingPool {
 public:
  void set_domain(stm_domain_t domain) { domain_ = domain; }
  ~StagingPool();
  // Returns 0, or an error if there is none.
  int take(std::size_t size, Staging& out);

 private:
  friend class Staging;
  struct Free {
    std::byte* data;
    stm_memory_t memory;
  };
  stm_domain_t domain_ = nullptr;
  std::multimap<std::size_t, Free> free_;
};

inline constexpr int kMaxIov = 64;

// A checked segment list as one piece of registered memory: the segment's own memory if there is
// only one, else staging.
class Iov {
 public:
  // Checks against `pz` and `privilege` (kLocalRead or kLocalWrite). Of a new one.
  Result assign(Ia& ia, const Pz& pz, std::span<const LmrTriplet> segments, unsigned privilege);

  // As a new one.
  void clear() {
    memory_ = nullptr;
    data_ = nullptr;
    length_ = 0;
    if (segments_.empty()) return;
    segments_ = {};
    staging_.reset();
  }

  // Copies the segments into staging, before sending.
  void gather() const;
  // Copies the first `length` bytes from staging into the segments, in order. False: one of their
  // LMRs has been freed.
  [[nodiscard]] bool scatter(std::size_t length) const;

  [[nodiscard]] stm_memory_t memory() const { return memory_; }
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t length() const { return length_; }

 private:
  struct Segment {
    std::byte* data;
    std::size_t length;
    std::shared_ptr<const Object> lmr;
  };
  stm_memory_t memory_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t length_ = 0;
  std::vector<Segment> segments_;  // more than one, or none
  Staging staging_;
};

}  // namespace stp::udapl
