// SPDX-License-Identifier: BSD-3-Clause
// The test is the daemon.
#include "tools/stpctl/snapshot.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "libst/service/socket.h"
#include "libst/service/text_field.h"
#include "tests/temporary_directory.h"
#include "tools/stpctl/ending.h"

namespace stp::stpctl {
namespace {

class SnapshotTest : public testing::Test {
 protected:
  SnapshotTest() {
    service::SocketFile file;
    EXPECT_EQ(service::listen_at(path, listener, file), 0);
    client.emplace(path);
    daemon.reset(::accept(listener.get(), nullptr, nullptr));
  }
  // Sends the reply to a later request.
  void will_reply(int result, const char* counter = "") const {
    service::Reply reply{};
    reply.version = service::kProtocolVersion;
    reply.result = result;
    reply.value = 5;
    service::set_text(reply.text, counter);
    ASSERT_EQ(service::send_reply(daemon.get(), reply, {}, service::Wait::kDontWait), 0);
  }

  test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/stpd.sock";
  service::UniqueFd listener, daemon;
  std::optional<DaemonClient> client;
};

TEST_F(SnapshotTest, CountersAreReadToTheirEnd) {
  will_reply(0, "rx_frames");
  will_reply(0, "tx_frames");
  will_reply(-ENOENT);
  const auto counters = read_counters(*client, {});
  ASSERT_EQ(counters.size(), 2U);
  EXPECT_EQ(counters[1].name, "tx_frames");
  EXPECT_EQ(counters[1].value, 5U);
}

TEST_F(SnapshotTest, AnErrorIsNotTheEndOfTheCounters) {
  will_reply(0, "rx_frames");
  will_reply(-EPERM);
  try {
    read_counters(*client, {});
    ADD_FAILURE() << "no error";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.what(), "daemon at " + path + ": " + std::strerror(EPERM));
  }
}

}  // namespace
}  // namespace stp::stpctl
