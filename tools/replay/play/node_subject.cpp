// SPDX-License-Identifier: BSD-3-Clause
#include "tools/replay/play/node_subject.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include "stp/wire/operations.h"
#include "stp/wire/tiling.h"
#include "tools/replay/text.h"

namespace stp::replay {
namespace {

using wire::Op;

// The most memory of all users of a trace, for grants and for sending. Pages that no frame touches
// take none.
constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 32;

std::uint64_t buffers_to_send(const UserPlan& plan) {
  return plan.sent_bytes == 0 ? 0 : ((plan.sent_bytes - 1) >> plan.config.bufsize) + 1;
}

NodeConfig node_config(const MacAddr& station, const Plan& plan) {
  NodeConfig config;
  config.mac = station;
  config.max_stu = wire::kMaxMaxStu;
  config.vlan = plan.vlan();
  config.padded_requests = plan.pads();
  return config;
}

}  // namespace

// Uses mmap(), so that pages that no frame touches need no memory.
PageMemory::PageMemory(std::size_t size) {
  auto* const pages = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(pages), Unmap{size}};
}

void KnownBytes::forget(std::size_t from, std::size_t length) {
  const auto end = from + length;
  while (from < end) {
    auto& byte = bits_.all()[from / 8];
    const bool whole = from % 8 == 0 && end - from >= 8;
    if (byte != std::byte{0}) byte &= whole ? std::byte{0} : ~bit(from);
    from += whole ? 8 : 1;
  }
}

void PageMemory::Unmap::operator()(std::byte* bytes) const {
  ::munmap(bytes, size);
}

NodeSubject::NodeSubject(const std::deque<Recorded>& trace, const MacAddr& station, Renaming& names,
                         Output output)
    : trace_(trace),
      plan_(trace, station),
      shortage_(trace, station),
      given_up_(trace, station),
      station_(station),
      names_(names),
      output_(std::move(output)),
      node_(node_config(station, plan_), keys_) {
  if (!has_room()) return;
  for (const auto& plan : plan_.users()) make_user(plan);
}

bool NodeSubject::has_room() {
  std::uint64_t all = 0;
  for (const auto& plan : plan_.users()) {
    auto buffers = buffers_to_send(*plan);
    for (const auto& [first, end] : plan->granted) buffers += end - first;
    const auto bytes = buffers << plan->config.bufsize;
    const bool fits = buffers <= kMostMemory >> plan->config.bufsize && bytes <= kMostMemory - all;
    if (fits) {
      all += bytes;
      continue;
    }
    refused_ = "the users of " + to_string(station_) + " grant and send more than " +
               std::to_string(kMostMemory >> 30) +
               " GiB in this trace; play a part of it (editcap -r FILE PART 1-100000)";
    return false;
  }
  return true;
}

void NodeSubject::make_user(const std::shared_ptr<UserPlan>& plan) {
  auto& user = *users_.emplace_back(std::make_unique<User>());
  user.plan = plan;
  if (node_.open_endpoint(plan->config, user.endpoint) != 0) {
    troubles_.push_back("the Node takes no endpoint with the sizes of the trace");
    return;
  }
  map_memory(user);
  if (plan->listens) user.listening = node_.listen(user.endpoint, *plan->listens) == 0;
  if (plan->config.connectionless) open_port(user);
}

// protocol: 11.1
void NodeSubject::open_port(User& user) {
  const auto port = user.plan->config.port;
  auto* const channel = channel_of(user);
  VcId id = kNoneId;
  if (node_.open_port(user.endpoint, channel, channels_.size() - 1, id, now_) != 0) {
    troubles_.push_back("the Node cannot open the endpoint with Port " + std::to_string(port));
    return;
  }
  names_.bind(Name::kPort, port, port);
  vcs_[port] = {id, &user, UserChannel(channel), false, {}};
}

RegionId NodeSubject::map(const User& user, Direction direction, std::uint64_t first,
                          const PageMemory& memory) {
  const MutableBytes piece = memory.all();
  RegionId region = kNoneId;
  if (node_.map(user.endpoint, direction, static_cast<std::uint32_t>(first), {&piece, 1}, region) !=
      0)
    troubles_.push_back("the Node cannot map the buffers that the trace names");
  return region;
}

