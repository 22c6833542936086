// SPDX-License-Identifier: BSD-3-Clause
// A file whose content comes piece by piece, as the receiver's disk sees it: opened, then its bytes
// in order, then confirmed by the sender's digest. Every step says in a Note how it went.
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

// The note that says what a negative errno means; 0: all is well.
Note result_of(int error);
Note because(Reason reason);

class IncomingFile {
 public:
  // `stop` ends the reading of what is there already, however long it is.
  IncomingFile(const Metadata& metadata, Progress& progress, const std::atomic<bool>& stop)
      : metadata_(metadata), progress_(progress), stop_(stop) {}

  // What is there already, and its digest.
  Note open(Directory directory, const std::string& name);
  // Nothing is there, and what comes goes to a descriptor.
  Note open_sink(int fd) { return result_of(writer_.open_sink(fd, metadata_)); }
  // The content comes from there on.
  Note go_on_from(std::uint64_t at);
  Note append(std::span<const std::byte> bytes);
  // All `size` bytes are there: `whole` waits for its name.
  Note commit(std::uint64_t size, const Digest& expected, WholeFile& whole);

  [[nodiscard]] std::uint64_t have() const { return writer_.have(); }

 private:
  Metadata metadata_;
  Progress& progress_;
  const std::atomic<bool>& stop_;
  FileWriter writer_;
  ContentDigest digest_;  // of what is there; while the sender has not said from where it goes on,
                          // of all that was found
  std::optional<Progress::Item> bar_;
};

}  // namespace stp::files
