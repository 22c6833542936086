// SPDX-License-Identifier: BSD-3-Clause
#include "tests/hostile/client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "dpdk_port/link/address.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"

namespace stp::hostile {
namespace {

// SCM_MAX_FD of the kernel.
constexpr std::size_t kMostDescriptors = 253;

}  // namespace

UniqueFd shareable(std::size_t bytes) {
  UniqueFd fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto size = static_cast<off_t>(bytes);
  if (!fd || ::ftruncate(fd.get(), size) != 0 || ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    return {};
  // All pages are there. Those that only fallocate() has made would count as holes.
  auto* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return {};
  std::memset(at, 0, bytes);
  ::munmap(at, bytes);
  return fd;
}

Client::Client(const std::string& socket, bool says_mapped) {
  if (ipc::connect_to(socket, socket_) != 0) return;
  if (ask(RequestKind::kHello) != 0 || fds_.size() != 2) return;
  mac_ = reply_.mac;
  page_fd_.reset(::fcntl(fds_[0].get(), F_DUPFD_CLOEXEC, 0));
  bell_ = std::move(fds_[1]);
  page_ = SharedMemory::adopt(fds_[0].release(), 0, sizeof(ipc::ClientPage));
  if (says_mapped) say_mapped(kNoneId);
}

int Client::say_mapped(std::uint64_t vc) {
  auto order = request(RequestKind::kMapped);
  order.vc = vc;
  const auto before = reply_;
  const auto result = ask(order);
  reply_ = before;
  return result;
}

Request Client::request(RequestKind kind, std::uint64_t endpoint) {
  Request request{};
  request.version = ipc::kProtocolVersion;
  request.kind = kind;
  request.endpoint = endpoint;
  EndpointConfig config;
  config.bufsize = kBufferLog2;
  config.max_stu = kBufferLog2;
  request.config = ipc::to_wire(config);
  return request;
}

int Client::ask(const Request& request, std::span<const int> fds) {
  fds_.clear();
  if (const auto sent = host::send_request(socket_.get(), request, fds); sent != 0) return sent;
  const auto got = host::receive_reply(socket_.get(), reply_, fds_);
  return got != 0 ? got : reply_.result;
}

bool Client::send_raw(std::span<const std::byte> bytes, std::span<const int> fds) const {
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    auto* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

std::uint64_t Client::open_endpoint(std::uint32_t credits) {
  auto order = request(RequestKind::kOpenEndpoint);
  order.config.credits = credits;
  return ask(order) == 0 ? reply_.endpoint : 0;
}

int Client::listen(std::uint64_t endpoint, std::uint32_t uport) {
  auto order = request(RequestKind::kListen, endpoint);
  order.uport = uport;
  return ask(order);
}

Channel Client::take_channel() {
  Channel channel;
  if (fds_.empty()) return channel;
  channel.vc = reply_.vc;
  channel.bell = reply_.channel;
  channel.fd.reset(::fcntl(fds_[0].get(), F_DUPFD_CLOEXEC, 0));
  channel.memory = SharedMemory::adopt(fds_[0].release(), 0, reply_.channel_size);
  if (!channel.memory) return channel;
  if (say_mapped(channel.vc) == 0)
    channel.rings = UserChannel(channel.memory->data());
  else
    channel.memory.reset();
  return channel;
}

std::uint64_t Client::resolve(const std::string& address) {
  auto order = request(RequestKind::kResolve);
  const auto parsed = port::parse_internet_address(address);
  if (!parsed) return 0;
  if (const auto ipv4 = parsed->ipv4())
    order.ipv4 = ipv4->value;
  else
    std::memcpy(order.ip, parsed->ip.data(), sizeof order.ip);
  return ask(order) == 0 ? reply_.mac : 0;
}

Channel Client::connect(std::uint64_t endpoint, std::uint32_t uport, std::uint64_t station) {
  auto order = request(RequestKind::kConnect, endpoint);
  order.uport = uport;
  order.mac = station != 0 ? station : mac_;
  return ask(order) == 0 ? take_channel() : Channel();
}

Channel Client::accept(std::uint64_t endpoint) {
  return ask(RequestKind::kAccept, endpoint) == 0 ? take_channel() : Channel();
}

Channel Client::await_accept(std::uint64_t endpoint) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (;;) {
    auto channel = accept(endpoint);
    if (channel || reply_.result != -EAGAIN || std::chrono::steady_clock::now() > until)
      return channel;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Client::Ends Client::connect_to_itself(std::uint32_t uport, std::uint32_t credits) {
  Ends ends;
  ends.listener = open_endpoint();
  ends.caller = open_endpoint(credits);
  if (ends.listener == 0 || ends.caller == 0 || listen(ends.listener, uport) != 0) return ends;
  ends.out = connect(ends.caller, uport);
  if (ends.out) ends.in = await_accept(ends.listener);
  return ends;
}

int Client::map(std::uint64_t endpoint, Direction direction, std::uint32_t base, int fd,
                std::size_t bytes, std::uint64_t& region) {
  auto order = request(RequestKind::kMap, endpoint);
  order.direction = static_cast<std::uint32_t>(direction);
  order.base = base;
  order.segment_count = order.piece_count = 1;
  order.segments[0] = {.fd_index = 0, .reserved = 0, .offset = 0, .length = bytes};
  order.pieces[0] = {.at = 0, .length = bytes};
  const auto result = ask(order, std::span(&fd, 1));
  if (result == 0) region = reply_.region;
  return result;
}

int Client::alloc_mx(std::uint64_t region, std::uint16_t& mx) {
  auto order = request(RequestKind::kAllocMx);
  order.region = region;
  order.permissions = permit::kData;
  const auto result = ask(order);
  if (result == 0) mx = static_cast<std::uint16_t>(reply_.mx);
  return result;
}

void Client::ring(const Channel& channel) const {
  page().bells.ring(channel.bell);
  if (page().service_asleep.load() == 0) return;
  std::uint64_t const one = 1;
  [[maybe_unused]] const auto put = ::write(bell_.get(), &one, sizeof one);
}

}  // namespace stp::hostile
