// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of one connection between stp-send and stp-recv. Blocks land in a ring of
// buffers and are written to disk in order, so that at any moment at most the ring is in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "tools/files/connection.h"
#include "tools/files/incoming_file.h"
#include "tools/files/retry.h"

namespace stp::files {

// What all connections of a receiver share.
struct ReceiverContext {
  std::string directory;
  Progress& progress;
  const std::atomic<bool>& stop;
  std::atomic<unsigned> busy{0};  // connections
};

class TransferReceiver {
 public:
  // A sender that gets no further for so long loses its file and its connection.
  static constexpr Duration kPatience = std::chrono::seconds(60);
  // STUs under way to this program, over all its connections: what the receive ring of a driver
  // usually holds (512 frames), less what control operations need.
  static constexpr unsigned kStusUnderWay = 384;

  TransferReceiver(Endpoint& endpoint, Connection& connection, std::uint32_t first_bufx,
                   ReceiverContext& context);
  ~TransferReceiver() { --context_.busy; }
  TransferReceiver(const TransferReceiver&) = delete;
  TransferReceiver& operator=(const TransferReceiver&) = delete;

  // Until the sender closes the connection. LinkFailure, Stopped.
  void serve();
  [[nodiscard]] unsigned files() const { return files_; }
  [[nodiscard]] unsigned failures() const { return failures_; }

 private:
  struct Transfer {
    NoteKind kind;
    std::uint32_t i_id, r_id;
    std::uint64_t length;
    unsigned block_log2;
    unsigned depth;
    GrantWindow window;

    [[nodiscard]] std::size_t buffer_at(std::uint32_t block) const {
      return std::size_t{block % depth} << block_log2;
    }
    [[nodiscard]] std::size_t block_length(std::uint32_t block) const;
  };
  // How a Transfer came out: said again whenever the sender asks again.
  struct Outcome {
    unsigned op;  // RA, END or EA
    std::uint32_t i_id, r_id;
    Note note;
  };

  void turn();
  void handle(const Message& message);
  void requested(const Message& message);
  [[nodiscard]] Note examine(const Message& message);
  void begin(NoteKind kind, const st_header_t& request);
  void use_block();
  void use_all_blocks();
  void ended(const Message& message);
  void grant(Time now);
  void send_grant(std::uint32_t block);
  void conclude(unsigned op, const Note& note);
  void say(const Outcome& outcome);
  void report(const Note& note);
  [[nodiscard]] unsigned block_log2_of(const st_header_t& request) const;
  [[nodiscard]] Duration wait(Time now) const;

  Connection& connection_;
  ReceiverContext& context_;
  const unsigned stu_log2_, block_log2_;
  MappedMemory memory_;
  const int mx_;

  IncomingFile file_;
  Note announced_;                    // how the announcement of the file went
  std::optional<Transfer> transfer_;  // under way
  std::optional<Outcome> outcome_;    // of the last one
  std::optional<Retry> end_retry_;    // outcome_ is an END without its EA
  std::uint32_t last_i_id_ = 0, last_r_id_ = 0;
  Time progress_at_;
  std::uint64_t repeats_ = 0;  // of the file at hand
  unsigned files_ = 0, failures_ = 0;
};

}  // namespace stp::files
