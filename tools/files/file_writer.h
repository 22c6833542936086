// SPDX-License-Identifier: BSD-3-Clause
// A file that appears under its name complete or not at all. It is written to a hidden temporary
// file beside it, and a Batch renames it. Without finish(), the destructor removes the temporary,
// or keeps it for the next time if the file is to be resumed. Functions return 0 or a negative
// errno.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "libst/os/unique_fd.h"
#include "tools/files/batch.h"
#include "tools/files/digest.h"
#include "tools/files/directory.h"
#include "tools/files/metadata.h"
#include "tools/files/turns.h"

namespace stp::files {

class FileWriter {
 public:
  FileWriter() = default;
  ~FileWriter() { discard(); }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // -ENOSPC: the file does not fit on the disk. -EBUSY: another process resumes the same file.
  // -EEXIST: a file that this program did not make has the temporary's name.
  int open(Directory directory, const std::string& name, const Metadata& metadata);
  // Writes to a descriptor as the bytes come; there is no name.
  int open_sink(int fd, const Metadata& metadata);
  // Bytes that exist already: of a partial file, or of a file that seems to be the same (by its
  // size and time, or with `checksum` by its size and digest).
  [[nodiscard]] std::uint64_t have() const { return have_; }
  // Adds them to `digest`. Takes turns with the work for other senders: with holes there may be
  // terabytes. -ECANCELED: `whom` needs it no more.
  int read_back(ContentDigest& digest, const WorkFor& whom) const;
  // The content continues from this offset, which is at most have().
  int go_on_from(std::uint64_t at);
  int append(std::span<const std::byte> bytes);
  // Leaves a hole; a sink gets zeros, as long as `attend` returns true.
  int skip(std::uint64_t length, const Turns::Attend& attend);
  // Sets permissions and time. The file is then ready to be renamed.
  int finish(WholeFile& file);
  void discard();

  [[nodiscard]] bool is_open() const { return is_sink_ || directory_; }
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  int find_complete();
  int open_temporary();
  int open_part();

  Directory directory_;
  service::UniqueFd complete_;  // what stands under the name already, as long as it may do
  service::UniqueFd part_;
  bool is_sink_ = false;
  Metadata metadata_;
  std::uint64_t have_ = 0, written_ = 0;
  std::string name_, temporary_;
};

// A file all of whose content is there.
int write_whole(Directory directory, const std::string& name, const Metadata& metadata,
                std::span<const std::byte> content, WholeFile& file);

// An earlier transfer has left a part of that file.
bool has_part(int directory, const std::string& name);

}  // namespace stp::files
