// SPDX-License-Identifier: BSD-3-Clause
// Clients that do anything they like, by seed: beside each of them a pair that behaves goes on as
// if nobody else were there, and nothing of them stays.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <thread>

#include "libst/service/poll_loop.h"
#include "libst/service/server.h"
#include "tests/service/raw_client.h"
#include "tests/temporary_directory.h"

namespace stp::service {
namespace {

using Dice = std::mt19937_64;

void fill(std::span<std::byte> bytes, Dice& dice) {
  for (auto& byte : bytes) byte = static_cast<std::byte>(dice());
}

// ---- one client without manners ----

class Hostile {
 public:
  Hostile(const std::string& path, std::uint64_t seed) : dice_(seed), client_(path) {}

  void live() {
    if (!greet()) return;
    for (auto steps = dice_() % 64; steps > 0 && !gone_; --steps) step();
  }

 private:
  bool greet() {
    if (client_.ask(RequestKind::kHello) != 0 || client_.fds.size() != 2) return false;
    page_ = SharedMemory::adopt(client_.fds[0].release(), 0, sizeof(ClientPage));
    bell_ = std::move(client_.fds[1]);
    return page_ != nullptr;
  }

  void step() {
    switch (dice_() % 32) {
      case 0:
        return send_noise();
      case 1:
      case 2:
        return spoil_page();
      case 3:
      case 4:
      case 5:
      case 6:
        return spoil_channel();
      case 7:
      case 8:
      case 12:
      case 13:
        return send_from_channel();
      case 9:
      case 10:
      case 11:
        return make_channel();
      default:
        return ask_anything();
    }
  }

