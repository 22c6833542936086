// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/check/connection.h"

namespace stp::replay {
namespace {

constexpr TraceTime kSecondOfTrace = 1'000'000'000;
// A late duplicate of a closed connection must still find it (docs/protocol.md, rule 5.10).
constexpr TraceTime kKeptEnding = 10 * kSecondOfTrace;
constexpr TraceTime kKeptSilent = 600 * kSecondOfTrace;
constexpr std::size_t kMostConnections = 1 << 17;

bool silent_for(TraceTime since, TraceTime now, TraceTime limit) {
  TraceTime silence = 0;
  return __builtin_sub_overflow(now, since, &silence) || silence > limit;
}

}  // namespace

ConnectionTable::Pair ConnectionTable::pair_of(const EndName& a, const EndName& b) {
  return a < b ? Pair{a, b} : Pair{b, a};
}

Connection* ConnectionTable::find(const EndName& a, const EndName& b) {
  const auto at = by_pair_.find(pair_of(a, b));
  return at == by_pair_.end() ? nullptr : at->second;
}

Connection* ConnectionTable::of_end(const EndName& end) {
  const auto at = by_end_.find(end);
  return at == by_end_.end() ? nullptr : at->second;
}

Connection& ConnectionTable::add(Connection connection) {
  if (live_.size() + ending_.size() >= kMostConnections) {
    forget_oldest(ending_.empty() ? live_ : ending_);
    forgot_ = true;
  }
  connection.ending = false;
  const auto place = live_.insert(live_.end(), Place{std::move(connection), kNotYet, {}});
  place->self = place;
  const auto a = end_of(place->sides[0]), b = end_of(place->sides[1]);
  by_pair_[pair_of(a, b)] = &*place;
  by_end_[a] = by_end_[b] = &*place;
  return *place;
}

void ConnectionTable::touch(Connection& connection, TraceTime now) {
  auto& place = static_cast<Place&>(connection);
  place.touched = now;
  auto& from = list_of(place);
  place.ending = place.ending || place.sides[0].rd != kNotYet || place.sides[1].rd != kNotYet;
  auto& to = list_of(place);
  to.splice(to.end(), from, place.self);
  while (!ending_.empty() && silent_for(ending_.front().touched, now, kKeptEnding))
    forget_oldest(ending_);
  while (!live_.empty() && silent_for(live_.front().touched, now, kKeptSilent))
    forget_oldest(live_);
}

void ConnectionTable::remove(Connection& connection) {
  forget(list_of(connection), static_cast<Place&>(connection).self);
}

void ConnectionTable::forget(List& list, List::iterator place) {
  farewell_(*place);
  const auto a = end_of(place->sides[0]), b = end_of(place->sides[1]);
  if (const auto at = by_pair_.find(pair_of(a, b)); at != by_pair_.end() && at->second == &*place)
    by_pair_.erase(at);
  for (const auto& end : {a, b})
    if (const auto at = by_end_.find(end); at != by_end_.end() && at->second == &*place)
      by_end_.erase(at);
  list.erase(place);
}

void ConnectionTable::clear() {
  while (!ending_.empty()) forget_oldest(ending_);
  while (!live_.empty()) forget_oldest(live_);
}

}  // namespace stp::replay
