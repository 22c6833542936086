// SPDX-License-Identifier: BSD-3-Clause
// The disk side of all files that one sender offers. Bounds limit what a sender may have under way:
// files, their names, open descriptors.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/files/batch.h"
#include "tools/files/directory.h"
#include "tools/files/file_writer.h"
#include "tools/files/metadata.h"
#include "tools/files/note.h"
#include "tools/files/progress.h"
#include "tools/files/turns.h"

namespace stp::files {

// The files of one sender that get further names (hard links) at the receiver. A sender can name
// only what it has sent over this connection, or what was found to be the same; the inode is
// compared, because others may write to the directory meanwhile.
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

class IncomingFiles {
 public:
  using Answer = std::function<void(const Note&)>;

  // `answer` sends a note to the sender. `settled`, called from another thread: call collect().
  // Once `stop` is true, no further offer is looked at. `whom`: for whom existing files are read.
  IncomingFiles(const std::string& root, Progress& progress, const std::atomic<bool>& stop,
                WorkFor whom, Answer answer, std::function<void()> settled,
                const Descriptors& most = {});

  // The content of the first file goes to this descriptor as it comes; further files are refused.
  void write_to(int fd) { sink_ = fd; }

  // False: the sender breaks the rules; ignore it from now on.
  [[nodiscard]] bool offers(std::span<const std::byte> message);
  [[nodiscard]] bool pack(std::span<const std::byte> message);
  [[nodiscard]] bool changed(std::span<const std::byte> message);
  [[nodiscard]] bool told(const Note& note);
  // Content of the file that kGo named. If that file has failed meanwhile, the content is skipped.
  void content(std::span<const std::byte> bytes);
  // Begins to sync and rename all complete files in another thread.
  void begin_to_settle();
  // Answers the files for which that has been done.
  void collect();
  // Syncs, renames and answers all complete files.
  void settle();
  // Settles, and tells the sender why a file whose content is coming stops. True: there was one.
  bool end(Reason reason);
  // Log lines about the files of which it is certain only now that they do not come, and one about
  // those that were left out because space was short.
  void complain_of_the_rest();

  // The sender reads its files to compare them with those that exist here.
  [[nodiscard]] bool is_compared() const { return compared_ > (under_way_ != 0 ? 1U : 0U); }
  // The disk is busy with files that came, and the sender may be waiting for it.
  [[nodiscard]] bool is_settling() const { return settler_.is_busy(); }
  // The path of the file whose content is coming; empty: none.
  [[nodiscard]] std::string name_under_way() const;
  [[nodiscard]] unsigned files() const { return files_; }
  // Files that did not come: one that came when it was offered again is none of them.
  [[nodiscard]] unsigned failures() const {
    return static_cast<unsigned>(failed_.size()) + failed_unnamed_;
  }

 private:
  enum class State : std::uint8_t { kOffered, kWanted, kWritten, kName, kLast, kOver };
  struct Offer {
    Metadata metadata;
    std::vector<std::string> path;
    State state = State::kOffered;
    std::unique_ptr<IncomingFile> file;
    std::size_t size = 0;  // of what it adds to kMostOfferedBytes
  };
  // The log line about a file, until the file is settled.
  struct Told {
    std::string name;
    std::uint64_t bytes = 0, was_there = 0;
    bool arrived = false;  // its content came
  };

  Offer* find(std::uint32_t number);
  [[nodiscard]] std::uint32_t number_after_all() const;
  // Handles new offers, in order, and drops those that are finished.
  void advance();
  void look_at(std::uint32_t number, Offer& offer);
  void look_at_file(std::uint32_t number, Offer& offer, const Directory& directory);
  void look_at_for_sink(std::uint32_t number, Offer& offer);
  void look_at_dry(std::uint32_t number, Offer& offer);
  bool may_be_unchanged(std::uint32_t number, const Metadata& metadata, int directory,
                        bool same_size);
  Note open_to_compare(Offer& offer, const Directory& directory);
  void look_at_link(std::uint32_t number, Offer& offer, const Directory& directory);
  [[nodiscard]] bool add_name(std::uint32_t number, Offer& offer);
  bool give_name(std::uint32_t number, Offer& offer, const LinkedFiles::File& file,
                 const Directory& directory);
  void write(std::vector<SmallFile>& files);
  void pack_into_sink(std::uint32_t number, Offer& offer, const Packed& packed);
  void finish_directory(std::uint32_t number, Offer& offer);
  Note open(Offer& offer);
  void want(std::uint32_t number, Offer& offer, Note note);
  void go(std::uint32_t number, Offer& offer, std::uint64_t at);
  void commit(std::uint32_t number, Offer& offer, const Note& note);
  void abandon(std::uint32_t number, Offer& offer);
  void whole(std::uint32_t number, Offer& offer, WholeFile file, std::uint64_t was_there);
  void over(Offer& offer);
  void done(std::uint32_t number);
  void fail(std::uint32_t number, Offer& offer, Note note);
  void fail(std::uint32_t number, const std::string& name, Note note);
  void refuse(std::uint32_t number, Note note);
  void flush_done();
  void settle_in_time();
  void report(const Batch& batch);
  void say_lines();

  Progress& progress_;
  const std::atomic<bool>& stop_;
  const WorkFor whom_;
  const Answer answer_;
  const Descriptors most_;
  DirectoriesBelow directories_;
  std::deque<Offer> offers_;
  std::uint32_t first_ = 1;    // number of the first one of them
  std::uint32_t to_look_ = 1;  // of the first that was not looked at
  std::size_t offered_bytes_ = 0;
  std::size_t compared_ = 0;  // those that have a file: what is there is compared, or content comes
  std::uint32_t under_way_ = 0;   // the file whose content comes
  bool asked_to_settle_ = false;  // and no offers came since
  int sink_ = -1;
  bool sink_taken_ = false;
  std::unique_ptr<Batch> batch_ = std::make_unique<Batch>(most_);  // not settled yet
  std::map<std::uint32_t, Told> told_;
  LinkedFiles linked_;
  Note done_;  // have == 0: none
  std::string lines_;
  // By their names as printed: what is to be said in the end, or "". Only so many are known by
  // name.
  static constexpr std::size_t kMostFailed = 4'096;
  std::map<std::string, std::string> failed_;
  unsigned files_ = 0, failed_unnamed_ = 0, without_space_ = 0;
  Settler settler_;
  SmallFiles small_files_;
};

}  // namespace stp::files
