// SPDX-License-Identifier: BSD-3-Clause
// The client's side of stpd's socket. The test sends the replies.
#include "libst/client/stpd_backend.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "dpdk_port/link/cpus.h"
#include "dpdk_port/port.h"
#include "libst/client/error.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/socket.h"
#include "tests/host/eventually.h"
#include "tests/libst/parts/few_files.h"
#include "tests/temporary_directory.h"

namespace stp::test {
namespace {

using client::StpdBackend;
using client::StpdConnection;
using ipc::ReplyMessage;
using ipc::RequestKind;
using ipc::RequestMessage;
using ipc::SharedMemory;
using ipc::Wait;
using os::UniqueFd;

template <typename R>
ReplyMessage reply_to(const typename R::Reply& body = {}) {
  ReplyMessage reply;
  reply.begin<R>() = body;
  return reply;
}

class StpdBackendTest : public testing::Test {
 protected:
  StpdBackendTest() { connect(); }
  void connect() {
    std::array<int, 2> pair{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()), 0);
    connection = std::make_shared<StpdConnection>("/test", UniqueFd(pair[0]));
    daemon.reset(pair[1]);
  }
  // Sends the reply to a later request.
  void will_reply(const ReplyMessage& reply, std::span<const int> fds = {}) const {
    ASSERT_EQ(ipc::send_reply(daemon.get(), reply, fds, Wait::kDontWait), 0);
  }
  void refuse() {
    ReplyMessage reply;
    reply.refuse(-EDQUOT, "12 clients are connected already: raise --max-clients");
    will_reply(reply);
    daemon.reset();
  }
  void expect_refusal() const {
    std::shared_ptr<client::Backend> backend;
    StpdBackend::Welcome welcome;
    EXPECT_EQ(StpdBackend::open(connection, 0, backend, welcome), -EDQUOT);
    EXPECT_EQ(std::string(client::describe(-EDQUOT)),
              "stpd: 12 clients are connected already: raise --max-clients");
  }
  RequestMessage received() const {
    RequestMessage request;
    std::vector<UniqueFd> fds;
    EXPECT_EQ(ipc::receive_request(daemon.get(), request, fds, Wait::kDontWait), 0);
    return request;
  }

