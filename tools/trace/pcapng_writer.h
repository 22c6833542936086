// SPDX-License-Identifier: BSD-3-Clause
// Writes frames to a pcapng file without ever blocking the polling thread: a frame goes into a
// ring, and the writer's own thread moves the ring into the file. A frame that finds the ring full
// is dropped and counted, and the file says so: the next frame names how many are missing in front
// of it, and the statistics at the end name the sum. A file may block forever (a pipe that nobody
// reads, a FUSE file). Then the writer gives up that thread and its ring, and nobody waits for it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "dpdk_port/port.h"
#include "libst/os/unique_fd.h"
#include "stp/base/mutex.h"
#include "stp/types.h"

namespace stp::trace {

class PcapngWriter {
 public:
  struct Options {
    std::string interface;  // named in the file
    std::string program;    // likewise
    std::uint64_t max_frames = ~std::uint64_t{0};
    Time duration = kNever;         // ends this long after it began, within kFlushInterval
    std::uint32_t snap_length = 0;  // keep so much of each frame; 0: all
    std::size_t ring_bytes = std::size_t{64} << 20;  // a power of two
    std::chrono::milliseconds farewell{3'000};       // for the file to take the rest
  };
  enum class Way { kReceived = 1, kSent = 2 };  // as pcapng counts them

  // nullptr: `error` says why.
  static std::unique_ptr<PcapngWriter> create(const std::string& path, Options options,
                                              std::string& error);
  // The same with an open file, which must be regular. The writer's thread empties it, and error()
  // reports its errors later. nullptr: there is no memory for the ring.
  static std::unique_ptr<PcapngWriter> create(os::UniqueFd file, const Options& options);
  // Writes the rest of the ring. Waits for that until Options::farewell has passed since finish().
  ~PcapngWriter();
  PcapngWriter(const PcapngWriter&) = delete;
  PcapngWriter& operator=(const PcapngWriter&) = delete;

  // Adds a frame of two parts. Only one thread at a time may call it. `time`: nanoseconds since
  // 1970.
  void frame(Time time, Bytes head, Bytes rest, Way way);

  // Call it after the last frame(). The writer's own thread writes the rest of the ring.
  void finish();
  // The file is complete and closed.
  [[nodiscard]] bool finished() const;
  // Overdue: Options::farewell has passed since finish().
  [[nodiscard]] bool is_overdue() const;

  // Frames that were taken. After an error: those that are in the file.
  [[nodiscard]] std::uint64_t frames() const;
  // Frames that the file lacks: they found the ring full, or the file took them no more.
  [[nodiscard]] std::uint64_t dropped() const;
  [[nodiscard]] std::uint64_t written_bytes() const;  // of whole blocks
  // Why the file is not complete: 0 or a negative errno.
  [[nodiscard]] int error() const;

  // The longest delay of the file behind the ring.
  static constexpr Time kFlushInterval = 50 * kMillisecond;

 private:
  struct State;  // the thread's as well: it may outlive this
  explicit PcapngWriter(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
  std::chrono::steady_clock::time_point finished_since_{};  // when it was asked to finish
};

// "": `error` (of PcapngWriter) is 0. Else the cause and its remedy.
std::string why_it_ends_early(int error);

// Connects a link to a trace. Threads of several shards may bring frames: they wait for each other
// as long as it takes to copy one.
class PcapngTap final : public port::Tap {
 public:
  explicit PcapngTap(PcapngWriter& writer) : writer_(writer) {}
  void frame(Bytes head, Bytes rest, bool sent) override {
    const Lock guard(mutex_);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    writer_.frame(static_cast<Time>(time), head, rest,
                  sent ? PcapngWriter::Way::kSent : PcapngWriter::Way::kReceived);
  }

 private:
  Mutex mutex_;
  PcapngWriter& writer_ STP_GUARDED_BY(mutex_);
};

}  // namespace stp::trace
