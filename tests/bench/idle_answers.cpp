// SPDX-License-Identifier: BSD-3-Clause
// Measures how soon an idle stpd answers, and its CPU time while idle. A prober that never sleeps
// sends a frame to a stpd that was idle for a while, and measures the time until the answer. The
// frame is an RD for a Port that does not exist, which every Node answers by itself (§5.12). So
// neither a connection nor a program on either side takes part.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "dpdk_port/link_port.h"
#include "stp/wire/frame.h"
#include "tests/bench/command_line.h"
#include "tests/dpdk_port/open_port.h"

namespace stp::bench {
namespace {

constexpr Time kGiveUp = kSecond;

// Sends one frame at a time and records when its answer has arrived.
class Prober final : public port::Engine {
 public:
  Prober(const MacAddr& own, const MacAddr& peer) : own_(own), peer_(peer) {}
  void ask() {
    waiting_ = pending_ = true;
    ++asked_;
  }
  [[nodiscard]] bool waiting() const { return waiting_; }

  void receive(std::span<const Bytes> burst, Time) override {
    for (const auto& bytes : burst) {
      wire::Frame frame;
      if (wire::parse(bytes, wire::kMaxMaxStu, frame) != DropReason::kNone) continue;
      if (frame.header.op() == wire::Op::kDisconnectAnswer && frame.header.d_key == asked_)
        waiting_ = false;
    }
  }
  void receive_looped(std::span<const LoopedFrame>, Time) override {}
  void receive_apart(std::span<const LoopedFrame>, Time) override {}
  std::size_t transmit(std::span<TxFrame> frames, Time) override {
    if (!std::exchange(pending_, false)) return 0;
    wire::Header end;
    end.op_flags = wire::op_flags(wire::Op::kRequestDisconnect);
    end.d_port = wire::kMaxPort;
    end.s_port = 1;
    end.offset = asked_;  // comes back as the answer's D_Key
    frames[0].head_length =
        wire::emit({peer_, own_, {}, false}, end, {}, {}, {frames[0].head, wire::kMaxHeadSize});
    return 1;
  }
  void transmitted(std::span<const TxToken>) override {}
  [[nodiscard]] Time next_deadline() const override { return kNever; }
  void expire(Time) override {}

 private:
  MacAddr own_, peer_;
  bool waiting_ = false, pending_ = false;
  std::uint32_t asked_ = 0;
};

// CPU time of all threads of a process, in nanoseconds.
std::uint64_t cpu_time(const std::string& pid) {
  std::uint64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + pid + "/task")) {
    std::uint64_t spent = 0;
    std::ifstream(task.path() / "schedstat") >> spent;
    sum += spent;
  }
  return sum;
}

void show_idle_share(const std::string& pid) {
  const auto cpu_before = cpu_time(pid);
  const auto before = port::now();
  std::this_thread::sleep_for(std::chrono::seconds(5));
  const auto spent = static_cast<double>(cpu_time(pid) - cpu_before);
  std::printf("idle: %.2f %% of a core\n",
              100.0 * spent / static_cast<double>(port::now() - before));
}

// Returns the answer's delay, or kNever if there was none.
Time probe(port::LinkPort& link, Prober& prober) {
  prober.ask();
  const auto before = port::now();
  auto after = before;
  while (prober.waiting() && after - before < kGiveUp) {
    link.turn(prober, after);
    after = port::now();
  }
  return prober.waiting() ? kNever : after - before;
}

int run(const std::string& link_text, const std::string& peer_text, const std::string& pid,
        std::size_t count) {
  port::LinkConfig config;
  std::string error;
  const auto peer = port::parse_mac(peer_text);
  if (!peer) error = "no MAC address: " + peer_text;
  std::unique_ptr<port::Port> port;
  if (peer && port::parse_link(link_text, config, error)) port = port::open_port(config, error);
  if (!port) {
    std::fprintf(stderr, "stp-idle-answers: %s\n", error.c_str());
    return 1;
  }
  auto& link = static_cast<port::LinkPort&>(*port);
  Prober prober(link.info().mac, *peer);
  // Waits until a new link is ready, before the measurement.
  for (int i = 0; i < 20 && probe(link, prober) == kNever; ++i)
    ;
  show_idle_share(pid);
  std::mt19937 random(1);
  std::uniform_int_distribution<int> pause(5'000, 20'000);  // µs: not in step with a sleeper
  std::vector<Time> delays;
  std::size_t lost = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(pause(random)));
    const auto delay = probe(link, prober);
    if (delay == kNever)
      ++lost;
    else
      delays.push_back(delay);
  }
  if (delays.empty()) {
    std::fprintf(stderr, "stp-idle-answers: no answer at all\n");
    return 1;
  }
  std::sort(delays.begin(), delays.end());
  const auto at = [&](std::size_t percent) {
    return static_cast<double>(delays[(delays.size() - 1) * percent / 100]) / kMicrosecond;
  };
  std::printf("answers: p50 %.1f us, p90 %.1f us, p99 %.1f us, max %.1f us, %zu of %zu lost\n",
              at(50), at(90), at(99), at(100), lost, count);
  return 0;
}

}  // namespace
}  // namespace stp::bench

int main(int count, char** arguments) {
  constexpr const char* kUsage =
      "usage: stp-idle-answers LINK MAC PID [PROBES]\n"
      "Asks the idle stpd of process PID, which has the address MAC on the link, and\n"
      "prints what its idling costs and how soon it answers.\n";
  stp::bench::hold_to(kUsage, count, arguments);
  const std::vector<std::string> given(arguments + 1, arguments + count);
  std::size_t probes = 1000;
  const bool counted = given.size() == 4;
  if (counted) std::from_chars(given[3].data(), given[3].data() + given[3].size(), probes);
  if (given.size() < 3 || given.size() > 4 || probes == 0) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  return stp::bench::run(given[0], given[1], given[2], probes);
}
