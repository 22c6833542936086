// SPDX-License-Identifier: BSD-3-Clause
// Who may order a trace, and into what.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "tests/host/any_message.h"
#include "tests/temporary_directory.h"
#include "tools/stpd/server.h"

namespace stp::stpctl {
namespace {

class StubControl final : public stpd::TraceControl {
 public:
  int start(const ipc::TraceOrder& given, host::ClientId by, os::UniqueFd& file) override {
    order = given;
    client = by;
    taken = std::move(file);
    return 0;
  }
  int stop() override { return ++stops, 0; }
  int status(ipc::TraceState& out) override {
    out.frames = 3;
    return 0;
  }
  void client_gone(host::ClientId) override {}

  ipc::TraceOrder order{};
  host::ClientId client = 0;
  os::UniqueFd taken;
  int stops = 0;
};

class AdminTraceTest : public testing::Test {
 protected:
  int ask(ipc::RequestKind kind, bool administrator, os::UniqueFd file = {}) {
    host::Request request{};
    request.kind = kind;
    request.trace.max_frames = 9;
    std::array<os::UniqueFd, 1> fds{std::move(file)};
    const auto given = fds[0] ? std::span(fds) : std::span<os::UniqueFd>();
    ipc::ReplyMessage message;
    stpd::answer_trace(&control, 5, administrator, host::message_of(request), given, message);
    reply = host::reply_of(message);
    return reply.result;
  }
  os::UniqueFd file(int flags) const {
    return os::UniqueFd(::open((directory.path() + "/trace").c_str(), flags | O_CREAT, 0600));
  }

  test::TemporaryDirectory directory;
  StubControl control;
  host::Reply reply{};
};

TEST_F(AdminTraceTest, FramesHoldEverybodysDataSoOnlyAdministratorsMayTrace) {
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStart, false, file(O_WRONLY)), -EPERM);
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStop, false), -EPERM);
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStatus, false), -EPERM);
  EXPECT_FALSE(control.taken);
  EXPECT_EQ(control.stops, 0);
}

TEST_F(AdminTraceTest, AnAdministratorsFileAndBoundsArePassedOn) {
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStart, true, file(O_WRONLY)), 0);
  EXPECT_TRUE(control.taken);
  EXPECT_EQ(control.client, 5U);
  EXPECT_EQ(control.order.max_frames, 9U);
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStatus, true), 0);
  EXPECT_EQ(reply.admin.frames, 3U);
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStop, true), 0);
  EXPECT_EQ(control.stops, 1);
}

TEST_F(AdminTraceTest, WhatCouldMakeTheDaemonWaitOrCannotBeWrittenIsRefused) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const os::UniqueFd reader(pipe[0]);
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStart, true, os::UniqueFd(pipe[1])), -EINVAL);
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStart, true, file(O_RDONLY)), -EINVAL);
  EXPECT_EQ(ask(ipc::RequestKind::kTraceStart, true), -EINVAL);
}

TEST(AdminTraceWithoutOne, IsNotSupported) {
  ipc::ReplyMessage reply;
  stpd::answer_trace(nullptr, 1, true, ipc::RequestMessage(ask::TraceStatus{}), {}, reply);
  EXPECT_EQ(reply.head.result, -EOPNOTSUPP);
}

}  // namespace
}  // namespace stp::stpctl
