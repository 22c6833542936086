// SPDX-License-Identifier: BSD-3-Clause
// A file that appears under its name complete or not at all: it is written to a hidden temporary
// beside it. Without commit() the destructor removes that, or, of a file that is to be resumed,
// keeps it for the next time. Functions give 0 or a negative errno.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "libst/os/unique_fd.h"
#include "tools/files/digest.h"
#include "tools/files/metadata.h"

namespace stp::files {

class FileWriter {
 public:
  FileWriter() = default;
  ~FileWriter() { discard(); }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // -ENOSPC here already: the file does not fit. -EBUSY: someone else resumes the same file.
  // -EEXIST: what has the temporary's name is none that this program has left.
  int open(service::UniqueFd directory, const std::string& name, const Metadata& metadata);
  // Bytes that are there from an earlier time: of a partial file, or of one that seems to be the
  // same (size and time).
  [[nodiscard]] std::uint64_t have() const { return have_; }
  // Adds them to `digest`. -ECANCELED: `stop` became true meanwhile.
  int read_back(ContentDigest& digest, const std::atomic<bool>& stop) const;
  // The content follows from there on; at most have().
  int go_on_from(std::uint64_t at);
  int append(std::span<const std::byte> bytes);
  // Durable first, then visible.
  int commit();
  void discard();

  [[nodiscard]] bool is_open() const { return static_cast<bool>(directory_); }
  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  int find_complete();
  int open_temporary();
  int refuse_size() const;
  int give_name();

  service::UniqueFd directory_;
  service::UniqueFd complete_;  // what stands under the name already, as long as it may do
  service::UniqueFd part_;
  Metadata metadata_;
  std::uint64_t have_ = 0, written_ = 0;
  std::string name_, temporary_;
};

}  // namespace stp::files
