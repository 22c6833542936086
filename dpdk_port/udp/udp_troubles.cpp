// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/udp/udp_troubles.h"

#include <algorithm>

namespace stp::port {
namespace {

void append_trouble(std::string& to, const std::string& text) {
  to += (to.empty() || text.empty() ? "" : "; ") + text;
}

}  // namespace

void UdpTroubles::tell(About what, std::string text, Time now, std::size_t bytes) {
  const Lock lock(mutex_);
  own_[static_cast<std::size_t>(what)] = {std::move(text), now, bytes};
  any_ = true;
}

void UdpTroubles::tell(About what, const InternetAddress& peer, std::string text, Time now,
                       std::size_t bytes, Time reported_in) {
  const Lock lock(mutex_);
  any_ = true;
  const auto same = [&](const PeerFault& each) { return each.peer == peer && each.about == what; };
  const auto known = std::ranges::find_if(peers_, same);
  const bool is_sent_to = known != peers_.end() && known->is_sent_to;
  if (known != peers_.end())
    peers_.erase(known);
  else if (peers_.size() == kMostPeers)
    peers_.erase(peers_.begin());
  peers_.push_back(
      {{std::move(text), now, bytes}, peer, what, reported_in, kNever, kNever, is_sent_to});
}

// Datagrams that are too long for the interface are refused at once.
void UdpTroubles::note_sent(const InternetAddress& peer, std::size_t bytes, Time now) {
  const Lock lock(mutex_);
  Fault& length = own_[static_cast<std::size_t>(About::kLength)];
  if (length.seen != kNever && bytes >= length.bytes) length.seen = kNever;
  for (PeerFault& fault : peers_) {
    if (fault.peer != peer) continue;
    fault.is_sent_to = true;
    if (fault.sent == kNever && now >= fault.seen) fault.sent = now;
    if (bytes >= fault.bytes && fault.tried == kNever && fault.is_quiet(now)) fault.tried = now;
  }
  forget_old(now);
}

// Just after a fault it means nothing that the peer is heard: the two directions are not alike. But
// an answer shows that what was sent after the fault has arrived.
void UdpTroubles::note_heard(const InternetAddress& peer, Time now, bool answers) {
  const Lock lock(mutex_);
  std::erase_if(peers_, [&](const PeerFault& fault) {
    const bool answered = answers && fault.sent != kNever && now > fault.sent;
    return fault.peer == peer && fault.about == About::kOther && (answered || fault.is_quiet(now));
  });
  forget_old(now);
}

void UdpTroubles::forget_old(Time now) {
  std::erase_if(peers_, [now](const PeerFault& fault) { return !fault.is_told(now); });
  any_ = !peers_.empty() ||
         std::ranges::any_of(own_, [now](const Fault& fault) { return fault.is_told(now); });
}

std::string UdpTroubles::own_text(Time now) const {
  std::string text;
  for (const Fault& fault : own_)
    if (fault.is_told(now)) append_trouble(text, fault.text);
  return text;
}

std::string UdpTroubles::text(Time now) const {
  const Lock lock(mutex_);
  std::string text = own_text(now);
  std::size_t told = 0, untold = 0;
  for (auto at = peers_.rbegin(); at != peers_.rend(); ++at) {
    const PeerFault& fault = *at;
    if (!fault.is_told(now)) continue;
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
  const Lock lock(mutex_);
  std::string text = own_text(now);
  for (const PeerFault& fault : peers_)
    if (fault.peer == peer && fault.is_told(now)) append_trouble(text, fault.text);
  return text;
}

bool UdpTroubles::is_gone(const InternetAddress& peer, Time now) const {
  const Lock lock(mutex_);
  return std::ranges::any_of(peers_, [&](const PeerFault& fault) {
    return fault.peer == peer && fault.about == About::kOther && fault.is_told(now);
  });
}

bool UdpTroubles::are_about_length(Time now) const {
  const Lock lock(mutex_);
  return own_[static_cast<std::size_t>(About::kLength)].is_told(now) ||
         std::ranges::any_of(peers_, [&](const PeerFault& fault) {
           return fault.about == About::kLength && fault.is_sent_to && fault.is_told(now);
         });
}

}  // namespace stp::port
