// SPDX-License-Identifier: BSD-3-Clause
// A file that appears under its name complete or not at all: it is written to a hidden temporary
// beside it, which the destructor removes unless commit() gave it the name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace stp::files {

class FileWriter {
 public:
  FileWriter() = default;
  ~FileWriter() { discard(); }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // All give 0 or a negative errno. `name` is one that accepted_name() let through. -ENOSPC here
  // already: `size` bytes do not fit.
  int open(const std::string& directory, const std::string& name, std::uint64_t size,
           std::uint16_t mode);
  int append(std::span<const std::byte> bytes);
  // Durable first, then visible.
  int commit();
  void discard();

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  int refuse_target(std::uint64_t size) const;

  int directory_ = -1;
  int fd_ = -1;
  std::uint16_t mode_ = 0;
  std::uint64_t written_ = 0;
  std::string name_, temporary_;
};

}  // namespace stp::files
