// SPDX-License-Identifier: BSD-3-Clause
// Connections: their setup, names and end (docs/protocol.md, section 5).
#include <algorithm>

#include "stp/wire/operations.h"
#include "stp/wire/padding.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using wire::Op;

constexpr TraceTime kFirstRc = 10'000'000, kLongestInterval = 1'000'000'000;  // protocol: 5.21
// protocol: 5.31
constexpr TraceTime kForever = std::numeric_limits<TraceTime>::max() / 2;
constexpr TraceTime kLeastTimeout = 200'000;              // protocol: 5.20
constexpr TraceTime kDisconnectPatience = 1'000'000'000;  // protocol: 5.22
constexpr TraceTime kLateRc = 4'000'000'000;              // protocol: 5.10
constexpr TraceTime kPromised = 100'000'000;              // protocol: 5.36, 5.38

bool connection_operation(Op op) {
  return wire::operation(op).when == wire::When::kByState;
}

void adopt_sizes(Side& side, const wire::Header& h) {
  side.sized = true;
  side.slots = h.param;
  side.bufsize = h.bufx;
  side.max_stu = h.sync;
}

std::string sizes_text(std::uint32_t slots, unsigned bufsize, unsigned max_stu) {
  return named("Slots", slots) + ", " + named("Bufsize", bufsize) + ", " +
         named("Max_STU", max_stu);
}

std::string sizes_text(const wire::Header& h) {
  return sizes_text(h.param, h.bufx, h.sync);
}

Side side_of(const EndName& end, const MacAddr& mac) {
  Side side;
  side.mac = mac;
  side.port = end.port;
  return side;
}

// An RC or CA in a datagram whose sender pads. protocol: 13.20
wire::Padding padding_of(const Decoded& frame) {
  const auto padding = wire::padding_of(frame.frame.header);
  return frame.ends && padding.known ? padding : wire::Padding{};
}

// Whether the sender of the CA that made `c` must still keep to it: the requester has used the
// connection or may be about to. Later the sender may forget it and answer a repeated RC with a new
// CA.
// protocol: 5.36
bool is_promised(const Connection& c, TraceTime now) {
  const auto& [requester, answerer] = c.sides;
  return requester.heard != kNotYet || between(answerer.heard, now) < kPromised;
}

}  // namespace

void Checker::Impl::on_request_connection(const Decoded& frame) {
  const auto& h = frame.frame.header;
  if (h.offset == 0) report(frame, Rule::kZeroKey, "I_Key other than 0", "I_Key 0");
  const auto name = source_of(frame);
  auto* const known = connecting.find(name);
  Connection nobody;
  nobody.sides[0].mac = frame.frame.src;
  const Said said{frame, h, nobody, nobody.sides[0], nobody.sides[1], frame.time};
  if (known != nullptr && known->key == h.offset && known->to == frame.frame.dst) {
    const auto padding = padding_of(frame);
    if (padding.known) {
      // Those of several lengths leave at once. The longest one tells when. protocol: 13.20
      const bool longest = padding.stu == known->max_stu;
      known->max_stu = std::max(known->max_stu, h.sync);
      if (!longest) return;
    }
    if (known->slots != h.param || known->bufsize != h.bufx || known->max_stu != h.sync)
      report(frame, Rule::kSizesChanged,
             sizes_text(known->slots, known->bufsize, known->max_stu) + ", as before",
             sizes_text(h));
    return repeat(said, known->tries, {kFirstRc, kLongestInterval}, kForever, "RC");
  }
  Connecting fresh{frame.frame.dst, h.offset, h.param, h.bufx, h.sync, h.d_id, {}, {}};
  if (known != nullptr) fresh.key_before = known->key;
  repeat(said, fresh.tries, {kFirstRc, kLongestInterval}, kForever, "RC");
  connecting.put(name, fresh);
}

