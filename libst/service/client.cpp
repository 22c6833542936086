// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/client.h"

#include <utility>

#include "libst/os/futex.h"
#include "stp/base/assert.h"

namespace stp::service {

Bell ChannelTable::add(std::unique_ptr<Channel> channel) {
  STP_ASSERT(channel != nullptr && channel->vc == kNoneId, "a new channel has no connection");
  if (free_.empty()) {
    // Reserved first, so that remove() need not allocate to return the number.
    free_.reserve(channels_.size() + 1);
    channels_.emplace_back();
    free_.push_back(numbers() - 1);
  }
  const auto number = free_.back();
  free_.pop_back();
  STP_ASSERT(number < channels_.size() && channels_[number] == nullptr,
             "a free bell number is of a place without a channel");
  channels_[number] = std::move(channel);
  return number;
}

std::unique_ptr<Channel> ChannelTable::remove(Bell number) {
  STP_ASSERT(at(number) != nullptr, "a channel that is removed is in the table");
  auto channel = std::move(channels_[number]);
  STP_ASSERT(!in_use_.contains(channel->vc), "a channel that is removed has no connection");
  free_.push_back(number);
  return channel;
}

void ChannelTable::put_to_use(VcId vc, Bell number) {
  auto* const channel = at(number);
  STP_ASSERT(
      channel != nullptr && channel->vc == kNoneId && !channel->closing && !in_use_.contains(vc),
      "a channel is put to use once");
  in_use_.emplace(vc, number);
  channel->vc = vc;
}

void ChannelTable::end_use(VcId vc) {
  in_use_.erase(vc);
}

namespace {

template <typename Sets>
void take_out(Sets& sets, typename Sets::key_type of, std::uint16_t mx) {
  const auto at = sets.find(of);
  if (at == sets.end()) return;
  at->second.erase(mx);
  if (at->second.empty()) sets.erase(at);
}

template <typename Sets>
std::size_t count(const Sets& sets, typename Sets::key_type of) {
  const auto at = sets.find(of);
  return at == sets.end() ? 0 : at->second.size();
}

}  // namespace

void MxRecords::add(std::uint16_t mx, Record record) {
  remove(mx);
  const auto region = record.region;
  const auto vc = record.vc;
  STP_ASSERT(region != kNoneId, "an Mx is of a region");
  records_.emplace(mx, std::move(record));
  try {
    of_region_[region].insert(mx);
    if (vc != kNoneId) of_connection_[vc].insert(mx);
  } catch (...) {
    remove(mx);
    throw;
  }
}

void MxRecords::remove(std::uint16_t mx) {
  const auto at = records_.find(mx);
  if (at == records_.end()) return;
  take_out(of_region_, at->second.region, mx);
  take_out(of_connection_, at->second.vc, mx);
  records_.erase(at);
}

bool MxRecords::remove_one_of_region(RegionId region) {
  const auto at = of_region_.find(region);
  if (at == of_region_.end()) return false;
  STP_ASSERT(!at->second.empty(), "a region without an Mx has no set");
  remove(*at->second.begin());
  return true;
}

bool MxRecords::remove_one_of_connection(VcId vc) {
  const auto at = of_connection_.find(vc);
  if (at == of_connection_.end()) return false;
  STP_ASSERT(!at->second.empty(), "a connection without an Mx has no set");
  remove(*at->second.begin());
  return true;
}

std::size_t MxRecords::count_of_region(RegionId region) const {
  return count(of_region_, region);
}

std::size_t MxRecords::count_of_connection(VcId vc) const {
  return count(of_connection_, vc);
}

void Client::wake() const {
  // Sequentially consistent on both sides. The client adds itself to `sleepers`, then reads the
  // word: so it sees the new value, or this side sees a sleeper.
  page().events.fetch_add(1);
  if (page().sleepers.load() != 0) futex_wake(page().events, 1);
}

void Client::wake(const Channel& channel) const {
  auto& control = channel.control();
  if (control.gathered.load(std::memory_order_relaxed) != 0) return wake();
  futex_wake(control.wake, 1);
}

void Client::tell_news(Bell number) const {
  const auto* const channel = channels.at(number);
  if (channel != nullptr && channel->control().gathered.load(std::memory_order_relaxed) != 0)
    page().news.ring(number);
}

}  // namespace stp::service