void NodeSubject::map_memory(User& user) {
  const auto bufsize = user.plan->config.bufsize;
  for (const auto& [first, end] : user.plan->granted) {
    auto& landing = user.landings.emplace_back();
    landing.start = first << bufsize;
    landing.memory = PageMemory((end - first) << bufsize);
    landing.known = KnownBytes(landing.memory.all().size());
    landing.region = map(user, Direction::kReceive, first, landing.memory);
  }
  const auto whole = buffers_to_send(*user.plan);
  if (whole == 0) return;
  user.transmit_memory = PageMemory(whole << bufsize);
  map(user, Direction::kTransmit, 0, user.transmit_memory);
}

NodeSubject::Landing* NodeSubject::User::landing_of(std::uint64_t address) {
  for (auto& landing : landings)
    if (address >= landing.start && address - landing.start < landing.known.size()) return &landing;
  return nullptr;
}

std::byte* NodeSubject::channel_of(const User& user) {
  const auto& config = user.plan->config;
  channels_.emplace_back(ChannelGeometry{config.slots, config.credits}.size());
  return channels_.back().all().data();
}

void NodeSubject::advance(std::int64_t now) {
  const auto trace_time = static_cast<Time>(std::max<std::int64_t>(now, 0));
  // Skips long gaps: otherwise the Node would ask its peer every two seconds of the gap.
  skipped_ = std::max(skipped_, trace_time - std::min(trace_time, now_ + kLongestGap));
  const auto until = std::max(now_, trace_time - std::min(trace_time, skipped_));
  while (node_.next_deadline() <= until) {
    now_ = std::max(now_, node_.next_deadline());
    node_.expire(now_);
    pump();
  }
  now_ = until;
}

// A listener accepts as many RCs as it has channels. So it gets one just before each RC that the
// trace's listener accepted.
void NodeSubject::deliver(std::size_t at, Bytes frame) {
  const auto& h = trace_[at].decoded.frame.header;
  if (shortage_.drops(at)) return no_slot_.push_back(trace_[at].decoded.number);
  if (given_up_.ignores(at)) return ignored_.push_back(trace_[at].decoded.number);
  if (trace_[at].decoded.well_formed()) {
    if (h.op() == Op::kRequestDisconnect) {
      for (const auto sent : plan_.on_its_way(at)) decided_[sent] = decide_now(sent);
      forget_gone(at);
    }
    if (h.op() == Op::kRequestConnection) welcome_by(h, plan_.welcome(at));
    if (asks_for_answer(h)) {
      prepare_get(at);
      // The station's answer may have waited for credit until the end of the trace.
      if (!plan_.is_answered_whole(at) && (plan_.is_given_up(at) || given_up_.fails(at)))
        unanswered_[{trace_[at].decoded.frame.src, h.s_port, h.d_id, h.s_id}] = at;
    }
    if (h.op() == Op::kData) learn_data(at);
    const auto* const rd = plan_.closed_before(at);
    if (auto* const vc = vc_of(h.d_port); vc != nullptr && rd != nullptr) close(*vc, *rd);
  }
  node_.receive({&frame, 1}, now_);
  pump();
}

// A user that refuses stops listening.
void NodeSubject::welcome_by(const wire::Header& rc, Welcome welcome) {
  for (const auto& user : users_) {
    if (user->plan->listens != rc.d_id || welcome == Welcome::kIgnore) continue;
    const bool listens = welcome == Welcome::kAccept;
    const bool listened = std::exchange(user->listening, listens);
    if (listens && !listened) node_.listen(user->endpoint, rc.d_id);
    if (!listens && listened) node_.unlisten(user->endpoint);
    if (!listens) continue;
    auto* const channel = channel_of(*user);
    node_.stock(user->endpoint, channel, channels_.size() - 1);
  }
}

// Sends frames, takes headers from the channels and drops them, and accepts connections.
void NodeSubject::pump() {
  Recorded sent;
  for (;;) {
    sent.bytes.resize(node_.frame_room());
    TxFrame frame{.head = sent.bytes.data(), .attached = {}, .token = {}};
    if (node_.transmit({&frame, 1}, now_) == 0) break;
    sent.bytes.resize(frame.head_length);
    sent.bytes.insert(sent.bytes.end(), frame.attached.begin(), frame.attached.end());
    node_.transmitted(frame.token);
    Decoder decoder;
    sent.decoded = decoder.decode(
        {0, static_cast<std::int64_t>(now_ + skipped_), sent.bytes, sent.bytes.size()});
    if (!is_owed(sent.decoded.frame)) output_(sent);
  }
  Event event{};
  while (node_.next_event(event)) {
    if (event.kind == Event::Kind::kVcGone)
      std::erase_if(vcs_, [&](const auto& vc) { return vc.second.id == event.id; });
  }
  for (const auto& user : users_) {
    VcId id = kNoneId;
    while (user->plan->listens && node_.accept(user->endpoint, id) == 0) {
      VcInfo info{};
      if (node_.vc_info(id, info) != 0) continue;
      vcs_[info.local_port] = {
          id, user.get(), UserChannel(channels_[info.cookie].all().data()), false, {}};
    }
  }
  read_queues();
}

