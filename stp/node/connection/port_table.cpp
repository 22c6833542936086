// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/port_table.h"

#include <algorithm>
#include <utility>

#include "stp/base/assert.h"

namespace stp {
namespace {

constexpr std::size_t kFirstPlaces = 256, kMostPlaces = std::size_t{wire::kMaxPort} + 1;

}  // namespace

void PortTable::fetch_ahead(VcId id) const {
  if (const auto* const vc = at(static_cast<std::uint16_t>(id & wire::kMaxPort)); vc != nullptr)
    vc->fetch_ahead();
}

PortTable::PortTable(PortShare share)
    : share_(share),
      // 0 names none.
      most_(wire::kMaxPort / share.count + (share.index <= wire::kMaxPort % share.count ? 1 : 0) -
            (share.index == 0 ? 1 : 0)),
      places_(kFirstPlaces) {
  used_.insert(0);
  for (std::uint32_t port = 0; port <= wire::kMaxPort; ++port) {
    const auto number = static_cast<std::uint16_t>(port);
    if (port == 0 || !share_.has(number)) barred_.insert(number);
  }
}

Vc* PortTable::after(std::uint16_t port) const {
  const auto next = used_.next(std::uint32_t{port} + 1);
  return next ? places_[*next].get() : nullptr;
}

void PortTable::make_places(std::size_t least) {
  least = std::min(least, kMostPlaces);
  if (places_.size() < least) places_.resize(least);
}

void PortTable::grow() {
  if (count_ * 2 * share_.count >= places_.size())
    make_places(std::min(places_.size() * 2, kMostPlaces));
}

bool PortTable::is_free(std::uint16_t port) {
  if (!has(port)) return false;
  if (port >= places_.size()) make_places(kMostPlaces);  // happens once per Node
  return places_[port] == nullptr;
}

// 0: there is none.
std::uint32_t PortTable::next_free(std::uint32_t from) const {
  auto port = barred_.next_missing(from);
  if (!port || *port >= places_.size()) port = barred_.next_missing(1);
  return port && *port < places_.size() ? *port : 0;
}

Vc& PortTable::add(std::unique_ptr<Vc> vc) {
  const auto port = vc->local_port;
  STP_ASSERT(port != 0 && at(port) == nullptr, "a connection that is added has a Port of its own");
  STP_ASSERT(has(port), "a Port is one of those that the table has to give");
  vc->id = next_serial_++ << 16 | port;
  ++count_;
  used_.insert(port);
  barred_.insert(port);
  places_[port] = std::move(vc);
  return *places_[port];
}

std::unique_ptr<Vc> PortTable::take(Vc& vc) {
  STP_ASSERT(at(vc.local_port) == &vc, "a connection that is taken is in the table");
  --count_;
  used_.erase(vc.local_port);
  barred_.erase(vc.local_port);
  return std::move(places_[vc.local_port]);
}

void PortTable::keep(std::unique_ptr<Vc> vc) {
  STP_ASSERT(vc->attached > 0, "who is kept is still read from");
  const auto id = vc->id;
  kept_.emplace(id, std::move(vc));
}

std::unique_ptr<Vc> PortTable::left_behind(VcId id, std::uint32_t frames) {
  const auto found = kept_.find(id);
  if (found == kept_.end() || found->second->attached < frames) return nullptr;
  if ((found->second->attached -= frames) > 0) return nullptr;
  return std::move(kept_.extract(found).mapped());
}

}  // namespace stp