void Checker::Impl::on_connection_answer(const Decoded& frame) {
  const auto& h = frame.frame.header;
  const bool refused = h.has(wire::flag::kReject);
  if (!refused && h.offset == 0) report(frame, Rule::kZeroKey, "R_Key other than 0", "R_Key 0");
  const auto from = source_of(frame), to = target_of(frame);
  auto* const asked = connecting.find(to);
  if (asked == nullptr) {
    if (settled(frame.time) && surely(frame, connecting.forgot(), Kept::kConnections)) {
      if (!refused) note_ghost(frame);
      return report(frame, Rule::kCaUnasked, "a CA for an RC", operation_text(frame),
                    options.lossy);
    }
    if (connections.find(from, to) == nullptr)
      report(frame, Rule::kMidTrace, "", "a CA whose RC is not in the capture");
    if (refused) return;
  } else if (asked->key != h.d_key || asked->to != frame.frame.src) {
    if (!refused) note_ghost(frame);
    // The CA answers an earlier RC of that Port, and it or that RC was delayed.
    if (asked->key_before == h.d_key && asked->to == frame.frame.src) return;
    return report(
        frame, Rule::kCaKey,
        "a CA from " + to_string(asked->to) + " with " + named_hex("D_Key", asked->key),
        "one from " + to_string(frame.frame.src) + " with " + named_hex("D_Key", h.d_key));
  }
  if (refused) {
    asked->tries.answered = true;
    return;
  }
  // The connection that this RC has made earlier. Another connection may have its Ports by now.
  const auto* const before = connections.of_end(to);
  const bool same = before != nullptr && side_at(*before, to).key == h.d_key;
  const bool gone = same && before->disconnected();
  auto* const known = connections.find(from, to);
  if (gone && between(before->closed, frame.time) < kLateRc &&
      between(before->closed, frame.time) > kReordering)
    report(frame, Rule::kRcLate, "silence, as that connection is gone", operation_text(frame),
           options.lossy);
  else if (same && !gone && known == nullptr && is_promised(*before, frame.time))
    report(frame, Rule::kSecondVc, "the CA that its RC was answered with before",
           named("R_Port", h.s_port));
  if (known != nullptr && !gone) {
    auto& answerer = side_at(*known, from);
    if (!answerer.key || *answerer.key == h.offset) return answered_again(frame, *known, answerer);
  }
  const auto padding = padding_of(frame);
  if (known != nullptr && !gone && padding.known && side_at(*known, to).key == h.d_key) {
    auto& others = side_at(*known, from).other_lengths;
    // Those of the interval of 5.36 and of the next one, however often they are repeated.
    constexpr std::size_t kMost = 2 * (wire::kMaxMaxStu - wire::kMinMaxStu + 1);
    if (std::ranges::find(others, h.offset, &LengthOffer::key) != others.end()) return;
    if (others.size() == kMost) others.erase(others.begin());
    others.push_back({h.offset, padding.asked});
    return;
  }
  if (known != nullptr) connections.remove(*known);  // an earlier connection of the same Ports
  Connection c;
  c.complete = asked != nullptr;
  c.sides = {side_of(to, frame.frame.dst), side_of(from, frame.frame.src)};
  c.sides[0].key = h.d_key;
  c.sides[1].key = h.offset;
  adopt_sizes(c.sides[1], h);
  c.sides[1].heard = frame.time;
  if (asked != nullptr) {
    asked->tries.answered = true;
    c.sides[0].sized = true;
    c.sides[0].slots = asked->slots;
    c.sides[0].bufsize = asked->bufsize;
    c.sides[0].max_stu = padding.known ? padding.asked : asked->max_stu;
    // protocol: 6.1
    c.sides[0].slots_limit = h.param;
    c.sides[1].slots_limit = asked->slots;
  }
  connections.touch(connections.add(std::move(c)), frame.time);
}

// A station that receives an unexpected CA answers with an RD made of the CA's fields.
// protocol: 5.9
void Checker::Impl::note_ghost(const Decoded& answer) {
  const auto& h = answer.frame.header;
  ghosts.put({source_of(answer), target_of(answer)},
             {.sender_key = h.offset, .receiver_key = h.d_key});
}