void NodeSubject::read_queues() {
  ReceivedEntry entry;
  for (auto& [port, vc] : vcs_)
    while (vc.channel.receive(entry)) continue;
}

NodeSubject::Vc* NodeSubject::vc_of(std::uint16_t own_port) {
  const auto at = vcs_.find(static_cast<std::uint16_t>(names_.live(Name::kPort, own_port)));
  return at == vcs_.end() ? nullptr : &at->second;
}

void NodeSubject::trouble(std::size_t at, const std::string& what) {
  troubles_.push_back("frame " + std::to_string(trace_[at].decoded.number) + ": " + what + ": " +
                      operation_text(trace_[at].decoded));
}

bool NodeSubject::is_owed(const wire::Frame& sent) const {
  const auto& h = sent.header;
  if (h.op() != Op::kData) return false;
  const auto get = unanswered_.find({sent.dst, h.d_port, h.d_id, h.b_num});
  return get != unanswered_.end() && plan_.is_answer(get->second, h);
}

std::vector<std::string> NodeSubject::notes() const {
  std::vector<std::string> notes;
  const auto first_of = [](std::size_t count, std::uint64_t frame, const char* what) {
    return std::to_string(count) + what + ", the first in frame " + std::to_string(frame);
  };
  if (!torn_.empty())
    notes.push_back(first_of(torn_.size(), torn_.front(),
                             " STUs belong to Blocks of which the trace lacks STUs"));
  if (!no_slot_.empty())
    notes.push_back(first_of(no_slot_.size(), no_slot_.front(),
                             " frames to the station found no free Slot there"));
  if (!ignored_.empty())
    notes.push_back(first_of(ignored_.size(), ignored_.front(),
                             " frames belong to connections that the station had given up"));
  if (!unanswered_.empty())
    notes.push_back(
        std::to_string(unanswered_.size()) +
        " GETs had no complete answer when they were given up: it may have waited for credit");
  return notes;
}

// --- the decisions of the trace's users: to connect, to accept, to send, to close

namespace {

using wire::Op;

// Operations that the Node sends by itself, without a user's request.
bool is_nodes_own(const wire::Header& h) {
  return h.op() <= Op::kDisconnectComplete || h.op() == Op::kRequestStateResponse ||
         own_question(h) || (h.op() == Op::kGet && h.has(wire::flag::kReject));
}

}  // namespace

bool NodeSubject::decide(std::size_t at) {
  const auto before = decided_.find(at);
  return before == decided_.end() ? decide_now(at) : before->second;
}

bool NodeSubject::decide_now(std::size_t at) {
  const auto& h = trace_[at].decoded.frame.header;
  auto* const vc = vc_of(h.s_port);
  const bool endpoint = vc != nullptr && vc->user->plan->config.connectionless;
  if (h.op() == Op::kRequestConnection) {
    connect(at);
  } else if (h.op() == Op::kConnectionAnswer) {
    welcome(at);
  } else if (h.op() == Op::kRequestDisconnect && vc != nullptr) {
    close(*vc, trace_[at].decoded.frame);
  } else if (h.op() == Op::kData && !requested_.contains(at) && plan_.is_torn(at)) {
    torn_.push_back(trace_[at].decoded.number);
    return false;
  } else if (endpoint || !is_nodes_own(h)) {
    if (vc != nullptr)
      request(*vc, at);
    else
      trouble(at, "no such connection lives");
  }
  return true;
}

// An RD with other names answers an unexpected CA. The Node sends that by itself.
// protocol: 5.9, 5.32
void NodeSubject::close(Vc& vc, const wire::Frame& rd) {
  VcInfo info{};
  const bool same = node_.vc_info(vc.id, info) == 0 && rd.dst == info.peer_mac &&
                    rd.header.d_port == info.remote_port && rd.header.d_key == info.remote_key &&
                    names_.live(Name::kKey, rd.header.offset) == info.local_key;
  if (!same || std::exchange(vc.closing, true)) return;
  node_.close(vc.id, true, now_, to_option(rd.option));
  pump();
}

