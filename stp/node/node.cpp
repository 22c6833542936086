// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/node.h"

#include <algorithm>
#include <cerrno>

#include "stp/base/work_meter.h"
#include "stp/node/connection/listeners.h"
#include "stp/node/connection/recovery.h"
#include "stp/node/endpoints.h"
#include "stp/node/frame_receiver.h"
#include "stp/node/frame_sender.h"

namespace stp {

// Does what time makes due: retries, keep-alive, Blocks to request again, and the freeing of what
// has ended. One call does a bounded amount of it.
class Expiry {
 public:
  // They must outlive this.
  struct Uses {
    Common& common;
    PortTable& vcs;
    VcTimers& timers;
    WakeUps& wake_ups;
    NodeDepartures& departures;
    Pacing& pacing;
    SendBounds& bounds;
    PortRates& rates;
    Tidying& tidying;
    VcEndings& endings;
    Listeners& listeners;
    StateExchange& states;
    Recovery& recovery;
  };
  explicit Expiry(const Uses& uses) : use_(uses) {}

  // As Node::expire() and Node::next_deadline().
  void expire(Time now);
  [[nodiscard]] Time next_deadline() const;

 private:
  std::size_t expire(Vc& vc, Time now);

  Uses use_;
};

// A Node is composed of mechanisms. Each owns its state, and its header says what it promises. A
// mechanism uses only those above it here.
struct Node::Impl {
  Impl(const NodeConfig& config, Random& random) : common(config, random) {}

  Common common;
  // These outlive the connections, which return to them what they have.
  Pacing pacing{{common.config.granted_limit, common.config.granted_most},
                common.config.max_stu,
                vcs,
                common.counters,
                common.controls_congestion()};
  EndpointTable endpoints{{common.config, vcs, pacing}};
  MappedMemory memory{common, vcs};
  PortTable vcs{common.config.shards == nullptr ? PortShare{}
                                                : common.config.shards->share(common.config.shard)};
  Turns turns;
  WakeUps wake_ups{common.events};
  NodeDepartures departures;
  VcTimers timers;
  Tidying tidying{memory, pacing};

  // Slots, and Blocks that do not arrive.
  SendBounds bounds{{common, vcs, pacing, turns}};
  PortRates rates{{common, vcs, turns}};
  StateExchange states{{common, pacing, bounds, turns, departures, timers, wake_ups}};
  Recovery recovery{{common, departures, states, timers}};

  // The handshake.
  Strangers strangers{vcs.share()};
  KnownPeers peers;
  Dials dials{{common, vcs, departures, timers}};
  VcEndings endings{{common, vcs, turns, wake_ups, departures, timers, pacing, memory, tidying,
                     peers, strangers, dials}};
  Openings openings{
      {common, vcs, pacing, strangers, peers, dials, endings, states, turns, wake_ups, timers}};
  Newcomers newcomers{{common, vcs, strangers, endings, states}};
  Listeners listeners{
      {common, vcs, strangers, peers, newcomers, openings, endings, timers, turns, wake_ups}};

