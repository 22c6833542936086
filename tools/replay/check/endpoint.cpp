// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/check/endpoint.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "stp/wire/tiling.h"
#include "tools/replay/check/checker_impl.h"
#include "tools/replay/text.h"

namespace stp::replay {

// protocol: 8.2, 11.8
bool EndpointSizes::allow(const SeenStu& stu) {
  auto least = least_, most = most_;
  if (stu.length > 1)
    least = std::max(least, static_cast<unsigned>(std::bit_width(stu.length - 1)));
  const auto divides = [&](std::uint64_t place) {
    if (place != 0) most = std::min(most, static_cast<unsigned>(std::countr_zero(place)));
  };
  if (stu.number != 0) divides(stu.offset);         // begins at the start of a tile
  if (!stu.last) divides(stu.offset + stu.length);  // ends at the end of a tile
  if (stu.number != 0 && !stu.last) divides(stu.length);
  if (least > most) return false;
  least_ = least;
  most_ = most;
  return true;
}

// Derives the buffer size from two STUs: their distance in bytes, divided by that in buffers.
bool EndpointSizes::span(const SeenStu& one, const SeenStu& other) {
  const auto size = std::int64_t{1} << most_;
  const auto tile = [&](const SeenStu& stu) { return std::int64_t{stu.offset} / size; };
  const auto buffers = std::int64_t{other.bufx} - one.bufx;
  const auto tiles = std::int64_t{other.number} - one.number - tile(other) + tile(one);
  const auto bytes = tiles * size;
  if (bytes % buffers != 0 || bytes / buffers <= 0) return false;
  const auto bufsize = static_cast<std::uint64_t>(bytes / buffers);
  if (!std::has_single_bit(bufsize)) return false;
  const auto log2 = static_cast<unsigned>(std::countr_zero(bufsize));
  if (log2 < most_ || log2 > wire::kMaxBufsize) return false;
  bufsize_ = log2;
  return true;
}

// --- connectionless endpoints (docs/protocol.md, section 11). Programs exchange Ports, Keys and
// sizes by other means, so the first frame that names one is accepted

namespace {

using wire::Op;

constexpr TraceTime kNameRests = 4'000'000'000;  // protocol: 11.7
// A sender that still uses an old Key this long after a new one appeared does not know the new one.
constexpr TraceTime kTold = 1'000'000'000;

bool ends_connection(Op op) {
  return op == Op::kRequestDisconnect || op == Op::kDisconnectAnswer ||
         op == Op::kDisconnectComplete;
}

BlockName name_of(const Said& said) {
  return {source_of(said.frame), said.h.d_id, said.h.b_num};
}

// Prepares a pair of sides for the DATA checks of connections. An endpoint assumes that all its
// peers have its own sizes. protocol: 11.8
void adopt_sizes(Connection& pair, const Endpoint& endpoint) {
  for (auto& side : pair.sides) {
    side.sized = true;
    side.max_stu = endpoint.sizes.stu_log2();
    side.bufsize = endpoint.sizes.bufsize().value_or(wire::kMaxBufsize);
  }
}

}  // namespace

// Returns true if the frame belongs to a connectionless endpoint.
bool Checker::Impl::follow_endpoint(const Decoded& frame) {
  const auto& h = frame.frame.header;
  auto* endpoint = endpoints.find(target_of(frame));
  if (ends_connection(h.op())) {
    if (endpoint == nullptr || !endpoint->certain) return false;
    // protocol: 11.10
    report(frame, Rule::kEndpointOperation, "no end of a connection, as there is none",
           operation_text(frame), options.lossy);
    return true;
  }
  if (endpoint == nullptr) {
    endpoint = &endpoints.put(target_of(frame), {});
    endpoint->sender = source_of(frame);
  }
  Connection pair;
  pair.sides[0].mac = frame.frame.src;
  pair.sides[1].mac = frame.frame.dst;
  const Said said{frame, h, pair, pair.sides[0], pair.sides[1], frame.time};
  if (!check_endpoint_key(said, *endpoint)) return endpoint->certain;
  recognize(frame, *endpoint);
  pair.mute = !endpoint->certain;
  if (h.op() == Op::kData) on_endpoint_data(said, *endpoint);
  return endpoint->certain;
}

// A second sender shows that a Port is an endpoint, because a connection has one peer. A sender to
// an endpoint is an endpoint too.
void Checker::Impl::recognize(const Decoded& frame, Endpoint& endpoint) {
  auto* const sender = endpoints.find(source_of(frame));
  endpoint.certain = endpoint.certain || options.endpoints || endpoint.sender != source_of(frame) ||
                     (sender != nullptr && sender->certain);
  if (endpoint.certain && sender != nullptr) sender->certain = true;
}

// A new Key may be wrong, or the endpoint was opened again: if the old Key is used again later, the
// new one was wrong. Returns false if the frame is not for the present endpoint.
// protocol: 11.2
bool Checker::Impl::check_endpoint_key(const Said& said, Endpoint& endpoint) {
  const auto key = said.h.d_key;
  const auto sender = source_of(said.frame);
  if (endpoint.key == key) return true;
  if (endpoint.key && endpoint.key_before == key) {
    const bool stale = sender != endpoint.key_by && between(endpoint.key_since, said.now) < kTold;
    if (stale) return false;
    Decoded wrong;
    wrong.number = endpoint.key_frame;
    wrong.time = endpoint.key_since;
    report(wrong, Rule::kWrongKey, named_hex("D_Key", key), named_hex("D_Key", *endpoint.key),
           options.lossy);
    endpoint.key_before.reset();
    endpoint.key = key;
    return true;
  }
  endpoint.key_before = endpoint.key;
  endpoint.key = key;
  endpoint.key_by = sender;
  endpoint.key_since = said.now;
  endpoint.key_frame = said.frame.number;
  endpoint.blocks = {};
  if (endpoint.key_before) endpoint.sender = sender;  // the endpoint was opened again
  return true;
}

// protocol: 11.6, 11.7
void Checker::Impl::on_endpoint_data(const Said& said, Endpoint& endpoint) {
  const auto& h = said.h;
  check_last_flags(said);
  if (h.mx == 0) return report(said, Rule::kMxZero, "an Mx other than 0", "R_Mx 0");
  const bool guessed = !endpoint.sizes.stu_known();
  const auto stu = SeenStu::of(h, said.frame.frame.stu.size());
  if (!endpoint.sizes.allow(stu))
    return report(said, Rule::kStuLength, "an STU of the size that others had",
                  operation_text(said.frame));
  if (guessed && endpoint.sizes.stu_known()) endpoint.blocks = {};  // based on a guessed STU size
  auto* sent = &sent_block(said, endpoint);
  if (sent->block.mx != h.mx)
    return once(sent->faulty, [&] {
      report(said, Rule::kBlockMx, named("R_Mx", sent->block.mx) + ", as in the Block's others",
             named("R_Mx", h.mx));
    });
  const auto before = std::exchange(sent->newest, stu);
  const bool first = std::exchange(sent->sent, said.now) == kNotYet;
  if (!endpoint.sizes.stu_known()) return;
  if (!endpoint.sizes.bufsize() && !first && before.bufx != stu.bufx) {
    if (!endpoint.sizes.span(before, stu))
      return report(said, Rule::kStuPlace,
                    "a place that follows from STU " + std::to_string(before.number),
                    operation_text(said.frame));
    endpoint.blocks = {};  // based on guessed sizes
    sent = &sent_block(said, endpoint);
    sent->sent = said.now;
    sent->newest = stu;
  }
  adopt_sizes(said.c, endpoint);
  once(sent->faulty, [&] {
    if (endpoint.sizes.bufsize() && !check_buffer(said)) return;
    constexpr auto kAnywhere = std::uint64_t{1} << 62;
    if (place(said, sent->block, 0, kAnywhere) && sent->block.whole() && sent->whole == kNotYet)
      sent->whole = said.now;
  });
}

// Returns the Block of an STU, and creates it if it is new.
SentBlock& Checker::Impl::sent_block(const Said& said, Endpoint& endpoint) {
  const auto& h = said.h;
  auto* const known = endpoint.blocks.find(name_of(said));
  bool fresh = known == nullptr;
  if (known != nullptr && known->whole != kNotYet) {
    const bool other =
        known->block.mx != h.mx ||
        (h.param == 0 &&
         known->block.start != Address{h.bufx, h.offset}.linear(
                                   endpoint.sizes.bufsize().value_or(wire::kMaxBufsize)));
    const bool rested = between(known->whole, said.now) >= kNameRests;
    if (other && !rested) {
      report(said, Rule::kBlockName, "a name that no Block of the last 4 s had",
             operation_text(said.frame));
      fresh = true;
    }
    fresh = fresh || rested;
  } else if (known != nullptr && between(known->sent, said.now) >= kNameRests) {
    fresh = true;  // the earlier Block was given up, or starts again
  }
  if (!fresh) return *known;
  SentBlock begun;
  begun.block.mx = h.mx;
  return endpoint.blocks.put(name_of(said), std::move(begun));
}

}  // namespace stp::replay
