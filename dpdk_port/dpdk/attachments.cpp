// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/attachments.h"

#include <utility>

#include "stp/base/assert.h"

namespace stp::port {

bool Attachments::open(const std::string& name) {
  pool_ = make_mbuf_pool(name, kCapacity, 0, PoolUse::kOneThread);
  if (!pool_) return false;
  STP_ASSERT(free_count_ == 0 && released_count_ == 0, "attachments are opened once");
  for (Slot& slot : slots_) {
    slot.owner = this;
    slot.shared.free_cb = on_release;
    slot.shared.fcb_opaque = &slot;
    free_[free_count_++] = &slot;
  }
  return true;
}

bool Attachments::attach(rte_mbuf* head, Bytes memory, const TxToken& token) {
  STP_ASSERT(head->next == nullptr && head->nb_segs == 1, "memory is attached to a bare head");
  // A slot becomes free before its token is returned, so both lists need room.
  if (free_count_ <= released_count_ || memory.size() > kMaxLength) return false;
  rte_mbuf* const tail = rte_pktmbuf_alloc(pool_.get());
  if (tail == nullptr) return false;
  Slot* const slot = free_[--free_count_];
  slot->token = token;
  rte_mbuf_ext_refcnt_set(&slot->shared, 1);
  // The driver only reads it, by its virtual address: our devices use no other.
  auto* const address = const_cast<std::byte*>(memory.data());
  const auto length = static_cast<std::uint16_t>(memory.size());
  rte_pktmbuf_attach_extbuf(tail, address, reinterpret_cast<rte_iova_t>(address), length,
                            &slot->shared);
  tail->data_off = 0;
  tail->data_len = length;
  tail->pkt_len = length;
  head->next = tail;
  head->nb_segs = 2;
  head->pkt_len += length;
  return true;
}

std::span<const TxToken> Attachments::take_released() {
  return std::span(released_).first(std::exchange(released_count_, 0));
}

void Attachments::on_release(void*, void* opaque) {
  auto* const slot = static_cast<Slot*>(opaque);
  Attachments& owner = *slot->owner;
  STP_ASSERT(owner.free_count_ < kCapacity, "a slot that comes free was in use");
  STP_ASSERT(owner.released_count_ < kCapacity, "there is room for each token that comes back");
  owner.free_[owner.free_count_++] = slot;
  owner.released_[owner.released_count_++] = slot->token;
}

}  // namespace stp::port
