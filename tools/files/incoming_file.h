// SPDX-License-Identifier: BSD-3-Clause
// A file on its way in, as the receiver's disk sees it: announced, then its bytes in order, then
// confirmed by the sender's digest. Directories and symbolic links are done once announced. Every
// step says in a Note how it went.
#pragma once

#include <atomic>
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
  // `stop` ends the reading of what is there already, however long it is.
  IncomingFile(const std::string& directory, Progress& progress, const std::atomic<bool>& stop)
      : directory_(directory), progress_(progress), stop_(stop) {}

  // A new file; one that was under way is discarded.
  Note announce(std::span<const std::byte> metadata);
  // The content comes from there on.
  Note go_on_from(std::uint64_t at);
  Note append(std::span<const std::byte> bytes);
  Note commit(const Digest& expected);
  void discard();

  [[nodiscard]] bool under_way() const { return writer_.is_open(); }
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] std::string name() const { return printable(metadata_.path); }
  // Bytes that are still to come.
  [[nodiscard]] std::uint64_t missing() const { return metadata_.size - writer_.written(); }
  // Since announce().
  [[nodiscard]] double seconds() const;

 private:
  Note open(std::span<const std::string> path);

  const std::string& directory_;
  Progress& progress_;
  const std::atomic<bool>& stop_;
  Metadata metadata_;
  FileWriter writer_;
  ContentDigest digest_;  // of what is there; while the sender has not said from where it goes on,
                          // of all that was found
  std::optional<Progress::Item> bar_;
  std::chrono::steady_clock::time_point began_{};
};

}  // namespace stp::files
