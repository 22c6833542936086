// SPDX-License-Identifier: BSD-3-Clause
// A client that does random things to a daemon's socket and to the memory it shares with the
// daemon.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "libst/ipc/shared_memory.h"
#include "stp/channel/rings.h"
#include "tests/stpd/raw_client.h"

namespace stp::stpd {

// The source of its decisions: a seed, or a fuzzer's input.
using Dice = std::function<std::uint64_t()>;

class Hostile {
 public:
  // `shards`: the number of shards of the link. The client is on the last one, and sends requests
  // to all of them.
  Hostile(const std::string& path, Dice dice, std::uint32_t shards = 1)
      : dice_(std::move(dice)), shards_(shards), client_(path) {}

  ~Hostile() {
    // A child that holds everything of this client for longer.
    for (const auto child : children_) ::waitpid(child, nullptr, 0);
  }
  Hostile(const Hostile&) = delete;
  Hostile& operator=(const Hostile&) = delete;

  void live() {
    if (!greet()) return;
    for (auto steps = dice_() % 64; steps > 0 && !gone_; --steps) step();
  }
  // For several clients that take turns: first greet(), then steps until gone().
  bool greet() {
    client_.shard = shards_ - 1;
    if (client_.ask(ipc::RequestKind::kHello) != 0 || client_.fds.size() != 2) return false;
    page_ = ipc::SharedMemory::adopt(client_.fds[0].release(), 0, sizeof(ipc::ClientPage));
    bell_ = std::move(client_.fds[1]);
    if (dice_() % 8 != 0 && client_.say_mapped() != 0) return false;
    return page_ != nullptr;
  }
  [[nodiscard]] bool gone() const { return gone_; }
  void step() {
    switch (dice_() % 40) {
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
      case 32:
      case 33:
        return refill_ring();
      case 34:
      case 35:
        return meddle();
      case 36:
        return send_many_descriptors();
      case 37:
        return leave_a_child();
      default:
        return ask_anything();
    }
  }

 private:
  void fill(std::span<std::byte> bytes) {
    for (auto& byte : bytes) byte = static_cast<std::byte>(dice_());
  }

