// SPDX-License-Identifier: BSD-3-Clause
// Records a run: a hash that is equal for two runs of one seed, counts, and on request a line per
// frame and a pcapng file.
#pragma once

#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>

#include "tools/sim/pcapng_file.h"

namespace stp::sim {

// What can happen to a frame.
enum class Fault : std::uint8_t {
  kLost,
  kBurstLost,
  kDuplicated,
  kReordered,
  kDelayed,
  kCorrupted,
  kCut,       // the cable was unplugged
  kOverflow,  // no room in the switch
  kHostDown,
  kLie,  // changed by its sender
  kCount,
};

using OpCounts = std::array<std::uint64_t, 32>;  // by op code

class Trace {
 public:
  // Writes lines of text to `text` unless it is nullptr. The file gets all frames that are sent, or
  // only those that `station` sends and receives.
  Trace(std::FILE* text, std::unique_ptr<PcapngFile> file, std::optional<MacAddr> station = {})
      : text_(text), file_(std::move(file)), station_(station) {}

  void sent(Time now, Bytes frame);
  void received(Time now, Bytes frame);
  void fault(Time now, Fault fault, Bytes frame);
  // Calls `line` only if there is a text output.
  void note(Time now, const std::function<std::string()>& line) const;

  [[nodiscard]] std::uint64_t hash() const { return hash_; }
  [[nodiscard]] std::uint64_t frames() const { return frames_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t faults() const { return faults_; }
  [[nodiscard]] std::uint64_t overflows() const { return overflows_; }
  [[nodiscard]] const OpCounts& ops() const { return ops_; }
  // Requests that were sent again (calls: RC and RD), and all RS.
  [[nodiscard]] std::uint64_t repeats() const { return repeats_; }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  [[nodiscard]] std::uint64_t questions() const { return questions_; }

 private:
  void mix(Time now, Bytes frame);
  void count(Bytes frame);
  [[nodiscard]] bool at_station(Bytes frame, std::size_t place) const;
  void print(Time now, const char* what, Bytes frame) const;

  std::FILE* text_;
  std::unique_ptr<PcapngFile> file_;
  std::optional<MacAddr> station_;
  std::uint64_t hash_ = 0xcbf29ce484222325;
  OpCounts ops_{};
  static constexpr std::size_t kRemembered = 1'024;
  std::unordered_set<std::size_t> requests_;  // hashes of the last ones
  std::uint64_t repeats_ = 0, calls_ = 0, questions_ = 0;
  std::uint64_t frames_ = 0, bytes_ = 0, faults_ = 0, overflows_ = 0;
};

}  // namespace stp::sim
