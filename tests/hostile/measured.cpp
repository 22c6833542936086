// SPDX-License-Identifier: BSD-3-Clause
#include "tests/hostile/measured.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <future>
#include <utility>

#include "libst/ipc/socket.h"

namespace stp::hostile {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr auto kIdle = std::chrono::milliseconds(1), kBetweenLooks = std::chrono::milliseconds(5);
constexpr int kExchanges = 4;

}  // namespace

Measured::Measured(HonestPair& pair, const Daemon& daemon)
    : pair_(pair), socket_(daemon.socket()), servers_(daemon.servers()) {
  idle_thread_ = std::thread([this] { exchange(); });
  operator_thread_ = std::thread([this] { look(); });
  pair_.served_by(servers_);
  pair_.start();
}

void Measured::exchange() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  UniqueFd mine(ends[0]), other(ends[1]);
  std::promise<pid_t> promise;
  std::thread echo([&] {
    promise.set_value(::gettid());
    for (char byte; ::read(other.get(), &byte, 1) == 1;)
      if (::write(other.get(), &byte, 1) != 1) return;
  });
  ProcessorWaits waits({.process = 0, .threads = {promise.get_future().get()}});
  while (!stop_) {
    const auto before = waits.now(false);
    const auto began = Clock::now();
    char byte = 0;
    if (::write(mine.get(), &byte, 1) != 1 || ::read(mine.get(), &byte, 1) != 1) break;
    const auto took = Clock::now() - began;
    idle_.add(took, waits.since(before));
    std::this_thread::sleep_for(kIdle);
  }
  mine.reset();
  echo.join();
}

void Measured::look() {
  ProcessorWaits waits(servers_);
  while (!stop_) {
    const auto before = waits.now(true);
    const auto began = Clock::now();
    UniqueFd socket;
    Reply reply;
    std::vector<UniqueFd> none;
    auto error = ipc::connect_to_watch(socket_, socket);
    if (error == 0)
      error = host::send_request(socket.get(), Client::request(RequestKind::kAdminLink), {});
    if (error == 0) error = host::receive_reply(socket.get(), reply, none);
    if (error == 0) error = reply.result;
    const auto took = Clock::now() - began;
    operator_.add(took, waits.since(before));
    if (error != 0 && fault_.empty()) fault_ = "an operator got the error " + std::to_string(error);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Measured::end() {
  stop_ = true;
  if (idle_thread_.joinable()) idle_thread_.join();
  if (operator_thread_.joinable()) operator_thread_.join();
}

void Measured::judge(const std::string& what, const char* name, const Times& times) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(),
                "beside %s: %s: longest %.1f ms, %.1f without waits for a processor; p99.9 %.1f ms "
                "of %zu\n",
                what.c_str(), name, Milliseconds(times.longest).count(),
                Milliseconds(times.longest_apart).count(), times.percentile(0.999) / 1'000,
                times.microseconds.size());
  std::printf("%s", line.data());
  if (times.longest_apart - kExchanges * idle_.longest_apart >= kBound * kSlowness)
    too_slow_ += line.data();
}

Tally Measured::stop(const std::string& what) {
  const auto tally = pair_.stop();
  end();
  judge(what, "round trips", tally.trip_times);
  judge(what, "requests", tally.answer_times);
  judge(what, "an operator", operator_);
  judge(what, "idle threads", idle_);
  std::fflush(stdout);
  EXPECT_EQ(fault_, "");
  return tally;
}

}  // namespace stp::hostile
