// SPDX-License-Identifier: BSD-3-Clause
// The sending side of a connection between stp-send and stp-recv. A file is sent once the receiver
// has confirmed its digest, and that the file stands on its disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "tools/files/channel.h"
#include "tools/files/digest.h"

namespace stp::files {

class FileReader;

class FileSender {
 public:
  // Without progress for so long the receiver counts as gone...
  static constexpr Duration kPatience = std::chrono::seconds(60);
  // ...but its disk may take longer to read what is there, or with what is left at the end.
  static constexpr Duration kDiskPatience = std::chrono::minutes(10);

  FileSender(Channel& channel, const std::atomic<bool>& stop) : channel_(channel), stop_(stop) {}

  // Bytes of content that were sent, what the receiver had already left out. FileFailure,
  // LinkFailure, Stopped. `advance` hears of bytes that have arrived.
  std::uint64_t send(FileReader& file, const std::function<void(std::uint64_t)>& advance);

 private:
  std::uint64_t choose_start(FileReader& file, const Note& answer, ContentDigest& digest);
  void send_content(FileReader& file, std::uint64_t from, ContentDigest& digest,
                    const std::function<void(std::uint64_t)>& advance);
  std::span<std::byte> await_buffer();
  void load(FileReader& file, std::span<std::byte> bytes);
  void say(NoteKind kind, std::uint64_t have, const Digest& digest);
  std::optional<Note> hear(Duration wait);
  Note await_answer();
  void check_stop() const;

  Channel& channel_;
  const std::atomic<bool>& stop_;
  std::uint32_t file_ = 0;
};

}  // namespace stp::files
