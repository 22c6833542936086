// SPDX-License-Identifier: BSD-3-Clause
// Messages for the user: one line per file on standard output and, if standard error is a terminal,
// a line there that shows how far the transfer is. Any thread may call all functions.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "stp/base/mutex.h"

namespace stp::files {

// The line that shows on a terminal how far a transfer is.
struct ProgressView {
  std::string name;                   // of what is under way; without control characters
  bool moves = true;                  // false: no bytes are on their way; only files are counted
  std::uint64_t done = 0;             // bytes
  std::optional<std::uint64_t> size;  // nullopt: nobody knows, as of a stream
  double rate = 0;                    // bytes per second, of the last seconds
  std::size_t file = 0, files = 0;  // number of the file, and of all of them. 1 or less: not shown
  bool more = false;                // there will be more files than that
  std::optional<std::chrono::seconds> stalled;  // for so long no byte has moved
  std::string trouble;                          // why it is stalled; "": nobody knows
};

// Fits into so many columns.
std::string progress_line(const ProgressView& view, std::size_t columns);

// The columns that a terminal needs for a text in UTF-8.
std::size_t columns_of(std::string_view text);
// At most so many columns: leaves out the middle where it is longer.
std::string shortened(std::string_view text, std::size_t columns);

class Progress {
 public:
  // A transfer of which nothing moves for so long is shown as stalled.
  Progress(std::string program, bool quiet,
           std::chrono::milliseconds stalled_after = std::chrono::seconds(2));
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One file under way.
  class Item {
   public:
    // `size`: nullopt where nobody knows it.
    Item(Progress& progress, std::string name, std::optional<std::uint64_t> size);
    ~Item();
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;
    void advance(std::uint64_t bytes);
    // These were there already, and took no time.
    void skip(std::uint64_t bytes);

   private:
    friend class Progress;
    Progress& progress_;
    std::string name_;
    std::optional<std::uint64_t> size_;
    std::uint64_t done_ = 0;
  };
  // As long as it lives, `trouble` is asked why a transfer is stalled. It may take its time.
  class Watch {
   public:
    Watch(Progress& progress, std::function<std::string()> trouble);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Progress& progress_;
  };

  // So many of the files that are known are finished; `more`: others will follow.
  void count(std::size_t finished, std::size_t files, bool more);
  // Of those that are not finished, so many have been sent: they wait for the receiver.
  void sent(std::size_t files);
  // Bytes of files that are too small for an Item.
  void moved(std::uint64_t bytes);
  // Nothing moves because the program waits by intention.
  void pause();
  // All bytes have moved, and the receiver's disk is waited for.
  void await_disk();

  // On lines of their own, whatever names they hold: on standard output, not when quiet; and on
  // standard error, always.
  void say(const std::vector<std::string>& lines);
  void say(const std::string& line) { say(std::vector{line}); }
  void complain(const std::string& line);
  // What is said is all that the program does: say() throws when it cannot be written.
  void only_tells() { only_tells_ = true; }
  // Everything that was said could be written. If not, that was complained of once.
  [[nodiscard]] bool could_say_all();

  // Runs a program over the link that it has chosen, and complains of what goes wrong, unless that
  // was the last complaint. Names that link first, unless `quiet`. `body` returns whether all went
  // well. Returns the exit status.
  int run(bool quiet, const std::function<bool()>& body);

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void note(std::uint64_t bytes) STP_REQUIRES(mutex_);  // have moved
  void draw() STP_REQUIRES(mutex_);
  [[nodiscard]] bool is_busy() const STP_REQUIRES(mutex_) {
    return !items_.empty() || finished_ < files_;
  }
  [[nodiscard]] ProgressView view(Clock::time_point now) const STP_REQUIRES(mutex_);
  void sample(Clock::time_point now) STP_REQUIRES(mutex_);
  [[nodiscard]] const char* clearing(std::size_t columns) const STP_REQUIRES(mutex_);
  void erase() STP_REQUIRES(mutex_);

  const std::string program_;
  const bool quiet_;
  const std::chrono::milliseconds stalled_after_;
  const bool bar_;
  Mutex watch_mutex_;  // never held together with the other one
  std::function<std::string()> trouble_ STP_GUARDED_BY(watch_mutex_);
  Mutex mutex_;
  bool drawn_ STP_GUARDED_BY(mutex_) = false;
  bool unwritten_ STP_GUARDED_BY(mutex_) = false;
  std::string complaint_ STP_GUARDED_BY(mutex_);  // the last one
  bool only_tells_ = false;
  bool end_ STP_GUARDED_BY(mutex_) = false;
  std::size_t drawn_columns_ STP_GUARDED_BY(mutex_) = 0;
  std::set<const Item*> items_ STP_GUARDED_BY(mutex_);
  std::size_t finished_ STP_GUARDED_BY(mutex_) = 0;
  std::size_t sent_ STP_GUARDED_BY(mutex_) = 0;
  std::size_t files_ STP_GUARDED_BY(mutex_) = 0;
  bool more_ STP_GUARDED_BY(mutex_) = false;
  bool on_disk_ STP_GUARDED_BY(mutex_) = false;
  bool small_ STP_GUARDED_BY(mutex_) = false;       // what moved last was of small files
  std::uint64_t moved_ STP_GUARDED_BY(mutex_) = 0;  // bytes, of all files
  Clock::time_point moved_at_ STP_GUARDED_BY(mutex_) = Clock::now();
  std::deque<std::pair<Clock::time_point, std::uint64_t>> samples_
      STP_GUARDED_BY(mutex_);  // of moved_
  std::condition_variable_any changed_;
  std::thread thread_;  // draws
};

double seconds_since(std::chrono::steady_clock::time_point began);
// "1 GiB in 0.5 s, 17.2 Gbit/s"
std::string rate_text(std::uint64_t bytes, double seconds);

}  // namespace stp::files
