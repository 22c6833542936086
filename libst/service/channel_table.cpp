// SPDX-License-Identifier: BSD-3-Clause
#include "libst/service/channel_table.h"

#include <utility>

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

}  // namespace stp::service
