// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/udp_troubles.h"

#include <algorithm>

namespace stp::port {
namespace {

void append_trouble(std::string& to, const std::string& text) {
  to += (to.empty() || text.empty() ? "" : "; ") + text;
}

}  // namespace

void UdpTroubles::tell(About what, std::string text, Time now) {
  const std::lock_guard lock(mutex_);
  own_[static_cast<std::size_t>(what)] = {std::move(text), now};
}

void UdpTroubles::tell(About what, const InternetAddress& peer, std::string text, Time now) {
  const std::lock_guard lock(mutex_);
  const auto same = [&](const PeerFault& each) { return each.peer == peer && each.about == what; };
  const auto known = std::ranges::find_if(peers_, same);
  if (known != peers_.end())
    peers_.erase(known);
  else if (peers_.size() == kMostPeers)
    peers_.erase(peers_.begin());
  peers_.push_back({{std::move(text), now}, peer, what});
}

std::string UdpTroubles::own_text(Time now) const {
  std::string text;
  for (const Fault& fault : own_)
    if (fault.is_told(now)) append_trouble(text, fault.text);
  return text;
}

std::string UdpTroubles::text(Time now) const {
  const std::lock_guard lock(mutex_);
  std::string text = own_text(now);
  std::size_t told = 0, untold = 0;
  for (auto at = peers_.rbegin(); at != peers_.rend(); ++at) {
    const PeerFault& fault = *at;
    if (!fault.is_told(now)) break;
    if (told == kShown) {
      ++untold;
    } else {
      ++told;
      append_trouble(text, fault.text);
    }
  }
  if (untold != 0) append_trouble(text, "and " + std::to_string(untold) + " more of such reports");
  return text;
}

std::string UdpTroubles::text_of(const InternetAddress& peer, Time now) const {
  const std::lock_guard lock(mutex_);
  std::string text = own_text(now);
  for (const PeerFault& fault : peers_)
    if (fault.peer == peer && fault.is_told(now)) append_trouble(text, fault.text);
  return text;
}

bool UdpTroubles::are_about_length(Time now) const {
  const std::lock_guard lock(mutex_);
  return own_[static_cast<std::size_t>(About::kLength)].is_told(now) ||
         std::ranges::any_of(peers_, [&](const PeerFault& fault) {
           return fault.about == About::kLength && fault.is_told(now);
         });
}

}  // namespace stp::port
