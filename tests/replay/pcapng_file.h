// SPDX-License-Identifier: BSD-3-Clause
// pcapng files in memory, block by block.
#pragma once

#include <cstring>
#include <string>

#include "tools/replay/capture.h"

namespace stp::replay::test {

class PcapngFile {
 public:
  explicit PcapngFile(bool swapped = false) : swapped_(swapped) {
    block(0x0a0d0d0a, number(0x1a2b3c4dU) + number(std::uint16_t{1}) + number(std::uint16_t{0}) +
                          number(~std::uint64_t{0}));
  }
  template <typename Number>
  [[nodiscard]] std::string number(Number value) const {
    std::string bytes(reinterpret_cast<const char*>(&value), sizeof value);
    return swapped_ ? std::string(bytes.rbegin(), bytes.rend()) : bytes;
  }
  [[nodiscard]] std::string option(std::uint16_t code, const std::string& value) const {
    return number(code) + number(static_cast<std::uint16_t>(value.size())) + padded(value);
  }
  // Times are in microseconds, unless an option says otherwise.
  void interface(std::uint32_t snap_length, const std::string& options = {}) {
    block(1, number(std::uint16_t{1}) + number(std::uint16_t{0}) + number(snap_length) + options);
  }
  void packet(std::uint32_t interface, std::uint64_t ticks, Bytes frame,
              const std::string& options = {}) {
    const auto length = static_cast<std::uint32_t>(frame.size());
    block(6, number(interface) + number(static_cast<std::uint32_t>(ticks >> 32)) +
                 number(static_cast<std::uint32_t>(ticks)) + number(length) + number(length) +
                 padded({reinterpret_cast<const char*>(frame.data()), frame.size()}) + options);
  }
  void statistics(std::uint32_t interface, const std::string& options) {
    block(5, number(interface) + number(std::uint64_t{0}) + options);
  }
  // Valid while this object exists and is not added to.
  std::optional<Capture> open(std::string& error) {
    return Capture::read(fmemopen(bytes_.data(), bytes_.size(), "rb"), "test", error);
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  static std::string padded(std::string bytes) {
    bytes.resize((bytes.size() + 3) & ~std::size_t{3});
    return bytes;
  }
  void block(std::uint32_t type, const std::string& body) {
    const auto length = number(static_cast<std::uint32_t>(12 + body.size()));
    bytes_ += number(type) + length + body + length;
  }

  bool swapped_;
  std::string bytes_;
};

}  // namespace stp::replay::test