bool Checker::Impl::ends_ghost(const Decoded& frame) {
  const auto& h = frame.frame.header;
  const bool answer = h.op() == Op::kDisconnectAnswer;
  if (!answer && h.op() != Op::kRequestDisconnect && h.op() != Op::kDisconnectComplete)
    return false;
  const auto from = source_of(frame), to = target_of(frame);
  const auto* const ghost = answer ? ghosts.find({from, to}) : ghosts.find({to, from});
  if (ghost == nullptr) return false;
  return answer ? h.d_key == ghost->receiver_key && h.offset == ghost->sender_key
                : h.d_key == ghost->sender_key && h.offset == ghost->receiver_key;
}

void Checker::Impl::answered_again(const Decoded& frame, Connection& c, Side& answerer) {
  const auto& h = frame.frame.header;
  if (answerer.sized &&
      (answerer.slots != h.param || answerer.bufsize != h.bufx || answerer.max_stu != h.sync))
    report(frame, Rule::kSizesChanged,
           sizes_text(answerer.slots, answerer.bufsize, answerer.max_stu) + ", as before",
           sizes_text(h));
  answerer.key = h.offset;
  if (!answerer.sized) adopt_sizes(answerer, h);
  answerer.heard = frame.time;
  connections.touch(c, frame.time);
}

// An RD with the right D_Key from its peer's address is answered, whatever its S_Port is.
// protocol: 5.11
Connection* Checker::Impl::ended_from_other_port(const Decoded& frame) {
  const auto& h = frame.frame.header;
  const auto to = target_of(frame);
  auto* const c = h.op() == Op::kRequestDisconnect ? connections.of_end(to) : nullptr;
  if (c == nullptr || !c->complete || side_at(*c, to).key != h.d_key) return nullptr;
  const auto& peer = peer_of(*c, to);
  if (peer.mac != frame.frame.src) return nullptr;
  report(frame, Rule::kWrongPeer, to_string(peer.mac) + ' ' + named("S_Port", peer.port),
         to_string(frame.frame.src) + ' ' + named("S_Port", h.s_port), options.lossy || c->lossy);
  return c;
}

// Whether somebody asks over IP who is there, or is answered: both are without the Key of a
// connection.
// protocol: 13.20
bool is_about_presence(const Decoded& frame) {
  const auto& h = frame.frame.header;
  if (!frame.ends) return false;
  if (h.op() == Op::kRequestDisconnect) return h.offset == 0;
  return h.op() == Op::kRequestStateResponse && h.has(wire::flag::kReject) && h.d_key == 0;
}

