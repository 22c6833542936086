// SPDX-License-Identifier: BSD-3-Clause
// Who may order a trace, and into what.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "tests/host/any_message.h"
#include "tests/temporary_directory.h"
#include "tools/stpd/server.h"

namespace stp::service {
namespace {

class StubControl final : public TraceControl {
 public:
  int start(const TraceOrder& given, ClientId by, UniqueFd& file) override {
    order = given;
    client = by;
    taken = std::move(file);
    return 0;
  }
  int stop() override { return ++stops, 0; }
  int status(TraceState& out) override {
    out.frames = 3;
    return 0;
  }
  void client_gone(ClientId) override {}

  TraceOrder order{};
  ClientId client = 0;
  UniqueFd taken;
  int stops = 0;
};

class AdminTraceTest : public testing::Test {
 protected:
  int ask(RequestKind kind, bool administrator, UniqueFd file = {}) {
    Request request{};
    request.kind = kind;
    request.trace.max_frames = 9;
    std::array<UniqueFd, 1> fds{std::move(file)};
    const auto given = fds[0] ? std::span(fds) : std::span<UniqueFd>();
    ReplyMessage message;
    answer_trace(&control, 5, administrator, message_of(request), given, message);
    reply = reply_of(message);
    return reply.result;
  }
  UniqueFd file(int flags) const {
    return UniqueFd(::open((directory.path() + "/trace").c_str(), flags | O_CREAT, 0600));
  }

  test::TemporaryDirectory directory;
  StubControl control;
  Reply reply{};
};

TEST_F(AdminTraceTest, FramesHoldEverybodysDataSoOnlyAdministratorsMayTrace) {
  EXPECT_EQ(ask(RequestKind::kTraceStart, false, file(O_WRONLY)), -EPERM);
  EXPECT_EQ(ask(RequestKind::kTraceStop, false), -EPERM);
  EXPECT_EQ(ask(RequestKind::kTraceStatus, false), -EPERM);
  EXPECT_FALSE(control.taken);
  EXPECT_EQ(control.stops, 0);
}

TEST_F(AdminTraceTest, AnAdministratorsFileAndBoundsArePassedOn) {
  EXPECT_EQ(ask(RequestKind::kTraceStart, true, file(O_WRONLY)), 0);
  EXPECT_TRUE(control.taken);
  EXPECT_EQ(control.client, 5U);
  EXPECT_EQ(control.order.max_frames, 9U);
  EXPECT_EQ(ask(RequestKind::kTraceStatus, true), 0);
  EXPECT_EQ(reply.admin.frames, 3U);
  EXPECT_EQ(ask(RequestKind::kTraceStop, true), 0);
  EXPECT_EQ(control.stops, 1);
}

TEST_F(AdminTraceTest, WhatCouldMakeTheDaemonWaitOrCannotBeWrittenIsRefused) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const UniqueFd reader(pipe[0]);
  EXPECT_EQ(ask(RequestKind::kTraceStart, true, UniqueFd(pipe[1])), -EINVAL);
  EXPECT_EQ(ask(RequestKind::kTraceStart, true, file(O_RDONLY)), -EINVAL);
  EXPECT_EQ(ask(RequestKind::kTraceStart, true), -EINVAL);
}

TEST(AdminTraceWithoutOne, IsNotSupported) {
  ReplyMessage reply;
  answer_trace(nullptr, 1, true, RequestMessage(ask::TraceStatus{}), {}, reply);
  EXPECT_EQ(reply.head.result, -EOPNOTSUPP);
}

}  // namespace
}  // namespace stp::service
