// SPDX-License-Identifier: BSD-3-Clause
#include "tests/hostile/measured.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "libst/service/socket.h"
#include "tests/hostile/daemon.h"

namespace stp::hostile {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr auto kIdle = std::chrono::milliseconds(1), kBetweenLooks = std::chrono::milliseconds(5);
constexpr int kExchanges = 4;

}  // namespace

Measured::Measured(HonestPair& pair, std::string socket) : pair_(pair), socket_(std::move(socket)) {
  idle_thread_ = std::thread([this] { exchange(); });
  operator_thread_ = std::thread([this] { look(); });
  pair_.start();
}

void Measured::exchange() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return;
  UniqueFd mine(ends[0]), other(ends[1]);
  std::thread echo([&other] {
    for (char byte; ::read(other.get(), &byte, 1) == 1;)
      if (::write(other.get(), &byte, 1) != 1) return;
  });
  while (!stop_) {
    const auto began = Clock::now();
    char byte = 0;
    if (::write(mine.get(), &byte, 1) != 1 || ::read(mine.get(), &byte, 1) != 1) break;
    idle_.add(Clock::now() - began);
    std::this_thread::sleep_for(kIdle);
  }
  mine.reset();
  echo.join();
}

void Measured::look() {
  while (!stop_) {
    const auto began = Clock::now();
    UniqueFd socket;
    Reply reply;
    std::vector<UniqueFd> none;
    auto error = service::connect_to_watch(socket_, socket);
    if (error == 0)
      error = service::send_request(socket.get(), Client::request(RequestKind::kAdminLink), {});
    if (error == 0) error = service::receive_reply(socket.get(), reply, none);
    if (error == 0) error = reply.result;
    operator_.add(Clock::now() - began);
    if (error != 0 && fault_.empty()) fault_ = "an operator got the error " + std::to_string(error);
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void Measured::end() {
  stop_ = true;
  if (idle_thread_.joinable()) idle_thread_.join();
  if (operator_thread_.joinable()) operator_thread_.join();
}

void Measured::judge(const std::string& what, const char* name, const Times& times,
                     std::chrono::milliseconds bound) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), "beside %s: %s: longest %.1f ms, p99.9 %.1f ms of %zu\n",
                what.c_str(), name, Milliseconds(times.longest).count(),
                times.percentile(0.999) / 1'000, times.microseconds.size());
  std::printf("%s", line.data());
  if (times.longest - kExchanges * idle_.longest >= bound * kSlowness) too_slow_ += line.data();
}

Tally Measured::stop(const std::string& what, std::chrono::milliseconds bound) {
  const auto tally = pair_.stop();
  end();
  judge(what, "round trips", tally.trip_times, bound);
  judge(what, "requests", tally.answer_times, bound);
  judge(what, "an operator", operator_, bound);
  judge(what, "idle threads", idle_, bound);
  std::fflush(stdout);
  EXPECT_EQ(fault_, "");
  return tally;
}

}  // namespace stp::hostile
