// SPDX-License-Identifier: BSD-3-Clause
// The sending side: a connection with stp-recv, the files and directories of stp-send's command
// line, and what is wrong with that line.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/files/channel.h"
#include "tools/files/file_reader.h"
#include "tools/files/metadata.h"
#include "tools/files/note.h"
#include "tools/files/progress.h"
#include "tools/files/remover.h"
#include "tools/files/tree.h"

namespace stp::files {

// Limits the bytes per second if the user has set a limit.
class Pace {
 public:
  using Clock = std::chrono::steady_clock;

  // 0: no limit.
  explicit Pace(std::uint64_t bytes_per_second = 0) : rate_(bytes_per_second) {}

  void spend(std::uint64_t bytes) { spend(bytes, Clock::now()); }
  void spend(std::uint64_t bytes, Clock::time_point now) {
    if (rate_ == 0) return;
    const auto seconds = static_cast<double>(bytes) / static_cast<double>(rate_);
    // Unused time is not saved up: there is no burst after a pause.
    free_at_ = std::max(free_at_, now) +
               std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
  }
  // The time until more may be sent.
  [[nodiscard]] Duration to_wait() const { return to_wait(Clock::now()); }
  [[nodiscard]] Duration to_wait(Clock::time_point now) const {
    return rate_ == 0 ? Duration::zero() : std::max(free_at_ - now, Duration::zero());
  }

 private:
  std::uint64_t rate_;
  Clock::time_point free_at_{};
};

// For how long a lost link or receiver is tried again: from its loss on, and anew after progress.
// What a try sends once more is none: or a receiver that is lost again and again, each time at the
// same place, would be tried for ever.
class Persistence {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration kLeastTry = std::chrono::milliseconds(100);

  // 0: nothing is tried again.
  explicit Persistence(std::chrono::seconds patience) : patience_(patience) {}

  // The receiver has so much of the argument that is sent, as far as this try knows.
  void reached(std::uint64_t much) {
    if (much <= most_) return;
    most_ = much;
    lost_.reset();
  }
  // Of the next argument it has nothing.
  void begin_next() { most_ = 0; }
  // Something was lost.
  [[nodiscard]] bool may_try_again(Clock::time_point now) {
    if (!lost_) lost_ = now;
    return *left(now) >= kLeastTry;
  }
  // What tries still get. nullopt: nothing was lost since the last progress.
  [[nodiscard]] std::optional<Clock::duration> left(Clock::time_point now) const {
    if (!lost_) return std::nullopt;
    return std::max<Clock::duration>(patience_ - (now - *lost_), Clock::duration::zero());
  }

 private:
  const std::chrono::seconds patience_;
  std::optional<Clock::time_point> lost_;  // since the last progress
  std::uint64_t most_ = 0;
};

// For a try that gets no more than what is `left`. nullopt: it gets its usual time.
inline Channel::Patience within(std::optional<Persistence::Clock::duration> left,
                                Channel::Patience usual) {
  if (!left) return usual;
  const auto most = std::max(*left, Persistence::kLeastTry);
  return {std::min(usual.receiver, most), std::min(usual.host, most)};
}

// The result of one file.
struct Outcome {
  const FileReader& file;
  std::uint64_t sent = 0;   // bytes of content, what the receiver had already left out
  std::uint64_t size = 0;   // also of a stream
  std::uint64_t there = 0;  // bytes with which the transfer went on
  bool unchanged = false;   // the receiver had all of it
  Reason reason = Reason::kNone;
  std::string failure;    // "": the receiver has it
  int error = 0;          // errno at the receiver, where there is one
  std::uint64_t way = 0;  // so many names of its path there lead to what is no directory; 0: all do
};

class FileSender {
 public:
  // Timeout without progress, after which the receiver counts as gone...
  static constexpr Duration kPatience = std::chrono::seconds(60);
  // ...but its disk may take longer to read existing files, or to write the rest at the end.
  static constexpr Duration kDiskPatience = std::chrono::minutes(10);

  using Report = std::function<void(const Outcome&)>;

  FileSender(Channel& channel, const std::atomic<bool>& stop, Progress& progress, Pace& pace,
             Report report)
      : channel_(channel),
        stop_(stop),
        progress_(progress),
        pace_(pace),
        report_(std::move(report)),
        most_packed_(std::min(kMostPacked, channel.content_room() - kPackHead)) {}

  // A signal ends this program: the receiver is told why no more comes, if it takes that at once.
  void tell_of_stop();
  // Calls `tell` when the receiver has more than before: see reached().
  void tell_of_more(std::function<void()> tell) { more_ = std::move(tell); }
  // Of the files that are done one more than their bytes each, of the one under way what has been
  // delivered.
  [[nodiscard]] std::uint64_t reached() const { return done_ + delivered_; }

  // Queues the file, and returns its number. Both throw LinkFailure, Stopped.
  std::uint32_t offer(FileReader file);
  // Waits until every offered file has been reported.
  void finish();
  // Both wait for the answer, and want that nothing is under way. FileFailure: the receiver
  // refuses. Visits what is in a directory there; nothing if it is missing. Names are not kept.
  using Visit = std::function<void(const NameThere&)>;
  void names_there(const std::string& path, Visit visit);
  // Removes names in a directory there, with all that they hold.
  void remove_there(const std::string& path, const NamesToRemove& names);

 private:
  enum class State : std::uint8_t { kOffered, kWanted, kSent, kOver };
  struct Entry {
    FileReader file;
    State state = State::kOffered;
    std::uint64_t have = 0, sent = 0, size = 0;
    std::uint64_t from = 0;     // where the content began
    Digest digest{};            // of what the receiver has
    std::uint64_t to_come = 0;  // of its bytes, of which the receiver has said how much room it has
  };

