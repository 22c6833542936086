// SPDX-License-Identifier: BSD-3-Clause
// stpd's log when nobody reads it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "libst/ipc/socket.h"
#include "tests/host/any_message.h"
#include "tests/temporary_directory.h"
#include "tools/stpd/log.h"

extern char** environ;

namespace stp::stpd {
namespace {

int hello(const std::string& path) {
  os::UniqueFd socket;
  if (const auto error = ipc::connect_to(path, socket); error != 0) return error;
  const timeval patience{.tv_sec = 20, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  host::Request request{};
  request.version = ipc::kProtocolVersion;
  request.kind = ipc::RequestKind::kHello;
  host::Reply reply{};
  std::vector<os::UniqueFd> fds;
  if (const auto error = send_request(socket.get(), request, {}); error != 0) return error;
  if (const auto error = receive_reply(socket.get(), reply, fds); error != 0) return error;
  return reply.result;
}

// Each client is two lines of the log, more of them than the pipe holds.
TEST(StpdLog, APipeThatNobodyReadsHoldsUpNobody) {
  const test::TemporaryDirectory directory;
  const auto socket = directory.path() + "/stpd.sock";
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const os::UniqueFd reader(pipe[0]);
  os::UniqueFd writer(pipe[1]);
  ASSERT_EQ(::fcntl(writer.get(), F_SETPIPE_SZ, 4'096), 4'096);
  std::vector<std::string> words{STPD_PATH, "--link", "loop", "--socket", socket};
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
  pid_t pid = -1;
  ASSERT_EQ(::posix_spawn(&pid, STPD_PATH, &actions, nullptr, arguments.data(), environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (hello(socket) != 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  for (int i = 0; i < 150; ++i) ASSERT_EQ(hello(socket), 0) << "client " << i;
  // It does not wait for its last words either.
  ::kill(pid, SIGTERM);
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

std::string missing(std::size_t lines) {
  return "(" + std::to_string(lines) + " missing)\n";
}

// A link may be called after an interface of any name, and a file may have anything in it.
TEST(StpdLog, WhateverALineQuotesItIsOneLineAndControlsNoTerminal) {
  testing::internal::CaptureStderr();
  log(LogLevel::kError, "iface:\033[31m\nstpd: ready", "a\033b");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "stpd: [a?b] error: iface:?[31m?stpd: ready\n");
  set_log(LogLevel::kInfo, LogFormat::kJson);
  testing::internal::CaptureStderr();
  log(LogLevel::kError, "\xff\xc3\xa9");
  set_log(LogLevel::kInfo, LogFormat::kText);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("\"message\":\"?\xc3\xa9\"}"),
            std::string::npos);
}

TEST(LogWriter, TellsHowManyLinesAreMissingWhereTheyAre) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const os::UniqueFd reader(pipe[0]), writer(pipe[1]);
  constexpr std::size_t kLines = 10'000, kLength = 100;
  const auto line = [](std::size_t number) {
    auto text = std::to_string(number);
    text.resize(kLength - 1, '.');
    return text + "\n";
  };
  {
    stpd::LogWriter log(writer.get(), missing);
    for (std::size_t i = 0; i < kLines; ++i) log.write(line(i));
    EXPECT_FALSE(log.flush(std::chrono::milliseconds(1)));
    std::string text;
    std::array<char, 4'096> buffer;
    while (text.find("missing)\n") == std::string::npos) {
      const auto got = ::read(reader.get(), buffer.data(), buffer.size());
      ASSERT_GT(got, 0);
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
    EXPECT_TRUE(log.flush(std::chrono::seconds(20)));
    const auto whole = text.find('(') / kLength;
    for (std::size_t i = 0; i < whole; ++i) ASSERT_EQ(text.substr(i * kLength, kLength), line(i));
    EXPECT_EQ(text.substr(whole * kLength), missing(kLines - whole));
    EXPECT_GE(whole * kLength, stpd::LogWriter::kMostBytes - kLength);
    log.write("afterwards\n");
    EXPECT_TRUE(log.flush(std::chrono::seconds(20)));
    EXPECT_EQ(::read(reader.get(), buffer.data(), buffer.size()), 11);
  }
}

}  // namespace
}  // namespace stp::stpd
