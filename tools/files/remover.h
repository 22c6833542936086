// SPDX-License-Identifier: BSD-3-Clause
// What a sender may ask for if stp-recv --allow-delete permits it: the names in a directory, and
// the removal of some. Messages:
//
//   sender    kList      a path below the receiver's directory; empty: that itself
//   receiver  kNames     0: more follow, 1: the last message; then for each name 'd' (a directory)
//   or
//                        '-', the name, 0. What is missing has no names
//   sender    kRemove    a path, 0, then each name there that goes, with all that it holds, and 0
//   receiver  kRemoved   a note: `have` were removed; the reason of the first failure, if there was
//   one
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/files/directory.h"

namespace stp::files {

// Bytes of a message of names.
inline constexpr std::size_t kMostOfNames = std::size_t{12} << 10;

struct NameThere {
  bool is_directory = false;
  std::string name;
};
// The names in one directory there that are to go. A receiver can name as many as it likes, so
// they are bounded; what is beyond is left for the next time.
class NamesToRemove {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

  // False: there is no room.
  bool add(std::string_view name);
  void each(const std::function<void(std::string_view)>& visit) const;
  [[nodiscard]] bool is_empty() const { return text_.empty(); }

 private:
  std::string text_;  // each name, and a 0
};

struct Removal {
  std::uint64_t removed = 0;  // files and directories
  int error = 0;              // negative errno of the first failure
};

// Calls `say` for each message of kNames, the last one included. Unfinished files are left out.
void list_names(int directory, const std::function<void(std::span<const std::byte>)>& say);
// Adds the names of a message. nullopt: it is malformed, or its names take more than `room`, which
// becomes smaller by the memory that they take; true: it is the last one.
std::optional<bool> take_names(std::span<const std::byte> message, std::vector<NameThere>& names,
                               std::size_t& room);

// The message that removes some names; begins with the path.
std::vector<std::byte> begin_removal(std::string_view path);
void add_name(std::vector<std::byte>& message, std::string_view name);
// The path and the names of a message. Empty: it is malformed.
std::vector<std::string> take_removal(std::span<const std::byte> message);

// Removes one name, with all that it holds. Follows no link.
void remove_all(const Directory& directory, const std::string& name, const std::atomic<bool>& stop,
                Removal& removal);

}  // namespace stp::files