  std::shared_ptr<StpdConnection> connection;
  UniqueFd daemon;
};

TEST_F(StpdBackendTest, ALackOfDescriptorsCostsTheCallAndNotTheConnection) {
  constexpr std::uint64_t kVc = 7;
  constexpr std::uint32_t kShard = 1;
  StpdBackend backend(connection, kShard);
  const auto channel = SharedMemory::lend("test", 4'096);
  const std::array fds{channel->fd()};
  will_reply(reply_to<ask::Connect>({.channel = {.vc = kVc, .size = 0, .bell = 0, .reserved = 0}}),
             fds);
  will_reply(reply_to<ask::Close>());
  will_reply(reply_to<ask::VcInfo>());
  ask::Connect::Reply made{};
  client::Payload payload;
  int result = 0;
  {
    const FewFiles none(0);
    result = backend.call(ask::Connect{}, made, payload);
  }
  EXPECT_EQ(result, -EMFILE);
  EXPECT_EQ(payload.memory, nullptr);
  EXPECT_EQ(backend.error(), 0);
  EXPECT_EQ(backend.call(ask::VcInfo{.vc = kVc}), 0);
  EXPECT_EQ(received().head.kind, RequestKind::kConnect);
  const auto closing = received();
  ASSERT_EQ(closing.head.kind, RequestKind::kClose);
  EXPECT_EQ(closing.as<ask::Close>().vc, kVc);
  EXPECT_EQ(closing.head.shard, kShard);
  EXPECT_EQ(closing.as<ask::Close>().at_once, 1U);
  EXPECT_EQ(received().head.kind, RequestKind::kVcInfo);
}

TEST_F(StpdBackendTest, AReplyThatIsNoneEndsTheConnection) {
  StpdBackend backend(connection, 0);
  ASSERT_EQ(::send(daemon.get(), "x", 1, 0), 1);
  EXPECT_EQ(backend.call(ask::VcInfo{.vc = 7}), -ENOTCONN);
  EXPECT_EQ(backend.error(), -ENOTCONN);
}

TEST_F(StpdBackendTest, SoDoesAReplyToAnotherRequest) {
  will_reply(reply_to<ask::Backlog>());
  StpdBackend backend(connection, 0);
  EXPECT_EQ(backend.call(ask::VcInfo{.vc = 7}), -ENOTCONN);
}

TEST_F(StpdBackendTest, SoDoesOneWithoutWhatGoesAlongWithIt) {
  will_reply(reply_to<ask::OpenPort>());
  StpdBackend backend(connection, 0);
  EXPECT_EQ(backend.call(ask::OpenPort{.endpoint = 7}), -ENOTCONN);
}

TEST_F(StpdBackendTest, SoDoesOneWithADescriptorThatNobodyAskedFor) {
  const auto memory = SharedMemory::lend("test", 4'096);
  will_reply(reply_to<ask::Backlog>(), std::array{memory->fd()});
  StpdBackend backend(connection, 0);
  EXPECT_EQ(backend.call(ask::Backlog{.endpoint = 7}), -ENOTCONN);
}

// Whether stpd has hung up before the program asks, or does so and leaves its request unread.
TEST_F(StpdBackendTest, AStpdThatRefusesAProgramSaysWhy) {
  std::thread refusing([&] {
    pollfd request{daemon.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&request, 1, -1), 1);
    refuse();
  });
  expect_refusal();
  refusing.join();
  connect();
  refuse();
  expect_refusal();
}

// A stpd that is stopped, or has no descriptor for one more program.
class StpdThatAcceptsNobody : public testing::Test {
 protected:
  StpdThatAcceptsNobody() : listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    EXPECT_EQ(ipc::address_of(path, address), 0);
    EXPECT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener.get(), 0), 0);
  }
  [[nodiscard]] bool says_what_to_do() const {
    const auto text = std::string(client::describe(-ETIMEDOUT));
    return text.find("stpd:" + path + ": stpd does not answer") != std::string::npos &&
           text.find("LimitNOFILE") != std::string::npos;
  }

  static constexpr std::chrono::milliseconds kPatience{20};
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/full.sock";
  const UniqueFd listener;
  std::shared_ptr<StpdConnection> first, second;
};

TEST_F(StpdThatAcceptsNobody, AFullBacklogIsAnErrorAfterAWhile) {
  ASSERT_EQ(StpdConnection::open(path, first, kPatience), 0);
  EXPECT_EQ(StpdConnection::open(path, second, kPatience), -ETIMEDOUT);
  EXPECT_TRUE(says_what_to_do());
}

TEST_F(StpdThatAcceptsNobody, SoIsAFirstRequestWithoutAnAnswer) {
  ASSERT_EQ(StpdConnection::open(path, first, kPatience), 0);
  std::shared_ptr<client::Backend> backend;
  StpdBackend::Welcome welcome;
  EXPECT_EQ(StpdBackend::open(first, 0, backend, welcome), -ETIMEDOUT);
  EXPECT_TRUE(says_what_to_do());
  EXPECT_EQ(first->error(), -ENOTCONN);
}

