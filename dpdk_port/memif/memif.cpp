// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/memif.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "dpdk_port/link/owners.h"
#include "dpdk_port/memif/handshake.h"
#include "stp/base/mutex.h"

namespace stp::port::memif {
namespace {

// Listeners lock it again when they end, and may do so when the program does.
struct Known {
  RecursiveMutex mutex{LockRank::kListeners};
  std::map<std::string, std::weak_ptr<Listener>> listeners STP_GUARDED_BY(mutex);
};

Known& known() {
  static Known& all = *new Known;
  return all;
}

// The client says only afterwards which link it wants. So the number of rings is that of the link
// with most shards.
Message make_hello(unsigned shards) {
  Message message;
  message.type = MessageType::kHello;
  Hello& hello = message.body.hello;
  std::string("stp").copy(hello.name, kNameSize - 1);
  hello.least_version = hello.greatest_version = kVersion;
  hello.last_region = Handshake::kMostRegions - 1;
  hello.last_server_ring = hello.last_client_ring =
      static_cast<std::uint16_t>(most_rings(shards) - 1);
  hello.greatest_log2_ring = kGreatestLog2Ring;
  return message;
}

}  // namespace

std::shared_ptr<Listener> Listener::at(const std::string& path, std::string& error) {
  for (;; std::this_thread::yield()) {
    Known& all = known();
    const RecursiveLock guard(all.mutex);
    if (const auto at = all.listeners.find(path); at != all.listeners.end()) {
      if (auto present = at->second.lock()) return present;
      continue;  // another thread ends it
    }
    FileDescriptor socket = listen_at(path, error);
    if (!socket) return nullptr;
    const std::shared_ptr<Listener> made(new Listener(path, std::move(socket)));
    all.listeners.emplace(path, made);
    return made;
  }
}

Listener::Listener(std::string path, FileDescriptor socket)
    : path_(std::move(path)), socket_(std::move(socket), closer_) {
  ::stat(path_.c_str(), &file_);
}

Listener::~Listener() {
  Known& all = known();
  const RecursiveLock guard(all.mutex);
  all.listeners.erase(path_);
  socket_ = {};
  // Somebody may have removed the file, and made another one.
  struct stat present {};
  if (::stat(path_.c_str(), &present) == 0 && present.st_dev == file_.st_dev &&
      present.st_ino == file_.st_ino)
    ::unlink(path_.c_str());
}

bool Listener::serve(std::uint32_t id, unsigned shards) {
  const Lock guard(mutex_);
  return served_.try_emplace(id, Served{shards, {}}).second;
}

void Listener::stop(std::uint32_t id) {
  const Lock guard(mutex_);
  const auto at = served_.find(id);
  if (at == served_.end()) return;
  if (at->second.wanted)
    send_disconnect(at->second.wanted, "this interface is not served any more");
  served_.erase(at);
}

ControlSocket Listener::take(std::uint32_t id, Time now) {
  const Lock guard(mutex_);
  accept(now);
  std::erase_if(newcomers_, [&](Newcomer& each) STP_REQUIRES(mutex_) { return !hear(each, now); });
  const auto at = served_.find(id);
  return at == served_.end() ? ControlSocket() : std::exchange(at->second.wanted, {});
}

void Listener::accept(Time now) {
  unsigned shards = 1;
  for (const auto& [id, served] : served_) shards = std::max(shards, served.shards);
  for (std::size_t i = 0; i < kNewcomers && newcomers_.size() < kNewcomers && !closer_->is_full();
       ++i) {
    ControlSocket socket = accept_from(socket_);
    if (!socket) return;
    if (send_message(socket, make_hello(shards))) newcomers_.push_back({std::move(socket), now});
  }
}

bool Listener::hear(Newcomer& newcomer, Time now) {
  Message message;
  SharedDescriptor attached;
  const Came came =
      closer_->is_full() ? Came::kNothing : receive_message(newcomer.socket, message, attached);
  // Another thread, whose time is later, may have accepted it.
  if (came == Came::kNothing) return now < newcomer.since + kPatience;
  if (came == Came::kEnd) return false;
  const Init& init = message.body.init;
  const std::uint32_t id = init.id;
  const auto at = served_.find(id);
  if (message.type != MessageType::kInit || init.version != kVersion || init.mode != 0) {
    send_disconnect(newcomer.socket, "expected: init, memif 2.0, Ethernet frames");
  } else if (at == served_.end()) {
    send_disconnect(newcomer.socket, "no interface with id " + std::to_string(id));
  } else {
    // Of two, the later one: the former may have died.
    ControlSocket& wanted = at->second.wanted;
    if (wanted) send_disconnect(wanted, "another client wants this interface");
    wanted = std::move(newcomer.socket);
  }
  return false;
}

std::unique_ptr<Memif> Memif::open(const Settings& settings, std::string& error) {
  std::unique_ptr<Memif> memif(new Memif(settings));
  if (!settings.serves) {
    // A socket may still come where there is none, but not where something else is.
    error = why_no_socket(settings.socket, "/run/memif.sock");
    if (!error.empty()) return nullptr;
    // Whoever serves it would have to change that, or this user.
    if (probe_socket(settings.socket) == EACCES) {
      error = "this user may not open " + settings.socket +
              ": let its owner permit that (chmod, chgrp), or run both programs as one user";
      return nullptr;
    }
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
      waking_.begin(peer_->sleep_sign(false), peer_->sleep_sign(true));
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
  waking_.end();
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
