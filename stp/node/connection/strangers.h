// SPDX-License-Identifier: BSD-3-Clause
// Requesters that have not proved their address: the few that get a connection, and the answers
// that keep no state.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "stp/base/keyed_hash.h"
#include "stp/node/connection/known_peers.h"
#include "stp/node/node.h"
#include "stp/node/shards.h"
#include "stp/wire/operations.h"

namespace stp {

// Connections made by a Request_Connection whose peers have not yet proved that the answer reached
// them: anybody can ask under any address. Only a few are kept at a time.
// protocol: 5.34
class Unproven {
 public:
  static constexpr std::size_t kOfNode = 256, kOfListener = 16, kOfSource = 8;
  // The silence after which such a peer is asked, and after the same time again loses its place.
  // protocol: 5.40
  static constexpr Time kSilence = 10 * kMillisecond;
  static constexpr Time kLookInterval = kMillisecond;

  struct Entry {
    VcId vc = kNoneId;
    EndpointId listener = kNoneId;
    MacAddr source;     // Common::source_of()
    MacAddr network{};  // Common::network_of()
    Time made = 0;
    Time asked = kNever;
  };

  Unproven() { entries_.reserve(kOfNode); }

  // Whether there is no place for one more from `source` at `listener`.
  [[nodiscard]] bool is_full(EndpointId listener, const MacAddr& source) const {
    if (entries_.size() == kOfNode) return true;
    std::size_t here = 0, from_there = 0;
    for (const auto& entry : entries_)
      if (entry.listener == listener) {
        ++here;
        from_there += entry.source == source;
      }
    return here >= kOfListener || from_there >= kOfSource;
  }
  // How many places of the listener that network has.
  [[nodiscard]] std::size_t held(EndpointId listener, const MacAddr& network) const {
    return static_cast<std::size_t>(std::ranges::count_if(entries_, [&](const Entry& entry) {
      return entry.listener == listener && entry.network == network;
    }));
  }
  void add(const Entry& entry) {
    if (entries_.size() == kOfNode) return;
    entries_.push_back(entry);
    has_grown_ = true;
  }
  // Whether new entries were added, or the last check is long ago.
  [[nodiscard]] bool is_worth_a_look(Time now) const {
    return has_grown_ || now - looked_at_ >= kLookInterval;
  }
  void looked_at(Time now) {
    has_grown_ = false;
    looked_at_ = now;
  }
  template <typename Is>
  void remove_if(Is&& is) {
    std::erase_if(entries_, is);
  }
  // Oldest first.
  [[nodiscard]] std::vector<Entry>& entries() { return entries_; }

 private:
  std::vector<Entry> entries_;
  bool has_grown_ = false;
  Time looked_at_ = 0;
};

// A requester and its Request_Connection: enough to make a connection.
struct Requester {
  MacAddr mac;
  std::uint16_t port = 0;
  wire::RequestConnection rc;
  OptionPayload option;
  bool padded = false;       // the RC
  bool proves = false;       // it will answer the CA (protocol: 13.21)
  bool heeds_marks = false;  // protocol: 13.22

  [[nodiscard]] PeerName name() const { return {mac, port, rc.i_key}; }
  // The exponent for which the RC is padded; 0: it is not.
  [[nodiscard]] unsigned padding() const { return padded ? rc.i_max_stu : 0; }
};

// Answers requesters without keeping state that anything depends on. The Node recognises the Port
// and Key of its answer when they come back, and the RS sent after the answer makes the requester
// repeat what its Request_Connection said (docs/protocol.md, 5.35 to 5.39). All tables have a fixed
// size.
class Strangers {
 public:
  // Port and Key of our end of a future connection. Port 0: none.
  struct Names {
    std::uint16_t port = 0;
    std::uint32_t key = 0;
  };
  // protocol: 5.36
  static constexpr Time kEpoch = 2 * kSecond;
  // protocol: 5.38
  static constexpr std::size_t kKept = 1'024;
  static constexpr Time kGuarded = 100 * kMillisecond;
  static constexpr std::size_t kHeld = 256;
  // protocol: 5.39
  static constexpr unsigned kAtOnce = 32;
  static constexpr Time kInterval = 10 * kMillisecond;

  // `share`: the Ports that answers may name.
  explicit Strangers(PortShare share = {}) : share_(share) {}

