// SPDX-License-Identifier: BSD-3-Clause
// A daemon that has nearly as many files open as it may: programs get no more of them, so that its
// operators can still see why.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <memory>
#include <vector>

#include "libst/os/file_limit.h"
#include "tests/stpd/raw_client.h"
#include "tests/stpd/served_socket.h"

namespace stp::stpd {
namespace {

class ScarceFiles : public testing::Test, protected ServedSocket {
 protected:
  ScarceFiles() {
    ::getrlimit(RLIMIT_NOFILE, &usual_);
    rlimit few = usual_;
    few.rlim_cur = 512;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    start();
  }
  ~ScarceFiles() override { ::setrlimit(RLIMIT_NOFILE, &usual_); }
  // Clients have their files in this process, too: what is open is open to both.
  void use_up_files() {
    while (opened_.empty() || opened_.back().get() + 1 < os::first_reserved_file())
      opened_.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  }
  void free_files() { opened_.clear(); }

 private:
  rlimit usual_{};
  std::vector<os::UniqueFd> opened_;
};

TEST_F(ScarceFiles, KeepNoOperatorOut) {
  use_up_files();
  RawClient program(path);
  EXPECT_EQ(program.ask(ipc::RequestKind::kHello), -EDQUOT);
  EXPECT_TRUE(program.disconnected());
  EXPECT_EQ(server.counts().refused, 1U);
  RawClient administrator(path);
  EXPECT_EQ(administrator.ask(ipc::RequestKind::kAdminLink), 0);
  EXPECT_EQ(administrator.ask(ipc::RequestKind::kStats), 0);
  free_files();
  RawClient again(path);
  EXPECT_EQ(again.ask(ipc::RequestKind::kHello), 0);
}

TEST_F(ScarceFiles, CostAProgramWhatItAsksForAndNothingThatItHas) {
  RawClient program(path);
  ASSERT_EQ(program.ask(ipc::RequestKind::kOpenEndpoint), 0);
  const auto endpoint = program.reply.endpoint;
  use_up_files();
  EXPECT_EQ(program.ask(ipc::RequestKind::kConnect, endpoint), -EMFILE);
  EXPECT_EQ(program.ask(ipc::RequestKind::kListen, endpoint), 0) << "its stock takes none";
  EXPECT_EQ(program.ask(ipc::RequestKind::kEndpointConfig, endpoint), 0);
  free_files();
  EXPECT_EQ(program.ask(ipc::RequestKind::kConnect, endpoint), 0);
}

// Where there was none, nobody but operators came in as soon as one had to be closed.
TEST(FewFiles, HaveRoomForThoseThatClientsSend) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit few = usual;
  few.rlim_cur = 256;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  EXPECT_GE(os::room_for_foreign_files(), 16U);
  ::setrlimit(RLIMIT_NOFILE, &usual);
}

}  // namespace
}  // namespace stp::stpd
