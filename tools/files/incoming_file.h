// SPDX-License-Identifier: BSD-3-Clause
// The disk side of a file that the receiver gets piece by piece: open it, write its bytes in order,
// then check the sender's digest. Each step returns its result as a Note.
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

// The note for a negative errno; 0: no error.
Note result_of(int error);
Note because(Reason reason);

class IncomingFile {
 public:
  // The reading of an existing file, however long it is, is work for `whom`.
  IncomingFile(const Metadata& metadata, Progress& progress, const WorkFor& whom)
      : metadata_(metadata), progress_(progress), whom_(whom) {}

  // The bytes that exist already, and their digest.
  Note open(Directory directory, const std::string& name);
  // Nothing exists yet; the content goes to a descriptor.
  Note open_sink(int fd) { return result_of(writer_.open_sink(fd, metadata_)); }
  // The content continues from this offset.
  Note go_on_from(std::uint64_t at);
  Note append(std::span<const std::byte> bytes);
  // So many zeros, which a file need not hold.
  Note skip(std::uint64_t length);
  // All `size` bytes have arrived: `whole` waits to be renamed.
  Note commit(std::uint64_t size, const Digest& expected, WholeFile& whole);

  // Where its content went on.
  [[nodiscard]] std::uint64_t began_at() const { return began_at_; }
  // What came of it is not kept for a resumed transfer.
  void forget() { writer_.go_on_from(0); }

  [[nodiscard]] std::uint64_t have() const { return writer_.have(); }

 private:
  Metadata metadata_;
  Progress& progress_;
  const WorkFor& whom_;
  FileWriter writer_;
  std::uint64_t began_at_ = 0;
  ContentDigest digest_;  // of what is there; while the sender has not said from where it goes on,
                          // of all that was found
  std::optional<Progress::Item> bar_;
};

}  // namespace stp::files