  // Call when somebody listens: allocates all memory, once. Frames allocate none.
  void allocate();
  // Call before the first RC is answered or asked_before(): draws the secrets, once.
  void prepare(Random& random);
  // Whether an RC by that name, padded for as long STUs, came recently, as far as the table knows.
  // Records this one.
  bool asked_before(const Requester& asker);
  // The next one by that name is the first again.
  void forget_asked(const Requester& asker) { asked_[word_of(asker) % kAsked] = 0; }
  // Whether to answer an RC seen for the first time: limits such answers per interval.
  bool has_time_for_first(Time now);
  // The names in the answer to `asker`. `is_free(port)`: whether one of the first `ports` Ports is
  // free.
  template <typename IsFree>
  Names answer(const Requester& asker, std::size_t ports, IsFree&& is_free, Time now) {
    const auto name = asker.name();
    const auto* const before = find(name, ports, now);
    if (before != nullptr && is_free(before->names.port)) return names_for(asker, *before, now);
    const auto start = secret_(name_words(name));
    const auto tag = static_cast<std::uint16_t>(start >> 48 | 1);  // 0 means not promised
    // Takes a Port that was promised to another requester only if no other is free.
    for (const bool any : {false, true})
      for (std::size_t probe = 0; probe < kProbes; ++probe) {
        const auto port = port_at(start, probe, ports);
        if (!is_free(port) || (!any && is_another(port, tag, now))) continue;
        const Names names{port, cookie(asker, port, now / kEpoch)};
        if (!keep(asker, names, now)) continue;
        promised_[now / kEpoch % 2][port] = tag;
        return names;
      }
    return {};
  }
  // The requester has an answer and may come back soon: it gets no second one.
  [[nodiscard]] bool has_answered(const PeerName& name, std::size_t ports, Time now) const {
    return expects(now) && find(name, ports, now) != nullptr;
  }
  // Whether a requester that was given `port` may still come back.
  [[nodiscard]] bool promises(std::uint16_t port, Time now) const;
  // Like promises(), also for requesters of which nothing else is kept.
  [[nodiscard]] bool may_promise(std::uint16_t port, Time now) {
    return promises(port, now) || (expects(now) && is_another(port, 0, now));
  }
  // The RS that follows the answer. Its response repeats what the RC said.
  static wire::Header question(const Requester& asker, const Names& names);
  // The sizes that an RC announces, in one word.
  // protocol: 5.37
  static std::uint32_t sizes(const wire::RequestConnection& rc) {
    return std::uint32_t{rc.i_slots} << 16 | (rc.i_bufsize - wire::kMinBufsize) << 8 |
           (rc.i_max_stu - wire::kMinMaxStu);
  }

  // Whether a frame for an unused Port may answer one of our answers.
  [[nodiscard]] bool expects(Time now) const { return now < expects_until_; }
  // The requester that sent such a frame; nullopt: none that was answered.
  std::optional<Requester> recognise(const MacAddr& mac, const wire::Header& header,
                                     Time now) const;
  // The requester has proved its address, but no channel is free. Its next frame tries again;
  // meanwhile others cannot displace it.
  void hold(const Requester& asker, const Names& names, Time now);
  // The requester of `port` is a connection now.
  void made(std::uint16_t port);
  // The sender has ended that connection.
  bool drop(const MacAddr& mac, const wire::Header& header, Time now);

 private:
  static constexpr std::size_t kAsked = 16'384, kProbes = 8;
  struct Kept {
    Names names;
    Requester asker;
    Time until = 0;
    Time guarded_until = 0;  // no other requester takes its place before
  };
  static std::array<std::uint64_t, 2> name_words(const PeerName& name) {
    return {name.mac.to_u64() << 16 | name.port, name.key};
  }
  static bool needs_place(const Requester& asker);
  [[nodiscard]] std::uint64_t word_of(const Requester& asker) const;
  [[nodiscard]] std::uint32_t cookie(const Requester& asker, std::uint16_t port,
                                     std::uint64_t epoch) const;
  [[nodiscard]] bool is_answered(const Requester& asker, const wire::Header& header,
                                 Time now) const;
  [[nodiscard]] bool is_another(std::uint16_t port, std::uint16_t tag, Time now);
  // The names for an RC of a requester that is kept.
  [[nodiscard]] Names names_for(const Requester& asker, const Kept& kept, Time now) const;
  // The RC of a kept requester to whose answer the frame belongs.
  [[nodiscard]] std::optional<Requester> kept_with(const MacAddr& mac, const wire::Header& header,
                                                   Time now) const;
  bool keep(const Requester& asker, const Names& names, Time now);
  [[nodiscard]] const Kept* find(const PeerName& name, std::size_t ports, Time now) const;
  // Probes with a stride, because used Ports lie in rows.
  [[nodiscard]] std::uint16_t port_at(std::uint64_t start, std::size_t probe,
                                      std::size_t ports) const {
    constexpr std::size_t kStride = 769;
    const auto row = 1 + (start + probe * kStride) % (ports / share_.count - 1);
    return static_cast<std::uint16_t>(row * share_.count + share_.index);
  }
  // The index in `kept_` of a Port.
  [[nodiscard]] std::size_t place_of(std::uint16_t port) const {
    return port / share_.count % kKept;
  }
  [[nodiscard]] const Kept* find(const MacAddr& mac, const wire::Header& header) const;

  const PortShare share_;
  bool prepared_ = false;
  KeyedHash secret_;
  std::vector<std::uint32_t> asked_;  // one word per name, at an index derived from the name
  std::vector<Kept> kept_;            // by Port
  std::vector<Kept> held_;            // requesters that have proved their address
  // The requester of each Port in this interval and the previous one: 15 bits of its name.
  std::array<std::vector<std::uint16_t>, 2> promised_;
  std::uint64_t promised_in_ = 0;
  Time expects_until_ = 0;
  Time interval_began_ = 0;
  unsigned firsts_ = 0;  // first answers in this interval
};

}  // namespace stp