  // Not always the right size, and not always a reader of what comes back.
  void send_noise() {
    std::vector<std::byte> noise(dice_() % 4 == 0 ? sizeof(Request) : dice_() % 2'000 + 1);
    fill(noise, dice_);
    ::send(client_.socket.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    read_replies();
  }

  void spoil_page() {
    auto const size = std::min<std::size_t>(page_->size(), sizeof(ClientPage));
    auto const at = dice_() % size;
    fill(std::span(page_->data(), size).subspan(at, std::min<std::size_t>(size - at, 512)), dice_);
    ring();
  }

  void ring() {
    auto& page = *reinterpret_cast<ClientPage*>(page_->data());
    for (std::uint32_t i = 0; i < 8; ++i) page.bells.ring(i);
    ::eventfd_write(bell_.get(), dice_() % 3);
  }

  void spoil_channel() {
    if (channels_.empty()) return make_channel();
    auto const& channel = *channels_[dice_() % channels_.size()].memory;
    auto const memory = std::span(channel.data(), channel.size());
    // The indices, in the first lines, more often than entries.
    auto const at = dice_() % 2 == 0 ? dice_() % 256 : dice_() % memory.size();
    fill(memory.subspan(at, std::min<std::size_t>(memory.size() - at, 1 + dice_() % 256)), dice_);
    ring();
  }

  // What its rings may hold, from memory that may be there and may have been taken away.
  void send_from_channel() {
    if (channels_.empty()) return make_channel();
    auto& channel = channels_[dice_() % channels_.size()].rings;
    for (auto count = 1 + dice_() % 8; count > 0; --count) {
      SendEntry entry{};
      auto const op = dice_() % 2 == 0 ? wire::Op::kData : static_cast<wire::Op>(dice_() % 32);
      entry.header.op_flags = wire::op_flags(op);
      entry.header.mx = static_cast<std::uint16_t>(dice_() % 4);
      entry.header.d_id = static_cast<std::uint16_t>(dice_() % 2);
      entry.header.s_id = static_cast<std::uint16_t>(dice_() % 2);
      entry.header.param = static_cast<std::uint8_t>(dice_() % 16);
      entry.length = dice_() % 8 == 0 ? static_cast<std::uint32_t>(dice_()) : kBuffer;
      if (!channel.send(entry)) break;
    }
    ring();
  }

  // A connection to a listener of its own, so that there is a peer for what its rings ask for.
  void make_channel() {
    if (client_.ask(RequestKind::kOpenEndpoint) != 0) return lose();
    endpoint_ = client_.reply.endpoint;
    auto listen = request_for(RequestKind::kListen);
    listen.endpoint = endpoint_;
    listen.uport = kUports + static_cast<std::uint32_t>(dice_() % 64);
    if (client_.ask(listen) == -ECONNRESET) return lose();
    if (client_.ask(RequestKind::kOpenEndpoint) != 0) return lose();
    auto connect = request_for(RequestKind::kConnect);
    connect.endpoint = client_.reply.endpoint;
    connect.uport = listen.uport;
    connect.mac = 0x020000000001;
    keep_channel(connect);
    auto accept = request_for(RequestKind::kAccept);
    accept.endpoint = endpoint_;
    std::this_thread::yield();
    keep_channel(accept);
  }

  void keep_channel(const Request& request) {
    auto const result = client_.ask(request);
    if (result == -ECONNRESET) return lose();
    if (result != 0 || client_.fds.empty()) return;
    vc_ = client_.reply.vc;
    auto channel = SharedMemory::adopt(client_.fds[0].release(), 0, client_.reply.channel_size);
    if (channel == nullptr) return;
    UserChannel const rings(channel->data());  // it believes what it finds: while it is good
    channels_.push_back({std::move(channel), rings});
  }

  // A request whose every field is likely, random, or something in between.
  void ask_anything() {
    Request request{};
    if (dice_() % 4 == 0) fill(std::as_writable_bytes(std::span(&request, 1)), dice_);
    request.version = kProtocolVersion;
    request.kind = static_cast<RequestKind>(1 + dice_() % (dice_() % 32 == 0 ? 20 : 16));
    if (dice_() % 32 != 0) request.reserved = 0;
    if (dice_() % 2 == 0) request.endpoint = endpoint_;
    if (dice_() % 2 == 0) request.vc = vc_;
    if (dice_() % 2 == 0) request.region = dice_() % 8;
    if (dice_() % 2 == 0) request.config = usual_config();
    request.mac = 0x020000000001;
    request.segment_count = 0;
    std::vector<UniqueFd> fds;
    if (request.kind == RequestKind::kMap || dice_() % 128 == 0) add_memory(request, fds);
    std::vector<int> numbers;
    for (auto const& fd : fds) numbers.push_back(fd.get());
    if (send_request(client_.socket.get(), request, numbers) != 0) return lose();
    // Taken away while the daemon is at it, where nothing forbids that.
    for (auto const& fd : fds)
      if (dice_() % 2 == 0) [[maybe_unused]]
        auto const cut = ::ftruncate(fd.get(), 0);
    if (dice_() % 64 == 0) return lose();  // gone before the answer
    Reply reply;
    std::vector<UniqueFd> received;
    if (receive_reply(client_.socket.get(), reply, received) != 0) lose();
  }

  void add_memory(Request& request, std::vector<UniqueFd>& fds) {
    auto const count = 1 + dice_() % 3;
    for (std::uint64_t i = 0; i < count; ++i) fds.push_back(some_descriptor());
    request.segment_count = static_cast<std::uint32_t>(dice_() % 16 == 0 ? dice_() : count);
    request.piece_count = dice_() % 16 == 0 ? static_cast<std::uint32_t>(dice_()) : 1;
    for (auto& piece : request.pieces)
      piece = {.at = dice_() % 4 == 0 ? dice_() : 0,
               .length = dice_() % 4 == 0 ? dice_() : kMemory / 2};
    request.direction = static_cast<std::uint32_t>(dice_() % 3);
    for (std::uint32_t i = 0; i < count; ++i)
      request.segments[i] = {.fd_index = static_cast<std::uint32_t>(dice_() % 8 == 0 ? dice_() : i),
                             .reserved = 0,
                             .offset = dice_() % 8 == 0 ? dice_() : 0,
                             .length = dice_() % 8 == 0 ? dice_() : kMemory};
  }

  UniqueFd some_descriptor() {
    switch (dice_() % 8) {
      case 0:
        return UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC));
      case 1:
        return UniqueFd(::open("/", O_RDONLY | O_CLOEXEC));
      case 2:
        return UniqueFd(::eventfd(0, EFD_CLOEXEC));
      case 3:
        return UniqueFd(::dup(client_.socket.get()));
      default: {
        UniqueFd fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        if (::ftruncate(fd.get(), dice_() % 4 == 0 ? 100 : kMemory) != 0) return fd;
        if (dice_() % 4 != 0) ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK);
        return fd;
      }
    }
  }

  void read_replies() {
    std::array<std::byte, sizeof(Reply)> ignored;
    if (::recv(client_.socket.get(), ignored.data(), ignored.size(), 0) <= 0) lose();
  }

