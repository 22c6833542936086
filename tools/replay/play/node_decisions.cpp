// SPDX-License-Identifier: BSD-3-Clause
// Makes the decisions of the trace's users: to connect, to accept, to send, to close.
#include <utility>

#include "tools/replay/play/node_subject.h"

namespace stp::replay {
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

}  // namespace stp::replay
