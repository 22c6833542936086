// SPDX-License-Identifier: BSD-3-Clause
// stp-rc-flood INTERFACE MAC RATE SECONDS KIND: sends RATE frames a second to that station, from
// random addresses. KIND rc: requests to connect to port 3000. KIND other: the same frames to a
// station that does not exist; they cost the link and the host as much, but the Node only a look at
// the address. Prints how many were sent.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "stp/wire/frame.h"
#include "tests/bench/command_line.h"

namespace {

using Bytes = std::array<std::byte, 60>;

std::vector<Bytes> make_frames(const stp::MacAddr& to) {
  std::mt19937_64 dice(1);
  std::vector<Bytes> frames(65'536);
  for (auto& frame : frames) {
    stp::wire::Header rc;
    rc.op_flags = stp::wire::op_flags(stp::wire::Op::kRequestConnection);
    rc.param = 64;
    rc.s_port = static_cast<std::uint16_t>(dice() % stp::wire::kMaxPort + 1);
    rc.bufx = 12;
    rc.offset = static_cast<std::uint32_t>(dice() | 1);
    rc.sync = 10;
    rc.d_id = 3'000;
    const auto nobody = stp::MacAddr::from_u64(std::uint64_t{2} << 40 | dice() >> 24);
    stp::wire::emit({to, nobody, {}}, rc, {}, {}, frame);
  }
  return frames;
}

int open_socket(const char* interface) {
  const auto fd = ::socket(AF_PACKET, SOCK_RAW, 0);
  sockaddr_ll at{};
  at.sll_family = AF_PACKET;
  at.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
  if (fd < 0 || at.sll_ifindex == 0 ||
      ::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    std::perror(interface);
    std::exit(1);
  }
  return fd;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr const char* kUsage = "usage: stp-rc-flood INTERFACE MAC RATE SECONDS rc|other\n";
  stp::bench::hold_to(kUsage, argc, argv);
  const std::string kind = argc == 6 ? argv[5] : "";
  if (kind != "rc" && kind != "other") {
    std::fputs(kUsage, stderr);
    return 2;
  }
  constexpr std::size_t kBurst = 100;
  stp::MacAddr to{};
  auto& o = to.octets;
  if (std::sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &o[0], &o[1], &o[2], &o[3], &o[4],
                  &o[5]) != 6)
    stp::bench::refuse(argv[0], std::string(argv[2]) + " is not a MAC address", kUsage);
  if (kind == "other") o[5] ^= 1;
  const auto frames = make_frames(to);
  const auto fd = open_socket(argv[1]);
  const auto rate = std::strtod(argv[3], nullptr), seconds = std::strtod(argv[4], nullptr);
  const auto total = static_cast<std::size_t>(rate * seconds);
  std::array<iovec, kBurst> pieces{};
  std::array<mmsghdr, kBurst> messages{};
  std::size_t sent = 0, next = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (std::size_t done = 0; done < total; done += kBurst) {
    for (std::size_t i = 0; i < kBurst; ++i) {
      const auto& frame = frames[next++ % frames.size()];
      pieces[i] = {const_cast<std::byte*>(frame.data()), frame.size()};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const auto left = ::sendmmsg(fd, messages.data(), kBurst, 0);
    if (left > 0) sent += static_cast<std::size_t>(left);
    // If it is late, it catches up.
    std::this_thread::sleep_until(begun + std::chrono::nanoseconds(static_cast<std::int64_t>(
                                              static_cast<double>(done + kBurst) / rate * 1e9)));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("sent %zu in %.2f s: %.0f a second\n", sent, took.count(),
              static_cast<double>(sent) / took.count());
  ::close(fd);
  return 0;
}
