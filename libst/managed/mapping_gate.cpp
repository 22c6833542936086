// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/mapping_gate.h"

#include <pthread.h>

#include "libst/client/shared_pages.h"
#include "stp/base/assert.h"

namespace stp::managed {
namespace {

// In static storage, so that they are on no page that a program can register.
constinit std::mutex gate;  // locked before the mutex of any domain
constinit MappingGateMember* first = nullptr;

}  // namespace

MappingGateMember::MappingGateMember(std::mutex& domain) : domain_(domain) {
  shut_at_forks();
  std::lock_guard const guard(gate);
  next_ = first;
  first = this;
}

MappingGateMember::~MappingGateMember() {
  std::lock_guard const guard(gate);
  auto** place = &first;
  while (*place != this) {
    STP_ASSERT(*place != nullptr, "a member is in the list");
    place = &(*place)->next_;
  }
  *place = next_;
}

// pthread_atfork() runs prepare handlers in reverse order of registration. So SharedPages registers
// its handler first, and this one runs before it: the gate is shut before pages are replaced.
void MappingGateMember::shut_at_forks() {
  static const bool once = [] {
    client::SharedPages::instance();
    return ::pthread_atfork(MappingGateShut::lock, MappingGateShut::unlock,
                            MappingGateShut::unlock) == 0;
  }();
  static_cast<void>(once);
}

void MappingGateShut::lock() {
  gate.lock();
  for (auto* member = first; member != nullptr; member = member->next_) member->domain_.lock();
}

void MappingGateShut::unlock() {
  for (auto* member = first; member != nullptr; member = member->next_) member->domain_.unlock();
  gate.unlock();
}

}  // namespace stp::managed
