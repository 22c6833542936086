// SPDX-License-Identifier: BSD-3-Clause
// A sender and a receiver in one process, over the loop link.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/temporary_directory.h"
#include "tools/files/failure.h"
#include "tools/files/file_reader.h"
#include "tools/files/receiver.h"
#include "tools/files/transfer_sender.h"

namespace stp::files {
namespace {

class TransferTest : public ::testing::Test {
 protected:
  TransferTest() {
    ::setenv("STP_LINK", "loop", 1);
    std::filesystem::create_directory(directory_ / "out");
    receiver_.emplace(":3000", context_);
    thread_ = std::thread([this] { complete_ = receiver_->run(true); });
  }
  ~TransferTest() override {
    stop_receiver_ = true;
    receiver_->close();
    if (thread_.joinable()) thread_.join();
  }

  std::string make_file(const std::string& name, std::size_t size) {
    std::ofstream out(directory_ / name, std::ios::binary);
    std::uint32_t x = 1;
    for (std::size_t i = 0; i < size; ++i) out.put(static_cast<char>((x = x * 1664525 + 7) >> 24));
    return (directory_ / name).string();
  }
  // Sends them over one connection.
  void send(const std::vector<std::string>& paths) {
    Endpoint endpoint(nullptr);
    Connection connection(endpoint, "localhost:3000");
    TransferSender sender(endpoint, connection, stop_sender_);
    for (auto const& path : paths) {
      FileReader file(path);
      sender.send(file, [](std::uint64_t) {});
    }
  }
  void await_receiver() { thread_.join(); }
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

TEST_F(TransferTest, files_of_every_size_arrive) {
  std::vector<std::string> paths;
  for (std::size_t const size : {0UL, 1UL, 5UL, 1024UL, 65'537UL, 3'000'000UL})
    paths.push_back(make_file("f" + std::to_string(size), size));
  send(paths);
  await_receiver();
  EXPECT_TRUE(complete_);
  for (auto const size : {"0", "1", "5", "1024", "65537", "3000000"})
    EXPECT_TRUE(arrived(std::string("f") + size)) << size;
}

TEST_F(TransferTest, a_file_that_is_refused_costs_only_itself) {
  std::filesystem::create_directory(directory_ / "out/taken");
  make_file("good", 100'000);
  Endpoint endpoint(nullptr);
  Connection connection(endpoint, "localhost:3000");
  TransferSender sender(endpoint, connection, stop_sender_);
  FileReader taken(make_file("taken", 10)), good((directory_ / "good").string());
  EXPECT_THROW(sender.send(taken, [](std::uint64_t) {}), FileFailure);
  sender.send(good, [](std::uint64_t) {});
  EXPECT_TRUE(arrived("good"));
}

TEST_F(TransferTest, a_file_that_shrinks_while_it_is_sent_leaves_nothing) {
  auto const path = make_file("file", 1'000'000);
  {
    Endpoint endpoint(nullptr);
    Connection connection(endpoint, "localhost:3000");
    TransferSender sender(endpoint, connection, stop_sender_);
    FileReader file(path);
    std::filesystem::resize_file(path, 500'000);
    EXPECT_THROW(sender.send(file, [](std::uint64_t) {}), FileFailure);
  }
  await_receiver();
  EXPECT_TRUE(std::filesystem::is_empty(directory_ / "out"));
}

TEST_F(TransferTest, a_sender_that_stops_half_way_leaves_nothing) {
  auto const path = make_file("file", 30'000'000);
  EXPECT_THROW(
      {
        Endpoint endpoint(nullptr);
        Connection connection(endpoint, "localhost:3000");
        TransferSender sender(endpoint, connection, stop_sender_);
        FileReader file(path);
        sender.send(file, [this](std::uint64_t bytes) {
          if (bytes > 0) stop_sender_ = true;
        });
      },
      Stopped);
  await_receiver();
  EXPECT_FALSE(complete_);
  EXPECT_TRUE(std::filesystem::is_empty(directory_ / "out"));
}

}  // namespace
}  // namespace stp::files
