// SPDX-License-Identifier: BSD-3-Clause
// Requesters that are answered before anything depends on what is kept of them: the Port and the
// Key of the answer can be recognised when they come back, and the question that follows it brings
// back what the Request_Connection said (docs/protocol.md, 5.35 to 5.39). All tables here have a
// fixed size, whatever arrives.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "stp/base/keyed_hash.h"
#include "stp/node/connection/closed_connections.h"
#include "stp/node/node.h"
#include "stp/node/shards.h"
#include "stp/wire/operation.h"

namespace stp {

// Who asked, and how: what a connection is made from.
struct Requester {
  MacAddr mac;
  std::uint16_t port = 0;
  wire::RequestConnection rc;
  OptionPayload option;

  [[nodiscard]] PeerName name() const { return {mac, port, rc.i_key}; }
};

class Strangers {
 public:
  // What names the end of a connection yet to be made. Port 0: none.
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

  // All memory is taken here: a frame takes none.
  // `share`: the Ports that answers may name.
  explicit Strangers(PortShare share = {}) : share_(share), asked_(kAsked), kept_(kKept) {
    held_.reserve(kHeld);
    for (auto& ports : promised_) ports.resize(std::size_t{wire::kMaxPort} + 1);
  }

  // Secrets are drawn when they are needed first.
  void prepare(Random& random);
  // Whether an RC by that name came lately, as far as the table knows; from now on it did.
  bool asked_before(const PeerName& name);
  // Whether an RC that came for the first time is answered: few enough were, of late.
  bool has_time_for_first(Time now);
  // What the answer to `asker` says. `is_free(port)`: nobody has that Port, of the first `ports`.
  template <typename IsFree>
  Names answer(const Requester& asker, std::size_t ports, IsFree&& is_free, Time now) {
    auto const name = asker.name();
    auto const* const before = find(name, ports, now);
    if (before != nullptr && is_free(before->names.port)) return before->names;
    auto const start = secret_(name_words(name));
    auto const tag = static_cast<std::uint16_t>(start >> 48 | 1);  // 0: promised to nobody
    // A Port that was promised to another is the second choice.
    for (bool const any : {false, true})
      for (std::size_t probe = 0; probe < kProbes; ++probe) {
        auto const port = port_at(start, probe, ports);
        if (!is_free(port) || (!any && is_another(port, tag, now))) continue;
        Names const names{port, cookie(asker, port, now / kEpoch)};
        if (!keep(asker, names, now)) continue;
        promised_[now / kEpoch % 2][port] = tag;
        return names;
      }
    return {};
  }
  // It has been answered so, and may be about to come back: it gets no other answer.
  [[nodiscard]] bool has_answered(const PeerName& name, std::size_t ports, Time now) const {
    return expects(now) && find(name, ports, now) != nullptr;
  }
  // Who was given that Port may still come.
  [[nodiscard]] bool promises(std::uint16_t port, Time now) const;
  // The same, also of those of whom nothing else is remembered.
  [[nodiscard]] bool may_promise(std::uint16_t port, Time now) {
    return promises(port, now) || (expects(now) && is_another(port, 0, now));
  }
  // The question behind that answer: its response says again what the RC said.
  static wire::Header question(const Requester& asker, const Names& names);

  // A frame from `mac` names a Port that nobody has. Whether it can be an answer to one given here:
  [[nodiscard]] bool expects(Time now) const { return now < expects_until_; }
  // and who it is then. Nothing: nobody who was answered so.
  std::optional<Requester> recognise(const MacAddr& mac, const wire::Header& header,
                                     Time now) const;
  // It has shown that it is there, and nobody has a channel for it: what it sends next tries again,
  // and others do not make it forgotten meanwhile.
  void hold(const Requester& asker, const Names& names, Time now);
  // It is a connection now.
  void made(std::uint16_t port);
  // Its sender is through with that connection.
  bool drop(const MacAddr& mac, const wire::Header& header);

 private:
  static constexpr std::size_t kAsked = 16'384, kProbes = 8;
  struct Kept {
    Names names;
    Requester asker;
    Time until = 0;
    Time guarded_until = 0;  // no other takes its place before
  };
  static std::array<std::uint64_t, 2> name_words(const PeerName& name) {
    return {name.mac.to_u64() << 16 | name.port, name.key};
  }
  // protocol: 5.37
  static std::uint32_t sizes(const wire::RequestConnection& rc);
  static bool needs_place(const Requester& asker);
  [[nodiscard]] std::uint32_t cookie(const Requester& asker, std::uint16_t port,
                                     std::uint64_t epoch) const;
  [[nodiscard]] bool is_another(std::uint16_t port, std::uint16_t tag, Time now);
  bool keep(const Requester& asker, const Names& names, Time now);
  [[nodiscard]] const Kept* find(const PeerName& name, std::size_t ports, Time now) const;
  // Ports that are taken stand in rows.
  [[nodiscard]] std::uint16_t port_at(std::uint64_t start, std::size_t probe,
                                      std::size_t ports) const {
    constexpr std::size_t kStride = 769;
    auto const row = 1 + (start + probe * kStride) % (ports / share_.count - 1);
    return static_cast<std::uint16_t>(row * share_.count + share_.index);
  }
  // Where in `kept_` a Port has its place.
  [[nodiscard]] std::size_t place_of(std::uint16_t port) const {
    return port / share_.count % kKept;
  }
  [[nodiscard]] const Kept* find(const MacAddr& mac, const wire::Header& header) const;

  const PortShare share_;
  bool prepared_ = false;
  KeyedHash secret_;
  std::vector<std::uint32_t> asked_;  // one word for each name, at a place that the name gives
  std::vector<Kept> kept_;            // by Port
  std::vector<Kept> held_;            // have shown that they are there
  // Whom each Port was promised to in this interval and in the one before: 15 bits of its name.
  std::array<std::vector<std::uint16_t>, 2> promised_;
  std::uint64_t promised_in_ = 0;
  Time expects_until_ = 0;
  Time interval_began_ = 0;
  unsigned firsts_ = 0;  // answered in this interval
};

}  // namespace stp