  // Works, and waits for more work, until `enough` is true.
  void work_until(const std::function<bool()>& enough);
  // Does one step that needs no answer. False: there is none.
  bool work();
  // Handles messages of the receiver; waits if there are none. True: a message came.
  bool hear(Duration wait);
  void heard(const Note& note);
  void wanted(std::uint32_t number, const Note& note);
  void over(std::uint32_t number, Reason reason, const std::string& failure, int error = 0,
            std::uint64_t way = 0);
  void let_go();
  void is_sent(Entry& entry);
  void compare_with_room(Entry& entry, std::uint64_t room);
  void came(Entry& entry, std::uint64_t bytes);

  void send(std::uint32_t number);
  void only_compare(std::uint32_t number);
  void send_as_it_is(std::uint32_t number, bool again);
  void tell_of_change(std::uint32_t number);
  void send_packed(std::uint32_t number);
  void send_alone(std::uint32_t number);
  std::uint64_t choose_start(Entry& entry, ContentDigest& digest);
  std::uint64_t send_content(std::uint32_t number, std::uint64_t from, ContentDigest& digest,
                             Progress::Item& bar);
  void send_hole(std::uint32_t number, std::uint64_t length, ContentDigest& digest);
  void give_up(std::uint32_t number, const std::string& failure);
  std::span<std::byte> await_buffer();
  void send_offers();
  void send_pack();
  void say(NoteKind kind, std::uint32_t file, std::uint64_t have, const Digest& digest);
  void send_control(MessageTag tag, std::span<const std::byte> bytes);
  void look_at_way();
  void has_more(std::uint64_t done, std::uint64_t delivered);
  [[nodiscard]] std::string why_failed(const Note& note);
  Entry* find(std::uint32_t number);
  [[nodiscard]] Duration patience() const;
  void check_stop() const;

  void await_answer();
  void heard_names(std::span<const std::byte> message);

  Channel& channel_;
  const std::atomic<bool>& stop_;
  Progress& progress_;
  Pace& pace_;
  const Report report_;
  const std::size_t most_packed_;
  std::deque<Entry> entries_;
  std::uint32_t first_ = 1;  // the number of the first one of them
  std::size_t entry_bytes_ = 0;
  std::size_t offered_ = 0;       // not answered yet...
  std::size_t offered_late_ = 0;  // ...of which these may be answered only when settled
  std::size_t sent_ = 0;          // not answered since
  std::size_t unsettled_ = 0;     // sent, and the receiver was not asked to settle since
  std::deque<std::uint32_t> wanted_;
  std::vector<std::byte> offers_;  // that were not sent yet
  std::span<std::byte> pack_;      // a buffer, and how much of it is filled
  std::size_t packed_ = 0;
  std::uint64_t to_come_ = 0;  // of all entries
  std::uint64_t done_ = 0, delivered_ = 0;
  std::function<void()> more_;
  bool told_room_ = false;
  bool told_stuck_ = false;  // since something arrived
  std::string way_;          // what was told then; "": nothing
  bool input_is_silent_ = false;
  // Of the receiver's directory.
  bool asked_ = false;          // an answer is to come
  std::optional<Note> answer_;  // there it is
  Visit visit_;                 // the names before it
  std::size_t name_room_ = 0;   // memory that they may still take
};

struct Sending {
  std::vector<std::string> paths;  // "-": standard input
  std::string destination;
  bool trees = false;       // directories with all that they hold
  bool checksum = false;    // what the receiver has is the same only if its content is
  bool dry = false;         // only says what would be sent
  bool remove = false;      // what a tree does not have is removed at the receiver
  bool hard_links = false;  // further names of a file are sent as such, not as files
  bool verbose = false;     // a line for each file that is sent
  std::vector<FilterRule> rules;
  std::optional<std::vector<std::string>> listed;  // what of the only tree is sent
  std::string into;                                // directory below that of the receiver
  std::optional<ModeChanges> modes;
  // At the receiver: of standard input where that is sent, else of the only argument.
  std::optional<std::string> name;
  std::uint64_t bytes_per_second = 0;  // 0: no limit
  std::chrono::seconds retry{0};       // for so long without progress a lost link is tried again;
                                       // a try ends with it that has not found the receiver by then
  Channel::Patience patience;          // with the receiver, until it accepts
};

// Returns the number of files that did not arrive; it has reported each. Throws LinkFailure and
// Stopped. `sending` has no conflicts, and no two names are the same (below).
std::size_t send_all(const Sending& sending, const std::atomic<bool>& stop, Progress& progress);

// ---- What can be known of the arguments of stp-send before a receiver is asked (arguments.cpp).

// Options of stp-send that contradict each other, or would have no effect.

// What is wrong, and the remedy; "": nothing. `filters`: which of --exclude, --include and
// --exclude-from were given, in that order. No file is looked at.
std::string conflict_of(const Sending& sending, const std::vector<std::string>& filters,
                        bool quiet);

// The names that the arguments of stp-send get at the receiver.

// Standard input is one of the arguments.
bool has_stream(const Sending& sending);
// The name of one argument, with the directory that --into names. Empty: the root of a tree whose
// content arrives without a prefix (".").
std::string name_there(const Sending& sending, const std::string& path);
// One of the arguments is, or lies below, another one.
bool overlap(const std::vector<std::string>& paths);
// Throws std::runtime_error where two arguments would arrive under one name.
void check_names(const Sending& sending);

// Calls `failed` for each argument that is missing, cannot be opened, or is nothing that is sent,
// and for each such path that --files-from lists. Returns the other arguments. What directories
// hold is not looked at.
std::vector<std::string> first_look(const Sending& sending, const Failed& failed);

}  // namespace stp::files
