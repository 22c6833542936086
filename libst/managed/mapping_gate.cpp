// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/mapping_gate.h"

namespace stp::managed {
namespace {

// In static storage: on no page that a program could register.
constinit std::mutex gate;  // comes before any domain's
constinit MappingGateMember* first = nullptr;

}  // namespace

MappingGateMember::MappingGateMember(std::mutex& domain) : domain_(domain) {
  std::lock_guard const guard(gate);
  next_ = first;
  first = this;
}

MappingGateMember::~MappingGateMember() {
  std::lock_guard const guard(gate);
  auto** place = &first;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
}

MappingGateShut::MappingGateShut() {
  gate.lock();
  for (auto* member = first; member != nullptr; member = member->next_) member->domain_.lock();
}

MappingGateShut::~MappingGateShut() {
  for (auto* member = first; member != nullptr; member = member->next_) member->domain_.unlock();
  gate.unlock();
}

}  // namespace stp::managed
