// SPDX-License-Identifier: BSD-3-Clause
// The files of one sender that get further names (hard links) at the receiver. A sender can name
// only what it has sent over this connection, or what was found to be the same; the inode is
// compared, because others may write to the directory meanwhile.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace stp::files {

class LinkedFiles {
 public:
  // Bytes of paths that are kept. Further names of other files are sent as files.
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;

  struct File {
    std::string path;  // below the receiver's directory
    dev_t device = 0;
    ino_t inode = 0;
    bool is_found = false, has_arrived = false;

    // That name is one of this file.
    [[nodiscard]] bool is_named(int directory, const std::string& name) const;
  };

  // A file is offered, and further names are to come.
  void begin(std::uint32_t number, const std::string& path);
  // Where it is. It has its name when it has arrived. Both ignore files that did not begin.
  void found(std::uint32_t number, int directory, const std::string& name);
  void arrived(std::uint32_t number);
  // It fails, or has all its names.
  void forget(std::uint32_t number);

  [[nodiscard]] bool is_under_way(std::uint32_t number) const;
  [[nodiscard]] std::optional<File> find(std::uint32_t number) const;

 private:
  std::map<std::uint32_t, File> files_;
  std::size_t bytes_ = 0;
};

}  // namespace stp::files
