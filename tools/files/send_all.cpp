// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/send_all.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "tools/files/failure.h"
#include "tools/files/file_reader.h"
#include "tools/files/metadata.h"
#include "tools/files/tree.h"

namespace stp::files {
namespace {

using Clock = std::chrono::steady_clock;

// Another transfer writes the file. That may be our own one of before the link was lost: until the
// receiver's host counts this one as silent, stp-recv keeps it.
struct HeldFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Counts for one argument of the command line.
struct Tally {
  // A new try begins, over a new connection: all is offered again.
  void begin_again() {
    arrived_before += files - unchanged;
    files = others = names = unchanged = 0;
    there = holes = 0;
  }
  // What an earlier try has sent is found unchanged by a later one.
  [[nodiscard]] std::size_t never_sent() const {
    return unchanged - std::min(unchanged, arrived_before);
  }

  std::size_t files = 0, others = 0;  // others: directories and symbolic links
  std::size_t names = 0;              // further ones of files
  std::size_t unchanged = 0;          // files whose content the receiver already had
  std::size_t arrived_before = 0;     // files that an earlier try has sent
  std::uint64_t sent = 0;             // bytes, of all tries
  std::uint64_t there = 0;            // bytes of other files with which their transfer went on
  std::uint64_t holes = 0;            // bytes that were told as holes: of a sparse file
  Clock::time_point began = Clock::now();
};

std::string bytes_text(const Tally& tally) {
  return rate_text(tally.sent, seconds_since(tally.began)) +
         (tally.there == 0
              ? ""
              : "; " + std::to_string(tally.there) + " bytes more were there already") +
         (tally.holes == 0 ? "" : "; " + std::to_string(tally.holes) + " bytes more are holes");
}

std::string summary(const std::string& path, const Tally& tally, bool is_tree, bool dry) {
  const auto bytes = dry ? std::to_string(tally.sent) + " bytes" : bytes_text(tally);
  const auto begin = (dry ? "would send " : "sent ") + path + ": ";
  if (!is_tree) return begin + (tally.never_sent() == 0 ? bytes : "unchanged");
  return begin + std::to_string(tally.files) + " files (" + std::to_string(tally.never_sent()) +
         " unchanged), " + (tally.names == 0 ? "" : std::to_string(tally.names) + " hard links, ") +
         std::to_string(tally.others) + " directories and symbolic links, " + bytes;
}

// Reports one line per file, and one line for all files for which there was no space. A file is
// reported once, however often it is tried.
class Complaints {
 public:
  explicit Complaints(Progress& progress) : progress_(progress) {}
  void add(const std::string& path, const std::string& why, Reason reason = Reason::kNone) {
    if (!failed_.insert(path).second) return;
    if (reason != Reason::kNoSpace || without_space_++ == 0) progress_.complain(path + ": " + why);
  }
  // A directory there is none: told once, for all that goes into it.
  void add_way(const std::string& path, const std::string& way, const std::string& why) {
    if (failed_.insert(path).second && no_ways_.insert(way).second)
      progress_.complain(way + ": " + why);
  }
  void finish() const {
    if (without_space_ > 1)
      progress_.complain(std::to_string(without_space_ - 1) +
                         " more files were not sent: the receiver has no space left");
  }
  [[nodiscard]] std::size_t count() const { return failed_.size(); }

 private:
  Progress& progress_;
  std::set<std::string> failed_, no_ways_;
  std::size_t without_space_ = 0;
};

// Files of the trees with several names, of which some are still to come.
class FilesWithNames {
 public:
  // Names are met more than once, because arguments overlap: nobody knows which one is the last.
  explicit FilesWithNames(bool overlap = false) : overlap_(overlap) {}

