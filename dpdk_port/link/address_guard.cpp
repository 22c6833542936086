// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/link/address_guard.h"

#include <utility>

namespace stp::port {

void AddressGuard::begin(std::optional<Ipv4> address, Time now) {
  if (address != address_) other_.reset();
  address_ = address;
  probes_ = owns_ && address ? kProbes : 0;
  announcements_ = owns_ && address ? kAnnouncements : 0;
  unanswered_ = 0;
  next_ = probes_ != 0 || other_ ? now + kProbeWait : kNever;
}

AddressGuard::Speech AddressGuard::due(Time now) {
  if (std::exchange(defend_, false)) {
    defended_ = now;
    return Speech::kAnnouncement;
  }
  if (now < next_) return Speech::kNone;
  if (!other_) return next_of_beginning(now);
  if (unanswered_ >= kUnanswered) {
    other_.reset();
    next_ = kNever;
    return Speech::kNone;
  }
  ++unanswered_;
  next_ = now + kDefendInterval;
  return Speech::kProbe;
}

AddressGuard::Speech AddressGuard::next_of_beginning(Time now) {
  if (probes_ != 0) {
    next_ = now + (--probes_ != 0 ? kProbeInterval : kAnnounceWait);
    return Speech::kProbe;
  }
  if (announcements_ == 0) {
    next_ = kNever;
    return Speech::kNone;
  }
  next_ = --announcements_ != 0 ? now + kAnnounceInterval : kNever;
  return Speech::kAnnouncement;
}

// A station that probes for the address while we probe wants it as well.
void AddressGuard::hear(const MacAddr& sender, Ipv4 sender_ip, Ipv4 target_ip, Time now) {
  if (!address_) return;
  const bool uses_it = sender_ip == *address_;
  const bool wants_it = probes_ != 0 && sender_ip.value == 0 && target_ip == *address_;
  if (!uses_it && !wants_it) return;
  unanswered_ = 0;
  if (owns_ && uses_it && (defended_ == kNever || now - defended_ >= kDefendInterval)) {
    defend_ = true;
  }
  if (other_) return;
  other_ = sender;
  probes_ = announcements_ = 0;
  next_ = now + kDefendInterval;
}

}  // namespace stp::port
