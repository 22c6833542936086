// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/end.h"

#include <cerrno>

#include "tools/sim/host.h"

namespace stp::sim {

void End::attach(VcId id, Application& application) {
  id_ = id;
  application_ = &application;
  user_ = UserChannel(channel_.data());
  user_.begin_sleep();  // never ends: so the Node sends every wake-up
  wake(0);
}

void End::wake(Time delay) {
  const auto when = host_.run().now() + delay;
  if (when >= next_run_) return;
  next_run_ = when;
  auto& host = host_;
  host.run().clock.at(when, [&host, when, cookie = cookie_, life = host.life()] {
    auto* const end = host.life() == life ? host.find(cookie) : nullptr;
    if (end == nullptr || end->next_run_ != when) return;
    end->next_run_ = kNever;
    end->run();
  });
}

void End::run() {
  if (closed_ || application_ == nullptr || user_.state() == ChannelState::kConnecting) return;
  const auto now = host_.run().now();
  VcInfo info{};
  if (!opened_ && user_.state() != ChannelState::kFailed && host_.node().vc_info(id_, info) == 0) {
    opened_ = true;
    application_->opened(*this, info, now);
  }
  ReceivedEntry entry;
  while (opened_ && user_.receive(entry)) application_->receive(entry, now);
  // Handles what arrived before the end first: both may be seen at the same time.
  if (opened_) application_->work(now);
  if (!end_if_over(now)) serve(now);
  host_.poke();
}

bool End::end_if_over(Time now) {
  switch (user_.state()) {
    case ChannelState::kOpen:
      return false;
    case ChannelState::kFailed:
      close(false, user_.error() != 0 ? user_.error() : -EIO, now);
      return true;
    default:
      close(false, -EPIPE, now);
      return true;
  }
}

void End::serve(Time now) {
  if (now >= application_->next_deadline()) application_->expire(now);
  application_->work(now);
  bool any = false;
  SendEntry request{};
  while (user_.writable() && application_->transmit(request, now)) {
    user_.send(request);
    any = true;
  }
  if (any) host_.node().kick(id_);
  application_->work(now);
  if (application_->wants_close()) return close(false, 0, now);
  if (const auto next = application_->next_deadline(); next != kNever)
    wake(next > now ? next - now : 0);
}

void End::abort() {
  if (!closed_ && application_ != nullptr) close(true, 0, host_.run().now());
}

void End::close(bool at_once, int error, Time now) {
  closed_ = true;
  host_.node().close(id_, at_once, now);
  application_->ended(error, now);
  host_.poke();
}

}  // namespace stp::sim
