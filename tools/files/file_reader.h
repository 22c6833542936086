// SPDX-License-Identifier: BSD-3-Clause
// One item to send, in the state in which it was found: a file, a stream, and in a tree also a
// directory or a symbolic link.
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
  // All throw FileFailure if the file is missing, not readable, a device, socket or FIFO, or has a
  // name that no receiver accepts.
  // A single file, sent under its base name. A symbolic link is followed.
  static FileReader single(const std::string& path);
  // An item of a tree. A symbolic link is sent as a link and never followed.
  static FileReader in_tree(const TreeEntry& entry);
  // What comes from an open descriptor, under that name. It is not closed.
  static FileReader stream(int fd, const std::string& name);

  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  // The receiver must compare the content of its file, not only the time.
  void ask_for_checksum() { metadata_.checksum = true; }
  // For messages.
  [[nodiscard]] const std::string& path() const { return path_; }

  // Call before read(). FileFailure: the file is gone, or something else has its name.
  void open();
  // Reads the next bytes, exactly as many as requested. FileFailure: the file became shorter, or an
  // error.
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
