// SPDX-License-Identifier: BSD-3-Clause
// What the sockets of a link have learnt of datagrams that do not arrive: of the link itself, and
// of single peers, each of which is told apart. Anybody can forge what routers report, about any
// peer, so as many peers are remembered as fit, for some seconds, and nothing follows from it. What
// has healed is forgotten earlier. Thread-safe: the kernel may report to any socket of a link.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "dpdk_port/link/address.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::port {

class UdpTroubles {
 public:
  // How long a fault is told after it was last seen.
  static constexpr Time kTold = 10 * kSecond;
  // Faults of peers that are remembered, and how many of them are told of the link as a whole.
  static constexpr std::size_t kMostPeers = 64, kShown = 3;

  enum class About : std::size_t { kLength, kOther };  // datagrams too long for the way; the rest

  // After a fault of a peer, what is sent to it in this time may fail without being reported:
  // routers report seldom. A later datagram that is not reported for some time has got through.
  // Most faults, and lengths, are reported at once; that an address has no host, after 3 s in which
  // nobody answered for it.
  static constexpr Time kQuiet = 3 * kSecond / 2, kLengthReported = kSecond,
                        kSoonReported = kSecond, kReported = 5 * kSecond;

  // `bytes`: the shortest datagrams that have the fault; shorter ones do not.
  void tell(About what, std::string text, Time now, std::size_t bytes = 0);
  // `reported_in`: a later datagram with that fault would be reported by then.
  void tell(About what, const InternetAddress& peer, std::string text, Time now,
            std::size_t bytes = 0, Time reported_in = kReported);
  // The kernel took a datagram of so many bytes.
  void sent(const InternetAddress& peer, std::size_t bytes, Time now) {
    if (any_.load(std::memory_order_relaxed)) note_sent(peer, bytes, now);
  }
  // A datagram came from there. `answers`: to something that the peer must have got.
  void heard(const InternetAddress& peer, Time now, bool answers = false) {
    if (any_.load(std::memory_order_relaxed)) note_heard(peer, now, answers);
  }

  // Of the link, and of the peers with the newest faults. "": none was seen lately.
  [[nodiscard]] std::string text(Time now) const;
  // Of the link, and of that peer.
  [[nodiscard]] std::string text_of(const InternetAddress& peer, Time now) const;
  // Whether nothing gets to that peer, whatever its length.
  [[nodiscard]] bool is_gone(const InternetAddress& peer, Time now) const;
  // Of the link, or of a peer that something was sent to after the report about it: a report about
  // anybody else can only be forged.
  [[nodiscard]] bool are_about_length(Time now) const;

 private:
  struct Fault {
    std::string text;
    Time seen = kNever;
    std::size_t bytes = 0;
    // The clock of another shard, which has seen it, may be ahead.
    [[nodiscard]] bool is_told(Time now) const {
      return seen != kNever && (now < seen || now - seen < kTold);
    }
  };
  struct PeerFault : Fault {
    InternetAddress peer;
    About about = About::kOther;
    Time reports_in = kReported;
    Time sent = kNever;       // the first datagram after it
    Time tried = kNever;      // the first one that would have been reported
    bool is_sent_to = false;  // since the link has learnt of it
    [[nodiscard]] Time reported_in() const {
      return about == About::kLength ? kLengthReported : reports_in;
    }
    [[nodiscard]] bool is_told(Time now) const {
      return Fault::is_told(now) && (tried == kNever || now < tried + reported_in());
    }
    [[nodiscard]] bool is_quiet(Time now) const { return now > seen && now - seen >= kQuiet; }
  };
  [[nodiscard]] std::string own_text(Time now) const STP_REQUIRES(mutex_);

  void note_sent(const InternetAddress& peer, std::size_t bytes, Time now);
  void note_heard(const InternetAddress& peer, Time now, bool answers);
  void forget_old(Time now) STP_REQUIRES(mutex_);

  std::atomic<bool> any_ = false;  // there may be faults
  mutable Mutex mutex_;
  std::array<Fault, 2> own_ STP_GUARDED_BY(mutex_);
  std::vector<PeerFault> peers_ STP_GUARDED_BY(mutex_);  // the newest is last
};

}  // namespace stp::port