// Returns the connection of a frame. Returns nullptr after it has reported why there is none.
// protocol: 5.18
Connection* Checker::Impl::connection_of(const Decoded& frame) {
  const auto& h = frame.frame.header;
  const auto from = source_of(frame), to = target_of(frame);
  if (to.port == 0) {  // protocol: 5.3
    report(frame, Rule::kNoPort, "a Port", operation_text(frame));
    return nullptr;
  }
  if (ends_ghost(frame) || is_about_presence(frame)) return nullptr;
  const bool ends = h.op() == Op::kRequestDisconnect || h.op() == Op::kDisconnectAnswer ||
                    h.op() == Op::kDisconnectComplete;
  const bool forgot = connecting.forgot() || connections.forgot() || (ends && ghosts.forgot());
  if (auto* const c = connections.find(from, to)) {
    if (c->certain() || !follow_endpoint(frame)) return c;
    connections.remove(*c);
    return nullptr;
  }
  if (auto* const c = ended_from_other_port(frame)) return c;
  const auto established = [](const Connection* c) {
    return c != nullptr && c->complete && !c->ending;
  };
  const auto tell = [&](Rule rule, std::string expected, std::string seen) -> Connection* {
    if (!surely(frame, forgot, Kept::kConnections)) return nullptr;
    report(frame, rule, std::move(expected), std::move(seen), options.lossy);
    return nullptr;
  };
  // If the receiver's RC is still open, the capture may lack the CA of this sender.
  const auto* const asking = connecting.find(to);
  const bool ca_lost = asking != nullptr && !asking->tries.answered && asking->key == h.d_key &&
                       asking->to == frame.frame.src;
  const auto* const mine = ca_lost ? nullptr : connections.of_end(from);
  if (established(mine)) {
    const auto& peer = peer_of(*mine, from);
    if (peer.mac == frame.frame.dst)
      return tell(Rule::kWrongPort, named("D_Port", peer.port), named("D_Port", h.d_port));
  }
  const auto* const theirs = ca_lost ? nullptr : connections.of_end(to);
  if (established(theirs)) {
    const auto& peer = peer_of(*theirs, to);
    return tell(Rule::kWrongPeer, to_string(peer.mac) + ' ' + named("S_Port", peer.port),
                to_string(frame.frame.src) + ' ' + named("S_Port", h.s_port));
  }
  if (const auto* const asked = connecting.find(from);
      asked != nullptr && asked->to == frame.frame.dst && !asked->tries.answered) {
    if (surely(frame, forgot, Kept::kConnections))
      report_if_answered(frame, Rule::kNotEstablished, "nothing before the CA",
                         operation_text(frame));
    return nullptr;
  }
  if (follow_endpoint(frame)) return nullptr;
  if (h.op() == Op::kDisconnectAnswer || h.op() == Op::kDisconnectComplete) {
    if (!settled(frame.time)) return nullptr;
    const bool answer = h.op() == Op::kDisconnectAnswer;
    return tell(answer ? Rule::kDaUnasked : Rule::kDcUnasked, answer ? "an RD first" : "a DA first",
                operation_text(frame));
  }
  Connection c;
  c.sides = {side_of(from, frame.frame.src), side_of(to, frame.frame.dst)};
  if (asking == nullptr)
    report(frame, Rule::kMidTrace, "",
           to_string(frame.frame.src) + ' ' + named("Port", h.s_port) + " and " +
               to_string(frame.frame.dst) + ' ' + named("Port", h.d_port) +
               " were connected before the capture, or are endpoints without connections");
  return &connections.add(std::move(c));
}

// protocol: 5.17, 5.18
bool Checker::Impl::check_names(const Said& said) {
  const auto op = said.h.op();
  if (!check_key(said, said.to, said.h.d_key, "D_Key")) return false;
  if (connection_operation(op)) {
    // The receiver's own Key proves who asks: this one is not compared. protocol: 5.11
    check_key(said, said.from, said.h.offset, op == Op::kDisconnectAnswer ? "R_Key" : "I_Key");
    return true;
  }
  const auto stopped = std::max(said.from.rd, said.from.da);
  if (stopped == kNotYet || between(stopped, said.now) <= kReordering) return true;
  once(said.from.after_rd, [&] {
    report(said, Rule::kAfterRd, "connection operations only", operation_text(said.frame));
  });
  return false;
}

// The receiver drops a frame with a wrong Key. A sender that keeps using the same wrong Key is
// reported once. While it is not certain that the two sides are connected, a new Key is adopted.
bool Checker::Impl::check_key(const Said& said, Side& whose, std::uint32_t seen,
                              const char* field) {
  if (!whose.key) whose.key = seen;
  if (*whose.key == seen) return true;
  const auto taken = std::ranges::find(whose.other_lengths, seen, &LengthOffer::key);
  if (taken != whose.other_lengths.end()) {
    whose.key = seen;
    said.c.sides[&whose == said.c.sides.data() ? 1 : 0].max_stu = taken->asked;
    whose.other_lengths.clear();
    return true;
  }
  bool told = whose.wrong_key == seen;
  once(told, [&] {
    report(said, Rule::kWrongKey, named_hex(field, *whose.key), named_hex(field, seen));
  });
  whose.wrong_key = seen;
  if (!said.c.certain()) whose.key = seen;
  return !said.c.certain();
}

