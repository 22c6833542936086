// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/doubts.h"

#include <algorithm>

namespace stp::replay {
namespace {

using wire::Op;

bool same_place(const wire::Header& a, const wire::Header& b) {
  return a.mx == b.mx && a.bufx == b.bufx && a.offset == b.offset;
}

}  // namespace

Doubts::Doubts(const std::deque<Recorded>& trace, const MacAddr& station) {
  for (const auto& recorded : trace) {
    const auto& decoded = recorded.decoded;
    if (!decoded.well_formed()) continue;
    if (decoded.frame.src == station)
      say(decoded, line_of(recorded, station));
    else if (decoded.frame.dst == station)
      hear(decoded, line_of(recorded, station));
  }
}

// protocol: 7.9, 7.10
void Doubts::hear(const Decoded& decoded, const Line& line) {
  const auto& h = decoded.frame.header;
  if (h.op() == Op::kRequestToSend) {
    const auto [offer, fresh] = offers_.try_emplace({line, h.s_id}, h.t_len());
    if (!fresh && offer->second != h.t_len())
      other_offers_[{line, h.s_id}] = {decoded.time, decoded.number};
    offer->second = h.t_len();
  } else if (h.op() == Op::kClearToSend) {
    const auto [grant, fresh] = grants_.try_emplace({{line, h.s_id}, h.b_num}, h);
    if (!fresh && !same_place(grant->second, h))
      other_grants_[{line, h.s_id}] = {decoded.time, decoded.number};
    grant->second = h;
  } else if (h.op() == Op::kEnd) {
    offers_.erase({line, h.s_id});
  }
}

void Doubts::say(const Decoded& decoded, const Line& line) {
  const auto& h = decoded.frame.header;
  if (h.op() == Op::kClearToSend) doubt(other_offers_, {line, h.d_id}, decoded);
  if (h.op() == Op::kData) doubt(other_grants_, {line, h.d_id}, decoded);
  // From here on the id may belong to another Transfer.
  const bool over = h.op() == Op::kEndAck || h.has(wire::flag::kReject) ||
                    (h.op() == Op::kRequestStateResponse && h.offset != 0);
  if (over) offers_.erase({line, h.d_id});
}

void Doubts::doubt(const std::map<Id, Contradiction>& contradictions, const Id& id,
                   const Decoded& decoded) {
  const auto found = contradictions.find(id);
  if (found == contradictions.end() || decoded.time - found->second.time > kOnItsWay) return;
  transfers_.insert(transfer_of(decoded.frame));
  if (first_ == 0) first_ = found->second.frame;
}

Doubts::Transfer Doubts::transfer_of(const wire::Frame& sent) {
  const auto& h = sent.header;
  const bool data = h.op() == Op::kData;
  return {{h.s_port, sent.dst, h.d_port}, !data, data ? h.d_id : h.s_id};
}

bool Doubts::concern(const wire::Frame& in_trace) const {
  const auto op = in_trace.header.op();
  const bool of_transfer =
      op == Op::kData || op == Op::kClearToSend || op == Op::kRequestStateResponse;
  return of_transfer && transfers_.contains(transfer_of(in_trace));
}

bool Doubts::concern(const wire::Frame& live, const Renaming& names) const {
  return std::ranges::any_of(transfers_, [&](const Transfer& transfer) {
    if (names.live(Name::kPort, transfer.line.own) != live.header.s_port) return false;
    auto named = live;
    named.header.s_port = transfer.line.own;
    return concern(named);
  });
}

std::string Doubts::note() const {
  if (transfers_.empty()) return {};
  return std::to_string(transfers_.size()) +
         " Transfers are not compared: what the station does depends on which of two different "
         "RTS or CTS it had received, the first in frame " +
         std::to_string(first_);
}

}  // namespace stp::replay
