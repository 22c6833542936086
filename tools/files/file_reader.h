// SPDX-License-Identifier: BSD-3-Clause
// One item to send, in the state in which it was found: a file, a stream, and in a tree also a
// directory or a symbolic link.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <optional>
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
  // A single file, sent under that name; nullopt: its base name. A symbolic link is followed.
  static FileReader single(const std::string& path, const std::optional<std::string>& name = {});
  // An item of a tree. A symbolic link is sent as a link and never followed.
  static FileReader in_tree(const TreeEntry& entry);
  // What comes from an open descriptor, under that name. It is not closed.
  static FileReader stream(int fd, const std::string& name);

  // A directory that the receiver is to make if it has none of that name, and to leave otherwise.
  static FileReader way(const std::string& path_there);

  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  // The receiver must compare the content of its file, not only the time.
  void ask_for_checksum() { metadata_.checksum = true; }
  // The receiver is only asked what it would do.
  void only_ask() { metadata_.dry = true; }
  // It is a further name of the file with that number (0: it is the first), and more are to come.
  void has_names(std::uint32_t first, bool more) {
    metadata_.first = first;
    metadata_.more_names = more;
  }
  // The permissions are sent with these changes, which must live as long.
  void change_mode(const ModeChanges& changes);
  // For messages.
  [[nodiscard]] const std::string& path() const { return path_; }

  // Bytes that its file system keeps for it: of a file with holes less than its size.
  [[nodiscard]] std::uint64_t stored() const { return stored_; }

  // Throws FileFailure if this user cannot open the file.
  void check_opens() const;
  // Call before read(). From then on metadata() is that of the open file. False: it differs from
  // before, and the receiver must be told. FileFailure: the file is gone, or something else has its
  // name.
  bool open();
  // Reads the next bytes, exactly as many as requested. FileChanged: the file became shorter.
  void read(std::span<std::byte> bytes);
  // Of a stream: waits at most so long until read_some() would not wait. Of others it never would.
  [[nodiscard]] bool is_ready(std::chrono::nanoseconds wait) const;
  // Of a stream: at least one byte, 0 at its end.
  std::size_t read_some(std::span<std::byte> bytes);
  void start_over();
  // What comes next at `at`, the offset up to which it was read, of a file of `size` bytes. The
  // next read begins behind it if it is a hole.
  struct Extent {
    bool is_hole = false;
    std::uint64_t length = 0;
  };
  Extent next_extent(std::uint64_t at, std::uint64_t size);
  // Call after the last byte. FileChanged: what was read may be of two states of the file. Open it
  // again then.
  void check_whole();
  void close() { fd_.reset(); }

 private:
  FileReader() = default;
  [[nodiscard]] int fd() const { return stream_ >= 0 ? stream_ : fd_.get(); }
  os::UniqueFd opened(struct stat& found) const;
  [[nodiscard]] bool is_as_opened() const;

  SourceDirectory::Pointer directory_;  // of a file; nullptr: the current one
  std::string name_, path_;
  bool follow_ = false;
  int stream_ = -1;
  os::UniqueFd fd_;  // of a file that is open
  struct stat opened_ {};
  std::uint64_t data_until_ = 0;  // no hole comes before that offset
  const ModeChanges* mode_changes_ = nullptr;
  bool unsized_ = false;  // its size is not that of its content, as below /proc and /sys
  std::uint64_t stored_ = 0;
  Metadata metadata_;
};

}  // namespace stp::files
