// SPDX-License-Identifier: BSD-3-Clause
// Messages for the user: one line per file on standard output and, if standard error is a terminal,
// a progress bar. Any thread may call all functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

namespace stp::files {

class Progress {
 public:
  Progress(std::string program, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One file under way.
  class Item {
   public:
    Item(Progress& progress, std::string name, std::uint64_t size);
    ~Item();
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;
    void advance(std::uint64_t bytes);

   private:
    friend class Progress;
    Progress& progress_;
    std::string name_;
    std::uint64_t size_;
    std::uint64_t done_ = 0;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  };

  void say(const std::string& line);       // standard output; not when quiet
  void complain(const std::string& line);  // standard error, always

 private:
  void draw();
  void erase();

  std::mutex mutex_;
  const std::string program_;
  const bool quiet_;
  const bool bar_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point drawn_at_{};
  std::set<const Item*> items_;
};

double seconds_since(std::chrono::steady_clock::time_point began);
// "1 GiB in 0.5 s, 17.2 Gbit/s"
std::string rate_text(std::uint64_t bytes, double seconds);

}  // namespace stp::files
