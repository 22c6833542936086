// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/agenda.h"

#include <utility>

#include "stp/base/assert.h"

namespace stp::managed {

void Agenda::add(Entry& entry, Connection& connection, std::uint32_t channel) {
  STP_ASSERT(!knows(entry), "a connection is added once");
  entry.connection = &connection;
  entry.channel = channel;
  if (channel >= by_channel_.size()) {
    by_channel_.resize(channel + 1);
    own_.resize(channel / 64 + 1);
  }
  auto& place = by_channel_[channel];
  // The service has reused the channel's number. News that came for it was about the end of the
  // previous connection.
  if (place != nullptr) again(*place);
  place = &entry;
  own_[channel / 64] |= std::uint64_t{1} << channel % 64;
  again(entry);
}

void Agenda::remove(Entry& entry) {
  STP_ASSERT(knows(entry), "a connection that is removed was added");
  timers_.remove(entry);
  if (std::exchange(entry.in_turn, false)) std::erase(turn_, &entry);
  if (std::exchange(entry.again, false)) std::erase(again_, &entry);
  if (std::exchange(entry.parked, false)) std::erase(parked_, &entry);
  entry.connection = nullptr;
  forget_channel(entry);
}

// Another connection may already have the channel's number.
void Agenda::forget_channel(const Entry& entry) {
  STP_ASSERT(entry.channel < by_channel_.size(), "a channel that was added has its place");
  auto& place = by_channel_[entry.channel];
  if (place != &entry) return;
  place = nullptr;
  own_[entry.channel / 64] &= ~(std::uint64_t{1} << entry.channel % 64);
}

void Agenda::disown(Entry& entry, service::Doorbells& news) {
  forget_channel(entry);
  news.ring(entry.channel);
}

void Agenda::gather(service::Doorbells& news, Time now) {
  news.collect(own_, [this](std::uint32_t channel) {
    STP_ASSERT(channel < by_channel_.size() && by_channel_[channel] != nullptr,
               "news are taken for a connection that is there");
    visit(*by_channel_[channel]);
  });
  while (timers_.next() <= now) {
    auto& entry = static_cast<Entry&>(*timers_.first());
    timers_.remove(entry);
    if (entry.due > now) {
      timers_.set(entry, entry.due);
    } else {
      entry.due = kNever;
      visit(entry);
    }
  }
  for (auto* const entry : again_) {
    entry->again = false;
    visit(*entry);
  }
  again_.clear();
}

void Agenda::visit(Entry& entry) {
  STP_ASSERT(knows(entry), "a connection that is visited was added");
  if (std::exchange(entry.in_turn, true)) return;
  turn_.push_back(&entry);
}

void Agenda::end_turn() {
  for (auto* const entry : turn_) entry->in_turn = false;
  turn_.clear();
}

void Agenda::again(Entry& entry) {
  if (!std::exchange(entry.again, true)) again_.push_back(&entry);
}

void Agenda::park(Entry& entry) {
  if (!std::exchange(entry.parked, true)) parked_.push_back(&entry);
}

void Agenda::call_parked() {
  for (auto* const entry : parked_) {
    entry->parked = false;
    again(*entry);
  }
  parked_.clear();
}

}  // namespace stp::managed
