// SPDX-License-Identifier: BSD-3-Clause
// A file on the receiver's disk: how it appears complete or not at all, and the steps in which it
// comes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "libst/os/unique_fd.h"
#include "tools/files/batch.h"
#include "tools/files/digest.h"
#include "tools/files/directory.h"
#include "tools/files/metadata.h"
#include "tools/files/note.h"
#include "tools/files/progress.h"
#include "tools/files/turns.h"

namespace stp::files {

// A file that appears under its name complete or not at all. It is written to a hidden temporary
// file beside it, and a Batch renames it. Without finish(), the destructor removes the temporary,
// or keeps it for the next time if the file is to be resumed. Functions return 0 or a negative
// errno.
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

// The note for a negative errno; 0: no error.
Note result_of(int error);
Note because(Reason reason);

// The disk side of a file that the receiver gets piece by piece: open it, write its bytes in order,
// then check the sender's digest. Each step returns its result as a Note.
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

// A second thread for work that two can do at once.
class Helper {
 public:
  Helper() = default;
  ~Helper();
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  // Calls `work` in this thread, and at the same time in the other one, unless that comes too late.
  // Returns when no call is under way. `work` takes its pieces itself, and must not throw.
  void share(const std::function<void()>& work);

 private:
  void run();

  std::mutex mutex_;  // of the following
  std::condition_variable changed_;
  const std::function<void()>* offered_ = nullptr;
  bool busy_ = false, end_ = false;
  std::thread thread_;
};

struct SmallFile {
  Packed packed;
  const Metadata* metadata = nullptr;
  const std::string* name = nullptr;
  Directory directory;
  Note result;     // a reason at the start: not to be written
  WholeFile file;  // if there is no reason in `result`
};

// Writes small files that came in packs, each whole. Two threads write them.
class SmallFiles {
 public:
  // Each holds a descriptor until it is in a batch.
  void write(std::span<SmallFile> files);

 private:
  Helper helper_;
};

}  // namespace stp::files
