// SPDX-License-Identifier: BSD-3-Clause
// What all parts of one simulated run share: virtual time, random numbers, the trace and the
// verdict.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "stp/types.h"

namespace stp::sim {

// Virtual time: runs actions in the order of their times. Actions with equal times run in the order
// in which they were added.
class Clock {
 public:
  using Action = std::function<void()>;

  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  void at(Time when, Action action);
  void after(Time span, Action action) { at(now_ + span, std::move(action)); }
  // Runs the next action. Returns false if there is none.
  bool step();

 private:
  struct Entry {
    Time when;
    std::uint64_t serial;
    Action action;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.when != b.when ? a.when > b.when : a.serial > b.serial;
  }

  Time now_ = kSecond;
  std::uint64_t serial_ = 0, steps_ = 0;
  std::vector<Entry> heap_;
};

using Rate = std::uint32_t;  // per million
inline constexpr Rate kAlways = 1'000'000;

// The only source of random numbers in a simulation: the same seed gives the same numbers on every
// machine.
class Dice : public Random {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::uint32_t next() override { return static_cast<std::uint32_t>(next64() >> 32); }
  std::uint64_t next64() {  // splitmix64
    auto z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // Both bounds included.
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + next64() % (high - low + 1);
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next64() % count); }
  bool chance(Rate rate) { return rate != 0 && next64() % kAlways < rate; }
  // All magnitudes are equally likely, so small numbers are as frequent as large ones.
  std::uint64_t magnitude(std::uint64_t low, std::uint64_t high) {
    unsigned doublings = 0;
    while (low << doublings < high) ++doublings;
    const auto top = low << between(0, doublings);
    const auto drawn = between(low, top);
    return drawn < high ? drawn : high;
  }
  // Returns an independent source, so that more numbers drawn in one part of a run change nothing
  // in another.
  Dice fork() { return Dice(next64()); }

 private:
  std::uint64_t state_;
};

// A trace of a run for Wireshark. Unlike a daemon's trace it must hold every frame, so writing may
// block.
class PcapngFile {
 public:
  // Returns nullptr if the file cannot be written.
  static std::unique_ptr<PcapngFile> create(const std::string& path);
  void frame(Time time, Bytes bytes);
  // Writes the rest. Why the file is not complete: 0 or a negative errno.
  int finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit PcapngFile(std::FILE* file) : file_(file) {}
  void put(std::uint32_t word);
  void write(const void* data, std::size_t size);

  std::unique_ptr<std::FILE, Close> file_;
  int error_ = 0;
};

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

// Records a run: a hash that is equal for two runs of one seed, counts, and on request a line per
// frame and a pcapng file.
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
  // As PcapngFile::finish(); 0 without a file.
  int finish_file() { return file_ == nullptr ? 0 : file_->finish(); }

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

// The failures of the run.
class Verdict {
 public:
  void fail(std::string what) {
    if (failures_.size() < kKept) failures_.push_back(std::move(what));
  }
  void require(bool holds, const char* what) {
    if (!holds) fail(what);
  }
  [[nodiscard]] bool guilty() const { return !failures_.empty(); }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }

 private:
  static constexpr std::size_t kKept = 16;  // later failures mostly follow from the first ones
  std::vector<std::string> failures_;
};

// What all parts of one simulated run share.
struct Run {
  Clock clock;
  Trace trace;
  Verdict verdict;
  Dice dice;

  [[nodiscard]] Time now() const { return clock.now(); }
};

}  // namespace stp::sim