  void lose() {
    client_.socket.reset();
    gone_ = true;
  }

  static constexpr std::uint32_t kUports = 5'000;
  static constexpr std::uint32_t kBuffer = 1U << 14;
  static constexpr std::size_t kMemory = std::size_t{1} << 18;
  Dice dice_;
  RawClient client_;
  std::shared_ptr<SharedMemory> page_;
  UniqueFd bell_;
  struct OwnChannel {
    std::shared_ptr<SharedMemory> memory;
    UserChannel rings;
  };
  std::vector<OwnChannel> channels_;
  EndpointId endpoint_ = kNoneId;
  VcId vc_ = kNoneId;
  bool gone_ = false;
};

// ---- the pair that behaves ----

struct Side {
  explicit Side(const std::string& path) : client(path) {
    EXPECT_EQ(client.ask(RequestKind::kHello), 0);
    page = SharedMemory::adopt(client.fds.at(0).release(), 0, sizeof(ClientPage));
    bell = std::move(client.fds.at(1));
    EXPECT_EQ(client.ask(RequestKind::kOpenEndpoint), 0);
    endpoint = client.reply.endpoint;
  }
  void take_channel() {
    number = client.reply.channel;
    memory = SharedMemory::adopt(client.fds.at(0).release(), 0, client.reply.channel_size);
    channel = UserChannel(memory->data());
  }
  void send(std::uint32_t value) {
    SendEntry entry{};
    entry.header.op_flags = wire::op_flags(wire::Op::kNoOperation);
    entry.header.sync = value;
    EXPECT_TRUE(channel.send(entry));
    reinterpret_cast<ClientPage*>(page->data())->bells.ring(number);
    ::eventfd_write(bell.get(), 1);
  }

  RawClient client;
  std::shared_ptr<SharedMemory> page, memory;
  UniqueFd bell;
  EndpointId endpoint = kNoneId;
  std::uint32_t number = 0;
  UserChannel channel;
};

class HostileTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  HostileTest() {
    EXPECT_EQ(server.start(), 0);
    loop.start();
  }
  template <typename Holds>
  static bool eventually(Holds&& holds) {
    auto const until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::yield();
    }
    return true;
  }
  static bool passes(Side& from, Side& to, std::uint32_t value) {
    ReceivedEntry received;
    from.send(value);
    return eventually([&] { return to.channel.receive(received); }) &&
           received.header.sync == value;
  }
  void connect(Side& alice, Side& bob) {
    ASSERT_EQ(bob.client.ask(RequestKind::kListen, bob.endpoint), 0);
    ASSERT_EQ(alice.client.ask(RequestKind::kConnect, alice.endpoint), 0);
    alice.take_channel();
    ASSERT_TRUE(
        eventually([&] { return bob.client.ask(RequestKind::kAccept, bob.endpoint) != -EAGAIN; }));
    ASSERT_EQ(bob.client.reply.result, 0);
    bob.take_channel();
    ASSERT_TRUE(eventually([&] { return alice.channel.state() == ChannelState::kOpen; }));
  }
  std::size_t client_count() {
    std::lock_guard guard(service.lock());
    return service.client_count();
  }

  test::TemporaryDirectory directory;
  std::string const path = directory.path() + "/stpd.sock";
  Service service{std::make_unique<test::TestPort>()};
  PollLoop loop{service, PollPolicy::kAdaptive};
  Server server{service, path};
};

TEST_P(HostileTest, HurtsOnlyItself) {
  Side alice(path), bob(path);
  connect(alice, bob);
  for (std::uint32_t i = 0; i < 60; ++i) {
    Hostile(path, GetParam() * 1'000 + i).live();
    ASSERT_TRUE(passes(alice, bob, 2 * i)) << "after client " << i;
    ASSERT_TRUE(passes(bob, alice, 2 * i + 1)) << "after client " << i;
  }
  EXPECT_EQ(alice.client.ask(RequestKind::kHello), 0);
  EXPECT_TRUE(eventually([&] { return client_count() == 2; })) << client_count();
  // They were not turned away before they could do harm.
  std::lock_guard guard(service.lock());
  auto const& counters = service.node().counters();
  EXPECT_GT(counters.get(Counter::kRingBroken) + counters.get(Counter::kTxRefused), 0U);
  EXPECT_GT(server.counts().bad_messages, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HostileTest, testing::Range<std::uint64_t>(1, 9));

}  // namespace
}  // namespace stp::service
