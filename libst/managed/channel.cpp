// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/channel.h"

#include "libst/client/wait.h"
#include "stp/base/assert.h"

namespace stp::managed {

void Channel::take(const client::Reply& made, std::shared_ptr<service::SharedMemory> memory) {
  STP_ASSERT(!is_taken(), "a connection takes a channel once");
  vc_ = made.vc;
  number_ = made.channel;
  memory_ = std::move(memory);
  rings_ = UserChannel(memory_->data());
  rings_.gather();
}

int Channel::query(client::Reply& info) const {
  auto request = client::request_for(client::RequestKind::kVcInfo);
  request.vc = vc_;
  return backend_.exchange(request, info);
}

void Channel::receive(Sequencer& sequencer, Time now) {
  ReceivedEntry entry;
  while (rings_.receive(entry)) sequencer.receive(entry, now);
  sequencer.taken(rings_.taken(), now);
  sequencer.observe_loss(rings_.cts_repeated(), rings_.path_block());
  sequencer.expire(now);
}

bool Channel::send(Sequencer& sequencer, Time now) {
  bool any = false;
  sequencer.taken(rings_.taken(), now);
  for (; rings_.writable() && sequencer.transmit(rings_.next(), now); any = true)
    rings_.send_next();
  if (any) backend_.ring(number_);
  return any;
}

void Channel::close(bool at_once, const service::WireOption& option) {
  auto request = client::request_for(client::RequestKind::kClose);
  request.vc = vc_;
  request.at_once = at_once ? 1 : 0;
  request.option = option;
  client::Reply reply{};
  backend_.exchange(request, reply);
}

bool Channel::let_go() const {
  return !is_taken() || rings_.done(rings_.sent()) || rings_.state() == ChannelState::kClosed ||
         backend_.error() != 0;
}

}  // namespace stp::managed
