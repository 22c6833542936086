// SPDX-License-Identifier: BSD-3-Clause
// Writes frames to a pcapng file, from the thread that polls and without ever making it wait: a
// frame goes into a ring, and a thread of the writer's own moves the ring into the file. What
// finds no room is dropped and counted.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libst/service/unique_fd.h"
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
  };
  enum class Way { kReceived = 1, kSent = 2 };  // as pcapng counts them

  // nullptr: `error` says why.
  static std::unique_ptr<PcapngWriter> create(const std::string& path, Options options,
                                              std::string& error);
  // The same into a file that is open: a regular one, empty. nullptr: errno says why, too.
  static std::unique_ptr<PcapngWriter> create(service::UniqueFd file, const Options& options,
                                              std::string& error);
  ~PcapngWriter();  // writes what is still in the ring
  PcapngWriter(const PcapngWriter&) = delete;
  PcapngWriter& operator=(const PcapngWriter&) = delete;

  // A frame of two parts; one thread at a time. `time`: nanoseconds since 1970.
  void frame(Time time, Bytes head, Bytes rest, Way way);

  // Call when no frame() will follow. What is in the ring is written by the writer's own thread.
  void finish();
  // The file has all that it will get, and is closed.
  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }

  [[nodiscard]] std::uint64_t frames() const { return frames_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  [[nodiscard]] std::uint64_t written_bytes() const { return file_size_; }
  // Why the file could not take all of it; 0 or a negative errno.
  [[nodiscard]] int error() const { return error_; }

  // The file lags behind by no more than this.
  static constexpr Time kFlushInterval = 50 * kMillisecond;

 private:
  PcapngWriter(service::UniqueFd file, const Options& options);
  void put(const void* data, std::size_t size, std::uint64_t& at);
  void run();
  bool drain();
  bool give_up(ssize_t written);
  [[nodiscard]] bool at_limit() const;

  service::UniqueFd file_;
  const std::uint64_t max_frames_;
  const std::chrono::steady_clock::time_point until_;
  std::vector<std::byte> ring_;
  // Positions run freely; the ring holds whole blocks between them.
  std::atomic<std::uint64_t> head_{0}, tail_{0};
  std::atomic<std::uint64_t> frames_{0}, dropped_{0};
  std::atomic<std::uint64_t> file_size_{0};  // of whole blocks
  std::atomic<int> error_{0};
  // No frame is taken any more; the writer has been told to end; it has ended.
  std::atomic<bool> closed_{false}, stopping_{false}, finished_{false};
  std::mutex mutex_;
  std::condition_variable filling_;
  std::thread thread_;
};

}  // namespace stp::trace
