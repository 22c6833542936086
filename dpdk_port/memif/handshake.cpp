// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk_port/memif/handshake.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "dpdk_port/memif/closer.h"

namespace stp::port::memif {
template <typename Work>
std::shared_ptr<MemoryWork> MemoryWork::begin(SharedDescriptor file, Work work) {
  auto made = std::make_shared<MemoryWork>(std::move(file));
  const bool begun = in_background([made, work] {
    work(*made);
    made->file_ = {};
    made->done_.store(true, std::memory_order_release);
  });
  return begun ? made : nullptr;
}

std::shared_ptr<MemoryWork> MemoryWork::map(SharedDescriptor file, std::uint64_t size) {
  return begin(std::move(file), [size](MemoryWork& work) {
    work.region = Region::map(work.file_, size, work.error);
  });
}

std::shared_ptr<MemoryWork> MemoryWork::seal(const SharedDescriptor& file) {
  SharedDescriptor copy(FileDescriptor(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)), file.closer());
  return begin(std::move(copy), [](MemoryWork& work) { keep_pages(work.file_); });
}

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

std::unique_ptr<Handshake> Handshake::ask(ControlSocket socket, const Settings& settings,
                                          bool modest) {
  auto out = std::make_unique<Handshake>(std::move(socket), settings);
  out->modest_ = modest;
  return out;
}

std::unique_ptr<Handshake> Handshake::answer(ControlSocket socket, const Settings& settings) {
  auto out = std::make_unique<Handshake>(std::move(socket), settings);
  out->regions_.reserve(kMostRegions);
  if (!send_message(out->socket_, make_message(MessageType::kAck))) out->reason_ = "it has gone";
  return out;
}

bool Handshake::broken() const {
  const auto is_broken = [](const auto& ring) { return ring.broken(); };
  return std::ranges::any_of(senders_, is_broken) || std::ranges::any_of(receivers_, is_broken);
}

// The client empties the server's rings.
SleepSign Handshake::sleep_sign(bool of_peer) const {
  if (senders_.size() != 1 || receivers_.size() != 1) return {};
  const bool client = settings_.serves == of_peer;
  return {rings_[kClientRings][0].sleeps_of(client),
          bells_[client ? kServerRings : kClientRings].get()};
}

Handshake::Progress Handshake::go_on() {
  if (work_ && work_->done()) end_work();
  hear();
  if (!reason_.empty()) return Progress::kEnded;
  return connected_ ? Progress::kConnected : Progress::kWaits;
}

void Handshake::hear() {
  for (int i = 0; i < kMessages && reason_.empty() && !work_ && !socket_.closer()->is_full(); ++i) {
    Message message;
    SharedDescriptor attached;
    const Came came = receive_message(socket_, message, attached);
    if (came == Came::kNothing) return;
    if (came == Came::kEnd)
      reason_ = "it has gone";
    else
      obey(message, std::move(attached));
  }
}

void Handshake::end(const std::string& reason) {
  if (reason_.empty()) send_disconnect(socket_, reason);
  reason_ = reason;
}

bool Handshake::fail(const std::string& reason) {
  end(reason);
  return false;
}

