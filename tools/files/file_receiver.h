// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of one connection between stp-send and stp-recv.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tools/files/channel.h"
#include "tools/files/incoming_file.h"

namespace stp::files {

// What all connections of a receiver share.
struct ReceiverContext {
  std::string directory;
  Progress& progress;
  const std::atomic<bool>& stop;
  // A sender of which nothing comes for so long loses its connection...
  Duration idle_timeout = std::chrono::seconds(60);
  // ...and when others wait for its place, already after this long.
  Duration idle_under_pressure = std::chrono::seconds(5);
  std::size_t most_senders = 16;  // at once; further ones wait for their turn
  std::size_t most_per_peer = 8;  // of one address; further ones are refused
};

// One sender, as the one who gives out the places sees it. Both sides read and write it.
struct Presence {
  [[nodiscard]] Duration silence() const {
    return std::chrono::steady_clock::now().time_since_epoch() - Duration(heard);
  }
  void hear() { heard = std::chrono::steady_clock::now().time_since_epoch().count(); }

  std::atomic<Duration::rep> heard{std::chrono::steady_clock::now().time_since_epoch().count()};
  std::atomic<bool> leave{false};  // others need the place
};

class FileReceiver {
 public:
  // But for a sender that reads what is here already, to compare: its disk may take longer.
  static constexpr Duration kDiskPatience = std::chrono::minutes(10);

  FileReceiver(Channel& channel, ReceiverContext& context, Presence& presence)
      : channel_(channel),
        context_(context),
        presence_(presence),
        file_(context.directory, context.progress, context.stop) {}

  // Until the sender closes the connection. LinkFailure, Stopped.
  void serve();
  [[nodiscard]] unsigned files() const { return files_; }
  [[nodiscard]] unsigned failures() const { return failures_; }

 private:
  void serve_messages();
  void await(Message& message);
  [[nodiscard]] Duration patience() const;
  [[noreturn]] void give_up(const std::string& why);
  void handle(const Message& message);
  void announced(const Message& message);
  void told(const Note& note);
  void append(std::span<const std::byte> bytes);
  void fail(Note note);
  void say(Note note);
  void report(const Note& note);

  Channel& channel_;
  ReceiverContext& context_;
  Presence& presence_;
  IncomingFile file_;
  std::uint32_t number_ = 0;   // of the file at hand
  bool passing_over_ = false;  // what still comes for a file that has failed
  bool comparing_ = false;     // the sender, what is here with what it has
  unsigned files_ = 0, failures_ = 0;
};

}  // namespace stp::files
