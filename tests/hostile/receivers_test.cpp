// SPDX-License-Identifier: BSD-3-Clause
// A real stp-recv, and silent clients that occupy its places.
#include <csignal>
#include <fstream>
#include <iterator>

#include "tests/hostile/hostile_fixture.h"

namespace stp::hostile {
namespace {

class ReceiverUnderAttack : public HostileFixture {
 protected:
  static constexpr std::uint32_t kUport = 4'000;

  void SetUp() override {
    HostileFixture::SetUp();
    if (HasFatalFailure()) return;
    std::filesystem::create_directory(out());
    std::ofstream(file()) << std::string(300'000, 's');
  }
  void receive(const std::vector<std::string>& options) {
    std::vector<std::string> arguments{STP_RECV, "--link", link(), "--listen",
                                       ":4000",  "--out",  out()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    receiver = std::make_unique<test::Program>(arguments);
    ASSERT_TRUE(receiver->says("listening on")) << receiver->output();
  }
  void silent(const std::vector<std::string>& options, const std::string& until) {
    auto more = options;
    more.insert(more.end(), {"--uport", std::to_string(kUport)});
    quiet = attack({"idle", kFirst, more}, 60);
    ASSERT_TRUE(started_ && quiet->says(until)) << quiet->output();
  }
  // An honest sender connects after them. On a busy machine it may need more than the second after
  // which a listener replaces those that have not asked for anything: then it tries again.
  void expect_a_file() {
    int status = 1;
    for (int tries = 3; tries > 0 && status != 0; --tries) {
      test::Program sender({STP_SEND, "--link", link(), file(), ":4000"});
      status = sender.wait();
      if (status != 0 && tries == 1) ADD_FAILURE() << sender.output() << receiver->output();
    }
    std::ifstream arrived(out() + "/file", std::ios::binary);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(arrived), {}), std::string(300'000, 's'));
    quiet->signal(SIGKILL);
    quiet->wait();
    receiver->signal(SIGTERM);
    receiver->wait();
    EXPECT_EQ(daemon->returns_to(before), "");
    EXPECT_EQ(daemon->end(), "");
  }
  [[nodiscard]] std::string link() const { return "stpd:" + daemon->socket(); }
  [[nodiscard]] std::string out() const { return daemon->directory() + "/out"; }
  [[nodiscard]] std::string file() const { return daemon->directory() + "/file"; }

  std::unique_ptr<test::Program> receiver, quiet;
};

TEST_F(ReceiverUnderAttack, SixteenIdleSendersMakeRoomForOneThatSends) {
  receive({"--per-peer", "16"});
  silent({"--most", "16"}, "connections=16");
  expect_a_file();
}

TEST_F(ReceiverUnderAttack, ThreeHundredIdleRequestersASecondKeepNoSenderOut) {
  receive({"--per-peer", "16"});
  silent({"--rate", std::to_string(300 / kSlowness)}, "ready");
  expect_a_file();
}

}  // namespace
}  // namespace stp::hostile
