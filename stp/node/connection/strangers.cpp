// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connection/strangers.h"

#include <algorithm>

namespace stp {

void Strangers::allocate() {
  if (!kept_.empty()) return;
  asked_.resize(kAsked);
  kept_.resize(kKept);
  held_.reserve(kHeld);
  for (auto& ports : promised_) ports.resize(std::size_t{wire::kMaxPort} + 1);
}

void Strangers::prepare(Random& random) {
  if (prepared_) return;
  prepared_ = true;
  secret_.draw(random);
}

// Whether that Port was promised to another requester than that of `tag`.
// protocol: 5.36
bool Strangers::is_another(std::uint16_t port, std::uint16_t tag, Time now) {
  const auto interval = now / kEpoch;
  if (interval != promised_in_) {
    const auto forget = [](auto& ports) { std::ranges::fill(ports, std::uint16_t{0}); };
    forget(promised_[interval % 2]);
    if (interval != promised_in_ + 1) forget(promised_[1 - interval % 2]);
    promised_in_ = interval;
  }
  return std::ranges::any_of(
      promised_, [&](const auto& ports) { return ports[port] != 0 && ports[port] != tag; });
}

// What `asked_` has of an RC, and where, is made of this.
// protocol: 13.20
std::uint64_t Strangers::word_of(const Requester& asker) const {
  auto words = name_words(asker.name());
  words[1] |= std::uint64_t{asker.padding()} << 32;
  return secret_(words);
}

// protocol: 5.39
bool Strangers::asked_before(const Requester& asker) {
  const auto hash = word_of(asker);
  auto& word = asked_[hash % kAsked];
  const auto mark = static_cast<std::uint32_t>(hash >> 32) | 1;  // never 0
  if (word == mark) return true;
  word = mark;
  return false;
}

// protocol: 5.39
bool Strangers::has_time_for_first(Time now) {
  if (now - interval_began_ >= kInterval) {
    interval_began_ = now;
    firsts_ = 0;
  }
  if (firsts_ == kAtOnce) return false;
  ++firsts_;
  return true;
}

// Whether the RC has parts that the RS cannot carry.
// protocol: 5.38
bool Strangers::needs_place(const Requester& asker) {
  return asker.option || asker.rc.i_uport != 0 || asker.rc.r_uport == wire::kNoId;
}

// protocol: 5.36
std::uint32_t Strangers::cookie(const Requester& asker, std::uint16_t port,
                                std::uint64_t epoch) const {
  const auto& rc = asker.rc;
  const std::array<std::uint64_t, 4> words{asker.mac.to_u64() << 16 | asker.port,
                                           std::uint64_t{rc.i_key} << 32 | rc.r_uport,
                                           std::uint64_t{sizes(rc)} << 32 | port, epoch};
  const auto key = static_cast<std::uint32_t>(secret_(words));
  return key != 0 ? key : 1;
}

// protocol: 5.37
wire::Header Strangers::question(const Requester& asker, const Names& names) {
  auto rs = wire::to_header(wire::RequestState{.sync = asker.rc.i_key,
                                               .b_num = wire::kNoId,
                                               .r_id = asker.rc.r_uport,
                                               .i_id = sizes(asker.rc)});
  rs.d_port = asker.port;
  rs.s_port = names.port;
  rs.d_key = asker.rc.i_key;
  return rs;
}

// False: it must be kept, and there is no place.
// protocol: 5.38
bool Strangers::keep(const Requester& asker, const Names& names, Time now) {
  auto& place = kept_[place_of(names.port)];
  const bool same = place.names.port == names.port && place.asker.name() == asker.name();
  if (!same && promises(names.port, now)) return false;
  if (!same && now < place.guarded_until) {
    if (needs_place(asker)) return false;
  } else {
    place = {names, asker, now + 2 * kEpoch, needs_place(asker) ? now + kGuarded : 0};
  }
  expects_until_ = now + 2 * kEpoch;
  return true;
}

// protocol: 5.38
void Strangers::hold(const Requester& asker, const Names& names, Time now) {
  std::erase_if(held_, [&](const Kept& place) {
    return place.names.port == names.port || now >= place.until;
  });
  if (held_.size() == kHeld) return;
  held_.push_back({names, asker, now + 2 * kEpoch, 0});
  expects_until_ = now + 2 * kEpoch;
}

bool Strangers::promises(std::uint16_t port, Time now) const {
  if (!expects(now)) return false;
  const auto is_for = [port, now](const Kept& place) {
    return place.names.port == port && now < place.until;
  };
  return is_for(kept_[place_of(port)]) || std::ranges::any_of(held_, is_for);
}

void Strangers::made(std::uint16_t port) {
  std::erase_if(held_, [port](const Kept& place) { return place.names.port == port; });
  auto& place = kept_[place_of(port)];
  if (place.names.port == port) place = {};
}

const Strangers::Kept* Strangers::find(const PeerName& name, std::size_t ports, Time now) const {
  const auto start = secret_(name_words(name));
  for (std::size_t probe = 0; probe < kProbes; ++probe) {
    const auto port = port_at(start, probe, ports);
    const auto& place = kept_[place_of(port)];
    if (place.names.port == port && now < place.until && place.asker.name() == name) return &place;
  }
  return nullptr;
}

const Strangers::Kept* Strangers::find(const MacAddr& mac, const wire::Header& header) const {
  if (kept_.empty()) return nullptr;
  const auto is_its = [&](const Kept& place) {
    return place.names.port == header.d_port && place.names.key == header.d_key &&
           place.asker.mac == mac && place.asker.port == header.s_port;
  };
  const auto& place = kept_[place_of(header.d_port)];
  if (is_its(place)) return &place;
  const auto held = std::ranges::find_if(held_, is_its);
  return held == held_.end() ? nullptr : &*held;
}

// RCs of one requester that are padded for other STUs differ in I_Max_STU, and so in the Key.
// protocol: 13.20
Strangers::Names Strangers::names_for(const Requester& asker, const Kept& kept, Time now) const {
  if (asker.rc.i_max_stu == kept.asker.rc.i_max_stu) return kept.names;
  return {kept.names.port, cookie(asker, kept.names.port, now / kEpoch)};
}

// protocol: 13.20
std::optional<Requester> Strangers::kept_with(const MacAddr& mac, const wire::Header& header,
                                              Time now) const {
  if (kept_.empty()) return std::nullopt;
  if (const auto* const place = find(mac, header); place != nullptr && now < place->until)
    return place->asker;
  const auto& place = kept_[place_of(header.d_port)];
  if (place.names.port != header.d_port || now >= place.until || !place.asker.padded ||
      place.asker.mac != mac || place.asker.port != header.s_port)
    return std::nullopt;
  auto asker = place.asker;
  for (asker.rc.i_max_stu = wire::kMinMaxStu; asker.rc.i_max_stu <= wire::kMaxMaxStu;
       ++asker.rc.i_max_stu)
    if (is_answered(asker, header, now)) return asker;
  return std::nullopt;
}

// Whether D_Port and D_Key are those that such an RC got in this interval or the one before.
// protocol: 5.36
bool Strangers::is_answered(const Requester& asker, const wire::Header& header, Time now) const {
  const auto epoch = now / kEpoch;
  return header.d_key == cookie(asker, header.d_port, epoch) ||
         (epoch > 0 && header.d_key == cookie(asker, header.d_port, epoch - 1));
}

std::optional<Requester> Strangers::recognise(const MacAddr& mac, const wire::Header& header,
                                              Time now) const {
  if (header.d_port == 0) return std::nullopt;
  if (const auto kept = kept_with(mac, header, now)) return kept;
  if (header.op() != wire::Op::kRequestStateResponse) return std::nullopt;
  // protocol: 5.37
  const auto rsr = wire::decode_as<wire::RequestStateResponse>(header);
  const Requester asker{mac,
                        header.s_port,
                        {.i_slots = static_cast<std::uint16_t>(rsr.i_id >> 16),
                         .i_bufsize = wire::kMinBufsize + (rsr.i_id >> 8 & 0xff),
                         .i_key = rsr.sync,
                         .i_max_stu = wire::kMinMaxStu + (rsr.i_id & 0xff),
                         .r_uport = rsr.r_id},
                        {}};
  if (asker.rc.i_bufsize > wire::kMaxBufsize || asker.rc.i_max_stu > wire::kMaxMaxStu)
    return std::nullopt;
  return is_answered(asker, header, now) ? std::optional(asker) : std::nullopt;
}

bool Strangers::drop(const MacAddr& mac, const wire::Header& header, Time now) {
  if (find(mac, header) == nullptr && !kept_with(mac, header, now)) return false;
  made(header.d_port);
  return true;
}

}  // namespace stp
