// SPDX-License-Identifier: BSD-3-Clause
#include "stp/node/connectionless.h"

#include "stp/node/deliver.h"
#include "stp/wire/syntax.h"

namespace stp {

void ConnectionlessPorts::on_wrong_key(const Vc& vc, const wire::Frame& frame, Time now) {
  if (!vc.guard) return use_.common.drop(DropReason::kBadKey);
  const auto sender = KeySender::of(frame.src, frame.header.s_port);
  if (!vc.guard->admits(sender, now)) return use_.common.drop(DropReason::kKeyGuesses);
  vc.guard->wrong(sender, now);
  use_.common.drop(DropReason::kBadKey);
}

void ConnectionlessPorts::receive(Vc& vc, const wire::Frame& frame, Time now) {
  auto& common = use_.common;
  // protocol: 11.12, 11.13
  const auto sender = KeySender::of(frame.src, frame.header.s_port);
  if (!vc.guard->admits(sender, now)) return common.drop(DropReason::kKeyGuesses);
  vc.guard->right(sender);
  const auto op = frame.header.op();
  if (op != wire::Op::kData) common.counters.add(Counter::kRxControl);
  // protocol: 11.10
  if (vc.user_closed || wire::syntax_of(op).when == wire::When::kByState)
    return common.drop(DropReason::kBadState);
  if (op == wire::Op::kData) return use_.placement.on_unscheduled(vc, frame, now);
  // protocol: 11.5
  if (!deliver(vc, use_.wake_ups, frame.src, frame.header, frame.option, NodeChannel::Place::kSlot))
    common.drop(DropReason::kSlotOverrun);
}

}  // namespace stp