bool Handshake::obey(const Message& message, SharedDescriptor attached) {
  if (message.type == MessageType::kDisconnect) {
    const std::string said = text_of(message.body.disconnect.reason, kReasonSize);
    reason_ = "it says: " + (said.empty() ? "disconnected" : said);
    return false;
  }
  if (connected_) return fail("a message that has no place in an open connection");
  switch (message.type) {
    case MessageType::kHello:
      return settings_.serves ? fail("a server sends the hello") : greet(message.body.hello);
    case MessageType::kAck:
      return settings_.serves || sent_ == 0 ? fail("an acknowledgement of nothing") : send_next();
    case MessageType::kConnected:
      if (settings_.serves || sent_ != messages())
        return fail("connected comes last, from the server");
      work_ = MemoryWork::seal(file_);
      return work_ || fail("there is no thread to seal its memory");
    case MessageType::kAddRegion:
      return settings_.serves ? add_region(message.body.add_region, std::move(attached))
                              : fail("a client adds memory");
    case MessageType::kAddRing:
      return settings_.serves ? add_ring(message.body.add_ring, std::move(attached))
                              : fail("a client adds rings");
    case MessageType::kConnect:
      return settings_.serves ? connect() : fail("a client connects");
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
  choose_rings(hello);
  std::string error;
  return make_memory(error) ? send_next() : fail(error);
}

void Handshake::choose_rings(const Hello& hello) {
  const unsigned most_to_server = hello.last_client_ring + 1U;
  const unsigned of_peer = std::clamp(most_to_server / Shards::kMost, 1U, Shards::kMost);
  unsigned rings = settings_.shards;
  if (text_of(hello.name, kNameSize) != kName)
    rings = modest_ ? 1 : rings;
  else if (!modest_)
    rings *= of_peer;
  wanted_[kClientRings] = std::min(rings, most_to_server);
  wanted_[kServerRings] = std::min(rings, hello.last_server_ring + 1U);
}

std::size_t Handshake::ring_room() const {
  return (ring_bytes(settings_.log2_ring) + kRingAlignment - 1) & ~(kRingAlignment - 1);
}

std::size_t Handshake::memory_of(Which way) const {
  const std::size_t buffers = std::size_t{settings_.buffer} << settings_.log2_ring;
  return wanted_[way] * (ring_room() + buffers);
}

// Many rings are shorter ones, so that their memory stays in the processors' caches, and within
// what a peer maps.
void Handshake::shorten_rings() {
  constexpr std::size_t kBytes = std::size_t{32} << 20;
  constexpr unsigned kShort = 6;
  const auto longest = [&] { return std::max(memory_of(kClientRings), memory_of(kServerRings)); };
  if (wanted_[kClientRings] == 1 && wanted_[kServerRings] == 1) return;
  while (settings_.log2_ring > kShort && longest() > kBytes) --settings_.log2_ring;
  while (settings_.log2_ring > 1 && 2 * longest() > Region::kGreatest) --settings_.log2_ring;
}

// The client's rings, those of the server, then the buffers of each in that order.
bool Handshake::make_memory(std::string& error) {
  shorten_rings();
  const std::size_t ring = ring_room();
  const std::size_t buffers = std::size_t{settings_.buffer} << settings_.log2_ring;
  regions_.push_back(Region::make(memory_of(kClientRings) + memory_of(kServerRings),
                                  socket_.closer(), file_, error));
  if (!regions_[0]) return false;
  for (auto& bell : bells_) {
    bell = {FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), socket_.closer()};
    if (bell) continue;
    error = std::string("no eventfd: ") + std::strerror(errno);
    return false;
  }
  std::size_t ring_at = 0;
  std::size_t buffers_at = (wanted_[kClientRings] + wanted_[kServerRings]) * ring;
  for (const Which way : {kClientRings, kServerRings}) {
    for (unsigned i = 0; i < wanted_[way]; ++i, ring_at += ring, buffers_at += buffers) {
      Ring& made = rings_[way].emplace_back(regions_[0].part(ring_at, ring), settings_.log2_ring);
      made.clear();
      const auto own =
          Buffers::own(regions_[0], static_cast<std::uint32_t>(buffers_at), settings_.buffer);
      if (way == kClientRings) {
        senders_.emplace_back(made, own);
      } else {
        made.poll();
        receivers_.emplace_back(made, own);
      }
    }
  }
  return true;
}

// One message, and the next when it has been acknowledged.
bool Handshake::send_next() {
  if (sent_ == messages()) return fail("an acknowledgement of nothing");
  Message message;
  const int attached = next_message(message);
  ++sent_;
  if (!send_message(socket_, message, attached)) reason_ = "it takes no messages";
  return reason_.empty();
}

