// SPDX-License-Identifier: BSD-3-Clause
// Connectionless endpoints: their Ports, Keys and sizes, as far as a trace shows them.
#include <algorithm>
#include <bit>
#include <set>

#include "tools/replay/play/plan.h"

namespace stp::replay {
namespace {

using wire::Op;

// Operations that connectionless endpoints do not use.
bool is_scheduled(Op op) {
  return op <= Op::kDisconnectComplete || op == Op::kClearToSend ||
         op == Op::kMemoryRegionAvailable;
}

constexpr std::uint32_t kSlots = 4096;

}  // namespace

// Finds Ports of the station that no RC or CA has named. With two senders, a Port is
// connectionless. With one sender, it may belong to a connection from before the trace, and does if
// a scheduled operation uses it.
void Plan::find_endpoints() {
  struct Seen {
    std::set<Line> lines;
    std::optional<std::uint32_t> key;
    bool sends = false, scheduled = false, checksum = false;
  };
  std::map<std::uint16_t, Seen> unknown;
  std::set<std::uint16_t> connected;
  for (std::size_t at = 0; at < trace_.size(); ++at) {
    if (!trace_[at].decoded.well_formed() || (!sends(at) && !receives(at))) continue;
    const auto& h = header(at);
    const auto own = line(at).own;
    const bool connects = h.op() == Op::kRequestConnection || h.op() == Op::kConnectionAnswer;
    if (connects && sends(at)) connected.insert(own);
    if (connects || own == 0 || connected.contains(own)) continue;
    auto& seen = unknown[own];
    if (receives(at) && !seen.key) seen.key = h.d_key;
    if (receives(at) && seen.key == h.d_key) seen.lines.insert(line(at));
    seen.sends |= sends(at);
    seen.checksum |= sends(at) && h.cksum != 0;
    seen.scheduled |= is_scheduled(h.op());
  }
  for (const auto& [port, seen] : unknown) {
    if (seen.lines.size() < 2 && (!seen.sends || seen.scheduled)) continue;
    auto& user = by_port_[port] = users_.emplace_back(std::make_shared<UserPlan>());
    user->config.connectionless = true;
    user->config.port = port;
    user->config.key = seen.key.value_or(0);
    user->config.slots = kSlots;
    user->config.credits = kCredits;
    user->config.checksum = seen.checksum;
    user->config.rx_bufx_count = ~std::uint32_t{0};
    learn_sizes(port, *user);
  }
}

// Programs agree on sizes, so the sizes of its own DATA are also those of the DATA it receives.
// protocol: 11.8
void Plan::learn_sizes(std::uint16_t port, UserPlan& user) const {
  EndpointSizes sizes;
  std::map<std::tuple<Line, bool, std::uint32_t, std::uint32_t>, SeenStu> newest;
  std::uint64_t buffer_end = 1;
  for (std::size_t at = 0; at < trace_.size(); ++at) {
    if (!trace_[at].decoded.well_formed() || line(at).own != port) continue;
    const auto& h = header(at);
    if (h.op() != Op::kData || (!sends(at) && !receives(at))) continue;
    const auto stu = SeenStu::of(h, trace_[at].decoded.frame.stu.size());
    if (!sizes.allow(stu)) continue;
    if (sends(at)) buffer_end = std::max(buffer_end, stu.offset + stu.length);
    auto& before = newest[{line(at), sends(at), h.d_id, h.b_num}];
    const bool next = stu.number == before.number + 1 && !before.last && stu.bufx != before.bufx;
    if (next && sizes.stu_known() && !sizes.bufsize()) sizes.span(before, stu);
    before = stu;
  }
  const auto least = static_cast<unsigned>(std::bit_width(buffer_end - 1));
  user.config.max_stu = sizes.stu_log2();
  // Two Blocks with the same name may look like one Block with a smaller buffer size.
  user.config.bufsize = std::clamp(std::max(least, sizes.bufsize().value_or(sizes.stu_log2())),
                                   wire::kMinBufsize, wire::kMaxBufsize);
}

}  // namespace stp::replay