// If the peer closed first, no frame shows when the user closes. It must have closed if an RD with
// other names is answered by a DA made of that RD's fields. protocol: 5.12
void NodeSubject::forget_gone(std::size_t at) {
  const auto& h = trace_[at].decoded.frame.header;
  auto* const vc = vc_of(h.d_port);
  VcInfo info{};
  if (vc == nullptr || node_.vc_info(vc->id, info) != 0) return;
  const bool over = info.state == VcState::kPeerClosed || info.state == VcState::kFailed;
  const bool same = info.remote_port == h.s_port && info.remote_key == h.offset &&
                    info.local_key == names_.live(Name::kKey, h.d_key);
  if (!over || same || !plan_.is_answered(at)) return;
  node_.close(vc->id, true, now_, {});
  pump();
}

// If the user decides about a connection, the decision is made when the trace shows the answer.
void NodeSubject::welcome(std::size_t at) {
  const auto& frame = trace_[at].decoded.frame;
  for (auto& [port, vc] : vcs_) {
    VcInfo info{};
    if (node_.vc_info(vc.id, info) != 0 || info.state != VcState::kAsked) continue;
    if (info.peer_mac != frame.dst || info.remote_port != frame.header.d_port) continue;
    const auto option = to_option(frame.option);
    if (frame.header.has(wire::flag::kReject))
      node_.refuse(vc.id, option, now_);
    else
      node_.admit(vc.id, option, now_);
    return pump();
  }
}

void NodeSubject::connect(std::size_t at) {
  const auto& frame = trace_[at].decoded.frame;
  const auto& h = frame.header;
  if (names_.knows(Name::kKey, h.offset)) return;  // the Node repeats it by itself
  for (const auto& user : users_) {
    if (user->plan != plan_.asker(h.offset)) continue;
    auto* const channel = channel_of(*user);
    VcId id = kNoneId;
    if (node_.connect(user->endpoint, frame.dst, h.d_id, channel, channels_.size() - 1, id, now_,
                      to_option(frame.option)) != 0)
      return trouble(at, "the Node cannot connect");
    VcInfo info{};
    node_.vc_info(id, info);
    vcs_[info.local_port] = {id, user.get(), UserChannel(channel), false, {}};
    return pump();
  }
}

// --- the users' requests and memory, as the trace shows them

namespace {

using wire::Op;

void copy_payload(Bytes from, SendEntry& entry) {
  std::ranges::copy(from, reinterpret_cast<std::byte*>(entry.payload));
  entry.payload_length = static_cast<std::uint8_t>(from.size());
}

}  // namespace

// Returns the live Mx for the memory that a CTS, MRA or GET names, or 0 if it is not the user's.
std::uint16_t NodeSubject::live_mx(Vc& vc, const wire::Header& h) {
  auto& user = *vc.user;
  const bool get = h.op() == Op::kGet;
  const auto at = (get ? Address{h.sync, h.b_num} : Address{h.bufx, h.offset})
                      .linear(user.plan->config.bufsize);
  auto* const landing = user.landing_of(at);
  if (h.mx == 0 || landing == nullptr) return 0;
  auto& mx = landing->mx[h.mx];
  if (mx == 0 && node_.alloc_mx(landing->region, kNoneId, permit::kAll, mx) != 0) return 0;
  const auto port = static_cast<std::uint16_t>(names_.live(Name::kPort, h.s_port));
  names_.bind(Name::kMx, mx_at(h.s_port, h.mx), mx_at(port, mx));
  return mx;
}

// A user may have written to its memory before a new grant, so its content is unknown again. A
// repeated grant changes nothing.
void NodeSubject::forget_bytes(Vc& vc, const wire::Header& grant) {
  auto same = grant;
  same.cksum = 0;
  if (grant.op() == Op::kClearToSend) same.sync = 0;  // F_Offset
  auto& before =
      vc.grants[{grant.op(), grant.s_id, grant.op() == Op::kClearToSend ? grant.b_num : 0}];
  if (std::exchange(before, same) == same) return;
  const auto at = Address{grant.bufx, grant.offset}.linear(vc.user->plan->config.bufsize);
  auto* const landing = vc.user->landing_of(at);
  if (landing == nullptr) return;
  const auto from = at - landing->start;
  const auto length = std::min(granted_bytes(grant), landing->known.size() - from);
  landing->known.forget(from, length);
}

