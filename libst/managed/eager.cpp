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

// protocol: 9.31, 9.41
bool EagerIn::arrived(std::uint64_t offset, std::uint64_t length, const Staging& staging,
                      EagerHead& out) {
  const auto slot = static_cast<std::uint32_t>(offset / kEagerSlot);
  if (offset % kEagerSlot != 0 || slot >= kEagerSlots || length < kEagerHead) return false;
  out = decode_eager(staging.eager_in(slot));
  // The slot may hold bytes of an older message behind those that arrived.
  if (out.length > length - kEagerHead) return false;
  const auto slots = eager_slots(out.length);
  if (slots > kEagerSpan || slot + slots > kEagerSlots || length > slots * kEagerSlot) return false;
  const auto bits = eager_bits(slot, static_cast<std::uint32_t>(slots));
  if ((occupied_ & bits) != 0 || find(out.message) != nullptr) return false;
  slots_[slot] = {slot, out};
  waiting_ |= 1U << slot;
  occupied_ |= bits;
  return true;
}

}  // namespace stp::managed
