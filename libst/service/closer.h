// SPDX-License-Identifier: BSD-3-Clause
// Closes descriptors that others have made, and sockets in which others may have left some. close()
// may ask whoever stands behind a file: a FUSE server that does not answer keeps the caller for
// ever, and not even SIGKILL gets it back. So threads do it that may be lost: few for each user, so
// that one user's descriptors hold up those of no other.
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
  // What a client has sent, and the sockets of clients themselves, which seldom hold anybody up for
  // long: those of a user go on being closed while its files do not.
  enum class Kind { kFile, kSocket };
  // Threads at most: at what one user has of one kind, and in all. They are started as they are
  // needed.
  static constexpr unsigned kThreadsPerUser = 2, kThreads = 32;
  // A thread that has been at one descriptor for so long is taken for lost.
  static constexpr std::chrono::milliseconds kLost{1'000};
  // Of a user with as many files that wait, stpd takes no more until some are closed.
  static constexpr std::size_t kMostPerUser = 256;

  Closer();
  // Leaves behind what cannot be closed within kFarewell, and the threads that are at it.
  ~Closer();
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  // Never waits. `user`: who has made it.
  void close(uid_t user, UniqueFd file, Kind kind = Kind::kFile);
  void close(uid_t user, std::vector<UniqueFd>& files);

  // Given and not closed yet: all, and the files of one user.
  [[nodiscard]] std::size_t waiting() const;
  [[nodiscard]] std::size_t waiting(uid_t user) const;
  // Threads that are lost.
  [[nodiscard]] std::size_t lost() const;
  [[nodiscard]] std::size_t lost(uid_t user) const;
  // A user whose descriptors a thread is lost at.
  [[nodiscard]] std::optional<uid_t> who_holds_up() const;

  static constexpr std::chrono::milliseconds kFarewell{500};

 private:
  struct State;
  const std::shared_ptr<State> state_;  // lost threads keep it
};

}  // namespace stp::service
