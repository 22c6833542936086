// SPDX-License-Identifier: BSD-3-Clause
// stp-perf's server, which serves one client at a time.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "tools/perf/commands.h"
#include "tools/perf/plan.h"
#include "tools/perf/room.h"

namespace stp::perf {
namespace {

class Server : public testing::Test {
 protected:
  Server() {
    serving_.setup.link = "loop";
    serving_.turn = std::chrono::milliseconds(1);
    serving_.listening = [this] { listening_ = true; };
    serving_.mishap = [this](const std::string& what) { mishap_ = what; };
    thread_ = std::thread([this] { run_server(serving_, usage_, stop_); });
    while (!listening_) std::this_thread::yield();
  }
  ~Server() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // What is wrong; "": nothing.
  std::string measure(double seconds) {
    Plan plan;
    plan.operation = Operation::kWrite;
    plan.sleeps = true;
    Pace pace;
    pace.warm_up = pace.warm_up.zero();
    pace.measure = std::chrono::duration<double>(seconds);
    pace.quiet = true;
    Histogram latency;
    try {
      run_client(serving_.setup, serving_.port, plan, pace, usage_, latency);
      return "";
    } catch (const std::runtime_error& failure) {
      return failure.what();
    }
  }

  const UsageMeter usage_;
  Serving serving_;
  std::atomic<bool> listening_{false}, stop_{false};
  std::string mishap_;  // of the server's thread
  std::thread thread_;
};

// It waits for a step of that client's, for 10 s each.
TEST_F(Server, ends_though_a_client_makes_no_connection_at_level_0) {
  const auto domain = open_link(serving_.setup);
  const auto queue = make_queue(domain, 4);
  Greeting greeting;
  greeting.plan.operation = Operation::kLevel0;
  greeting.plan.connections = 1;
  const auto hello = greeting.encoded();
  const auto client = make_connection(domain, connection_attr(queue, 1));
  ASSERT_EQ(stm_connect(client, serving_.port.c_str(), -1, hello.data(), hello.size()), 0);
  ASSERT_EQ(next_event(queue, std::chrono::seconds(20)).kind, STM_CONNECTED);
  stop_ = true;
  thread_.join();
  EXPECT_EQ(mishap_, "");
}

TEST_F(Server, tells_a_client_whose_turn_does_not_come_whom_it_serves_instead) {
  constexpr double kLong = 3'600;
  std::thread first([this] {
    while (!stop_) measure(kLong);  // again, where the other one was served at that moment
  });
  std::string said;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (said.empty() && std::chrono::steady_clock::now() < until) said = measure(0.001);
  EXPECT_NE(said.find("serves another client, [02:00:00:00:00:01], for 0 s already: try again"),
            std::string::npos)
      << said;
  stop_ = true;
  first.join();
}

}  // namespace
}  // namespace stp::perf
