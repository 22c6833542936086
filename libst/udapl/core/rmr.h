// SPDX-License-Identifier: BSD-3-Clause
// A Remote Memory Region: a part of an LMR that the peer of one EP may access, until it is bound
// to something else or freed.
#pragma once

#include "libst/udapl/core/ep.h"

namespace stp::udapl {

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
