// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/memif_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "stp/base/assert.h"

namespace stp::port {
namespace {

// Frames are built in one mbuf, or in two: a head, and user memory.
constexpr std::size_t kSegments = 4;

}  // namespace

std::unique_ptr<MemifLink> MemifLink::open(const memif::Settings& settings, std::string& error) {
  auto memif = memif::Memif::open(settings, error);
  if (!memif) return nullptr;
  return std::unique_ptr<MemifLink>(new MemifLink(std::move(memif)));
}

std::uint16_t MemifLink::send(rte_mbuf** mbufs, std::uint16_t count) {
  if (!memif_->connected()) return 0;
  memif::Sender& sender = memif_->sender();
  std::uint16_t sent = 0;
  for (; sent < count; ++sent) {
    std::array<Bytes, kSegments> parts;
    std::size_t used = 0;
    const rte_mbuf* part = mbufs[sent];
    for (; part != nullptr && used < kSegments; part = part->next)
      parts[used++] = {rte_pktmbuf_mtod(part, const std::byte*), part->data_len};
    STP_ASSERT(part == nullptr, "a frame has few segments");
    if (!sender.put(std::span(parts).first(used))) break;
  }
  if (sent == 0) return 0;
  sender.publish();
  rte_pktmbuf_free_bulk(mbufs, sent);
  counters_.sent += sent;
  return sent;
}

std::uint16_t MemifLink::receive(rte_mempool* pool, rte_mbuf** mbufs, std::uint16_t count) {
  if (!memif_->connected()) return 0;
  memif::Receiver& receiver = memif_->receiver();
  count = static_cast<std::uint16_t>(std::min<unsigned>(count, receiver.waiting()));
  if (count == 0) return 0;
  if (rte_pktmbuf_alloc_bulk(pool, mbufs, count) != 0) {
    ++counters_.no_buffer;
    return 0;
  }
  std::uint16_t received = 0;
  for (unsigned taken = 0; taken < count && receiver.waiting() != 0; ++taken) {
    rte_mbuf* const mbuf = mbufs[received];
    std::size_t length = 0;
    const auto took =
        receiver.take({rte_pktmbuf_mtod(mbuf, std::byte*), rte_pktmbuf_tailroom(mbuf)}, length);
    if (took == memif::Receiver::Took::kNothing) break;
    if (took == memif::Receiver::Took::kTooLong) {
      ++counters_.too_long;
      continue;
    }
    mbuf->data_len = static_cast<std::uint16_t>(length);
    mbuf->pkt_len = static_cast<std::uint32_t>(length);
    ++received;
  }
  receiver.release();
  rte_pktmbuf_free_bulk(mbufs + received, count - received);
  counters_.received += received;
  return received;
}

}  // namespace stp::port
