// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/regions.h"

#include <algorithm>
#include <cerrno>

#include "libst/managed/session.h"
#include "stp/base/assert.h"

namespace stp::managed {
namespace {

// Put Blocks in flight at most. Fewer for a large region, because tracking a Block there costs more
// memory.
constexpr std::uint32_t kWindow = 128, kLargeWindow = 16;
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;

}  // namespace

PeerRegion* PeerRegions::look_up(Sequencer& sequencer, std::uint32_t key) {
  if (const auto known = regions_.find(key); known != regions_.end()) {
    recent_ = {key, &known->second};
    return recent_.second;
  }
  make_room(sequencer);
  if (regions_.size() >= kMost) return nullptr;
  auto& region = regions_[key];
  // The ring's key, and lower ones, are none of the program's regions.
  const auto error = key <= kEagerKey
                         ? -EACCES
                         : sequencer.request_region(context::kKeyMark | key, 1, kWindow, key);
  if (error != 0) {
    region.state.must(PeerRegion::Event::kRefused);
    region.status = error;
  }
  return &region;
}

// Closes a region that no operation uses. If it is needed later, it is requested again.
void PeerRegions::make_room(Sequencer& sequencer) {
  if (regions_.size() < kMost) return;
  const auto idle = std::find_if(regions_.begin(), regions_.end(), [](const auto& entry) {
    return entry.second.state != PeerRegion::State::kAsked && entry.second.operations == 0;
  });
  if (idle == regions_.end()) return;
  const auto region = idle->second.region;
  const bool open = idle->second.state == PeerRegion::State::kOpen;
  recent_ = {};
  regions_.erase(idle);
  if (open) sequencer.end_region(region);
}

void PeerRegions::on_answer(const Completion& c) {
  const auto found = regions_.find(static_cast<std::uint32_t>(c.context));
  if (found == regions_.end()) return;
  auto& region = found->second;
  region.region = c.region;
  region.state.must(c.status == 0 ? PeerRegion::Event::kOpened : PeerRegion::Event::kRefused);
  region.status = c.status == -ECONNREFUSED ? -EACCES : c.status;
}

void PeerRegions::on_revoked(const RemoteRegion& region) {
  for (auto& [key, known] : regions_) {
    if (known.state != PeerRegion::State::kOpen || known.region.r_id != region.r_id) continue;
    known.state.must(PeerRegion::Event::kRevoked);
    known.status = -EACCES;
  }
}

void ServedRegions::serve(Sequencer& sequencer, const Completion& request, const Landing& landing,
                          const RegionTerms& terms) {
  STP_ASSERT(landing.length >= request.length, "a region is as long as the peer needs it");
  const auto window = landing.length > kLarge ? kLargeWindow : kWindow;
  if (sequencer.serve_region(request.request, landing, window, terms) == 0)
    keys_[request.request] = request.tag;
}

bool ServedRegions::serves(std::uint32_t key) const {
  return std::ranges::any_of(keys_, [&](const auto& served) { return served.second == key; });
}

void ServedRegions::revoke(Sequencer& sequencer, std::uint32_t key) {
  for (auto at = keys_.begin(); at != keys_.end();) {
    const auto [number, served] = *at;
    if (served != key) {
      ++at;
      continue;
    }
    at = keys_.erase(at);
    sequencer.close_region(number);
  }
}

}  // namespace stp::managed