// protocol: 5.2, 5.11
void Checker::Impl::on_disconnection(const Said& said) {
  auto& [frame, h, c, from, to, now] = said;
  const auto first = [seen = said.now](TraceTime& when) {
    if (when == kNotYet) when = seen;
  };
  switch (h.op()) {
    case Op::kRequestDisconnect:
      check_last_words(said);
      first(from.rd);
      return repeat(said, from.disconnecting, {kLeastTimeout, kLongestInterval},
                    kDisconnectPatience, "RD");
    case Op::kDisconnectAnswer:
      if (to.rd == kNotYet && (c.complete || settled(now)))
        return report(said, Rule::kDaUnasked, "an RD first", operation_text(frame));
      to.disconnecting.answered = true;
      first(from.da);
      return;
    default:
      if (to.da == kNotYet && (c.complete || settled(now)))
        return report(said, Rule::kDcUnasked, "a DA first", operation_text(frame));
      first(from.dc);
      if (c.closed == kNotYet && c.disconnected()) c.closed = now;
      return;
  }
}

// protocol: 5.32
void Checker::Impl::check_last_words(const Said& said) {
  const auto option = said.frame.frame.option;
  if (said.frame.cut || option.empty()) return;  // an RD for an unexpected CA has no option payload
  auto& from = said.from;
  const auto tell = [&](std::string expected) {
    report(said, Rule::kRdOption, std::move(expected), operation_text(said.frame));
  };
  if (from.rd != kNotYet) {
    if (!from.last_words)
      tell("no option payload, as its first RD had none");
    else if (!std::ranges::equal(*from.last_words, option))
      tell("the option payload of its first RD");
    return;
  }
  if (from.da != kNotYet && between(from.da, said.now) > kReordering)
    tell("no option payload, as the other side has ended the connection");
  from.last_words = std::make_unique<LastWords>();
  std::ranges::copy(option, from.last_words->begin());
  check_managed_end(said);
}

// Reports the requests of a connection that were never answered, which is known only at the end.
void Checker::Impl::say_farewell(Connection& c) {
  if (!c.certain()) return;  // connectionless endpoints need not answer
  for (unsigned s = 0; s < 2; ++s) {
    auto& asker = c.sides[s];
    const auto& debtor = c.sides[1 - s];
    owed(c, asker.disconnecting, debtor, Rule::kRdUnanswered, "RD");
    if (!asker.traffic) continue;
    auto& traffic = *asker.traffic;
    if (traffic.skipped_get && between(traffic.skipped_at, asker.heard) > kReordering) {
      Decoded frame;
      frame.number = traffic.skipped_frame;
      frame.time = traffic.skipped_at;
      report(frame, Rule::kGNum, named("G_num", *traffic.skipped_get), "it was left out",
             options.lossy || c.lossy);
    }
    const auto over = [&](const Tries& tries) {  // whether the peer no longer has to answer
      return std::max(debtor.rd, debtor.da) != kNotYet &&
             std::max(debtor.rd, debtor.da) < tries.last;
    };
    for (auto& [sync, question] : traffic.questions)
      if (!over(question.tries))
        owed(c, question.tries, debtor, Rule::kRsrUnanswered, "RS with " + named_hex("Sync", sync));
    miss_messages(c, asker);
    for (auto& [i_id, request] : traffic.requests.transfers())
      if (c.managed && request.op == Op::kRequestToSend && !request.over && !over(request.tries))
        owed(c, request.tries, debtor, Rule::kOfferUnanswered,
             "RTS with " + named_hex("I_id", i_id));
    for (auto& [g_num, get] : traffic.gets)
      if (!get.taken_back && !over(get.tries))
        owed(c, get.tries, debtor, Rule::kGetUnanswered, "GET with " + named("G_num", g_num));
    for (auto& [ids, end] : traffic.ends)
      if (!over(end.tries))
        owed(c, end.tries, debtor, Rule::kEndUnanswered,
             "END with " + named_hex("S_id", ids & 0xffffffff));
  }
}

}  // namespace stp::replay
