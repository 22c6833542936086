// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/node.h"

#include <algorithm>

#include "stp/node/impl.h"

namespace stp {

Node::Impl::Impl(const NodeConfig& node_config, Random& node_random)
    : config(node_config), random(node_random) {}

Node::Impl::~Impl() {
  while (!listeners.empty()) stop_listening(*listeners.begin()->second);
}

Node::Node(const NodeConfig& config, Random& random)
    : impl_(std::make_unique<Impl>(config, random)) {}
Node::~Node() = default;

std::size_t Node::transmit(std::span<TxFrame> frames, Time now) {
  work::Call const call("Node::transmit");
  const auto count = impl_->transmit(frames, now);
  impl_->wake_ups.flush(now);
  return count;
}
void Node::transmitted(const TxToken& token) {
  work::Call const call("Node::transmitted");
  impl_->transmitted(token);
  impl_->wake_ups.wake(false, impl_->seen);
}
Time Node::next_deadline() const {
  return impl_->next_deadline();
}
void Node::expire(Time now) {
  work::Call const call("Node::expire");
  impl_->expire(now);
  impl_->wake_ups.flush(now);
}
void Node::idle() {
  work::Call const call("Node::idle");
  impl_->wake_ups.wake(true, impl_->seen);
}
bool Node::next_event(Event& out) {
  if (impl_->events.empty()) return false;
  out = impl_->events.front();
  impl_->events.pop_front();
  return true;
}
std::size_t Node::frame_room() const {
  return wire::kMaxHeadSize + (std::size_t{1} << impl_->config.max_stu) + wire::kAppendSize;
}

int Node::open_endpoint(const EndpointConfig& config, EndpointId& out, std::uint64_t owner) {
  return impl_->open_endpoint(config, out, owner);
}
int Node::configure(EndpointId endpoint, const EndpointConfig& config) {
  return impl_->configure(endpoint, config);
}
int Node::endpoint_config(EndpointId endpoint, EndpointConfig& out) const {
  const auto* const found = impl_->endpoints.find(endpoint);
  if (found == nullptr) return -EBADF;
  out = found->config;
  return 0;
}
int Node::close_endpoint(EndpointId endpoint) {
  return impl_->close_endpoint(endpoint);
}

int Node::map(EndpointId endpoint, Direction direction, std::uint32_t base,
              std::span<const MutableBytes> pieces, RegionId& out) {
  work::Call const call("Node::map");
  return impl_->map(endpoint, direction, base, pieces, out);
}
int Node::unmap(RegionId region) {
  work::Call const call("Node::unmap");
  return impl_->unmap(region);
}
std::size_t Node::table_bytes(EndpointId endpoint) const {
  const auto* const found = impl_->endpoints.find(endpoint);
  return found == nullptr ? 0 : found->receive.footprint() + found->transmit.footprint();
}
std::size_t Node::table_growth(EndpointId endpoint, Direction direction, std::uint32_t base,
                               std::span<const MutableBytes> pieces) const {
  auto* const found = impl_->endpoints.find(endpoint);
  return found == nullptr ? 0 : Impl::range_of(*found, direction).growth(base, pieces);
}
int Node::alloc_mx(RegionId region, VcId vc, std::uint8_t permissions, std::uint16_t& out) {
  return impl_->alloc_mx(region, vc, permissions, out);
}
int Node::free_mx(EndpointId endpoint, std::uint16_t mx) {
  return impl_->free_mx(endpoint, mx);
}

int Node::listen(EndpointId endpoint, std::uint32_t uport) {
  return impl_->listen(endpoint, uport);
}
int Node::unlisten(EndpointId endpoint) {
  return impl_->unlisten(endpoint);
}
int Node::stock(EndpointId endpoint, std::byte* channel, std::uint64_t cookie) {
  auto* const found = impl_->endpoints.find(endpoint);
  if (found == nullptr) return -EBADF;
  found->stock.push_back({channel, cookie});
  return 0;
}
bool Node::unstock(EndpointId endpoint, std::uint64_t& cookie) {
  auto* const found = impl_->endpoints.find(endpoint);
  if (found == nullptr || found->stock.empty()) return false;
  cookie = found->stock.back().cookie;
  found->stock.pop_back();
  return true;
}
int Node::accept(EndpointId endpoint, VcId& out) {
  return impl_->accept(endpoint, out);
}
std::size_t Node::backlog(EndpointId endpoint) const {
  const auto* const found = impl_->endpoints.find(endpoint);
  return found == nullptr ? 0 : found->in_backlog;
}
int Node::admit(VcId vc, const OptionPayload& option, Time now) {
  const auto result = impl_->admit(vc, option, now);
  impl_->wake_ups.flush(now);
  return result;
}
int Node::refuse(VcId vc, const OptionPayload& option, Time now) {
  return impl_->refuse(vc, option, now);
}
int Node::connect(EndpointId endpoint, const MacAddr& peer, std::uint32_t uport, std::byte* channel,
                  std::uint64_t cookie, VcId& out, Time now, const OptionPayload& option) {
  return impl_->connect(endpoint, peer, uport, channel, cookie, out, now, option);
}
int Node::open_port(EndpointId endpoint, std::byte* channel, std::uint64_t cookie, VcId& out,
                    Time now) {
  return impl_->open_port(endpoint, channel, cookie, out, now);
}
int Node::close(VcId vc, bool at_once, Time now, const OptionPayload& option) {
  work::Call const call("Node::close");
  const auto result = impl_->close(vc, at_once, now, option);
  impl_->wake_ups.flush(now);
  return result;
}
int Node::vc_info(VcId vc, VcInfo& out) const {
  const auto* const found = impl_->find_vc(vc);
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
  if (auto* const found = impl_->find_vc(vc)) impl_->turns.enter(*found);
}

const Counters& Node::counters() const {
  return impl_->counters;
}
Counters& Node::counters() {
  return impl_->counters;
}
const NodeConfig& Node::config() const {
  return impl_->config;
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
