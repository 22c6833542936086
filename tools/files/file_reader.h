// SPDX-License-Identifier: BSD-3-Clause
// What is to be sent, as it was when it was opened: a file, and in a tree also a directory or a
// symbolic link.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "libst/os/unique_fd.h"
#include "tools/files/metadata.h"
#include "tools/files/tree.h"

namespace stp::files {

class FileReader {
 public:
  // All throw FileFailure: not there, not readable, a device, socket or FIFO, or a name that no
  // receiver accepts.
  // A file that is sent by itself, under its base name; what a symbolic link leads to.
  static FileReader single(const std::string& path);
  // Of a tree: with its time, and resumed where an earlier transfer broke. A symbolic link is sent
  // as one, and never followed.
  static FileReader in_tree(const TreeEntry& entry);

  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  // The next bytes, exactly as many as asked. FileFailure: the file became shorter, or an error.
  void read(std::span<std::byte> bytes);
  void start_over();

 private:
  FileReader() = default;
  service::UniqueFd fd_;  // of a file
  Metadata metadata_;
};

}  // namespace stp::files