// As in /tmp, where another user may have been the first.
TEST(StpdOfAnother, IsRefusedWithTheRemedyWhereAllMayMakeFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  const TemporaryDirectory directory;
  const auto path = directory.path() + "/stpd.sock";
  ASSERT_EQ(::chmod(directory.path().c_str(), 01777), 0);
  UniqueFd listener;
  ipc::SocketFile file;
  std::thread([&] {
    ASSERT_EQ(::syscall(SYS_setresuid, -1, 65'530, -1), 0);  // of this thread
    ASSERT_EQ(ipc::listen_at(path, listener, file), 0);
  }).join();
  std::shared_ptr<StpdConnection> none;
  EXPECT_EQ(StpdConnection::open(path, none), -EPERM);
  EXPECT_EQ(none, nullptr);
  const auto text = std::string(client::describe(-EPERM));
  EXPECT_EQ(text.find("stpd:" + path + ": user 65530 serves this socket, and others may make"), 0U)
      << text;
}

// A stpd that answers this program once.
class StpdThatFallsSilent : public StpdThatAcceptsNobody {
 protected:
  void connect(std::chrono::milliseconds patience = kPatience) {
    EXPECT_EQ(StpdConnection::open(path, first, patience), 0);
    accepted = accept_one();
    EXPECT_EQ(answer<ask::LinkState>(), 0);
    EXPECT_EQ(request(ask::LinkState{}), 0);
  }
  [[nodiscard]] UniqueFd accept_one() const {
    return UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  template <typename R>
  int request(const R& what) const {
    ReplyMessage reply;
    std::vector<UniqueFd> none;
    return first->ask(RequestMessage(what), {}, reply, none);
  }
  template <typename R>
  int answer() const {
    return ipc::send_reply(accepted.get(), reply_to<R>(), {}, Wait::kDontWait);
  }

  UniqueFd accepted;
};

TEST_F(StpdThatFallsSilent, EachRequestEndsAfterAWhileAndSaysWhy) {
  connect();
  EXPECT_EQ(request(ask::OpenEndpoint{}), -ETIMEDOUT);
  EXPECT_NE(std::string(client::describe(-ETIMEDOUT)).find("has stopped answering"),
            std::string::npos);
  EXPECT_EQ(request(ask::OpenEndpoint{}), -ENOTCONN);  // at once
}

TEST_F(StpdThatFallsSilent, SoDoesARequestToMapMemory) {
  connect();
  EXPECT_EQ(request(ask::Map{}), -ETIMEDOUT);
  EXPECT_EQ(first->error(), -ENOTCONN);
}

// All questions to find that out together take as long as one request.
TEST_F(StpdThatFallsSilent, WithinTheTimeOfOneRequest) {
  constexpr std::chrono::milliseconds kWhole{1000};
  for (const bool maps : {true, false}) {
    connect(kWhole);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(maps ? request(ask::Map{}) : request(ask::Mapped{}), -ETIMEDOUT);
    const auto took = std::chrono::steady_clock::now() - begin;
    EXPECT_GE(took, kWhole);
    EXPECT_LT(took, 2 * kWhole);
    (void)accept_one();  // the question of is_there()
  }
}

TEST_F(StpdThatFallsSilent, AUserWaitsTenSeconds) {
  EXPECT_LE(StpdConnection::kPatience, std::chrono::seconds(10));
}

TEST_F(StpdThatFallsSilent, AReplyThatComesWhileOthersGetNoneIsTaken) {
  connect(std::chrono::seconds(2));
  std::thread late([&] {
    const auto other = accept_one();  // so it asks
    answer<ask::Map>();
    pollfd closed{other.get(), POLLRDHUP, 0};
    ::poll(&closed, 1, -1);
  });
  EXPECT_EQ(request(ask::Map{}), 0);
  late.join();
}

// Mapping gigabytes takes longer. Meanwhile stpd hangs up on others, for lack of places.
TEST_F(StpdThatFallsSilent, ARequestToMapMemoryMayTakeLongerWhileStpdIsThere) {
  connect(std::chrono::milliseconds(200));
  std::thread busy([&] {
    for (int i = 0; i < 2; ++i) (void)accept_one();
    answer<ask::Map>();
  });
  EXPECT_EQ(request(ask::Map{}), 0);
  busy.join();
}

// A program that only waits.
TEST_F(StpdThatFallsSilent, IsGivenUpAlsoByAProgramThatAsksForNothing) {
  connect();
  EXPECT_EQ(first->watch(), 0);
  while (first->error() == 0) std::this_thread::yield();
  EXPECT_EQ(first->gone(), -ENOTCONN);
  EXPECT_NE(std::string(client::describe(-ENOTCONN)).find("has stopped answering"),
            std::string::npos);
  EXPECT_EQ(request(ask::OpenEndpoint{}), -ENOTCONN);
}

TEST_F(StpdThatFallsSilent, IsKeptWhileItGivesSignsOfLife) {
  connect(std::chrono::milliseconds(2000));
  RequestMessage sign;
  std::vector<UniqueFd> fds;
  ASSERT_EQ(ipc::receive_request(accepted.get(), sign, fds, Wait::kWait), 0);  // the hello
  EXPECT_EQ(first->watch(), 0);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(ipc::receive_request(accepted.get(), sign, fds, Wait::kWait), 0);
    EXPECT_EQ(sign.head.kind, RequestKind::kLinkState);
    ASSERT_EQ(ipc::send_reply(accepted.get(), reply_to<ask::LinkState>(), {}, Wait::kDontWait), 0);
  }
  EXPECT_EQ(first->error(), 0);
  accepted.reset();
  while (first->error() == 0) std::this_thread::yield();
  EXPECT_EQ(first->gone(), -ENOTCONN);
  EXPECT_NE(std::string(client::describe(-ENOTCONN)).find("stpd has ended"), std::string::npos);
}

// Whoever closes does not wait for the answer.
TEST_F(StpdThatFallsSilent, IsLeftAtOnce) {
  connect(std::chrono::seconds(60));
  EXPECT_EQ(first->watch(), 0);
  first.reset();
}

// Nor for that to the question, over another connection, whether stpd is there at all.
TEST_F(StpdThatFallsSilent, IsLeftAtOnceByAProgramThatAsks) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kWhole{4};
  connect(kWhole);
  EXPECT_EQ(first->watch(), 0);
  const auto other = accept_one();  // it asks for three quarters of the time
  const auto begin = Clock::now();
  first.reset();
  EXPECT_LT(Clock::now() - begin, kWhole / 2);
}

// It waits for such work of the same user's programs.
TEST_F(StpdThatFallsSilent, AFirstRequestThatWaitsForThatEndsAllTheSame) {
  connect();
  std::atomic<bool> end{false};
  std::thread busy([&] {
    for (pollfd next{listener.get(), POLLIN, 0}; !end;)
      if (::poll(&next, 1, 5) > 0) (void)accept_one();
  });
  EXPECT_EQ(request(ask::Mapped{}), -ETIMEDOUT);
  end = true;
  busy.join();
}

// The reply of stpd names the rule that is missing.
TEST_F(StpdBackendTest, WhatTheOperatorForbidsHasItsReason) {
  ReplyMessage refusal;
  refusal.refuse(-EACCES, "no --listen rule gives port 7");
  will_reply(refusal);
  StpdBackend backend(connection, 0);
  EXPECT_EQ(backend.call(ask::Listen{}), -EACCES);
  EXPECT_STREQ(client::describe(-EACCES), "stpd: no --listen rule gives port 7");
}

// A yield would give the other program all of its slice, each time.
TEST_F(StpdBackendTest, WhoSharesItsCoreWithAProgramThatSpinsDoesNotYieldToIt) {
  StpdBackend backend(connection, 0);
  std::atomic<bool> ends{false};
  std::thread waiter([&] {
    const auto cpu = static_cast<unsigned>(::sched_getcpu());
    ASSERT_EQ(port::stay_on_cpus({cpu}), 0);
    std::thread spinner([&] {  // on the same one
      while (!ends) {
      }
    });
    auto never = [] { return false; };
    const auto takes = [&] {
      const auto begin = port::now();
      for (int i = 0; i < 10; ++i)
        EXPECT_EQ(backend.attend(client::Condition(never), begin + kSecond), -EAGAIN);
      return port::now() - begin;
    };
    EXPECT_TRUE(host::eventually([&] { return takes() < 200 * kMicrosecond; }));
    ends = true;
    spinner.join();
  });
  waiter.join();
}

}  // namespace
}  // namespace stp::test
