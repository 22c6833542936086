// SPDX-License-Identifier: BSD-3-Clause
// A file on its way in, as the receiver's disk sees it: announced, then its bytes in order, then
// confirmed by the sender's digest. Every step says in a Note how it went.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "tools/files/digest.h"
#include "tools/files/file_writer.h"
#include "tools/files/metadata.h"
#include "tools/files/note.h"
#include "tools/files/progress.h"

namespace stp::files {

class IncomingFile {
 public:
  IncomingFile(const std::string& directory, Progress& progress)
      : directory_(directory), progress_(progress) {}

  // A new file; one that was under way is discarded.
  Note announce(std::span<const std::byte> metadata);
  Note append(std::span<const std::byte> bytes);
  Note commit(const Digest& expected);
  void discard();

  [[nodiscard]] bool under_way() const { return writer_.is_open(); }
  [[nodiscard]] std::uint64_t size() const { return metadata_.size; }
  [[nodiscard]] std::string name() const { return printable(metadata_.name); }
  // Since announce().
  [[nodiscard]] double seconds() const;

 private:
  const std::string& directory_;
  Progress& progress_;
  Metadata metadata_;
  FileWriter writer_;
  ContentDigest digest_;
  std::optional<Progress::Item> bar_;
  std::chrono::steady_clock::time_point began_{};
};

}  // namespace stp::files
