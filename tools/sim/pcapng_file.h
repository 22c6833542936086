// SPDX-License-Identifier: BSD-3-Clause
// A trace of a run for Wireshark. Unlike a daemon's trace it must hold every frame, so writing may
// block.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "stp/types.h"

namespace stp::sim {

class PcapngFile {
 public:
  // Returns nullptr if the file cannot be written.
  static std::unique_ptr<PcapngFile> create(const std::string& path);
  void frame(Time time, Bytes bytes);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit PcapngFile(std::FILE* file) : file_(file) {}
  void put(std::uint32_t word);

  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace stp::sim
