// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/handshake.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace stp::port::memif {
namespace {

// Messages of one call: a peer that talks without end does not keep this side from its frames.
constexpr int kMessages = 16;
constexpr std::string_view kName = "stp";

Message make_message(MessageType type) {
  Message message;
  message.type = type;
  return message;
}

}  // namespace

std::unique_ptr<Handshake> Handshake::ask(FileDescriptor socket, const Settings& settings) {
  auto out = std::make_unique<Handshake>(std::move(socket), false);
  out->settings_ = settings;
  return out;
}

std::unique_ptr<Handshake> Handshake::answer(FileDescriptor socket) {
  auto out = std::make_unique<Handshake>(std::move(socket), true);
  out->regions_.reserve(kMostRegions);
  if (!send_message(out->socket_, make_message(MessageType::kAck))) out->reason_ = "it has gone";
  return out;
}

Handshake::Progress Handshake::go_on() {
  for (int i = 0; i < kMessages && reason_.empty(); ++i) {
    Message message;
    FileDescriptor attached;
    const Came came = receive_message(socket_, message, attached);
    if (came == Came::kNothing) break;
    if (came == Came::kEnd)
      reason_ = "it has gone";
    else
      obey(message, std::move(attached));
  }
  if (!reason_.empty()) return Progress::kEnded;
  return connected_ ? Progress::kConnected : Progress::kWaits;
}

void Handshake::end(const std::string& reason) {
  if (reason_.empty()) send_disconnect(socket_, reason);
  reason_ = reason;
}

bool Handshake::fail(const std::string& reason) {
  end(reason);
  return false;
}

bool Handshake::obey(const Message& message, FileDescriptor attached) {
  if (message.type == MessageType::kDisconnect) {
    const std::string said = text_of(message.body.disconnect.reason, kReasonSize);
    reason_ = "it says: " + (said.empty() ? "disconnected" : said);
    return false;
  }
  if (connected_) return fail("a message that has no place in an open connection");
  switch (message.type) {
    case MessageType::kHello:
      return serves_ ? fail("a server sends the hello") : greet(message.body.hello);
    case MessageType::kAck:
      return serves_ || sent_ == 0 ? fail("an acknowledgement of nothing") : send_next();
    case MessageType::kConnected:
      if (serves_ || sent_ != kAll) return fail("connected comes last, from the server");
      receiver_.begin();
      connected_ = true;
      return true;
    case MessageType::kAddRegion:
      return serves_ ? add_region(message.body.add_region, attached) : fail("a client adds memory");
    case MessageType::kAddRing:
      return serves_ ? add_ring(message.body.add_ring) : fail("a client adds rings");
    case MessageType::kConnect:
      return serves_ ? connect() : fail("a client connects");
    case MessageType::kNone:
    case MessageType::kInit:
    case MessageType::kDisconnect:
      break;
  }
  return fail("a message of type " + std::to_string(static_cast<unsigned>(message.type)) +
              " has no place here");
}

// ---- the client

bool Handshake::greet(const Hello& hello) {
  if (sent_ != 0) return fail("a second hello");
  if (hello.least_version > kVersion || hello.greatest_version < kVersion)
    return fail("this side speaks memif 2.0 alone");
  settings_.log2_ring = std::min<unsigned>(settings_.log2_ring, hello.greatest_log2_ring);
  if (settings_.log2_ring == 0) return fail("its rings have no place");
  std::string error;
  return make_memory(error) ? send_next() : fail(error);
}

std::size_t Handshake::ring_room() const {
  return (ring_bytes(settings_.log2_ring) + kRingAlignment - 1) & ~(kRingAlignment - 1);
}

// Both rings, then the buffers of the client's, then those of the server's.
bool Handshake::make_memory(std::string& error) {
  const std::size_t ring = ring_room();
  const std::size_t buffers = std::size_t{settings_.buffer} << settings_.log2_ring;
  regions_.push_back(Region::make(kRings * (ring + buffers), file_, error));
  if (!regions_[0]) return false;
  for (std::size_t i = 0; i < kRings; ++i) {
    rings_[i] = Ring(regions_[0].part(i * ring, ring), settings_.log2_ring);
    rings_[i].clear();
    interrupts_[i] = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!interrupts_[i]) {
      error = std::string("no eventfd: ") + std::strerror(errno);
      return false;
    }
  }
  rings_[kServerRing].poll();
  const auto first = static_cast<std::uint32_t>(kRings * ring);
  const auto second = static_cast<std::uint32_t>(first + buffers);
  sender_ = Sender(rings_[kClientRing], Buffers::own(regions_[0], first, settings_.buffer));
  receiver_ = Receiver(rings_[kServerRing], Buffers::own(regions_[0], second, settings_.buffer));
  return true;
}