  // Marks the file if others of its names have come or may come.
  void mark(const struct stat& found, FileReader& file) {
    last_ = nullptr;
    if (!S_ISREG(found.st_mode) || found.st_nlink < 2) return;
    const auto [place, is_new] = files_.try_emplace({found.st_dev, found.st_ino});
    auto& known = place->second;
    // One that has changed meanwhile, or another one with the inode of one that is gone.
    const auto is_other = known.number != 0 && (known.size != found.st_size ||
                                                known.modified.tv_sec != found.st_mtim.tv_sec ||
                                                known.modified.tv_nsec != found.st_mtim.tv_nsec);
    if (is_new || is_other || known.number == 0) {
      known = {0, found.st_size, found.st_mtim, found.st_nlink - 1};
      last_ = &known;
      return file.has_names(0, true);
    }
    const auto more = overlap_ || --known.left != 0;
    file.has_names(known.number, more);
    if (!more) files_.erase(place);
  }
  // The number of the file that was marked last.
  void offered(std::uint32_t number) {
    if (last_ != nullptr) last_->number = number;
    last_ = nullptr;
  }

 private:
  struct Known {
    std::uint32_t number = 0;
    off_t size = 0;
    std::timespec modified{};
    nlink_t left = 0;
  };
  bool overlap_;
  std::map<std::pair<dev_t, ino_t>, Known> files_;
  Known* last_ = nullptr;  // one that is the first of its names
};

// Ends the display of a count, however the try ends.
struct NoCount {
  Progress& progress;
  ~NoCount() {
    progress.count(0, 0, false);
    progress.sent(0);
  }
};

// Sends all arguments of the command line, over as many connections as it takes.
class Sender {
 public:
  Sender(const Sending& sending, const std::atomic<bool>& stop, Progress& progress)
      : sending_(sending),
        stop_(stop),
        progress_(progress),
        complaints_(progress),
        pace_(sending.bytes_per_second),
        persistence_(sending.retry) {}

  std::size_t run() {
    paths_ = first_look(sending_, [this](const std::string& path, const std::string& why) {
      complaints_.add(path, why);
    });
    // Without any, no receiver is asked.
    while (!paths_.empty() && !try_once()) {
    }
    complaints_.finish();
    return complaints_.count();
  }

 private:
  // Returns false if the link was lost and another try makes sense.
  bool try_once() {
    try {
      FileLink link;
      const auto attend = [this] {
        if (stop_) throw Stopped();
      };
      const auto tell = [this](const std::string& line) {
        if (!retrying_) progress_.complain(line);
      };
      Channel channel(link, sending_.destination, attend, within(left(), sending_.patience), tell,
                      {&reserve_});
      const Progress::Watch watch(progress_, [&channel] { return channel.trouble(); });
      retrying_ = false;
      FileSender files(channel, stop_, progress_, pace_,
                       [this](const Outcome& outcome) { learn(outcome); });
      files.tell_of_more([this, &files] { persistence_.reached(files.reached() - before_); });
      offered_ = 0;
      with_names_ = FilesWithNames(sending_.hard_links && overlap(paths_));
      finished_ = sending_.trees ? 0 : next_;
      const NoCount at_the_end{progress_};
      try {
        for (; next_ != paths_.size(); ++next_, begun_ = false) send_word(files, paths_[next_]);
      } catch (const Stopped&) {
        files.tell_of_stop();
        throw;
      }
      return true;
    } catch (const HeldFile& failure) {
      if (!told_held_) complain_and_retry(failure.what());
      told_held_ = true;
      pause();
      return false;
    } catch (const FinalFailure&) {
      throw;
    } catch (const LinkFailure& failure) {
      if (!may_try_again()) throw;
      if (!retrying_) complain_and_retry(failure.what());
      retrying_ = true;
      pause();
      return false;
    }
  }

  [[nodiscard]] bool may_try_again() {
    return !stream_begun_ && persistence_.may_try_again(Clock::now());
  }

  void complain_and_retry(const std::string& why) {
    progress_.complain(why + "; trying again for " + std::to_string(sending_.retry.count()) +
                       " s (--retry)");
  }