  // Sends noise, not always of a request's size, and does not always read the answer.
  void send_noise() {
    std::vector<std::byte> noise(dice_() % 2'000 + 1);
    fill(noise);
    if (dice_() % 4 == 0) make_fit(noise);
    ::send(client_.socket.get(), noise.data(), noise.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    read_replies();
  }

  // What follows is noise, but it has the head of a request of that size.
  void make_fit(std::vector<std::byte>& noise) {
    const auto& rule = ipc::kRequests[dice_() % ipc::kRequests.size()];
    const ipc::RequestHead head{.kind = rule.kind, .shard = some_shard()};
    noise.resize(sizeof head + rule.size);
    std::memcpy(noise.data(), &head, sizeof head);
  }

  void spoil_page() {
    const auto size = std::min<std::size_t>(page_->size(), sizeof(ipc::ClientPage));
    const auto at = dice_() % size;
    fill(std::span(page_->data(), size).subspan(at, std::min<std::size_t>(size - at, 512)));
    ring();
  }

  void ring() {
    auto& page = *reinterpret_cast<ipc::ClientPage*>(page_->data());
    for (std::uint32_t i = 0; i < 8; ++i) page.bells.ring(i);
    ::fcntl(bell_.get(), F_SETFL, O_NONBLOCK);  // it may be full: only this program reads it
    ::eventfd_write(bell_.get(), dice_() % 3);
  }

  void spoil_channel() {
    if (channels_.empty()) return make_channel();
    const auto& channel = *channels_[dice_() % channels_.size()].memory;
    const auto memory = std::span(channel.data(), channel.size());
    // Hits the indices, in the first lines, more often than entries.
    const auto at = dice_() % 2 == 0 ? dice_() % 256 : dice_() % memory.size();
    fill(memory.subspan(at, std::min<std::size_t>(memory.size() - at, 1 + dice_() % 256)));
    ring();
  }

  // Keeps a ring full: refills what the daemon takes. The entries stay as they are.
  void refill_ring() {
    if (channels_.empty()) return make_channel();
    const auto& channel = channels_[dice_() % channels_.size()];
    auto& control = *reinterpret_cast<ChannelControl*>(channel.memory->data());
    const auto capacity = dice_() % 8 == 0 ? static_cast<std::uint32_t>(dice_()) : kRing;
    for (auto rounds = dice_() % 2'000; rounds > 0; --rounds) {
      control.tx_head.store(control.tx_tail.load() + capacity);
      if (rounds % 64 == 0) ring();
    }
  }

  // Changes properties that all users of a descriptor share, or the memory behind it.
  void meddle() {
    const auto fd = shared_descriptor();
    switch (dice_() % 8) {
      case 0:
        ::fcntl(fd, F_SETFL, 0);
        break;
      case 1:
        ::fcntl(fd, F_SETOWN, 0);
        ::fcntl(fd, F_SETFL, O_NONBLOCK | O_APPEND);
        break;
      case 2:
        ::flock(fd, LOCK_EX | LOCK_NB);
        break;
      case 3:
        ::fcntl(fd, F_ADD_SEALS, 1 << dice_() % 5);
        break;
      case 4:
        ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kMemory);
        break;
      case 5: {
        [[maybe_unused]] const auto cut = ::ftruncate(fd, static_cast<off_t>(dice_() % kMemory));
        break;
      }
      case 6:
        ::fcntl(fd, F_SETLEASE, F_WRLCK);
        break;
      default:
        drain_or_fill(bell_.get());
    }
    ring();
  }
  // Leaves out its own socket, on which this client would block.
  int shared_descriptor() {
    const auto which = dice_() % (2 + channels_.size());
    if (which == 0) return page_->fd();
    if (which == 1) return bell_.get();
    return channels_[which - 2].memory->fd();
  }
  void drain_or_fill(int bell) {
    std::uint64_t value = dice_() % 2 == 0 ? ~std::uint64_t{1} : 1;
    pollfd ready{.fd = bell, .events = POLLIN | POLLOUT, .revents = 0};
    ::poll(&ready, 1, 0);
    ::fcntl(bell, F_SETFL, O_NONBLOCK);
    if (dice_() % 2 == 0) [[maybe_unused]]
      const auto put = ::write(bell, &value, sizeof value);
    else [[maybe_unused]]
      const auto got = ::read(bell, &value, sizeof value);
    if (dice_() % 2 == 0) ::fcntl(bell, F_SETFL, 0);
  }

  // Sends more descriptors than any request has, up to the kernel's limit.
  void send_many_descriptors() {
    constexpr std::size_t kMost = 253;
    std::vector<os::UniqueFd> fds;
    for (auto kinds = 1 + dice_() % 4; kinds > 0; --kinds) fds.push_back(some_descriptor());
    std::vector<int> numbers;
    for (auto count = 1 + dice_() % kMost; count > 0; --count)
      if (const auto fd = fds[count % fds.size()].get(); fd >= 0) numbers.push_back(fd);
    if (numbers.empty()) return;
    std::vector<std::byte> bytes(dice_() % 2'000);
    if (dice_() % 4 != 0) make_fit(bytes);
    // If too much is queued, the message was not sent and gets no answer.
    const auto sent =
        send_with(client_.socket.get(), bytes.data(), bytes.size(), numbers, MSG_DONTWAIT) >= 0;
    if (!sent || dice_() % 2 == 0) return lose();  // unread, perhaps
    read_replies();
  }

  // A child keeps all descriptors of this client open for some time. Often the client ends before.
  void leave_a_child() {
    const auto child = ::fork();
    if (child == 0) {
      ::usleep(2'000);
      ::_exit(0);
    }
    if (child > 0) children_.push_back(child);
    if (dice_() % 2 == 0) lose();
  }

  // Sends requests from memory that may have been removed.
  void send_from_channel() {
    if (channels_.empty()) return make_channel();
    auto& channel = channels_[dice_() % channels_.size()].rings;
    for (auto count = 1 + dice_() % 8; count > 0; --count) {
      SendEntry entry{};
      const auto op = dice_() % 2 == 0 ? wire::Op::kData : static_cast<wire::Op>(dice_() % 32);
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

  // Connects to its own listener, so that requests in its rings have a peer.
  void make_channel() {
    if (client_.ask(ipc::RequestKind::kOpenEndpoint) != 0) return lose();
    endpoint_ = client_.reply.endpoint;
    auto listen = host::request_for(ipc::RequestKind::kListen);
    listen.shard = client_.shard;
    listen.endpoint = endpoint_;
    listen.uport = kUports + static_cast<std::uint32_t>(dice_() % 64);
    if (client_.ask(listen) == -ECONNRESET) return lose();
    if (client_.ask(ipc::RequestKind::kOpenEndpoint) != 0) return lose();
    auto connect = host::request_for(ipc::RequestKind::kConnect);
    connect.shard = client_.shard;
    connect.endpoint = client_.reply.endpoint;
    connect.uport = listen.uport;
    connect.mac = 0x020000000001;
    keep_channel(connect);
    auto accept = host::request_for(ipc::RequestKind::kAccept);
    accept.shard = client_.shard;
    accept.endpoint = endpoint_;
    std::this_thread::yield();
    keep_channel(accept);
  }

  void keep_channel(const host::Request& request) {
    const auto result = client_.ask(request);
    if (result == -ECONNRESET) return lose();
    if (result != 0 || client_.fds.empty()) return;
    vc_ = client_.reply.vc;
    auto channel =
        ipc::SharedMemory::adopt(client_.fds[0].release(), 0, client_.reply.channel_size);
    if (channel == nullptr) return;
    if (dice_() % 8 != 0 && client_.say_mapped(vc_) == -ECONNRESET) return lose();
    const UserChannel rings(channel->data());  // trusts the memory, so made before it is spoilt
    channels_.push_back({std::move(channel), rings});
  }

  // Sends a request whose fields are plausible, random, or a mixture.
  void ask_anything() {
    host::Request request{};
    if (dice_() % 4 == 0) fill(std::as_writable_bytes(std::span(&request, 1)));
    request.version = ipc::kProtocolVersion;
    request.kind = dice_() % 32 == 0 ? static_cast<ipc::RequestKind>(dice_() % 64)
                                     : ipc::kRequests[dice_() % ipc::kRequests.size()].kind;
    if (dice_() % 32 != 0) request.reserved = request.shard = 0;
    if (shards_ > 1 && dice_() % 32 != 0) request.shard = some_shard();
    if (dice_() % 2 == 0) request.endpoint = endpoint_;
    if (dice_() % 2 == 0) request.vc = vc_;
    if (dice_() % 2 == 0) request.region = dice_() % 8;
    if (dice_() % 2 == 0) request.config = host::usual_config();
    request.mac = 0x020000000001;
    request.segment_count = 0;
    std::vector<os::UniqueFd> fds;
    if (request.kind == ipc::RequestKind::kMap || dice_() % 128 == 0) add_memory(request, fds);
    std::vector<int> numbers;
    for (const auto& fd : fds) numbers.push_back(fd.get());
    if (send_request(client_.socket.get(), request, numbers) != 0) return lose();
    // Removes the memory while the daemon handles it, if no seal forbids that.
    for (const auto& fd : fds)
      if (dice_() % 2 == 0) [[maybe_unused]]
        const auto cut = ::ftruncate(fd.get(), 0);
    if (dice_() % 64 == 0) return lose();  // gone before the answer
    host::Reply reply;
    std::vector<os::UniqueFd> received;
    if (receive_reply(client_.socket.get(), reply, received) != 0) lose();
  }

  void add_memory(host::Request& request, std::vector<os::UniqueFd>& fds) {
    const auto count = 1 + dice_() % 3;
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

  os::UniqueFd some_descriptor() {
    switch (dice_() % 24) {
      case 0:
        return os::UniqueFd(::open("/dev/zero", O_RDWR | O_CLOEXEC));
      case 1:
        return os::UniqueFd(::open("/", O_RDONLY | O_CLOEXEC));
      case 2:
        return os::UniqueFd(::eventfd(0, EFD_CLOEXEC));
      case 3:
        return os::UniqueFd(::dup(client_.socket.get()));
      case 4:
        return os::UniqueFd(::dup(bell_.get()));
      case 5:
        return os::UniqueFd(::open("/tmp", O_PATH | O_CLOEXEC));
      case 6:
        return os::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
      case 7:
        return os::UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
      case 8:
        return os::UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      case 9:
        return os::UniqueFd(::memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
      case 10: {
        std::array<int, 2> pipe{-1, -1};
        if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return {};
        const os::UniqueFd reader(pipe[0]);
        return os::UniqueFd(pipe[1]);
      }
      case 11: {
        std::array<int, 2> pair{-1, -1};
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) return {};
        const os::UniqueFd other(pair[1]);
        return os::UniqueFd(pair[0]);
      }
      default: {
        os::UniqueFd fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        if (::ftruncate(fd.get(), dice_() % 4 == 0 ? 100 : kMemory) != 0) return fd;
        // Sometimes with all its pages, as required.
        if (dice_() % 2 == 0) ::fallocate(fd.get(), 0, 0, kMemory);
        if (dice_() % 4 != 0) ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK);
        if (dice_() % 16 == 0) ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_WRITE);
        return fd;
      }
    }
  }

  // Mostly its own: elsewhere it has nothing, and may not even have said hello.
  std::uint32_t some_shard() {
    if (dice_() % 8 != 0) return shards_ - 1;
    return static_cast<std::uint32_t>(dice_() % shards_);
  }

  void read_replies() {
    std::array<std::byte, sizeof(ipc::ReplyMessage)> ignored;
    if (::recv(client_.socket.get(), ignored.data(), ignored.size(), 0) <= 0) lose();
  }

  void lose() {
    client_.socket.reset();
    gone_ = true;
  }

  static constexpr std::uint32_t kUports = 5'000, kRing = 64;
  static constexpr std::uint32_t kBuffer = 1U << 14;
  static constexpr std::size_t kMemory = std::size_t{1} << 18;
  const Dice dice_;
  const std::uint32_t shards_;
  RawClient client_;
  std::shared_ptr<ipc::SharedMemory> page_;
  os::UniqueFd bell_;
  struct OwnChannel {
    std::shared_ptr<ipc::SharedMemory> memory;
    UserChannel rings;
  };
  std::vector<OwnChannel> channels_;
  EndpointId endpoint_ = kNoneId;
  VcId vc_ = kNoneId;
  bool gone_ = false;
  std::vector<pid_t> children_;
};

}  // namespace stp::stpd
