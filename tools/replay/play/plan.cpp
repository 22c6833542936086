// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/node_subject.h"

#include <algorithm>
#include <bit>
#include <set>

#include "stp/wire/tiling.h"

namespace stp::replay {
namespace {

using wire::Op;

EndpointConfig config_of(const wire::Header& h) {
  EndpointConfig config;
  config.bufsize = h.bufx;
  config.max_stu = h.sync;
  config.slots = std::max<std::uint32_t>(h.param, 1);
  config.credits = kCredits;
  config.key = h.offset;
  config.checksum = h.cksum != 0;
  config.keep_alive = false;  // a silent peer in the trace may still be there
  config.rx_bufx_count = ~std::uint32_t{0};
  return config;
}

// Limits the memory of one grant in a trace, which may be hostile.
constexpr std::uint64_t kMostGranted = std::uint64_t{1} << 24;

}  // namespace

bool asks_for_answer(const wire::Header& h) {
  return h.op() == Op::kGet && !h.has(wire::flag::kReject) &&
         h.function() != wire::Function::kFetchOpComplete;
}

std::uint64_t granted_bytes(const wire::Header& h) {
  if (h.op() == Op::kClearToSend) return std::min(std::uint64_t{1} << h.param, kMostGranted);
  if (h.op() == Op::kMemoryRegionAvailable) return std::min(h.t_len(), kMostGranted);
  return h.param == 0 ? 65'536 : h.param;
}

void UserPlan::grant(std::uint16_t mx, std::uint64_t first, std::uint64_t end) {
  constexpr std::uint64_t kNear = 16;
  auto& under_mx = by_mx_.try_emplace(mx, first, end).first->second;
  first = under_mx.first = std::min(first, under_mx.first);
  end = under_mx.second = std::max(end, under_mx.second);
  auto at = granted.upper_bound(end + kNear);
  while (at != granted.begin()) {
    const auto before = std::prev(at);
    if (before->second + kNear < first) break;
    first = std::min(first, before->first);
    end = std::max(end, before->second);
    at = granted.erase(before);
  }
  granted[first] = end;
}

Plan::Plan(const std::deque<Recorded>& trace, const MacAddr& station)
    : trace_(trace), station_(station) {
  find_endpoints();
  OpenRequests open;
  for (std::size_t at = 0; at < trace_.size(); ++at) {
    if (!trace_[at].decoded.well_formed()) continue;
    const auto& h = header(at);
    note_connection(at, open);
    // The Node of a connectionless endpoint answers no GET.
    if (receives(at) && asks_for_answer(h) && !at_endpoint(at))
      gets_[{line(at), h.d_id, h.s_id}].push_back(at);
    if (sends(at)) note_request(at);
  }
}

bool Plan::sends(std::size_t at) const {
  const auto& frame = trace_[at].decoded;
  return frame.well_formed() && frame.frame.src == station_;
}

bool Plan::receives(std::size_t at) const {
  const auto& frame = trace_[at].decoded;
  return frame.has_header && frame.frame.dst == station_;
}

bool Plan::at_endpoint(std::size_t at) const {
  const auto user = by_port_.find(line(at).own);
  return user != by_port_.end() && user->second->config.connectionless;
}

std::shared_ptr<UserPlan> Plan::asker(std::uint32_t key) const {
  const auto at = by_key_.find(key);
  return at == by_key_.end() ? nullptr : at->second;
}

Welcome Plan::welcome(std::size_t at) const {
  const auto known = welcomes_.find(at);
  return known == welcomes_.end() ? Welcome::kIgnore : known->second;
}

std::optional<std::uint16_t> Plan::vlan() const {
  for (std::size_t at = 0; at < trace_.size(); ++at)
    if (sends(at)) return trace_[at].decoded.frame.vlan;
  return std::nullopt;
}

bool Plan::pads() const {
  for (std::size_t at = 0; at < trace_.size(); ++at)
    if (sends(at) && trace_[at].decoded.frame.padded) return true;
  return false;
}

// Creates a user for each RC of the station, and one for each UPort on which the station answered
// an RC. `open`: the RCs to the station, by the requester's address and Key.
void Plan::note_connection(std::size_t at, OpenRequests& open) {
  const auto& frame = trace_[at].decoded.frame;
  const auto& h = frame.header;
  if (h.op() == Op::kRequestConnection && frame.src == station_) {
    auto& user = by_key_[h.offset];
    if (!user) {
      user = std::make_shared<UserPlan>();
      user->config = config_of(h);
      users_.push_back(user);
    }
    by_port_[h.s_port] = user;
  }
  if (h.op() == Op::kRequestConnection && frame.dst == station_) {
    // Of those of several lengths, the first one makes the connection. protocol: 13.20
    auto& asked = open.try_emplace({frame.src, h.offset}, at).first->second;
    if (header(asked).sync == h.sync && header(asked).b_num == h.b_num) asked = at;
  }
  if (h.op() != Op::kConnectionAnswer) return;
  if (receives(at) && !h.has(wire::flag::kReject)) peer_bufsizes_[line(at)] = h.bufx;
  if (!sends(at)) return;
  const auto asked = open.find({frame.dst, h.d_key});
  if (asked == open.end()) return;
  peer_bufsizes_[line(at)] = header(asked->second).bufx;
  // Only a user sends an option payload, so a refusal with one was a user's decision.
  // protocol: 5.28
  const bool decided = !frame.option.empty();
  const bool refused = h.has(wire::flag::kReject);
  welcomes_[asked->second] = refused && !decided ? Welcome::kRefuse : Welcome::kAccept;
  if (refused && !decided) return;
  auto& user = by_uport_[header(asked->second).d_id];
  if (!user) {
    user = std::make_shared<UserPlan>();
    user->config = refused ? EndpointConfig{} : config_of(h);
    user->config.inspect = decided;
    user->config.key = 0;  // each connection has a different Key
    user->listens = header(asked->second).d_id;
    users_.push_back(user);
  }
  if (!refused) by_port_[h.s_port] = user;
}

void Plan::note_request(std::size_t at) {
  const auto& frame = trace_[at].decoded.frame;
  const auto& h = frame.header;
  const auto known = by_port_.find(h.s_port);
  if (known == by_port_.end()) return;
  auto& user = *known->second;
  if (h.op() == Op::kData) user.sent_bytes += frame.stu.size();
  const bool get = h.op() == Op::kGet;
  const bool grants = h.op() == Op::kClearToSend || get || h.op() == Op::kMemoryRegionAvailable;
  if (!grants || h.mx == 0 || h.has(wire::flag::kReject)) return;
  const auto bufsize = user.config.bufsize;
  const auto start = (get ? Address{h.sync, h.b_num} : Address{h.bufx, h.offset}).linear(bufsize);
  const auto end = start + std::max<std::uint64_t>(granted_bytes(h), 1);
  user.grant(h.mx, start >> bufsize, ((end - 1) >> bufsize) + 1);
}

// A Transfer of the peer may have the number of a region of the station, and a Block that of a Get.
// The place in memory distinguishes them.
std::optional<std::size_t> Plan::get_of(std::size_t at) const {
  const auto& h = header(at);
  const auto asked = gets_.find({line(at), h.d_id, h.b_num});
  if (asked == gets_.end()) return std::nullopt;
  const auto after = std::ranges::upper_bound(asked->second, at);
  if (after == asked->second.begin() || !is_answer(*std::prev(after), h)) return std::nullopt;
  return *std::prev(after);
}

bool Plan::is_answered_whole(std::size_t get) const {
  const auto answer = answer_to(get);
  return !answer.empty() && header(answer.back()).has(wire::flag::kLast);
}

bool Plan::is_answer(std::size_t at, const wire::Header& h) const {
  const auto& get = header(at);
  const auto sizes = peer_bufsizes_.find(line(at));
  const auto bufsize = sizes == peer_bufsizes_.end() ? wire::kMinBufsize : sizes->second;
  const auto start = Address{get.sync, get.b_num}.linear(bufsize);
  const auto place = Address{h.bufx, h.offset}.linear(bufsize);
  return h.mx == get.mx && place >= start && place < start + granted_bytes(get);
}

// Frames that the capture shows between an RD to the station and its DA, or shortly after the RD,
// were sent before it arrived.
// protocol: 5.17
std::vector<std::size_t> Plan::on_its_way(std::size_t at) const {
  constexpr std::int64_t kSoon = 1'000'000'000;
  std::vector<std::size_t> frames;
  const auto answer = answer_to_rd(at, kSoon).value_or(at);
  const auto deadline = trace_[at].decoded.time + kOnItsWay;
  for (auto i = at + 1; i < trace_.size() && (i < answer || trace_[i].decoded.time <= deadline);
       ++i)
    if (sends(i) && line(i) == line(at) && header(i).op() > Op::kDisconnectComplete)
      frames.push_back(i);
  return frames;
}

// A Node answers a question about its state at once. If it sends an RD instead, it had sent that
// before, however late the capture shows it: its host may have been busy.
const wire::Frame* Plan::closed_before(std::size_t at) const {
  constexpr std::int64_t kSoon = 1'000'000'000;
  const bool asks = header(at).op() == Op::kRequestState || header(at).has(wire::flag::kSendState);
  const auto deadline = trace_[at].decoded.time + (asks ? kSoon : kOnItsWay);
  for (auto i = at + 1; i < trace_.size() && trace_[i].decoded.time <= deadline; ++i)
    if (sends(i) && line(i) == line(at) && !(header(i).op() == Op::kData && is_torn(i)))
      return header(i).op() == Op::kRequestDisconnect ? &trace_[i].decoded.frame : nullptr;
  return nullptr;
}

bool Plan::is_answered(std::size_t at) const {
  return answer_to_rd(at, kOnItsWay).has_value();
}

std::optional<std::size_t> Plan::answer_to_rd(std::size_t at, std::int64_t within) const {
  const auto deadline = trace_[at].decoded.time + within;
  for (auto i = at + 1; i < trace_.size() && trace_[i].decoded.time <= deadline; ++i)
    if (sends(i) && line(i) == line(at) && header(i).op() == Op::kDisconnectAnswer &&
        header(i).d_key == header(at).offset)
      return i;
  return std::nullopt;
}

// Whether the peer gives the GET up instead of repeating it: it cancels the GET, or the connection
// ends.
bool Plan::is_given_up(std::size_t get) const {
  constexpr std::int64_t kSoon = 1'000'000'000;
  const auto deadline = trace_[get].decoded.time + kSoon;
  for (auto i = get + 1; i < trace_.size() && trace_[i].decoded.time <= deadline; ++i) {
    if (!(sends(i) || receives(i)) || line(i) != line(get)) continue;
    const auto& h = header(i);
    const bool taken_back = h.op() == Op::kGet && h.s_id == header(get).s_id &&
                            h.function() == wire::Function::kFetchOpComplete;
    if (taken_back || h.op() == Op::kRequestDisconnect) return true;
  }
  return false;
}

bool Plan::is_torn(std::size_t at) const {
  const auto& first = header(at);
  if (const auto get = get_of(at)) return !is_answered_whole(*get);
  // Without a CTS for the Block no user can request a part of it.
  // protocol: 8.12
  if (at_endpoint(at) && first.param != 0) return true;
  std::uint32_t last = first.param, count = 0;
  for (auto i = at; i < trace_.size(); ++i) {
    const auto& h = header(i);
    const bool same = sends(i) && h.op() == Op::kData && line(i) == line(at) &&
                      h.d_id == first.d_id && h.b_num == first.b_num;
    if (!same) continue;
    if (i != at && h.param <= first.param) return true;  // the Block starts again
    last = std::max<std::uint32_t>(last, h.param);
    ++count;
    if (h.has(wire::flag::kLast)) return count != last - first.param + 1;
  }
  return true;
}

std::vector<std::size_t> Plan::request_at(std::size_t at) const {
  if (get_of(at)) return {};
  const auto& first = header(at);
  std::vector<std::size_t> stus;
  auto next = first.param;
  for (auto i = at; i < trace_.size(); ++i) {
    const auto& h = header(i);
    const bool same = sends(i) && h.op() == Op::kData && line(i) == line(at) &&
                      h.d_id == first.d_id && h.b_num == first.b_num;
    if (!same) continue;
    if (h.param != next++) return {};
    stus.push_back(i);
    if (h.has(wire::flag::kLast)) return stus;
  }
  return {};
}

std::vector<std::size_t> Plan::answer_to(std::size_t at) const {
  const auto& get = header(at);
  std::vector<std::size_t> stus;
  for (auto i = at; i < trace_.size(); ++i) {
    const auto& h = header(i);
    if (!sends(i) || h.op() != Op::kData || line(i) != line(at) || h.d_id != get.d_id ||
        h.b_num != get.s_id || !get_of(i))
      continue;
    stus.push_back(i);
    if (h.has(wire::flag::kLast)) break;
  }
  return stus;
}

// --- connectionless endpoints: their Ports, Keys and sizes, as far as a trace shows them

namespace {

using wire::Op;

// Operations that connectionless endpoints do not use.
bool needs_connection(Op op) {
  return op <= Op::kDisconnectComplete || op == Op::kClearToSend ||
         op == Op::kMemoryRegionAvailable;
}

constexpr std::uint32_t kEndpointSlots = 4096;

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
    seen.scheduled |= needs_connection(h.op());
  }
  for (const auto& [port, seen] : unknown) {
    if (seen.lines.size() < 2 && (!seen.sends || seen.scheduled)) continue;
    auto& user = by_port_[port] = users_.emplace_back(std::make_shared<UserPlan>());
    user->config.connectionless = true;
    user->config.port = port;
    user->config.key = seen.key.value_or(0);
    user->config.slots = kEndpointSlots;
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