  // As long as any other file may be retried.
  [[nodiscard]] bool may_wait_for_held() {
    if (sending_.retry.count() == 0 || stream_begun_) return false;
    if (!held_since_) held_since_ = Clock::now();
    return Clock::now() - *held_since_ < sending_.retry;
  }

  // What is left of --retry. nullopt: nothing has failed since the last progress.
  [[nodiscard]] std::optional<Clock::duration> left() const {
    const auto now = Clock::now();
    const auto of_lost = persistence_.left(now);
    if (!held_since_) return of_lost;
    const Clock::duration of_held = sending_.retry - (now - *held_since_);
    return std::min(of_lost.value_or(of_held), of_held);
  }

  // Leaves time for the last try.
  void pause() const {
    constexpr Clock::duration kPause = std::chrono::seconds(1);
    const auto half = left().value_or(kPause) / 2;
    const auto until = Clock::now() + std::clamp(half, Persistence::kLeastTry / 2, kPause);
    while (Clock::now() < until) {
      if (stop_) throw Stopped();
      std::this_thread::sleep_for(kAttention);
    }
  }

  void send_word(FileSender& files, const std::string& path) {
    before_ = files.reached();
    if (std::exchange(begun_, true)) {
      tally_.begin_again();
    } else {
      persistence_.begin_next();
      tally_ = {};
      in_the_way_.clear();
      way_is_free_ = false;
      word_failures_ = complaints_.count();
    }
    try {
      send_files_of(files, path);
    } catch (const LinkFailure& failure) {
      throw LinkFailure((path == "-" ? "standard input" : path) + " to " + sending_.destination +
                        ": " + failure.what());
    }
    const auto is_tree = sending_.trees && path != "-";
    if (!in_the_way_.empty()) {
      remove_what_is_in_the_way(files, path);
      tally_.begin_again();
      send_files_of(files, path);
    }
    if (is_tree && sending_.remove) {
      const auto tally = tally_;  // the directories are offered again
      remove_others(files, path);
      tally_ = tally;
    }
    if (is_tree || complaints_.count() == word_failures_)
      progress_.say(
          summary(path == "-" ? name_there(sending_, path) : path, tally_, is_tree, sending_.dry));
  }

  void send_files_of(FileSender& files, const std::string& path) {
    make_way(files, name_there(sending_, path));
    if (path == "-") {
      stream_begun_ = true;
      offer(files, path,
            [&] { return FileReader::stream(STDIN_FILENO, name_there(sending_, path)); });
    } else if (sending_.trees) {
      send_tree(files, path);
    } else {
      offer(files, path, [&] { return FileReader::single(path, name_there(sending_, path)); });
    }
    more_ = next_ + 1 != paths_.size();
    show_count();
    files.finish();
  }

  // Nobody knows how many there are in a tree before it was walked.
  void show_count() {
    if (sending_.trees)
      progress_.count(finished_, offered_, more_);
    else
      progress_.count(finished_, paths_.size(), false);
  }

  void send_tree(FileSender& files, const std::string& root) {
    const auto name = name_there(sending_, root);
    const Filter filter(sending_.rules, name);
    const auto visit = [&](const TreeEntry& entry) {
      offer(files, entry.path, [&] {
        auto file = FileReader::in_tree(entry);
        if (sending_.hard_links) with_names_.mark(entry.status, file);
        return file;
      });
    };
    const auto failed = [&](const std::string& path, const std::string& why) {
      complaints_.add(path, why);
    };
    if (sending_.listed)
      walk_listed(root, name, *sending_.listed, filter, visit, failed);
    else
      walk_tree(root, name, filter, visit, failed);
  }

  // Directories there, where files are here. What is met there in the second walk stays.
  void remove_what_is_in_the_way(FileSender& files, const std::string& root) {
    way_is_free_ = true;
    for (const auto& path : std::exchange(in_the_way_, {})) {
      const auto slash = path.rfind('/');
      const auto above = slash == std::string::npos ? "" : path.substr(0, slash);
      NamesToRemove name;
      name.add(std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1));
      try {
        files.remove_there(above, name);
        progress_.say("deleted " + path);
      } catch (const FileFailure& failure) {
        complaints_.add(root + " (--delete)", failure.what());
      }
    }
  }

