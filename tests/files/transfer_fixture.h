// SPDX-License-Identifier: BSD-3-Clause
// A sender and a receiver in one process, over the loop link.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/temporary_directory.h"
#include "tools/files/directory.h"
#include "tools/files/failure.h"
#include "tools/files/file_reader.h"
#include "tools/files/receiver.h"
#include "tools/files/send_all.h"

namespace stp::files {

class TransferTest : public ::testing::Test {
 protected:
  TransferTest() : TransferTest(true, [](ReceiverContext&) {}) {}
  TransferTest(bool once, const std::function<void(ReceiverContext&)>& adapt) {
    ::setenv("STP_LINK", "loop", 1);
    std::filesystem::create_directory(directory_ / "out");
    adapt(context_);
    serve(once);
  }
  ~TransferTest() override {
    stop_receiver_ = true;
    if (thread_.joinable()) thread_.join();
  }

  std::string make_file(const std::string& name, std::size_t size) {
    std::string content(size, '\0');
    std::uint32_t x = 1;
    for (char& each : content) each = static_cast<char>((x = x * 1664525 + 7) >> 24);
    std::ofstream(directory_ / name, std::ios::binary) << content;
    return (directory_ / name).string();
  }
  // One connection.
  struct Client {
    explicit Client(const std::atomic<bool>& stop)
        : channel(link, "localhost:3000",
                  [&stop] {
                    if (stop) throw Stopped();
                  },
                  {}),
          sender(channel, stop, progress, pace, [this](const Outcome& outcome) {
            sent += outcome.sent;
            unchanged += outcome.unchanged ? 1 : 0;
            if (!outcome.failure.empty()) failure = outcome.failure;
          }) {}
    // Returns the bytes of content that had to be sent.
    std::uint64_t send(FileReader reader) {
      sent = 0;
      failure.clear();
      sender.offer(std::move(reader));
      sender.finish();
      if (!failure.empty()) throw FileFailure(failure);
      return sent;
    }
    Progress progress{"test", true};
    Pace pace;
    FileLink link;
    Channel channel;
    std::uint64_t sent = 0;
    unsigned unchanged = 0;
    std::string failure;
    FileSender sender;
  };
  void await_receiver() { thread_.join(); }
  // A new receiver, for one sender.
  void serve_one() {
    stop_receiver_ = false;
    serve(true);
  }
  void serve(bool once) {
    receiver_.reset();
    receiver_.emplace(":3000", context_);
    thread_ = std::thread([this, once] { complete_ = receiver_->run(once); });
  }
  [[nodiscard]] bool arrived(const std::string& name) const {
    return directory_.content("out/" + name) == directory_.content(name) &&
           std::filesystem::exists(directory_ / ("out/" + name));
  }

  test::TemporaryDirectory directory_;
  Progress progress_{"test", true};
  std::atomic<bool> stop_receiver_{false}, stop_sender_{false};
  ReceiverContext context_{directory_.path() + "/out", progress_, stop_receiver_};
  std::optional<Receiver> receiver_;
  std::thread thread_;
  bool complete_ = false;
};

// Standard error goes to a file.
class ErrorLog {
 public:
  explicit ErrorLog(std::string path) : path_(std::move(path)), before_(::dup(STDERR_FILENO)) {
    const auto fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(fd, STDERR_FILENO);
    ::close(fd);
  }
  ~ErrorLog() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
  }
  ErrorLog(const ErrorLog&) = delete;
  ErrorLog& operator=(const ErrorLog&) = delete;
  [[nodiscard]] bool says(const std::string& text) const {
    std::ifstream in(path_);
    return std::string(std::istreambuf_iterator<char>(in), {}).find(text) != std::string::npos;
  }

 private:
  const std::string path_;
  const int before_;
};

}  // namespace stp::files
