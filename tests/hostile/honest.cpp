// SPDX-License-Identifier: BSD-3-Clause
#include "tests/hostile/honest.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace stp::hostile {
namespace {

constexpr std::uint32_t kTransfersEvery = 16, kAnswersEvery = 4;
constexpr auto kPause = std::chrono::microseconds(200);

// Waits like libst: polls a few times, then sleeps until the Node wakes it.
void wait_a_moment(UserChannel& rings, unsigned looks) {
  if (looks < 50) {
    ::sched_yield();
    return;
  }
  const auto seen = rings.begin_sleep();
  const timespec most{.tv_sec = 0, .tv_nsec = 5'000'000};
  if (!rings.readable() && rings.state() == ChannelState::kOpen)
    ::syscall(SYS_futex, rings.wake_word(), FUTEX_WAIT, seen, &most, nullptr, 0);
  rings.end_sleep();
}

}  // namespace

void Times::add(Duration time, Duration waited) {
  microseconds.push_back(std::chrono::duration<float, std::micro>(time).count());
  longest = std::max(longest, time);
  longest_apart = std::max(longest_apart, time - waited);
}

void Times::add(const Times& others) {
  microseconds.insert(microseconds.end(), others.microseconds.begin(), others.microseconds.end());
  longest = std::max(longest, others.longest);
  longest_apart = std::max(longest_apart, others.longest_apart);
}

double Times::percentile(double part) const {
  if (microseconds.empty()) return 0;
  auto sorted = microseconds;
  const auto at = static_cast<std::ptrdiff_t>(part * static_cast<double>(sorted.size() - 1));
  std::nth_element(sorted.begin(), sorted.begin() + at, sorted.end());
  return static_cast<double>(sorted[static_cast<std::size_t>(at)]);
}

HonestPair::HonestPair(const std::string& socket, std::uint32_t uport, std::optional<uid_t> uid,
                       const std::string& other, const std::string& address) {
  // The system call setresuid changes one thread, and stpd sees its connections as that user's.
  std::thread([&] {
    if (uid && ::syscall(SYS_setresuid, *uid, *uid, *uid) != 0)
      tally_.fault = "cannot become another user";
    else
      make(socket, other.empty() ? socket : other, address, uport);
  }).join();
}

void HonestPair::make(const std::string& socket, const std::string& other,
                      const std::string& address, std::uint32_t uport) {
  for (auto* side : {&alice_, &bob_}) {
    side->client.emplace(side == &alice_ ? socket : other);
    if (!side->client->ok()) return void(fail("stpd does not take an honest client"));
    side->endpoint = side->client->open_endpoint();
    if (side->endpoint == 0) return void(fail("no endpoint"));
  }
  if (bob_.client->listen(bob_.endpoint, uport) != 0) return void(fail("cannot listen"));
  const auto station = address.empty() ? bob_.client->mac() : alice_.client->resolve(address);
  if (station == 0) return void(fail("no such address"));
  alice_.channel = alice_.client->connect(alice_.endpoint, uport, station);
  if (!alice_.channel) return void(fail("cannot connect"));
  bob_.channel = bob_.client->await_accept(bob_.endpoint);
  if (!bob_.channel) return void(fail("nobody to accept"));
  const auto until = Clock::now() + std::chrono::seconds(20);
  while (alice_.channel.rings.state() != ChannelState::kOpen && Clock::now() < until)
    ::sched_yield();
  if (!lend_memory()) fail("memory is not taken");
}

bool HonestPair::lend_memory() {
  source_fd_ = shareable(kBuffer);
  sink_fd_ = shareable(kBuffer);
  if (!source_fd_ || !sink_fd_) return false;
  source_ = SharedMemory::adopt(::fcntl(source_fd_.get(), F_DUPFD_CLOEXEC, 0), 0, kBuffer);
  sink_ = SharedMemory::adopt(::fcntl(sink_fd_.get(), F_DUPFD_CLOEXEC, 0), 0, kBuffer);
  std::uint64_t region = 0;
  return source_ && sink_ &&
         alice_.client->map(alice_.endpoint, Direction::kTransmit, 0, source_fd_.get(), kBuffer,
                            region) == 0 &&
         bob_.client->map(bob_.endpoint, Direction::kReceive, 0, sink_fd_.get(), kBuffer, region) ==
             0 &&
         bob_.client->alloc_mx(region, mx_) == 0;
}

