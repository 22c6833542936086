// SPDX-License-Identifier: BSD-3-Clause
// A file to send, as it was when it was opened.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "tools/files/metadata.h"

namespace stp::files {

class FileReader {
 public:
  // FileFailure: not there, not readable, no regular file, or a name that no receiver accepts.
  explicit FileReader(const std::string& path);
  ~FileReader();
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  // The next bytes, exactly as many as asked. FileFailure: the file became shorter, or an error.
  void read(std::span<std::byte> bytes);

 private:
  int fd_;
  Metadata metadata_;
};

}  // namespace stp::files
