// SPDX-License-Identifier: BSD-3-Clause
// What is to be sent, as it was when it was found: a file, a stream, and in a tree also a directory
// or a symbolic link.
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
  // Of a tree. A symbolic link is sent as one, and never followed.
  static FileReader in_tree(const TreeEntry& entry);
  // What comes from an open descriptor, under that name. It is not closed.
  static FileReader stream(int fd, const std::string& name);

  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  // The receiver is to compare the content of what it has, not only its time.
  void ask_for_checksum() { metadata_.checksum = true; }
  // For messages.
  [[nodiscard]] const std::string& path() const { return path_; }

  // Before read(). FileFailure: it is gone, or something else has its name.
  void open();
  // The next bytes, exactly as many as asked. FileFailure: the file became shorter, or an error.
  void read(std::span<std::byte> bytes);
  // Of a stream: at least one byte, 0 at its end.
  std::size_t read_some(std::span<std::byte> bytes);
  void start_over();
  void close() { fd_.reset(); }

 private:
  FileReader() = default;
  [[nodiscard]] int fd() const { return metadata_.stream ? stream_ : fd_.get(); }

  Directory directory_;  // nullptr: the current one
  std::string name_, path_;
  bool follow_ = false;
  int stream_ = -1;
  service::UniqueFd fd_;  // of a file that is open
  Metadata metadata_;
};

}  // namespace stp::files
