// SPDX-License-Identifier: BSD-3-Clause
// A program under test: starts it, reads its output and ends it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "libst/os/unique_fd.h"

extern char** environ;

namespace stp::test {

class Program {
 public:
  // output() collects its standard output and error.
  explicit Program(std::vector<std::string> arguments) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    reader_.reset(pipe[0]);
    os::UniqueFd const writer(pipe[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, writer.get(), STDERR_FILENO);
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    EXPECT_EQ(::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
  }
  ~Program() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    wait();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const { ::kill(pid_, number); }
  // Waits until the output contains `text`. Returns false if the program ended or after a long
  // time.
  bool says(const std::string& text) {
    while (output_.find(text) == std::string::npos)
      if (!read_some()) return false;
    return true;
  }
  // Returns the exit status, or 128 plus the number of the signal that ended it.
  int wait() {
    while (read_some()) {
    }
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  [[nodiscard]] const std::string& output() const { return output_; }

 private:
  bool read_some() {
    constexpr int kPatienceMs = 30'000;
    pollfd ready{.fd = reader_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kPatienceMs) != 1) return false;
    std::array<char, 4'096> buffer;
    const auto got = ::read(reader_.get(), buffer.data(), buffer.size());
    if (got <= 0) return false;
    output_.append(buffer.data(), static_cast<std::size_t>(got));
    return true;
  }

  pid_t pid_ = -1;
  os::UniqueFd reader_;
  std::string output_;
};

}  // namespace stp::test