// One message, and the next when it has been acknowledged.
bool Handshake::send_next() {
  if (sent_ == kAll) return fail("an acknowledgement of nothing");
  Message message;
  const int attached = next_message(message);
  ++sent_;
  if (!send_message(socket_, message, attached)) reason_ = "it takes no messages";
  return reason_.empty();
}

// What goes with it; -1: nothing.
int Handshake::next_message(Message& message) const {
  const auto add_ring = [&](Which which) {
    message.type = MessageType::kAddRing;
    message.body.add_ring.flags = which == kClientRing ? AddRing::kFromClient : 0;
    message.body.add_ring.offset = static_cast<std::uint32_t>(which * ring_room());
    message.body.add_ring.log2_size = static_cast<std::uint8_t>(settings_.log2_ring);
    return interrupts_[which].get();
  };
  switch (sent_) {
    case kInit:
      message.type = MessageType::kInit;
      message.body.init.version = kVersion;
      message.body.init.id = settings_.id;
      kName.copy(message.body.init.name, kNameSize - 1);
      return -1;
    case kAddRegion:
      message.type = MessageType::kAddRegion;
      message.body.add_region.size = regions_[0].size();
      return file_.get();
    case kAddClientRing:
      return add_ring(kClientRing);
    case kAddServerRing:
      return add_ring(kServerRing);
    default:
      message.type = MessageType::kConnect;
      kName.copy(message.body.named.interface, kNameSize - 1);
      return -1;
  }
}

// ---- the server

bool Handshake::add_region(const AddRegion& said, const FileDescriptor& file) {
  if (said.index != regions_.size() || regions_.size() == kMostRegions)
    return fail("memory is numbered from 0, and has at most " + std::to_string(kMostRegions) +
                " regions");
  if (!file) return fail("memory comes with its descriptor");
  std::uint64_t mapped = 0;
  for (const Region& region : regions_) mapped += region.size();
  if (said.size > Region::kGreatest - mapped)
    return fail("its memory is more than " + std::to_string(Region::kGreatest) + " bytes");
  std::string error;
  Region region = Region::map(file, said.size, error);
  if (!region) return fail(error);
  regions_.push_back(std::move(region));
  return send_message(socket_, make_message(MessageType::kAck)) || fail("it takes no messages");
}

bool Handshake::add_ring(const AddRing& said) {
  const Which which = (said.flags & AddRing::kFromClient) != 0 ? kClientRing : kServerRing;
  if (said.index != 0 || has_ring_[which]) return fail("this link has one ring each way");
  if (said.log2_size == 0 || said.log2_size > kGreatestLog2Ring)
    return fail("a ring of 2^" + std::to_string(said.log2_size) + " places is not possible");
  const std::uint32_t offset = said.offset;
  if (said.region >= regions_.size() || offset % kLeastAlignment != 0)
    return fail("a ring stands in memory that was added, at a multiple of 16");
  const auto memory = regions_[said.region].part(offset, ring_bytes(said.log2_size));
  if (memory.empty()) return fail("a ring goes beyond its memory");
  rings_[which] = Ring(memory, said.log2_size);
  has_ring_[which] = true;
  return send_message(socket_, make_message(MessageType::kAck)) || fail("it takes no messages");
}

bool Handshake::connect() {
  if (!has_ring_[kClientRing] || !has_ring_[kServerRing]) return fail("a ring each way is needed");
  for (Ring& ring : rings_) {
    if (!ring.has_cookie()) return fail("a ring has no cookie");
    ring.set_head(0);
    ring.set_tail(0);
  }
  rings_[kClientRing].poll();
  sender_ = Sender(rings_[kServerRing], Buffers::of_peer(regions_));
  receiver_ = Receiver(rings_[kClientRing], Buffers::of_peer(regions_));
  Message message = make_message(MessageType::kConnected);
  kName.copy(message.body.named.interface, kNameSize - 1);
  if (!send_message(socket_, message)) return fail("it takes no messages");
  return connected_ = true;
}

}  // namespace stp::port::memif
