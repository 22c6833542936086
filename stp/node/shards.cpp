// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/shards.h"

#include "stp/base/assert.h"
#include "stp/wire/ethernet.h"
#include "stp/wire/frame.h"
#include "stp/wire/operations.h"

namespace stp {

Shards::Shards(unsigned count) : count_(count) {
  STP_ASSERT(count >= 1 && count <= kMost, "an address has at least one Node, and few");
}

bool Shards::listen(std::uint32_t uport, unsigned shard) {
  STP_ASSERT(shard < count_, "who listens is one of the shards");
  const Lock guard(mutex_);
  const auto [at, fresh] = listeners_.try_emplace(uport, Place{shard, true});
  if (!fresh && at->second.listens) return false;
  at->second = {shard, true};
  return true;
}

void Shards::unlisten(std::uint32_t uport, unsigned shard) {
  const Lock guard(mutex_);
  const auto at = listeners_.find(uport);
  STP_ASSERT(at != listeners_.end() && at->second.listens && at->second.shard == shard,
             "who ends has listened");
  at->second.listens = false;
  gone_.push_back(uport);
  if (gone_.size() <= kRemembered) return;
  const auto oldest = listeners_.find(gone_.front());
  gone_.pop_front();
  if (oldest != listeners_.end() && !oldest->second.listens) listeners_.erase(oldest);
}

std::optional<unsigned> Shards::listener(std::uint32_t uport) const {
  const Lock guard(mutex_);
  const auto at = listeners_.find(uport);
  return at == listeners_.end() ? std::nullopt : std::optional(at->second.shard);
}

namespace {

// The Schedule Header of the frame that begins with `head`. nullptr: it contains none.
const std::byte* header_of(Bytes head) {
  wire::LinkHeader link;
  Bytes payload;
  if (wire::unwrap(head, link, payload) != DropReason::kNone) return nullptr;
  return payload.size() < wire::kHeaderSize ? nullptr : payload.data();
}

}  // namespace

unsigned Shards::owner_of(Bytes head, unsigned here) const {
  const std::byte* const header = header_of(head);
  if (header == nullptr) return here;
  const auto op = wire::load16(header + wire::at::kOpFlags) >> wire::kOpShift;
  if (op == static_cast<unsigned>(wire::Op::kRequestConnection)) {
    const auto rc = wire::decode_as<wire::RequestConnection>(wire::decode(header));
    return listener(rc.r_uport).value_or(here);
  }
  const auto port = wire::load16(header + wire::at::kDPort);
  return port == 0 ? here : owner_of(port);
}

std::uint16_t Shards::port_of(Bytes head) {
  const std::byte* const header = header_of(head);
  if (header == nullptr) return 0;
  const auto op = wire::load16(header + wire::at::kOpFlags) >> wire::kOpShift;
  const bool names_none = op == static_cast<unsigned>(wire::Op::kRequestConnection);
  return names_none ? 0 : wire::load16(header + wire::at::kDPort);
}

}  // namespace stp
