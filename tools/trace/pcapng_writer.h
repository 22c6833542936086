// SPDX-License-Identifier: BSD-3-Clause
// Writes frames to a pcapng file, from the thread that polls and without ever making it wait: a
// frame goes into a ring, and a thread of the writer's own moves the ring into the file. What
// finds no room is dropped and counted.
#pragma once

#include <atomic>
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
    std::size_t ring_bytes = std::size_t{16} << 20;  // a power of two
  };
  enum class Way { kReceived = 1, kSent = 2 };  // as pcapng counts them

  // nullptr: `error` says why.
  static std::unique_ptr<PcapngWriter> create(const std::string& path, Options options,
                                              std::string& error);
  ~PcapngWriter();  // writes what is still in the ring
  PcapngWriter(const PcapngWriter&) = delete;
  PcapngWriter& operator=(const PcapngWriter&) = delete;

  // A frame of two parts; one thread at a time. `time`: nanoseconds since 1970.
  void frame(Time time, Bytes head, Bytes rest, Way way);

  [[nodiscard]] std::uint64_t frames() const { return frames_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

  // The file lags behind by no more than this.
  static constexpr Time kFlushInterval = 50 * kMillisecond;

 private:
  PcapngWriter(service::UniqueFd file, const Options& options);
  void put(const void* data, std::size_t size, std::uint64_t& at);
  void run();
  bool drain();

  const service::UniqueFd file_;
  const std::uint64_t max_frames_;
  std::vector<std::byte> ring_;
  // Positions run freely; the ring holds whole blocks between them.
  std::atomic<std::uint64_t> head_{0}, tail_{0};
  std::atomic<std::uint64_t> frames_{0}, dropped_{0};
  std::uint64_t file_size_ = 0;  // of whole blocks
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable filling_;
  std::thread thread_;
};

}  // namespace stp::trace
