// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/memif.h"

#include <utility>

namespace stp::port::memif {

std::unique_ptr<Memif> Memif::open(const Settings& settings, std::string& error) {
  std::unique_ptr<Memif> memif(new Memif(settings));
  if (!settings.serves) {
    memif->closer_ = std::make_shared<Closer>();
    return memif;
  }
  auto listener = Listener::at(settings.socket, error);
  if (!listener) return nullptr;
  if (!listener->serve(settings.id, settings.shards)) {
    error = "this process already serves id " + std::to_string(settings.id) + " at " +
            settings.socket + ": give this link another id=";
    return nullptr;
  }
  memif->closer_ = listener->closer();
  memif->listener_ = std::move(listener);
  return memif;
}

Memif::~Memif() {
  if (peer_) peer_->end("this side has closed its link");
  if (listener_) listener_->stop(settings_.id);
}

void Memif::look(Time now) {
  look_at_ = now + (peer_ && !connected() ? kLookAtHandshake : kLook);
  if (peer_) go_on(now);
  if (!peer_ && now >= begin_at_) begin(now);
  if (connected() && listener_ && now >= refuse_at_) refuse_others(now);
}

// At most one thread waits for memory of peers.
void Memif::begin(Time now) {
  if (!work_.expired()) {
    begin_at_ = now + kSeek;
    return;
  }
  ControlSocket socket;
  if (settings_.serves) {
    socket = listener_->take(settings_.id, now);
  } else {
    sought_ += std::exchange(looked_, true) ? 1 : 0;
    socket = ControlSocket(connect_to(settings_.socket, obstacle_), closer_);
    if (!socket) begin_at_ = now + kSeek;
  }
  if (!socket) return;
  peer_ = settings_.serves ? Handshake::answer(std::move(socket), settings_)
                           : Handshake::ask(std::move(socket), settings_, modest_);
  began_at_ = now;
  look_at_ = now + kLookAtHandshake;
}

void Memif::go_on(Time now) {
  if (peer_->broken()) {
    ++broken_;
    peer_->end("what it writes into its rings breaks the rules");
  }
  switch (peer_->go_on()) {
    case Handshake::Progress::kConnected:
      if (connected()) return;
      obstacle_.clear();
      gate_.open();
      break;
    case Handshake::Progress::kWaits:
      if (now - began_at_ < kPatience) return;
      peer_->end("no answer for five seconds");
      drop(now);
      break;
    case Handshake::Progress::kEnded:
      drop(now);
      break;
  }
}

void Memif::drop(Time now) {
  obstacle_ = "the peer: " + peer_->reason();
  // A server may have refused the number of rings.
  modest_ = settings_.shards > 1 && !connected() && !modest_;
  gate_.close();
  work_ = peer_->work();
  peer_.reset();
  begin_at_ = now + kSeek;
}

void Memif::refuse_others(Time now) {
  refuse_at_ = now + kSeek;
  if (const ControlSocket other = listener_->take(settings_.id, now))
    send_disconnect(other, "another client is connected");
}

}  // namespace stp::port::memif
