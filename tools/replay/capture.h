// SPDX-License-Identifier: BSD-3-Clause
// Reads the frames of a capture file with libpcap: pcap or pcapng, of either byte order and any
// time resolution.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "stp/types.h"

struct pcap;

namespace stp::replay {

struct CapturedFrame {
  std::uint64_t number = 0;     // from 1, as Wireshark counts
  std::int64_t time = 0;        // nanoseconds since 1970
  Bytes bytes;                  // what the file holds; valid until the next frame is read
  std::size_t wire_length = 0;  // of the whole frame: more than bytes.size() if it was cut

  [[nodiscard]] bool cut() const { return bytes.size() < wire_length; }
};

class Capture {
 public:
  // Opens a file; "-" is standard input. Returns nullopt if it fails: `error` names the file, the
  // cause and, if there is one, the remedy.
  static std::optional<Capture> open(const std::string& path, std::string& error);
  // Takes the stream over; `name` is for messages.
  static std::optional<Capture> read(std::FILE* stream, const std::string& name,
                                     std::string& error);

  // Returns false at the end, or after an error: error() says how far the file could be read.
  bool next(CapturedFrame& out);
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  struct Close {
    void operator()(pcap* file) const;
  };
  Capture(pcap* file, std::string name) : file_(file), name_(std::move(name)) {}
  [[nodiscard]] std::string explain(const std::string& cause) const;

  std::unique_ptr<pcap, Close> file_;
  std::string name_, error_;
  std::uint64_t count_ = 0;
};

}  // namespace stp::replay
