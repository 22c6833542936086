// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/dialers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <semaphore>
#include <string>

#include "libst/libfabric/op.h"

namespace stp::test::dialers_test {
namespace {

using fi::Dialers;
using fi::LinkLock;
using fi::LinkMutex;

// Who is not connected hears of it.
class Caller final : public fi::Owner {
 public:
  explicit Caller(std::counting_semaphore<>& heard) : heard_(heard) {}
  void connection_event(const stm_event_t&) override {}
  void not_dialed(int status) override {
    status_ = status;
    heard_.release();
  }
  void arrived(fi::RxBuffer&, const stm_event_t&) override {}
  void serve(const stm_event_t&) override {}
  void part_done(fi::Op&, int) override {}
  [[nodiscard]] int status() const { return status_; }

 private:
  int status_ = 0;
  std::counting_semaphore<>& heard_;
};

class FiDialers : public testing::Test {
 protected:
  void dial(const std::string& host) {
    const LinkLock lock(mutex_);
    dialers_.dial({.owner = &caller_, .connection = nullptr, .peer = host + ":1", .data = {}});
  }
  bool hurry(std::chrono::steady_clock::time_point now) {
    const LinkLock lock(mutex_);
    return dialers_.hurry(now);
  }
  void dial_silent(std::size_t hosts) {
    for (std::size_t i = 0; i < hosts; ++i) dial("silent" + std::to_string(i));
  }
  // So many are given up.
  void give_up(std::size_t hosts) {
    patience_.release(static_cast<std::ptrdiff_t>(hosts));
    for (std::size_t i = 0; i < hosts; ++i) heard_.acquire();
  }
  // That many threads wait for answers.
  [[nodiscard]] bool wait(std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i)
      if (!waiting_.try_acquire_for(kPatience)) return false;
    return true;
  }
  // Those whose names begin with "silent" do not answer, unless all do.
  int connect(const fi::Dial& dial) {
    if (all_answer_ || !dial.peer.starts_with("silent")) {
      begun_.release();
      return 0;
    }
    waiting_.release();
    patience_.acquire();
    return -EHOSTUNREACH;
  }

  static constexpr std::chrono::seconds kPatience{20};
  std::counting_semaphore<> heard_{0}, begun_{0}, waiting_{0}, patience_{0};
  std::atomic<bool> all_answer_ = false;
  Caller caller_{heard_};
  LinkMutex mutex_;
  Dialers dialers_{mutex_, [this](const fi::Dial& each) { return connect(each); }};
};

// However many they are, and however often the program tries.
TEST_F(FiDialers, HostsThatDidNotAnswerHoldUpNoOthers) {
  constexpr auto kHosts = 3 * Dialers::kMost;
  dial_silent(kHosts);
  give_up(kHosts);
  EXPECT_TRUE(wait(kHosts));
  EXPECT_EQ(caller_.status(), -EHOSTUNREACH);
  dial_silent(kHosts);
  EXPECT_TRUE(wait(Dialers::kMostToSilent));
  dial("there");
  EXPECT_TRUE(begun_.try_acquire_for(kPatience));
  EXPECT_FALSE(waiting_.try_acquire());
  give_up(kHosts);
}

// Of those that are new nobody knows yet that they are not there.
TEST_F(FiDialers, NewHostsThatDoNotAnswerHoldUpOthersForAMoment) {
  dial_silent(Dialers::kMost);
  EXPECT_TRUE(wait(Dialers::kMost));
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(hurry(now)) << "a program may sleep for ever";
  dial("there");
  EXPECT_TRUE(hurry(now)) << "it may sleep for 50 ms";
  EXPECT_FALSE(begun_.try_acquire());
  hurry(now + std::chrono::seconds(1));
  EXPECT_TRUE(begun_.try_acquire_for(kPatience));
  give_up(Dialers::kMost);
}

TEST_F(FiDialers, AHostThatAnswersAgainIsOneOfTheOthers) {
  dial("silent host");
  give_up(1);
  all_answer_ = true;
  dial("silent host");
  begun_.acquire();
  all_answer_ = false;
  EXPECT_TRUE(wait(1));
  dial_silent(Dialers::kMostToSilent);
  give_up(Dialers::kMostToSilent);
  dial_silent(Dialers::kMostToSilent);
  EXPECT_TRUE(wait(2 * Dialers::kMostToSilent));
  dial("silent host");
  EXPECT_TRUE(wait(1));
  give_up(Dialers::kMostToSilent + 1);
}

}  // namespace
}  // namespace stp::test::dialers_test
