// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/eager.h"

#include "stp/wire/big_endian.h"

namespace stp::managed {

// protocol: 9.31
void encode(const EagerHead& head, std::byte* slot) {
  wire::store32(slot, head.message);
  wire::store32(slot + 4, head.length);
  wire::store32(slot + 8, head.tag);
  wire::store32(slot + 12, head.taken);
}

EagerHead decode_eager(const std::byte* slot) {
  return {wire::load32(slot), wire::load32(slot + 4), wire::load32(slot + 8),
          wire::load32(slot + 12)};
}

// protocol: 9.31
bool EagerIn::arrived(std::uint64_t offset, std::uint64_t length, const Staging& staging,
                      EagerHead& out) {
  const auto slot = static_cast<std::uint32_t>(offset / kEagerSlot);
  if (offset % kEagerSlot != 0 || slot >= kEagerSlots) return false;
  out = decode_eager(staging.eager_in(slot));
  const auto bit = 1U << slot;
  // The slot may hold bytes of an older message behind those that arrived.
  if (length < kEagerHead || out.length > length - kEagerHead) return false;
  if (out.length > kEagerMost || (waiting_ & bit) != 0 || find(out.message) != nullptr)
    return false;
  slots_[slot] = {slot, out};
  waiting_ |= bit;
  return true;
}

}  // namespace stp::managed