  // After everything has arrived.
  void remove_others(FileSender& files, const std::string& root) {
    if (complaints_.count() != word_failures_)
      return progress_.complain(root + ": nothing is deleted, because not everything has arrived");
    const auto name = name_there(sending_, root);
    const Filter filter(sending_.rules, name);
    changed_.clear();
    const auto failed = [&](const std::string& path, const std::string& why) {
      complaints_.add(path, why);
    };
    try {
      if (name.empty())
        remove_others_in(files, {SourceDirectory::open(nullptr, root), "", root, ""}, filter);
      walk_tree(
          root, name, filter,
          [&](const TreeEntry& entry) {
            if (S_ISDIR(entry.status.st_mode)) remove_others_in(files, entry, filter);
          },
          failed);
    } catch (const FileFailure& failure) {
      complaints_.add(root + " (--delete)", failure.what());
    }
    files.finish();
  }

  void remove_others_in(FileSender& files, const TreeEntry& here, const Filter& filter) {
    std::vector<std::string> own;
    const auto error = here.directory ? names_in(here.at(), own) : errno;
    if (error != 0) return complaints_.add(here.path, unreadable(error).what());
    const auto below = here.path_there.empty() ? "" : here.path_there + "/";
    NamesToRemove others;
    bool all = true;
    if (changed_.starts_with(below)) changed_ = here.path_there;
    files.names_there(here.path_there, [&](const NameThere& there) {
      const auto path = below + there.name;
      // What is left out stays, and so does what no sender could have put there.
      if (std::binary_search(own.begin(), own.end(), there.name) || !accepted_path(path) ||
          filter.leaves_out(path, there.is_directory))
        return;
      all = all && others.add(there.name);
    });
    if (!others.is_empty()) remove_these(files, here, below, others);
    if (!all)
      complaints_.add(here.path + " (--delete)",
                      "the receiver has more to delete there than goes at once; send it again");
    // The removal changed its time, and perhaps its permissions, and those of what is above it.
    if (!sending_.dry && !here.path_there.empty() && changed_ == here.path_there)
      offer(files, here.path, [&] { return FileReader::in_tree(here); });
  }

  void remove_these(FileSender& files, const TreeEntry& here, const std::string& below,
                    const NamesToRemove& others) {
    if (!sending_.dry) files.remove_there(here.path_there, others);
    changed_ = here.path_there;
    others.each([&](std::string_view name) {
      progress_.say((sending_.dry ? "would delete " : "deleted ") + below + std::string(name));
    });
  }

  // The directories above a name get the usual permissions, because no entry of their own follows.
  void make_way(FileSender& files, const std::string& name) {
    const auto slash = name.rfind('/');
    if (slash == std::string::npos) return;
    const auto way = name.substr(0, slash);
    offer(files, way, [&] { return FileReader::way(way); });
  }

  // A file that fails does not stop the others. A failed link ends this try.
  template <typename Find>
  void offer(FileSender& files, const std::string& path, const Find& find) {
    try {
      auto file = find();
      if (sending_.checksum) file.ask_for_checksum();
      if (sending_.dry) file.only_ask();
      if (sending_.modes && !file.metadata().only_make) file.change_mode(*sending_.modes);
      ++offered_;
      more_ = true;
      show_count();
      with_names_.offered(files.offer(std::move(file)));
    } catch (const FileFailure& failure) {
      ++offered_;
      ++finished_;
      complaints_.add(path, failure.what());
    }
  }

