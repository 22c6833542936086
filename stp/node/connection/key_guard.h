// SPDX-License-Identifier: BSD-3-Clause
// Protects the Key of a connectionless endpoint from guessing: after wrong Keys, the Node examines
// fewer frames of unknown senders. Fixed size. A frame with the right Key from a known sender costs
// one lookup.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "stp/types.h"

namespace stp {

// The name of a sender: MAC address and S_Port.
struct KeySender {
  std::uint64_t name = 0;
  static KeySender of(const MacAddr& mac, std::uint16_t port) {
    return {mac.to_u64() << 16 | port};
  }
  [[nodiscard]] std::uint64_t mac() const { return name >> 16; }
};

class KeyGuard {
 public:
  // protocol: 11.12
  static constexpr unsigned kGuesses = 16;  // per address, until it must wait
  static constexpr Time kFirstWait = kSecond, kLongestWait = 8 * kSecond;
  static constexpr unsigned kGuessesAtPort = 64;  // per second, of all unknown senders
  // protocol: 11.13
  static constexpr std::size_t kSets = 256, kWays = 4;  // known senders

  // Whether a frame of `sender` is examined: its Key is compared, and acted on.
  [[nodiscard]] bool admits(KeySender sender, Time now) const {
    return now >= watch_until_ || is_known(sender) || !waits(sender.mac(), now);
  }
  // `sender` named the right Key.
  void right(KeySender sender) {
    auto& set = known_[set_of(sender)];
    if (set[0] == sender.name) return;
    // Moves it to the front; the sender unused for longest drops out.
    const auto at = std::find(set.begin(), set.end() - 1, sender.name);
    std::rotate(set.begin(), at, at + 1);
    set[0] = sender.name;
  }
  // `sender` named a wrong Key.
  void wrong(KeySender sender, Time now);

 private:
  static constexpr std::size_t kSources = 64;
  static constexpr Time kSecondOfPort = kSecond;
  struct Source {
    std::uint64_t mac = 0;
    unsigned wrong = 0;
    Time wait = 0;  // the last wait
    Time waits_until = 0;
  };
  static std::size_t spread(std::uint64_t of) { return of * 0x9e3779b97f4a7c15 >> 48; }
  static std::size_t set_of(KeySender sender) { return spread(sender.name) % kSets; }
  [[nodiscard]] bool is_known(KeySender sender) const {
    const auto& set = known_[set_of(sender)];
    return std::find(set.begin(), set.end(), sender.name) != set.end();
  }
  [[nodiscard]] bool waits(std::uint64_t mac, Time now) const {
    if (guesses_ >= kGuessesAtPort && now < began_ + kSecondOfPort) return true;
    const auto& source = sources_[spread(mac) % kSources];
    return source.mac == mac && now < source.waits_until;
  }

  std::array<std::array<std::uint64_t, kWays>, kSets> known_{};
  std::array<Source, kSources> sources_{};
  Time watch_until_ = 0;  // until then some senders may have to wait
  Time began_ = 0;        // start of the second of `guesses_`
  unsigned guesses_ = 0;
};

inline void KeyGuard::wrong(KeySender sender, Time now) {
  watch_until_ = now + 2 * kLongestWait;
  if (is_known(sender)) return;
  if (now >= began_ + kSecondOfPort || guesses_ == 0) {
    began_ = now;
    guesses_ = 0;
  }
  ++guesses_;
  auto& source = sources_[spread(sender.mac()) % kSources];
  if (source.mac != sender.mac()) {
    if (now < source.waits_until) return;  // each place holds one guesser at a time
    source = {.mac = sender.mac()};
  } else if (now >= source.waits_until + 2 * kLongestWait && source.wait != 0) {
    source = {.mac = sender.mac()};  // the last wait ended long ago
  }
  if (++source.wrong < kGuesses) return;
  source.wrong = 0;
  source.wait = source.wait == 0 ? kFirstWait : std::min(2 * source.wait, kLongestWait);
  source.waits_until = now + source.wait;
}

}  // namespace stp