  // Data in, answers to one-sided operations, and frames.
  Placement placement{{common, memory, pacing, states, recovery, wake_ups}};
  ConnectionlessPorts ports{{common, placement, wake_ups}};
  PeerGets gets{{common, memory, states, turns}};
  RequestChecks checks{{memory, recovery, pacing, tidying}};
  FrameReceiver receiver{{common, vcs, placement, listeners, openings, endings, ports, states, gets,
                          pacing, tidying, wake_ups}};
  FrameSender sender{{common, vcs, turns, wake_ups, departures, pacing, bounds, rates, memory,
                      states, checks, gets, endings}};
  Expiry expiry{{common, vcs, timers, wake_ups, departures, pacing, bounds, rates, tidying, endings,
                 listeners, states, recovery}};
};

namespace {

// Limits of one turn: connections with due timers, and Blocks checked of each.
constexpr std::size_t kMostExpired = 128, kBlocksOfExpiry = 32;

}  // namespace

Time Expiry::next_deadline() const {
  const bool more = use_.common.unfinished || use_.tidying.untidy();
  auto first = more ? use_.common.seen : kNever;
  // Runs in each turn: an initializer list would be written to memory.
  first = std::min(first, use_.timers.next());
  first = std::min(first, use_.wake_ups.deadline());
  first = std::min(first, use_.pacing.deadline());
  first = std::min(first, use_.bounds.deadline());
  return std::min(first, use_.rates.deadline());
}

void Expiry::expire(Time now) {
  use_.common.seen = now;
  use_.common.unfinished = false;
  use_.departures.start_clocks(use_.vcs, now);
  use_.pacing.expire(now);
  use_.bounds.expire(now);
  use_.rates.expire(now);
  use_.tidying.turn();
  // The rest stay due and come in the next turn.
  for (auto left = kMostExpired; left > 0 && use_.timers.next() <= now;) {
    auto& vc = use_.timers.first();
    const auto id = vc.id;
    work::count("timers");
    left -= std::min(left, 1 + expire(vc, now) / kBlocksOfExpiry);
    if (auto* const still = use_.vcs.find(id)) use_.timers.renew(*still);
  }
}

// Returns the number of Blocks examined.
std::size_t Expiry::expire(Vc& vc, Time now) {
  if (!use_.endings.repeat(vc, now) || !use_.listeners.still_decides(vc, now)) return 0;
  if (vc.state != VcState::kOpen) return 0;
  const auto in_time = now < VcTimers::proof_deadline(vc);
  if (in_time && now >= vc.draining.deadline()) return use_.endings.begin(vc, now), 0;
  if (!in_time || !use_.states.repeat(vc, now)) {
    use_.endings.fail(vc, VcEvent::kGaveUp, -ETIMEDOUT, now);
    return 0;
  }
  const auto looked = use_.recovery.check(vc, now);
  use_.states.ask_when_due(vc, now);
  return looked;
}

namespace {

// Calls `work` with what `find` finds by `id`; -EBADF: nothing.
template <typename Table, typename Work>
int with(const Table& table, std::uint64_t id, Work&& work) {
  auto* const found = table.find(id);
  return found == nullptr ? -EBADF : work(*found);
}

std::optional<bool> yields_of(const Vc& vc) {
  if (vc.connectionless() || vc.peer_port == 0 || vc.waits_for_proof) return std::nullopt;
  return vc.inbound.account().path() != nullptr;
}

}  // namespace

Node::Node(const NodeConfig& config, Random& random)
    : impl_(std::make_unique<Impl>(config, random)) {}
Node::~Node() = default;

void Node::receive(std::span<const Bytes> burst, Time now) {
  work::Call const call("Node::receive");
  impl_->receiver.receive(burst, now);
  impl_->wake_ups.flush(now);
}
void Node::receive_looped(std::span<const LoopedFrame> burst, Time now) {
  work::Call const call("Node::receive_looped");
  impl_->receiver.receive_looped(burst, now);
  impl_->wake_ups.flush(now);
}
void Node::receive_apart(std::span<const LoopedFrame> burst, Time now) {
  work::Call const call("Node::receive_apart");
  impl_->receiver.receive_apart(burst, now);
  impl_->wake_ups.flush(now);
}
std::size_t Node::transmit(std::span<TxFrame> frames, Time now) {
  work::Call const call("Node::transmit");
  const auto count = impl_->sender.transmit(frames, now);
  impl_->wake_ups.flush(now);
  return count;
}
void Node::transmitted(const TxToken& token) {
  work::Call const call("Node::transmitted");
  impl_->sender.transmitted(token);
  impl_->wake_ups.flush(impl_->common.seen);
}
void Node::transmitted(const TxToken& token, std::uint32_t frames) {
  work::Call const call("Node::transmitted");
  impl_->sender.transmitted(token, frames);
  impl_->wake_ups.flush(impl_->common.seen);
}
Time Node::next_deadline() const {
  return impl_->expiry.next_deadline();
}
void Node::expire(Time now) {
  work::Call const call("Node::expire");
  impl_->expiry.expire(now);
  impl_->wake_ups.flush(now);
}
void Node::idle() {
  work::Call const call("Node::idle");
  impl_->wake_ups.wake_all(impl_->common.seen);
}
bool Node::next_event(Event& out) {
  auto& events = impl_->common.events;
  if (events.empty()) return false;
  out = events.front();
  events.pop_front();
  return true;
}
std::size_t Node::frame_room() const {
  return wire::kMaxHeadSize + (std::size_t{1} << impl_->common.config.max_stu) + wire::kAppendSize;
}

int Node::open_endpoint(const EndpointConfig& config, EndpointId& out, std::uint64_t owner) {
  return impl_->endpoints.open(config, out, owner);
}
int Node::configure(EndpointId endpoint, const EndpointConfig& config) {
  return with(impl_->endpoints, endpoint,
              [&](auto& found) { return impl_->endpoints.configure(found, config); });
}
int Node::endpoint_config(EndpointId endpoint, EndpointConfig& out) const {
  return with(impl_->endpoints, endpoint, [&](const auto& found) {
    out = found.config;
    return 0;
  });
}
int Node::close_endpoint(EndpointId endpoint) {
  return with(impl_->endpoints, endpoint, [&](auto& found) {
    impl_->listeners.unlisten(found);
    return impl_->endpoints.close(found);
  });
}

int Node::map(EndpointId endpoint, Direction direction, std::uint32_t base,
              std::span<const MutableBytes> pieces, RegionId& out) {
  work::Call const call("Node::map");
  return with(impl_->endpoints, endpoint,
              [&](auto& found) { return impl_->memory.map(found, direction, base, pieces, out); });
}
int Node::unmap(RegionId region) {
  work::Call const call("Node::unmap");
  return impl_->memory.unmap(region);
}
bool Node::is_read(RegionId region) const {
  return impl_->memory.is_read(region);
}
std::size_t Node::table_bytes(EndpointId endpoint) const {
  const auto* const found = impl_->endpoints.find(endpoint);
  return found == nullptr ? 0 : found->receive.footprint() + found->transmit.footprint();
}
std::size_t Node::table_growth(EndpointId endpoint, Direction direction, std::uint32_t base,
                               std::span<const MutableBytes> pieces) const {
  auto* const found = impl_->endpoints.find(endpoint);
  return found == nullptr ? 0 : found->range(direction).growth(base, pieces);
}
int Node::alloc_mx(RegionId region, VcId vc, std::uint8_t permissions, std::uint16_t& out) {
  return impl_->memory.alloc_mx(region, vc, permissions, out);
}
int Node::free_mx(EndpointId endpoint, std::uint16_t mx) {
  return impl_->memory.free_mx(endpoint, mx);
}

int Node::listen(EndpointId endpoint, std::uint32_t uport) {
  return with(impl_->endpoints, endpoint,
              [&](auto& found) { return impl_->listeners.listen(found, uport); });
}
int Node::unlisten(EndpointId endpoint) {
  return with(impl_->endpoints, endpoint, [&](auto& found) {
    impl_->listeners.unlisten(found);
    return 0;
  });
}
int Node::stock(EndpointId endpoint, std::byte* channel, std::uint64_t cookie) {
  return with(impl_->endpoints, endpoint, [&](auto& found) {
    found.stock.push_back({channel, cookie});
    return 0;
  });
}
bool Node::unstock(EndpointId endpoint, std::uint64_t& cookie) {
  auto* const found = impl_->endpoints.find(endpoint);
  if (found == nullptr || found->stock.empty()) return false;
  cookie = found->stock.back().cookie;
  found->stock.pop_back();
  return true;
}
int Node::accept(EndpointId endpoint, VcId& out) {
  return with(impl_->endpoints, endpoint,
              [&](auto& found) { return Listeners::accept(found, out); });
}
std::size_t Node::backlog(EndpointId endpoint) const {
  const auto* const found = impl_->endpoints.find(endpoint);
  return found == nullptr ? 0 : found->in_backlog;
}
int Node::admit(VcId vc, const OptionPayload& option, Time now) {
  const auto result =
      with(impl_->vcs, vc, [&](auto& found) { return impl_->listeners.admit(found, option, now); });
  impl_->wake_ups.flush(now);
  return result;
}
int Node::refuse(VcId vc, const OptionPayload& option, Time now) {
  return with(impl_->vcs, vc,
              [&](auto& found) { return impl_->listeners.refuse(found, option, now); });
}
int Node::connect(EndpointId endpoint, const MacAddr& peer, std::uint32_t uport, std::byte* channel,
                  std::uint64_t cookie, VcId& out, Time now, const OptionPayload& option) {
  return with(impl_->endpoints, endpoint, [&](auto& found) {
    return impl_->openings.connect(found, peer, uport, channel, cookie, out, now, option);
  });
}
int Node::open_port(EndpointId endpoint, std::byte* channel, std::uint64_t cookie, VcId& out,
                    Time now) {
  return with(impl_->endpoints, endpoint, [&](auto& found) {
    return impl_->openings.open_port(found, channel, cookie, out, now);
  });
}
int Node::move_channel(VcId vc, std::byte* channel, std::uint32_t& copied) {
  return with(impl_->vcs, vc, [&](auto& found) {
    return found.channel.move_to(channel, copied) ? 0 : -EINPROGRESS;
  });
}
int Node::close(VcId vc, bool at_once, Time now, const OptionPayload& option) {
  work::Call const call("Node::close");
  const auto result = with(impl_->vcs, vc, [&](auto& found) {
    if (found.state == VcState::kAsked) return impl_->listeners.refuse(found, {}, now);
    impl_->endings.close(found, at_once, now, option);
    return 0;
  });
  impl_->wake_ups.flush(now);
  return result;
}
int Node::vc_info(VcId vc, VcInfo& out) const {
  const auto* const found = impl_->vcs.find(vc);
  if (found == nullptr) return -EBADF;
  out = {.state = found->state.state(),
         .endpoint = found->endpoint->id,
         .cookie = found->cookie,
         .error = found->error,
         .peer_mac = found->peer_mac,
         .local_port = found->local_port,
         .remote_port = found->peer_port,
         .local_key = found->local_key,
         .remote_key = found->peer_key,
         .local_bufsize = found->endpoint->config.bufsize,
         .remote_bufsize = found->peer_bufsize,
         .local_max_stu = found->local_max_stu,
         .remote_max_stu = found->peer_max_stu,
         .local_slots = found->channel.slots(),
         .remote_slots = found->peer_slots,
         .credit = found->credit.credit(),
         .round_trip = found->round_trip.measured(),
         .peer_uport = found->peer_uport,
         .peer_option = found->peer_option,
         .passive = found->passive,
         .connectionless = found->connectionless(),
         .uport = found->passive ? found->endpoint->uport : found->peer_uport,
         .yields = yields_of(*found),
         .traffic = found->traffic};
  return 0;
}
void Node::fetch_ahead(VcId vc) const {
  impl_->vcs.fetch_ahead(vc);
}
void Node::kick(VcId vc) {
  if (auto* const found = impl_->vcs.find(vc)) impl_->turns.enter(*found);
}

const Counters& Node::counters() const {
  return impl_->common.counters;
}
Counters& Node::counters() {
  return impl_->common.counters;
}
std::size_t Node::vc_count() const {
  return impl_->vcs.count();
}
VcId Node::vc_after(std::uint16_t port) const {
  const auto* const next = impl_->vcs.after(port);
  return next == nullptr ? kNoneId : next->id;
}

}  // namespace stp
