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
};

class FileReceiver {
 public:
  // A sender that gets no further for so long within a file loses it and its connection.
  static constexpr Duration kPatience = std::chrono::seconds(60);

  FileReceiver(Channel& channel, ReceiverContext& context)
      : channel_(channel), context_(context), file_(context.directory, context.progress) {}

  // Until the sender closes the connection. LinkFailure, Stopped.
  void serve();
  [[nodiscard]] unsigned files() const { return files_; }
  [[nodiscard]] unsigned failures() const { return failures_; }

 private:
  void serve_messages();
  void await(Message& message);
  void handle(const Message& message);
  void announced(const Message& message);
  void told(const Note& note);
  void append(std::span<const std::byte> bytes);
  void fail(Note note);
  void say(Note note);
  void report(const Note& note);

  Channel& channel_;
  ReceiverContext& context_;
  IncomingFile file_;
  std::uint32_t number_ = 0;   // of the file at hand
  bool passing_over_ = false;  // what still comes for a file that has failed
  unsigned files_ = 0, failures_ = 0;
};

}  // namespace stp::files
