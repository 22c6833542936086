// SPDX-License-Identifier: BSD-3-Clause
// Connectionless endpoints: a Port and a Key without a peer (docs/protocol.md, section 11). A frame
// does not name its sender's Key, so the Node cannot answer for these endpoints: it only places
// data or passes headers to the user.
#include <cerrno>

#include "stp/node/impl.h"
#include "stp/wire/syntax.h"

namespace stp {

// protocol: 11.1, 11.8
int Node::Impl::open_port(EndpointId id, std::byte* channel, std::uint64_t cookie, VcId& out,
                          Time now) {
  auto* const endpoint = endpoints.find(id);
  if (endpoint == nullptr) return -EBADF;
  if (!endpoint->config.connectionless) return -EINVAL;
  if (endpoint->vcs > 0) return -EBUSY;
  auto* const vc = make_vc(*endpoint, channel, cookie, now);
  if (vc == nullptr) return endpoint->config.port != 0 ? -EADDRINUSE : -ENOSPC;
  vc->state.must(VcEvent::kBegun);
  vc->end_counted = true;  // not counted as a connection
  vc->peer_bufsize = endpoint->config.bufsize;
  vc->peer_max_stu = vc->local_max_stu;
  vc->send_stu_log2 = stu_size_log2(vc->local_max_stu, vc->local_max_stu, vc->peer_bufsize);
  vc->unscheduled = std::make_unique<UnscheduledBlocks>(vc->peer_bufsize, vc->send_stu_log2,
                                                        endpoint->owner->windows);
  vc->guard = std::make_unique<KeyGuard>();
  vc->channel.set_state(ChannelState::kOpen);
  out = vc->id;
  return 0;
}

// The frame names the Port of an endpoint or connection, but a wrong Key.
// protocol: 5.18, 11.12
void Node::Impl::on_wrong_key(const Vc& vc, const wire::Frame& frame, Time now) {
  if (!vc.guard) return drop(DropReason::kBadKey);
  const auto sender = KeySender::of(frame.src, frame.header.s_port);
  if (!vc.guard->admits(sender, now)) return drop(DropReason::kKeyGuesses);
  vc.guard->wrong(sender, now);
  drop(DropReason::kBadKey);
}

// The frame has the right Port and Key.
// protocol: 11.4, 11.9
void Node::Impl::receive_on_endpoint(Vc& vc, const wire::Frame& frame, Time now) {
  // protocol: 11.12, 11.13
  const auto sender = KeySender::of(frame.src, frame.header.s_port);
  if (!vc.guard->admits(sender, now)) return drop(DropReason::kKeyGuesses);
  vc.guard->right(sender);
  const auto op = frame.header.op();
  if (op != wire::Op::kData) counters.add(Counter::kRxControl);
  // protocol: 11.10
  if (vc.user_closed || wire::syntax_of(op).when == wire::When::kByState)
    return drop(DropReason::kBadState);
  if (op == wire::Op::kData) return on_unscheduled_data(vc, frame, now);
  // protocol: 11.5
  if (!deliver(vc, frame.src, frame.header, frame.option, NodeChannel::Place::kSlot))
    drop(DropReason::kSlotOverrun);
}

// protocol: 11.6
void Node::Impl::on_unscheduled_data(Vc& vc, const wire::Frame& frame, Time now) {
  const auto& h = frame.header;
  const auto length = frame.stu.size();
  std::byte* memory = nullptr;
  if (const auto why = check_memory(vc, h, length, permit::kData, memory); why != DropReason::kNone)
    return drop(why);
  const auto& mx = *mxs.find(h.mx);
  auto& blocks = *vc.unscheduled;
  wire::DataView const data(h);
  const auto name = BlockName::of(frame.src, data);
  const auto abandoned = blocks.abandoned();
  InboundBlock* block = nullptr;
  const auto why = blocks.find(name, data, length, {mx.first, mx.count}, now, block);
  counters.add(Counter::kBlocksAbandoned, blocks.abandoned() - abandoned);
  if (why != DropReason::kNone) return drop(why);
  if (!place(vc, frame, *block, memory)) return;
  UnscheduledBlocks::progress(*block, now);
  if (!block->stus.complete()) return;
  place_end(vc, *block);
  deliver_block(vc, frame.src, *block);
  blocks.complete(name, now);
}

// Each request names its destination; the Node fills in the source.
// protocol: 11.11
int Node::Impl::address_request(Vc& vc, const SendEntry& entry) {
  const auto to = MacAddr::from_u64(entry.destination_mac);
  const bool station = to.to_u64() == entry.destination_mac && !to.is_zero() && !to.is_group();
  if (!station || entry.header.d_port == 0) return -EINVAL;
  vc.peer_mac = to;
  vc.peer_port = entry.header.d_port;
  vc.peer_key = entry.header.d_key;
  return 0;
}

}  // namespace stp
