// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/dpdk/device.h"

#include <algorithm>
#include <array>
#include <utility>

#include "stp/base/assert.h"
#include "stp/wire/expected_data.h"

namespace stp::port {
namespace {

// Frames are built in one mbuf, or in two: a head, and user memory.
constexpr std::size_t kSegments = 4;

bool put(memif::Sender& sender, const rte_mbuf* part) {
  if (part->next == nullptr)
    return sender.put(Bytes(rte_pktmbuf_mtod(part, const std::byte*), part->data_len));
  std::array<Bytes, kSegments> parts;
  std::size_t used = 0;
  for (; part != nullptr && used < kSegments; part = part->next)
    parts[used++] = {rte_pktmbuf_mtod(part, const std::byte*), part->data_len};
  STP_ASSERT(part == nullptr, "a frame has few segments");
  return sender.put(std::span(parts).first(used));
}

// Whether a frame may stay in the ring behind this head: it is a DATA whose other bytes are only
// copied to the memory that the head names. Nothing is decided by them, so the peer gains nothing
// by changing them.
bool stays(std::span<const std::byte, memif::Receiver::kHead> head) {
  return wire::is_plain_data(head.data());
}
static_assert(memif::Receiver::kHead == wire::kEthernetSize + wire::kHeaderSize);

std::uint16_t port_of(const rte_mbuf* mbuf) {
  return Shards::port_of({rte_pktmbuf_mtod(mbuf, const std::byte*), mbuf->data_len});
}

}  // namespace

std::unique_ptr<MemifLink> MemifLink::open(const memif::Settings& settings, std::string& error) {
  auto memif = memif::Memif::open(settings, error);
  if (!memif) return nullptr;
  return std::unique_ptr<MemifLink>(new MemifLink(std::move(memif), settings.shards));
}

MemifLink::MemifLink(std::unique_ptr<memif::Memif> memif, unsigned shards)
    : memif_(std::move(memif)), parts_(shards) {
  for (unsigned i = 0; i < shards; ++i) {
    parts_[i].of = {shards, i};
    parts_[i].next = i;
  }
}

std::uint16_t MemifLink::send(unsigned shard, rte_mbuf** mbufs, std::uint16_t count) {
  if (!memif_->connected()) return 0;
  auto& senders = memif_->senders();
  const QueuesToSend rings = rings_of(shard);
  if (rings.count == 0) return 0;
  std::uint16_t sent = 0;
  while (sent < count) {
    const unsigned ring = rings.count == 1 ? rings.first : rings.at(port_of(mbufs[sent]));
    if (!put(senders[ring], mbufs[sent])) break;
    ++sent;
  }
  if (sent == 0) return 0;
  for (unsigned ring = 0; ring < rings.count; ++ring) senders[rings.first + ring].publish();
  memif_->waking().wake_peer();
  parts_[shard].counters.sent += sent;
  return sent;
}

// Each call begins with another ring, so that a busy one does not keep the others waiting. However
// many rings there are, it looks at `count` frames at most.
std::uint16_t MemifLink::receive(unsigned shard, rte_mbuf** mbufs, Bytes* rests,
                                 std::uint16_t count) {
  if (!memif_->connected()) return 0;
  Part& part = parts_[shard];
  auto& receivers = memif_->receivers();
  unsigned received = 0, left = count;
  for (auto ring = shard; ring < receivers.size() && left > 0; ring += part.of.count) {
    if (part.next >= receivers.size()) part.next = shard;
    const unsigned most = std::min(left, receivers[part.next].waiting());
    if (most > 0)
      received += take(part, receivers[part.next], mbufs + received,
                       rests == nullptr ? nullptr : rests + received, most);
    left -= most;
    part.next += part.of.count;
  }
  part.counters.received += received;
  if (received == 0 && left < count) release(shard);  // all were too long
  return static_cast<std::uint16_t>(received);
}

void MemifLink::release(unsigned shard) {
  auto& receivers = memif_->receivers();
  for (auto ring = shard; ring < receivers.size(); ring += parts_[shard].of.count)
    receivers[ring].release();
}

// Takes at most `count` of the filled places.
unsigned MemifLink::take(Part& part, memif::Receiver& receiver, rte_mbuf** mbufs, Bytes* rests,
                         unsigned count) {
  if (count > 1) receiver.fetch_ahead(count);
  unsigned received = 0;
  for (unsigned taken = 0; taken < count && receiver.waiting() != 0; ++taken) {
    rte_mbuf* const mbuf = mbufs[received];
    std::size_t length = 0;
    // All of the mbuf, whatever it held before.
    const std::span room(rte_pktmbuf_mtod(mbuf, std::byte*),
                         static_cast<std::size_t>(mbuf->buf_len - mbuf->data_off));
    const auto took = rests == nullptr ? receiver.take(room, length)
                                       : receiver.take(room, length, stays, rests[received]);
    if (took == memif::Receiver::Took::kNothing) break;
    if (took == memif::Receiver::Took::kTooLong) {
      ++part.counters.too_long;
      continue;
    }
    mbuf->data_len = static_cast<std::uint16_t>(length);
    mbuf->pkt_len = static_cast<std::uint32_t>(length);
    ++received;
  }
  return received;
}

}  // namespace stp::port
