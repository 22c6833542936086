// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/hostile/cannot.h"
#include "tests/hostile/many_mappings.h"
#include "tests/hostile/moves.h"

namespace stp::hostile {
namespace {

Client::Ends connected(Client& client, std::uint32_t uport, std::uint32_t credits = 64) {
  if (!client.ok()) throw Cannot("stpd does not take it");
  auto ends = client.connect_to_itself(uport, credits);
  if (!ends.out || !ends.in) throw Cannot("no connection with itself");
  return ends;
}

SendEntry nop() {
  SendEntry entry{};
  entry.header.op_flags = wire::op_flags(wire::Op::kNoOperation);
  return entry;
}

constexpr std::uint32_t kRing = 4'096;

// All entries hold the same request, and the ring is always full: an entry that was taken is
// available again at once, without a copy.
void keep_full(Attack& attack, Client& client, Channel& channel, const SendEntry& entry) {
  auto& control = channel.control();
  const auto capacity = control.tx_capacity;
  auto* const entries = reinterpret_cast<SendEntry*>(channel.memory->data() + control.tx_at);
  for (std::uint32_t i = 0; i < capacity; ++i) entries[i] = entry;
  const auto first = control.tx_tail.load();
  say_ready();
  while (!attack.over() && channel.rings.state() == ChannelState::kOpen) {
    for (int i = 0; i < 4'096; ++i) control.tx_head.store(control.tx_tail.load() + capacity);
    client.ring(channel);
  }
  say("taken", control.tx_tail.load() - first);
}

// Reads what arrives, so that its sender always has free Slots.
class Drain {
 public:
  explicit Drain(Channel& channel)
      : thread_([this, &channel] {
          ReceivedEntry entry;
          while (!stop_)
            if (!channel.rings.receive(entry)) ::sched_yield();
        }) {}
  ~Drain() {
    stop_ = true;
    thread_.join();
  }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

void spin(Attack& attack) {
  Client client(attack.socket);
  const auto ends = connected(client, attack.uport);
  say_ready();
  while (!attack.over())
    for (int i = 0; i < 1'000; ++i) static_cast<void>(ends.out.rings.taken());
}

void busy(Attack& attack) {
  Client client(attack.socket);
  auto ends = connected(client, attack.uport);
  const Drain drain(ends.in);
  say_ready();
  std::uint64_t sent = 0;
  while (!attack.over()) {
    if (ends.out.rings.send(nop()))
      ++sent;
    else
      ::sched_yield();
    client.ring(ends.out);
  }
  say("sent", sent);
}

void refill(Attack& attack) {
  Client client(attack.socket);
  auto ends = connected(client, attack.uport, kRing);
  // An operation that users may not send.
  SendEntry entry{};
  entry.header.op_flags = wire::op_flags(wire::Op::kRequestConnection);
  keep_full(attack, client, ends.out, entry);
}

void stream(Attack& attack) {
  Client client(attack.socket);
  auto ends = connected(client, attack.uport, kRing);
  const Drain drain(ends.in);
  keep_full(attack, client, ends.out, nop());
}

void spoil(Attack& attack) {
  say_ready();
  std::uint64_t rounds = 0;
  while (!attack.over()) {
    Client client(attack.socket);
    if (!client.ok()) continue;
    auto ends = client.connect_to_itself(attack.uport + static_cast<std::uint32_t>(rounds % 64));
    if (!ends.out) continue;
    for (auto writes = attack.dice() % 64; writes > 0; --writes) {
      const auto page = attack.dice() % 4 == 0;
      auto* const at = page ? client.page_memory().data() : ends.out.memory->data();
      const auto size = page ? client.page_memory().size() : ends.out.memory->size();
      // Hits the control words more often than the entries.
      const auto place = attack.dice() % (attack.dice() % 2 == 0 ? 256 : size - 8);
      const auto value = attack.dice() % 3 == 0 ? ~std::uint64_t{0} : attack.dice();
      std::memcpy(at + place, &value, sizeof value);
      client.ring(ends.out);
    }
    ++rounds;
  }
  say("rounds", rounds);
}

namespace {

// A connection with itself, over which Blocks go from one memory of its own to another.
class OwnBlocks {
 public:
  OwnBlocks(Client& client, std::uint32_t uport, std::size_t bytes)
      : client_(client),
        ends_(connected(client, uport)),
        buffers_(static_cast<std::uint32_t>(bytes / kBuffer)),
        source_(shareable(bytes)),
        sink_(shareable(bytes)) {
    std::uint64_t region = 0;
    if (client.map(ends_.caller, Direction::kTransmit, 0, source_.get(), bytes, region) != 0 ||
        client.map(ends_.listener, Direction::kReceive, 0, sink_.get(), bytes, region) != 0 ||
        client.alloc_mx(region, mx_) != 0)
      throw Cannot("its memory is not taken");
  }
  [[nodiscard]] int source() const { return source_.get(); }
  [[nodiscard]] int sink() const { return sink_.get(); }

  // Lets one go into a buffer that the dice choose, where the last one has arrived. Returns false
  // if the connection has ended.
  bool move(std::mt19937_64& dice) {
    SendEntry grant{};
    grant.header.op_flags = wire::op_flags(wire::Op::kClearToSend);
    grant.header.param = kBufferLog2;
    grant.header.mx = mx_;
    grant.header.d_id = 1;
    grant.header.s_id = 7;
    grant.header.bufx = static_cast<std::uint32_t>(dice() % buffers_);
    ReceivedEntry ignored;
    while (ends_.in.rings.receive(ignored)) {
    }
    if (ends_.in.rings.state() != ChannelState::kOpen) return false;
    if (ends_.in.rings.send(grant)) client_.ring(ends_.in);
    if (!ends_.out.rings.receive(ignored)) return true;
    SendEntry data{};
    data.header.op_flags = wire::op_flags(wire::Op::kData);
    data.header.mx = mx_;
    data.header.bufx = grant.header.bufx;
    data.header.d_id = 7;
    data.bufx = grant.header.bufx;
    data.length = kBuffer;
    if (ends_.out.rings.send(data)) client_.ring(ends_.out);
    ++moved_;
    return true;
  }
  [[nodiscard]] std::uint64_t moved() const { return moved_; }

 private:
  Client& client_;
  Client::Ends ends_;
  const std::uint32_t buffers_;
  const UniqueFd source_, sink_;
  std::uint16_t mx_ = 0;
  std::uint64_t moved_ = 0;
};

}  // namespace

void holes(Attack& attack) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  Client client(attack.socket);
  OwnBlocks blocks(client, attack.uport, kBytes);
  say_ready();
  std::atomic<bool> stop{false};
  std::thread puncher([&] {
    while (!stop)
      for (const auto fd : {blocks.source(), blocks.sink()})
        ::fallocate(fd, kPunch, 0, static_cast<off_t>(kBytes));
  });
  while (!attack.over() && blocks.move(attack.dice)) {
  }
  stop = true;
  puncher.join();
  say("blocks", blocks.moved());
}

// stpd waits where it writes to a page that is just being taken away, and the more places have it
// mapped, the longer that takes. A client that it expels for that is there again at once.
void vacate(Attack& attack) {
  constexpr std::size_t kBytes = 4 * kBuffer;
  std::uint64_t blocks = 0, lives = 0;
  const auto live = [&] {
    Client client(attack.socket);
    OwnBlocks own(client, attack.uport + static_cast<std::uint32_t>(lives++ % 64), kBytes);
    const ManyMappings mapped(own.sink(), kPage);
    std::atomic<bool> stop{false};
    std::thread puncher([&] {
      while (!stop) ::fallocate(own.sink(), kPunch, 0, static_cast<off_t>(kPage));
    });
    while (!attack.over() && own.move(attack.dice)) {
    }
    stop = true;
    puncher.join();
    blocks += own.moved();
  };
  say_ready();
  while (!attack.over()) try {
      live();
    } catch (const Cannot&) {  // it was expelled while it connected
    }
  say("blocks", blocks);
  say("lives", lives);
}

}  // namespace stp::hostile