  void learn(const Outcome& outcome) {
    // The receiver's last word: the file is not at fault.
    if (outcome.reason == Reason::kStopped || outcome.reason == Reason::kTimeout)
      throw LinkFailure(outcome.failure);
    ++finished_;
    show_count();
    if (outcome.error == EBUSY && may_wait_for_held())
      throw HeldFile(outcome.file.path() + ": " + outcome.failure);
    if (outcome.error == EISDIR && sending_.remove && !way_is_free_) {
      if (sending_.dry) return learn_dry_in_the_way(outcome);
      return in_the_way_.push_back(outcome.file.metadata().path);
    }
    if (outcome.way != 0)
      return complaints_.add_way(outcome.file.path(),
                                 beginning(outcome.file.metadata().path, outcome.way),
                                 outcome.failure);
    if (!outcome.failure.empty())
      return complaints_.add(outcome.file.path(), outcome.failure, outcome.reason);
    if (sending_.dry) return learn_dry(outcome);
    const auto& metadata = outcome.file.metadata();
    if (is_link(outcome)) {
      ++tally_.names;
      return;
    }
    if (metadata.kind != FileKind::kRegular) {
      if (!metadata.only_make) ++tally_.others;
      return;
    }
    if (outcome.sent != 0) {
      held_since_.reset();
      told_held_ = false;
    }
    ++tally_.files;
    if (sending_.verbose && !outcome.unchanged)
      progress_.say(outcome.file.path() + ": " + std::to_string(outcome.size) + " bytes");
    if (outcome.unchanged) ++tally_.unchanged;
    tally_.sent += outcome.sent;
    if (outcome.unchanged) return;
    tally_.there += outcome.there;
    tally_.holes += outcome.size - std::min(outcome.size, outcome.sent + outcome.there);
  }

  // It became a further name of another file, or was one.
  static bool is_link(const Outcome& outcome) {
    return outcome.file.metadata().first != 0 && outcome.unchanged;
  }

  void learn_dry_in_the_way(const Outcome& outcome) {
    progress_.say("would delete " + outcome.file.metadata().path);
    learn_dry({outcome.file, 0, outcome.file.metadata().size, 0, false, Reason::kNone, "", 0});
  }

  void learn_dry(const Outcome& outcome) {
    const auto& metadata = outcome.file.metadata();
    const auto is_file = metadata.kind == FileKind::kRegular && metadata.first == 0;
    if (is_file) {
      ++tally_.files;
      tally_.unchanged += outcome.unchanged ? 1 : 0;
      tally_.sent += outcome.unchanged ? 0 : outcome.size;
    } else if (!metadata.only_make && !outcome.unchanged) {
      ++(metadata.first != 0 ? tally_.names : tally_.others);
    }
    if (outcome.unchanged || !sending_.trees) return;
    const auto path = outcome.file.path();
    progress_.say(is_file ? "would send " + path + ": " + std::to_string(outcome.size) + " bytes"
                          : (metadata.first != 0 ? "would link " : "would make ") + path);
  }

  const Sending& sending_;
  const std::atomic<bool>& stop_;
  Progress& progress_;
  Complaints complaints_;
  Pace pace_;
  Reserve reserve_;
  Tally tally_;
  FilesWithNames with_names_;
  std::vector<std::string> in_the_way_;  // of files: directories there, which --delete removes
  bool way_is_free_ = false;
  // The directory where something was deleted last. What is below a directory comes before it.
  std::string changed_;
  std::vector<std::string> paths_;  // arguments, without those that are known to fail
  std::size_t next_ = 0;            // the first of them that is not done
  std::size_t word_failures_ = 0;
  bool begun_ = false;                      // that one
  std::size_t offered_ = 0, finished_ = 0;  // of this try, directories and links too
  bool more_ = true;                        // files will be offered
  bool retrying_ = false, stream_begun_ = false, told_held_ = false;
  std::optional<Clock::time_point> held_since_;  // nothing was sent since then
  Persistence persistence_;
  std::uint64_t before_ = 0;  // what this try had reached of earlier arguments
};

}  // namespace

std::size_t send_all(const Sending& sending, const std::atomic<bool>& stop, Progress& progress) {
  return Sender(sending, stop, progress).run();
}

}  // namespace stp::files