bool HonestPair::fail(const std::string& why) {
  if (tally_.fault.empty()) tally_.fault = why;
  return false;
}

bool HonestPair::send(Side& from, const SendEntry& entry) {
  if (!from.channel.rings.send(entry)) return fail("the transmit queue is full");
  from.client->ring(from.channel);
  return true;
}

bool HonestPair::await(Side& at, ReceivedEntry& entry, Duration patience) {
  const auto until = Clock::now() + patience;
  for (unsigned looks = 0; !at.channel.rings.receive(entry); ++looks) {
    have_looked(false);
    if (at.channel.rings.state() != ChannelState::kOpen) return fail("the connection ended");
    if (Clock::now() > until) return fail("a header did not arrive");
    wait_a_moment(at.channel.rings, looks);
  }
  have_looked(true);
  return true;
}

void HonestPair::have_looked(bool found) {
  if (!waits_) return;
  const auto now = waits_->own();
  if (found) own_ += now - looked_;
  looked_ = now;
}

bool HonestPair::trip(Duration patience) {
  const auto before = waits(false);
  looked_ = before.own;
  own_ = {};
  const auto began = Clock::now();
  const bool measured = measures_;
  for (const auto& [from, to] : {std::pair(&alice_, &bob_), std::pair(&bob_, &alice_)}) {
    SendEntry entry{};
    ReceivedEntry received;
    entry.header.op_flags = wire::op_flags(wire::Op::kNoOperation);
    entry.header.sync = ++number_;
    if (!send(*from, entry) || !await(*to, received, patience)) return false;
    if (received.header.sync != number_) return fail("a header was lost");
  }
  const auto took = Clock::now() - began;
  ++tally_.trips;
  if (measured) tally_.trip_times.add(took, waits(false).servers - before.servers + own_);
  return true;
}

bool HonestPair::transfer(Duration patience) {
  ++number_;
  for (std::size_t at = 0; at < kBuffer; at += sizeof number_)
    std::memcpy(source_->data() + at, &number_, sizeof number_);
  SendEntry grant{};
  grant.header.op_flags = wire::op_flags(wire::Op::kClearToSend);
  grant.header.param = kBufferLog2;
  grant.header.mx = mx_;
  grant.header.d_id = number_;  // a new grant of the same Block number ends the earlier one
  grant.header.s_id = 7;
  ReceivedEntry received;
  if (!send(bob_, grant) || !await(alice_, received, patience)) return false;
  SendEntry data{};
  data.header.op_flags = wire::op_flags(wire::Op::kData);
  data.header.mx = mx_;
  data.header.d_id = 7;
  data.length = kBuffer;
  if (!send(alice_, data)) return false;
  // The header that reports the complete Block.
  if (!await(bob_, received, patience)) return false;
  if (std::memcmp(source_->data(), sink_->data(), kBuffer) != 0)
    return fail("data did not arrive as they were sent");
  ++tally_.transfers;
  return true;
}

bool HonestPair::is_answered() {
  for (auto* side : {&alice_, &bob_}) {
    auto request = Client::request(RequestKind::kVcInfo);
    request.vc = side->channel.vc;
    const auto before = waits(true);
    const auto began = Clock::now();
    if (side->client->ask(request) != 0) return fail("stpd does not answer an honest client");
    const auto took = Clock::now() - began;
    tally_.answer_times.add(took, waited_since(before));
  }
  return true;
}

void HonestPair::run() {
  waits_.emplace(servers_);
  for (std::uint32_t i = 0; !stop_; ++i) {
    if (!trip()) break;
    if (i % kTransfersEvery == 0 && !transfer()) break;
    if (i % kAnswersEvery == 0 && !is_answered()) break;
    std::this_thread::sleep_for(kPause);
  }
  waits_.reset();
}

void HonestPair::start() {
  stop();
  if (!fault().empty()) return;
  tally_ = {};
  stop_ = false;
  thread_ = std::thread([this] { run(); });
}

Tally HonestPair::stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  return tally_;
}

}  // namespace stp::hostile
