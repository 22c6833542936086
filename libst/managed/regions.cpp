// SPDX-License-Identifier: BSD-3-Clause
// Regions by key: the peer's regions that this side uses, and this side's that the peer uses.
#include <algorithm>

#include "libst/client/wait.h"
#include "libst/managed/access.h"
#include "libst/managed/connection.h"

namespace stp::managed {
namespace {

// The peer's regions that are kept open at most.
constexpr std::size_t kMaxRemotes = 64;
// Put Blocks in flight at most. Fewer for a large region, because tracking a Block there costs more
// memory.
constexpr std::uint32_t kWindow = 128, kLargeWindow = 16;
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;

}  // namespace

// Returns nullptr if too many regions are in use.
Connection::Remote* Connection::remote(std::uint32_t key) {
  if (const auto known = remotes_.find(key); known != remotes_.end()) return &known->second;
  make_room_for_remote();
  if (remotes_.size() >= kMaxRemotes) return nullptr;
  auto& remote = remotes_[key];
  if (key <= kEagerKey) {
    remote.state.must(Remote::Event::kRefused);
    remote.status = -EACCES;
    return &remote;
  }
  const auto error = sequencer_->request_region(kKeyMark | key, 1, kWindow, key);
  if (error != 0) {
    remote.state.must(Remote::Event::kRefused);
    remote.status = error;
  }
  return &remote;
}

// Closes a region that is not in use. If it is needed later, it is requested again.
void Connection::make_room_for_remote() {
  if (remotes_.size() < kMaxRemotes) return;
  const auto idle = std::find_if(remotes_.begin(), remotes_.end(), [](const auto& r) {
    return r.second.state != Remote::State::kAsked && r.second.operations == 0;
  });
  if (idle == remotes_.end()) return;
  const auto region = idle->second.region;
  const bool open = idle->second.state == Remote::State::kOpen;
  remotes_.erase(idle);
  if (open) sequencer_->end_region(region);
}

// The peer has opened the region requested by key, or refused to.
void Connection::on_region(const Completion& c) {
  const auto key = static_cast<std::uint32_t>(c.context);
  if (key == kEagerKey) {
    if (c.status != 0) return;  // without an eager ring all messages go as writes
    eager_ring_ = c.region;
    return eager_out_.open(c.region.base);
  }
  const auto found = remotes_.find(key);
  if (found == remotes_.end()) return;
  auto& remote = found->second;
  remote.region = c.region;
  remote.state.must(c.status == 0 ? Remote::Event::kOpened : Remote::Event::kRefused);
  remote.status = c.status == -ECONNREFUSED ? -EACCES : c.status;
}

void Connection::on_revoked(const RemoteRegion& region) {
  if (region.r_id == eager_ring_.r_id) eager_out_.close();
  for (auto& [key, remote] : remotes_) {
    if (remote.state != Remote::State::kOpen || remote.region.r_id != region.r_id) continue;
    remote.state.must(Remote::Event::kRevoked);
    remote.status = -EACCES;
  }
}

void Connection::open_eager() {
  sequencer_->request_region(kKeyMark | kEagerKey, kEagerSlots * kEagerSlot, kEagerSlots,
                             kEagerKey);
}

// The peer requests a region by its key.
void Connection::on_region_request(const Completion& c) {
  if (c.tag == kEagerKey && eager_served_ == 0) {
    const auto ring =
        staging_.memory->landing(endpoint_, staging_.eager_in(0), kEagerSlots * kEagerSlot);
    // protocol: 9.41
    const RegionTerms terms{.base = kEagerSpan};
    if (sequencer_->serve_region(c.request, ring, kEagerSlots, terms) == 0)
      eager_served_ = c.request;
    return;
  }
  const auto access = domain_->find_access(c.tag);
  Landing landing;
  const bool allowed = access != nullptr && access->permits(*this, outlets_.group);
  if (!allowed || access->landing(endpoint_, landing) != 0 || landing.length < c.length) {
    sequencer_->refuse(c.request);
    return;
  }
  const auto window = landing.length > kLarge ? kLargeWindow : kWindow;
  const RegionTerms terms{access->terms().address, access->terms().access};
  if (sequencer_->serve_region(c.request, landing, window, terms) == 0)
    served_[c.request] = access->key();
}

void Connection::revoke(const Access& access) {
  if (!sequencer_ || over()) return;
  if (std::none_of(served_.begin(), served_.end(),
                   [&](const auto& served) { return served.second == access.key(); }))
    return;
  sequencer_->expire(domain_->time());
  for (auto at = served_.begin(); at != served_.end();) {
    const auto [number, key] = *at;
    if (key != access.key()) {
      ++at;
      continue;
    }
    at = served_.erase(at);
    sequencer_->close_region(number);
  }
  send_soon();
  domain_->visit(*this);
}

}  // namespace stp::managed
