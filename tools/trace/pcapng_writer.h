// SPDX-License-Identifier: BSD-3-Clause
// Writes frames to a pcapng file, from the thread that polls and without ever making it wait: a
// frame goes into a ring, and a thread of the writer's own moves the ring into the file. What
// finds no room is dropped and counted. A file may never answer, be it a pipe that nobody reads or
// a FUSE file: then that thread is lost, with its ring, and nobody waits for it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "libst/os/unique_fd.h"
#include "stp/types.h"

namespace stp::trace {

class PcapngWriter {
 public:
  struct Options {
    std::string interface;  // named in the file
    std::string program;    // likewise
    std::uint64_t max_frames = ~std::uint64_t{0};
    Time duration = kNever;  // ends this long after it began, within kFlushInterval
    std::size_t ring_bytes = std::size_t{16} << 20;  // a power of two
    std::chrono::milliseconds farewell{3'000};       // for the file to take the rest
  };
  enum class Way { kReceived = 1, kSent = 2 };  // as pcapng counts them

  // nullptr: `error` says why.
  static std::unique_ptr<PcapngWriter> create(const std::string& path, Options options,
                                              std::string& error);
  // The same into a file that is open: a regular one, empty. Nothing is done to it here; error()
  // tells what is wrong with it.
  static std::unique_ptr<PcapngWriter> create(service::UniqueFd file, const Options& options);
  // Writes what is still in the ring; waits no longer for that than Options::farewell from finish()
  // on.
  ~PcapngWriter();
  PcapngWriter(const PcapngWriter&) = delete;
  PcapngWriter& operator=(const PcapngWriter&) = delete;

  // A frame of two parts; one thread at a time. `time`: nanoseconds since 1970.
  void frame(Time time, Bytes head, Bytes rest, Way way);

  // Call when no frame() will follow. What is in the ring is written by the writer's own thread.
  void finish();
  // The file has all that it will get, and is closed.
  [[nodiscard]] bool finished() const;
  // It should have by now: Options::farewell has passed since finish().
  [[nodiscard]] bool is_overdue() const;

  [[nodiscard]] std::uint64_t frames() const;
  [[nodiscard]] std::uint64_t dropped() const;
  [[nodiscard]] std::uint64_t written_bytes() const;  // of whole blocks
  // Why the file could not take all of it; 0 or a negative errno.
  [[nodiscard]] int error() const;

  // The file lags behind by no more than this.
  static constexpr Time kFlushInterval = 50 * kMillisecond;

 private:
  struct State;  // the thread's as well: it may outlive this
  explicit PcapngWriter(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
  std::chrono::steady_clock::time_point finished_since_{};  // when it was asked to finish
};

}  // namespace stp::trace