// What goes with it; -1: nothing.
int Handshake::next_message(Message& message) const {
  if (sent_ == 0) {
    message.type = MessageType::kInit;
    message.body.init.version = kVersion;
    message.body.init.id = settings_.id;
    kName.copy(message.body.init.name, kNameSize - 1);
    return -1;
  }
  if (sent_ == 1) {
    message.type = MessageType::kAddRegion;
    message.body.add_region.size = regions_[0].size();
    return file_.get();
  }
  if (sent_ == messages() - 1) {
    message.type = MessageType::kConnect;
    kName.copy(message.body.named.interface, kNameSize - 1);
    return -1;
  }
  const std::size_t number = sent_ - kBeforeRings, of_client = wanted_[kClientRings];
  const bool from_client = number < of_client;
  AddRing& ring = message.body.add_ring;
  message.type = MessageType::kAddRing;
  ring.flags = from_client ? AddRing::kFromClient : 0;
  ring.index = static_cast<std::uint16_t>(from_client ? number : number - of_client);
  ring.offset = static_cast<std::uint32_t>(number * ring_room());
  ring.log2_size = static_cast<std::uint8_t>(settings_.log2_ring);
  return bells_[from_client ? kClientRings : kServerRings].get();
}

// ---- the server

bool Handshake::add_region(const AddRegion& said, SharedDescriptor file) {
  if (said.index != regions_.size() || regions_.size() == kMostRegions)
    return fail("memory is numbered from 0, and has at most " + std::to_string(kMostRegions) +
                " regions");
  if (!file) return fail("memory comes with its descriptor");
  std::uint64_t mapped = 0;
  for (const Region& region : regions_) mapped += region.size();
  if (said.size > Region::kGreatest - mapped)
    return fail("its memory is more than " + std::to_string(Region::kGreatest) + " bytes");
  work_ = MemoryWork::map(std::move(file), said.size);
  return work_ || fail("there is no thread to map its memory");
}

bool Handshake::end_work() {
  const auto work = std::exchange(work_, {});
  if (!settings_.serves) {
    for (Receiver& receiver : receivers_) receiver.begin();
    return connected_ = true;
  }
  if (!work->region) return fail(work->error);
  regions_.push_back(std::move(work->region));
  return send_message(socket_, make_message(MessageType::kAck)) || fail("it takes no messages");
}

bool Handshake::add_ring(const AddRing& said, SharedDescriptor bell) {
  const auto way = (said.flags & AddRing::kFromClient) != 0 ? kClientRings : kServerRings;
  auto& rings = rings_[way];
  const unsigned most = most_rings(settings_.shards);
  if (said.index != rings.size() || rings.size() == most)
    return fail("the rings of a way are numbered from 0, and there are at most " +
                std::to_string(most));
  if (said.log2_size == 0 || said.log2_size > kGreatestLog2Ring)
    return fail("a ring of 2^" + std::to_string(said.log2_size) + " places is not possible");
  const std::uint32_t offset = said.offset;
  if (said.region >= regions_.size() || offset % kLeastAlignment != 0)
    return fail("a ring stands in memory that was added, at a multiple of 16");
  const auto memory = regions_[said.region].part(offset, ring_bytes(said.log2_size));
  if (memory.empty()) return fail("a ring goes beyond its memory");
  if (rings.empty()) bells_[way] = std::move(bell);
  rings.emplace_back(memory, said.log2_size);
  return send_message(socket_, make_message(MessageType::kAck)) || fail("it takes no messages");
}

bool Handshake::connect() {
  if (rings_[kClientRings].empty() || rings_[kServerRings].empty())
    return fail("a ring each way is needed");
  for (auto& rings : rings_) {
    for (Ring& ring : rings) {
      if (!ring.has_cookie()) return fail("a ring has no cookie");
      ring.set_head(0);
      ring.set_tail(0);
    }
  }
  for (const Ring& ring : rings_[kServerRings])
    senders_.emplace_back(ring, Buffers::of_peer(regions_));
  for (Ring& ring : rings_[kClientRings]) {
    ring.poll();
    receivers_.emplace_back(ring, Buffers::of_peer(regions_));
  }
  Message message = make_message(MessageType::kConnected);
  kName.copy(message.body.named.interface, kNameSize - 1);
  if (!send_message(socket_, message)) return fail("it takes no messages");
  return connected_ = true;
}

}  // namespace stp::port::memif
