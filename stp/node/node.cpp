// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/node.h"

#include <cerrno>

#include "stp/base/work_meter.h"
#include "stp/node/impl.h"

namespace stp {

namespace {

// Calls `work` with what `find` finds by `id`; -EBADF: nothing.
template <typename Table, typename Work>
int with(const Table& table, std::uint64_t id, Work&& work) {
  auto* const found = table.find(id);
  return found == nullptr ? -EBADF : work(*found);
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
  impl_->wake_ups.wake(false, impl_->common.seen);
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
  impl_->wake_ups.wake(true, impl_->common.seen);
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
  return found == nullptr ? 0 : MappedMemory::range_of(*found, direction).growth(base, pieces);
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
int Node::move_channel(VcId vc, std::byte* channel) {
  return with(impl_->vcs, vc, [&](auto& found) {
    found.channel.move_to(channel);
    return 0;
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
         .round_trip = found->round_trip.smoothed(),
         .peer_uport = found->peer_uport,
         .peer_option = found->peer_option,
         .passive = found->passive,
         .connectionless = found->connectionless(),
         .uport = found->passive ? found->endpoint->uport : found->peer_uport,
         .traffic = found->traffic};
  return 0;
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
const NodeConfig& Node::config() const {
  return impl_->common.config;
}
std::size_t Node::vc_count() const {
  return impl_->vcs.count();
}
void Node::for_each_vc(void (*visit)(void* context, VcId vc), void* context) const {
  for (const auto* vc = impl_->vcs.after(0); vc != nullptr; vc = impl_->vcs.after(vc->local_port))
    visit(context, vc->id);
}
VcId Node::vc_after(std::uint16_t port) const {
  const auto* const next = impl_->vcs.after(port);
  return next == nullptr ? kNoneId : next->id;
}

}  // namespace stp
