// SPDX-License-Identifier: BSD-3-Clause
// Memory of DAT: zones, and what a program and its peers may access.
#pragma once

#include <stp/managed.h>

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
struct LmrTriplet {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t context = 0;
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

}  // namespace stp::udapl
