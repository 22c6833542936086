// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/registrations.h"

namespace stp::fi {

int Registrations::take(const Bytes& bytes, Shared*& out) {
  const auto place = in_use_.try_emplace(bytes).first;
  auto& found = place->second;
  if (found.users_ == 0) {
    const auto error =
        stm_memory_register(domain_, bytes.data, bytes.length, bytes.access, &found.memory_);
    if (error != 0) {
      in_use_.erase(place);
      return error;
    }
    found.of_ = this;
    found.bytes_ = bytes;
  }
  ++found.users_;
  out = &found;
  return 0;
}

void Registrations::Shared::give_back() {
  if (--users_ != 0) return;
  stm_memory_release(memory_);
  of_->in_use_.erase(Bytes(bytes_));  // the last access to this
}

}  // namespace stp::fi
