// SPDX-License-Identifier: BSD-3-Clause
// Closes descriptors that clients have sent, and sockets in which clients may have left some.
// close() may call whoever implements a file: a FUSE server that does not answer blocks the caller
// for ever, even against SIGKILL. So separate threads close them, and such a thread may be lost.
// Each user gets few of them, so that the descriptors of one user never delay those of another.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "libst/os/unique_fd.h"

namespace stp::service {

class Closer {
 public:
  // kFile: descriptors that a client has sent. kSocket: sockets of clients, which seldom block for
  // long. Limits apply to each kind, so a user's sockets are closed even while its files block.
  enum class Kind { kFile, kSocket };
  // Limits: threads per user and kind, and in all. Threads are started on demand.
  static constexpr unsigned kThreadsPerUser = 2, kThreads = 32;
  // Of these threads, so many only for root and for the user of this process.
  static constexpr unsigned kThreadsOfOperators = 4;
  // A thread that spends this long on one descriptor counts as lost.
  static constexpr std::chrono::milliseconds kLost{1'000};
  // The Server accepts no more files from a user with this many waiting, until some are closed.
  static constexpr std::size_t kMostPerUser = 256;
  // The Server admits no more clients of a user with this many sockets waiting.
  static constexpr std::size_t kMostSocketsPerUser = 64;

  Closer();
  // Waits up to kFarewell for the threads. Abandons those that still close a descriptor.
  ~Closer();
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  // Never blocks. `user`: the user who made the descriptor.
  void close(uid_t user, UniqueFd file, Kind kind = Kind::kFile);
  void close(uid_t user, std::vector<UniqueFd>& files);
  // Call now and then: makes threads that could not be made when they were needed.
  void tend();

  // Counts descriptors handed over and not closed yet: all, or those of one user.
  [[nodiscard]] std::size_t waiting() const;
  [[nodiscard]] std::size_t waiting(uid_t user, Kind kind = Kind::kFile) const;
  // Counts lost threads: of all users, or of one.
  [[nodiscard]] std::size_t lost() const;
  [[nodiscard]] std::size_t lost(uid_t user) const;
  // Returns a user whose descriptor blocks a lost thread; nullopt: no thread is lost.
  [[nodiscard]] std::optional<uid_t> who_holds_up() const;

  static constexpr std::chrono::milliseconds kFarewell{500};

 private:
  struct State;
  const std::shared_ptr<State> state_;  // lost threads keep it alive
};

}  // namespace stp::service
