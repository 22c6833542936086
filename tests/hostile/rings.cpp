// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/hostile/cannot.h"
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

void holes(Attack& attack) {
  constexpr std::size_t kBytes = std::size_t{16} << 20;
  Client client(attack.socket);
  auto ends = connected(client, attack.uport);
  const auto source = shareable(kBytes), sink = shareable(kBytes);
  std::uint64_t region = 0;
  std::uint16_t mx = 0;
  if (client.map(ends.caller, Direction::kTransmit, 0, source.get(), kBytes, region) != 0 ||
      client.map(ends.listener, Direction::kReceive, 0, sink.get(), kBytes, region) != 0 ||
      client.alloc_mx(region, mx) != 0)
    throw Cannot("its memory is not taken");
  say_ready();
  std::atomic<bool> stop{false};
  std::thread puncher([&] {
    while (!stop)
      for (const auto* fd : {&source, &sink})
        ::fallocate(fd->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                    static_cast<off_t>(kBytes));
  });
  std::uint64_t blocks = 0;
  while (!attack.over()) {
    SendEntry grant{};
    grant.header.op_flags = wire::op_flags(wire::Op::kClearToSend);
    grant.header.param = kBufferLog2;
    grant.header.mx = mx;
    grant.header.d_id = 1;
    grant.header.s_id = 7;
    grant.header.bufx = static_cast<std::uint32_t>(attack.dice() % (kBytes / kBuffer));
    ReceivedEntry ignored;
    while (ends.in.rings.receive(ignored)) {
    }
    if (ends.in.rings.state() != ChannelState::kOpen) break;
    if (ends.in.rings.send(grant)) client.ring(ends.in);
    if (!ends.out.rings.receive(ignored)) continue;
    SendEntry data{};
    data.header.op_flags = wire::op_flags(wire::Op::kData);
    data.header.mx = mx;
    data.header.bufx = grant.header.bufx;
    data.header.d_id = 7;
    data.bufx = grant.header.bufx;
    data.length = kBuffer;
    if (ends.out.rings.send(data)) client.ring(ends.out);
    ++blocks;
  }
  stop = true;
  puncher.join();
  say("blocks", blocks);
}

}  // namespace stp::hostile
