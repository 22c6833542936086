// SPDX-License-Identifier: BSD-3-Clause
#include "tools/files/send_all.h"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>
#include <thread>

#include "stp/base/printable.h"
#include "tools/files/failure.h"
#include "tools/files/file_reader.h"
#include "tools/files/file_sender.h"
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
  std::size_t files = 0, others = 0;  // others: directories and symbolic links
  std::size_t unchanged = 0;          // files whose content the receiver already had
  std::uint64_t sent = 0;             // bytes
  Clock::time_point began = Clock::now();
};

std::string summary(const std::string& path, const Tally& tally) {
  return "sent " + printable(path) + ": " + std::to_string(tally.files) + " files (" +
         std::to_string(tally.unchanged) + " unchanged), " + std::to_string(tally.others) +
         " directories and links, " + rate_text(tally.sent, seconds_since(tally.began));
}

// Reports one line per file, and one line for all files for which there was no space. A file is
// reported once, however often it is tried.
class Complaints {
 public:
  explicit Complaints(Progress& progress) : progress_(progress) {}
  void add(const std::string& path, const std::string& why, Reason reason = Reason::kNone) {
    if (!failed_.insert(path).second) return;
    if (reason != Reason::kNoSpace || without_space_++ == 0)
      progress_.complain(printable(path) + ": " + why);
  }
  void finish() const {
    if (without_space_ > 1)
      progress_.complain(std::to_string(without_space_ - 1) +
                         " more files were not sent: the receiver has no space left");
  }
  [[nodiscard]] std::size_t count() const { return failed_.size(); }

 private:
  Progress& progress_;
  std::set<std::string> failed_;
  std::size_t without_space_ = 0;
};

// Sends all arguments of the command line, over as many connections as it takes.
class Sender {
 public:
  Sender(const Sending& sending, const std::atomic<bool>& stop, Progress& progress)
      : sending_(sending),
        stop_(stop),
        progress_(progress),
        complaints_(progress),
        pace_(sending.bytes_per_second) {}

  std::size_t run() {
    while (!try_once()) {
    }
    complaints_.finish();
    return complaints_.count();
  }

 private:
  // Returns false if the link was lost and another try makes sense.
  bool try_once() {
    try {
      Link link;
      const auto attend = [this] {
        if (stop_) throw Stopped();
      };
      Channel channel(link, sending_.destination, attend, sending_.connect_timeout);
      retrying_ = false;
      since_ = Clock::now();
      FileSender files(channel, stop_, progress_, pace_,
                       [this](const Outcome& outcome) { learn(outcome); });
      for (; next_ != sending_.paths.size(); ++next_) send_word(files, sending_.paths[next_]);
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

  [[nodiscard]] bool may_try_again() const {
    return sending_.retry.count() != 0 && !stream_begun_ && Clock::now() - since_ < sending_.retry;
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

  void pause() const {
    constexpr auto kPause = std::chrono::seconds(1);
    for (const auto until = Clock::now() + kPause; Clock::now() < until;) {
      if (stop_) throw Stopped();
      std::this_thread::sleep_for(kAttention);
    }
  }

  void send_word(FileSender& files, const std::string& path) {
    tally_ = {};
    word_failures_ = complaints_.count();
    try {
      send_files_of(files, path);
    } catch (const LinkFailure& failure) {
      throw LinkFailure(printable(path) + ": " + failure.what());
    }
    if (sending_.trees && path != "-")
      progress_.say(summary(path, tally_));
    else if (complaints_.count() == word_failures_)
      progress_.say("sent " + printable(path) + ": " +
                    (tally_.unchanged != 0 ? std::string("unchanged")
                                           : rate_text(tally_.sent, seconds_since(tally_.began))));
  }

  void send_files_of(FileSender& files, const std::string& path) {
    if (path == "-") {
      stream_begun_ = true;
      offer(files, path, [&] { return FileReader::stream(STDIN_FILENO, sending_.stream_name); });
    } else if (sending_.trees) {
      send_tree(files, path);
    } else {
      offer(files, path, [&] { return FileReader::single(path); });
    }
    files.finish();
  }

  void send_tree(FileSender& files, const std::string& root) {
    walk_tree(
        root, Exclude(sending_.exclude, base_name(root)),
        [&](const TreeEntry& entry) {
          offer(files, entry.path, [&] { return FileReader::in_tree(entry); });
        },
        [&](const std::string& path, const std::string& why) { complaints_.add(path, why); });
  }

  // A file that fails does not stop the others. A failed link ends this try.
  template <typename Find>
  void offer(FileSender& files, const std::string& path, const Find& find) {
    try {
      auto file = find();
      if (sending_.checksum) file.ask_for_checksum();
      files.offer(std::move(file));
    } catch (const FileFailure& failure) {
      complaints_.add(path, failure.what());
    }
  }

  void learn(const Outcome& outcome) {
    since_ = Clock::now();
    if (outcome.error == EBUSY && may_wait_for_held())
      throw HeldFile(printable(outcome.file.path()) + ": " + outcome.failure);
    if (!outcome.failure.empty())
      return complaints_.add(outcome.file.path(), outcome.failure, outcome.reason);
    if (outcome.file.metadata().kind != FileKind::kRegular) {
      ++tally_.others;
      return;
    }
    if (outcome.sent != 0) {
      held_since_.reset();
      told_held_ = false;
    }
    ++tally_.files;
    if (outcome.sent == 0 && outcome.size != 0) ++tally_.unchanged;
    tally_.sent += outcome.sent;
  }

  const Sending& sending_;
  const std::atomic<bool>& stop_;
  Progress& progress_;
  Complaints complaints_;
  Pace pace_;
  Tally tally_;
  std::size_t next_ = 0;  // the first argument that is not done
  std::size_t word_failures_ = 0;
  bool retrying_ = false, stream_begun_ = false, told_held_ = false;
  std::optional<Clock::time_point> held_since_;  // nothing was sent since then
  Clock::time_point since_ = Clock::now();       // of the last progress
};

}  // namespace

std::size_t send_all(const Sending& sending, const std::atomic<bool>& stop, Progress& progress) {
  return Sender(sending, stop, progress).run();
}

}  // namespace stp::files
