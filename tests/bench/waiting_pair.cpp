// SPDX-License-Identifier: BSD-3-Clause
// What a program in C does that only makes calls which wait, to compare it with one in Python
// (waiting_pair.py), which makes the same calls: messages of 8 bytes there and back, each sent and
// then received; or messages of 1 MiB, 8 at a time, from and into registered memory.
#include <stp/managed.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/command_line.h"

namespace {

constexpr const char* kUsage =
    "usage: stp-waiting-pair LINK serve ping|bulk\n"
    "       stp-waiting-pair LINK HOST:PORT ping|bulk SECONDS\n";
constexpr int kBlock = 100;  // messages that are timed together
constexpr std::size_t kShort = 8, kLong = std::size_t{1} << 20, kWindow = 8;
constexpr double kWarmUp = 0.3;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class End {
 public:
  explicit End(const char* link)
      : domain_(stp::open_domain(link)),
        queue_(stp::make_queue(domain_, 64)),
        bytes_(kWindow * kLong),
        memory_(stp::register_memory(domain_, bytes_, STM_LOCAL_WRITE)) {}

  void accept() {
    const auto listener = stp::listen(domain_, ":3000", queue_);
    std::puts("listening");
    std::fflush(stdout);
    connection_ = stp::Connection(await(STM_REQUEST).connection);
    stp::accept(connection_, stp::connection_attr(queue_));
    await(STM_CONNECTED);
  }
  void connect(const char* peer) {
    connection_ = stp::make_connection(domain_, stp::connection_attr(queue_));
    stp::connect(connection_, peer);
    await(STM_CONNECTED);
  }
  void post_send(std::size_t length) {
    stp::checked(stm_send(connection_, 0, 0, 0, memory_, bytes_.data(), length), "stm_send");
  }
  void post_receive(std::size_t length, std::size_t place = 0) {
    stp::checked(stm_receive(connection_, place, memory_, bytes_.data() + place * kLong, length),
                 "stm_receive");
  }
  stm_event_t await(unsigned kind) {
    return stp::expect_event(queue_, kind, std::chrono::microseconds(-1));
  }
  void send(std::size_t length) {
    post_send(length);
    await(STM_SEND);
  }
  void receive(std::size_t length) {
    post_receive(length);
    await(STM_RECEIVE);
  }
  void close() {
    stp::disconnect(connection_);
    while (stp::next_event(queue_).kind != STM_DISCONNECTED) {
    }
  }

 private:
  stp::Domain domain_;
  stp::Queue queue_;
  std::vector<char> bytes_;
  stp::Memory memory_;
  stp::Connection connection_;
};

// Until the peer disconnects.
void serve(End& end, bool is_ping) {
  end.accept();
  try {
    if (!is_ping)
      for (std::size_t place = 0; place < kWindow; ++place) end.post_receive(kLong, place);
    for (;;) {
      if (is_ping) {
        end.receive(kShort);
        end.send(kShort);
      } else {
        end.post_receive(kLong, end.await(STM_RECEIVE).context);
      }
    }
  } catch (const stp::Error&) {
  }
}

// Microseconds of a message there and back: of each of many short series.
std::vector<double> ping(End& end, double seconds) {
  std::vector<double> series;
  for (const auto begun = Clock::now(); seconds_since(begun) < seconds;) {
    const auto block = Clock::now();
    for (int i = 0; i < kBlock; ++i) {
      end.send(kShort);
      end.receive(kShort);
    }
    series.push_back(seconds_since(block) / kBlock * 1e6);
  }
  std::sort(series.begin(), series.end());
  return series;
}

// Bytes a second.
double bulk(End& end, double seconds) {
  std::size_t under_way = 0, count = 0;
  const auto begun = Clock::now();
  while (seconds_since(begun) < seconds) {
    end.post_send(kLong);
    if (++under_way < kWindow) continue;
    end.await(STM_SEND);
    --under_way;
    ++count;
  }
  const auto rate = static_cast<double>(count * kLong) / seconds_since(begun);
  for (; under_way > 0; --under_way) end.await(STM_SEND);
  return rate;
}

void ask(End& end, const char* peer, bool is_ping, double seconds) {
  end.connect(peer);
  if (is_ping) {
    ping(end, kWarmUp);
    const auto series = ping(end, seconds);
    std::printf("{\"round_trip_us\": %.3f, \"least_us\": %.3f}\n", series[series.size() / 2],
                series.front());
  } else {
    bulk(end, kWarmUp);
    std::printf("{\"bytes_per_second\": %.0f}\n", bulk(end, seconds));
  }
  end.close();
}

}  // namespace

int main(int argc, char** argv) {
  stp::bench::hold_to(kUsage, argc, argv);
  using stp::bench::refuse;
  if (argc < 4) refuse(argv[0], "a word is missing", kUsage);
  const std::string test = argv[3];
  if (test != "ping" && test != "bulk") refuse(argv[0], "there is no test " + test, kUsage);
  const bool serves = std::strcmp(argv[2], "serve") == 0;
  if (argc != (serves ? 4 : 5)) refuse(argv[0], "a word is missing or too much", kUsage);
  const auto seconds = serves ? 0 : stp::bench::number_of(argv[4]);
  if (!serves && seconds <= 0)
    refuse(argv[0], std::string(argv[4]) + " is no number of seconds", kUsage);
  try {
    End end(argv[1]);
    const bool is_ping = test == "ping";
    if (serves)
      serve(end, is_ping);
    else
      ask(end, argv[2], is_ping, seconds);
    return EXIT_SUCCESS;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "stp-waiting-pair: %s\n", problem.what());
    return EXIT_FAILURE;
  }
}