void NodeSubject::request(Vc& vc, std::size_t at) {
  const auto& frame = trace_[at].decoded.frame;
  SendEntry entry{};
  entry.header = frame.header;
  entry.destination_mac = frame.dst.to_u64();
  const auto op = frame.header.op();
  if (op == Op::kData && !fill_data(vc, at, entry)) return;
  if (op == Op::kClearToSend || op == Op::kMemoryRegionAvailable) forget_bytes(vc, frame.header);
  if (wire::operation(op).own == wire::Own::kMx) entry.header.mx = live_mx(vc, frame.header);
  if (op != Op::kData) copy_payload(frame.option, entry);
  const auto refused = vc.channel.refused();
  if (!vc.channel.send(entry)) return trouble(at, "the Node takes no more requests");
  node_.kick(vc.id);
  pump();
  if (vc_of(frame.header.s_port) == &vc && vc.channel.refused() != refused)
    trouble(at, "the Node does not send what breaks the protocol");
}

// Makes one request for a whole Block when its first STU is due. Returns false if there is none to
// make.
bool NodeSubject::fill_data(Vc& vc, std::size_t at, SendEntry& entry) {
  const auto& h = trace_[at].decoded.frame.header;
  const auto stus = plan_.request_at(at);
  if (stus.empty()) return false;
  auto& user = *vc.user;
  const auto place = user.transmit_memory.all().subspan(user.sent);
  std::size_t length = 0;
  for (const auto stu : stus) {
    const auto bytes = trace_[stu].decoded.frame.stu;
    if (length + bytes.size() > place.size()) return false;
    std::ranges::copy(bytes, place.begin() + static_cast<std::ptrdiff_t>(length));
    length += bytes.size();
    if (stu != at) requested_.insert(stu);
  }
  if (requested_.contains(at)) return false;
  const auto& last = trace_[stus.back()].decoded.frame;
  const auto from = Address::from_linear(user.sent, user.plan->config.bufsize);
  // The flags of the Last apply to the Block.
  entry.header.op_flags =
      h.op_flags | (last.header.op_flags & (wire::flag::kSendState | wire::flag::kInterrupt));
  entry.header.op_flags &= static_cast<std::uint16_t>(~(wire::flag::kLast | wire::flag::kAppend));
  entry.length = static_cast<std::uint32_t>(length);
  entry.bufx = from.bufx;
  entry.offset = from.offset;
  copy_payload(last.append, entry);
  user.sent += length;
  return true;
}

// Prepares the memory that a Get reads. Bytes that no earlier frame of the trace has written are
// taken from the answer.
void NodeSubject::prepare_get(std::size_t at) {
  const auto& get = trace_[at].decoded.frame.header;
  auto* const vc = vc_of(get.d_port);
  if (vc == nullptr) return;
  const auto place = Address{get.bufx, get.offset}.linear(vc->user->plan->config.bufsize);
  auto* const landing = vc->user->landing_of(place);
  if (landing == nullptr) return;
  auto offset = place - landing->start;
  const bool number = get.function() != wire::Function::kGet;
  for (const auto stu : plan_.answer_to(at)) {
    const auto told = trace_[stu].decoded.frame.stu;
    std::vector<std::byte> bytes(told.begin(), told.end());
    // protocol: 7.17
    if (number && std::endian::native == std::endian::little) std::ranges::reverse(bytes);
    for (const auto byte : bytes) {
      if (offset < landing->known.size() && !landing->known.has(offset)) {
        landing->memory.all()[offset] = byte;
        landing->known.add(offset);
      }
      ++offset;
    }
  }
}

void NodeSubject::learn_data(std::size_t at) {
  const auto& frame = trace_[at].decoded.frame;
  auto* const vc = vc_of(frame.header.d_port);
  if (vc == nullptr) return;
  const auto place =
      Address{frame.header.bufx, frame.header.offset}.linear(vc->user->plan->config.bufsize);
  auto* const landing = vc->user->landing_of(place);
  if (landing == nullptr) return;
  const auto from = place - landing->start;
  for (std::size_t i = 0; i < frame.stu.size() && from + i < landing->known.size(); ++i)
    landing->known.add(from + i);
}

}  // namespace stp::replay
