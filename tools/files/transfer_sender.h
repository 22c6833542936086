// SPDX-License-Identifier: BSD-3-Clause
// The sending side of a connection between stp-send and stp-recv. Per file two Transfers: its
// metadata, then its content, which an END with the content's digest concludes. The file is sent
// once the receiver has confirmed that digest, and that the file stands on its disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tools/files/connection.h"
#include "tools/files/retry.h"
#include "tools/files/send_window.h"

namespace stp::files {

class FileReader;

class TransferSender {
 public:
  // Without progress for so long the receiver counts as gone...
  static constexpr Duration kPatience = std::chrono::seconds(60);
  // ...but its disk may take longer with what is left at the end.
  static constexpr Duration kCommitPatience = std::chrono::minutes(10);

  TransferSender(Endpoint& endpoint, Connection& connection, const std::atomic<bool>& stop);

  // FileFailure, LinkFailure, Stopped. `advance` hears of bytes that have arrived.
  void send(FileReader& file, const std::function<void(std::uint64_t)>& advance);
  [[nodiscard]] std::uint64_t repeats() const { return repeats_; }

 private:
  // Fills a buffer with the next bytes to send.
  using Load = std::function<void(std::span<std::byte>)>;
  using Advance = std::function<void(std::uint64_t)>;
  struct Transfer;

  void send_file(FileReader& file, const Advance& advance);
  std::string why_closed();
  void transfer(NoteKind kind, std::uint64_t length, const Load& load, const Advance& advance);
  void request(Transfer& transfer);
  void begin(Transfer& transfer, const st_header_t& cts);
  void load_next(Transfer& transfer, const Load& load);
  void answer_grants(Transfer& transfer);
  void send_block(Transfer& transfer, const st_header_t& cts);
  bool handle(Transfer& transfer, const Message& message);
  Note conclude(const Note& note, Duration patience);
  bool handle_end(const Message& message);
  void check_stop() const;

  Connection& connection_;
  const std::atomic<bool>& stop_;
  const unsigned stu_log2_, max_block_log2_, remote_bufsize_;
  MappedMemory memory_;
  std::uint32_t i_id_ = 0;  // of the Transfer at hand; counts up, so that no duplicate fits another
  std::uint32_t r_id_ = ST_NO_ID;
  std::uint32_t sync_ = 0;
  std::uint64_t repeats_ = 0;
};

}  // namespace stp::files
