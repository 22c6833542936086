// SPDX-License-Identifier: BSD-3-Clause
// The receiving side, from the bottom up: a file on the disk, all files that one sender offers, one
// connection with stp-send, and the threads that serve all of them.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "libst/managed/host_of_peer.h"
#include "libst/os/unique_fd.h"
#include "stp/base/mutex.h"
#include "tools/files/batch.h"
#include "tools/files/channel.h"
#include "tools/files/depth.h"
#include "tools/files/directory.h"
#include "tools/files/metadata.h"
#include "tools/files/note.h"
#include "tools/files/progress.h"
#include "tools/files/receiver.h"

namespace stp::files {

// Long work that a receiver does for its senders, such as reading what is there of their files. It
// is done in short slices, for a few senders at a time, so that processors are left for others. The
// hosts that wait have a slice in turn, however many senders each has.
class Turns {
 public:
  using Clock = std::chrono::steady_clock;
  // Called between slices and while the work waits for one. Work ends when it returns false, or
  // throws.
  using Attend = std::function<bool()>;
  // Half of the processors, and one at least.
  static unsigned usual();

  explicit Turns(unsigned at_once = usual(), Clock::duration slice = std::chrono::milliseconds(20));

  class Work;

 private:
  struct Host {
    unsigned works = 0;
    std::uint64_t had = 0;  // number of its last slice
  };
  [[nodiscard]] const Work* next() const STP_REQUIRES(mutex_);

  const Clock::duration slice_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  unsigned free_ STP_GUARDED_BY(mutex_);
  std::uint64_t slices_ STP_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Host> hosts_ STP_GUARDED_BY(mutex_);  // that have work
  std::list<const Work*> waiting_ STP_GUARDED_BY(mutex_);     // in the order in which they came
};

// For whom work is done.
struct WorkFor {
  Turns& turns;
  std::string host;
  Turns::Attend attend;
};

class Turns::Work {
 public:
  explicit Work(const WorkFor& whom);  // which must outlive it
  ~Work();
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  // Before each piece of the work: waits for a slice if the last one is used up. A piece takes a
  // few milliseconds at most. False: the work ends.
  [[nodiscard]] bool go_on();

 private:
  friend class Turns;
  void stop() STP_REQUIRES(turns_.mutex_);
  [[nodiscard]] bool await_slice();

  const WorkFor& whom_;
  Turns& turns_;
  Host* host_ = nullptr;
  bool has_slice_ = false;
  Clock::time_point began_;
};

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

  [[nodiscard]] std::uint64_t written() const { return written_; }

 private:
  int find_complete();
  int open_temporary();
  int open_part();

  Directory directory_;
  os::UniqueFd complete_;  // what stands under the name already, as long as it may do
  os::UniqueFd part_;
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

  Mutex mutex_;
  std::condition_variable_any changed_;
  const std::function<void()>* offered_ STP_GUARDED_BY(mutex_) = nullptr;
  bool busy_ STP_GUARDED_BY(mutex_) = false;
  bool end_ STP_GUARDED_BY(mutex_) = false;
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

// What begins a line about a sender.
std::string from_station(const std::string& station);

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
  // Names the sender in lines about files that do not come; "": nobody knows it.
  void come_from(const std::string& station) { from_ = from_station(station); }

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
  // Settles, and tells the sender why nothing more is received: of the file whose content is
  // coming, else of the first that was offered and has not come.
  void end(Reason reason, int error = 0);
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
  // Its number; 0: all have come, or will not.
  [[nodiscard]] std::uint32_t first_that_is_missing() const;
  [[nodiscard]] std::uint32_t number_after_all() const;
  // Handles new offers, in order, and drops those that are finished.
  void advance();
  void look_at(std::uint32_t number, Offer& offer);
  void look_at_file(std::uint32_t number, Offer& offer, const Directory& directory);
  void look_at_for_sink(std::uint32_t number, Offer& offer);
  [[nodiscard]] Note no_way(std::span<const std::string> names, int error) const;
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
  void want_all(std::uint32_t number, Offer& offer, int directory, bool replaces);
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
  void complain(const std::string& line) { progress_.complain(from_ + line); }

  Progress& progress_;
  std::string from_;
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
  std::vector<std::string> lines_;
  // By their names: what is to be said in the end, or "". Only so many are known by name.
  static constexpr std::size_t kMostFailed = 4'096;
  std::map<std::string, std::string> failed_;
  unsigned files_ = 0, failed_unnamed_ = 0, without_space_ = 0;
  std::string told_way_;  // to a directory: that something else is there was said last
  Settler settler_;
  SmallFiles small_files_;
};

// Settings that all connections of a receiver share.
struct ReceiverContext {
  std::string directory;
  Progress& progress;
  const std::atomic<bool>& stop;
  // Timeout: a sender that is silent for so long loses its connection...
  Duration idle_timeout = std::chrono::seconds(60);
  // ...and when others wait for its place, already after this long.
  Duration idle_under_pressure = std::chrono::seconds(5);
  std::size_t most_senders = 16;  // at once; further ones wait for their turn
  bool to_stdout = false;         // one file, the content of which goes there as it comes
  std::size_t most_per_peer = 8;  // of one address; further ones are refused
  Descriptors descriptors{};      // of each sender
  bool allow_delete = false;      // a sender may list and remove what is there
  Turns turns{};                  // of long work for senders
  Reserve reserve{};              // of memory for long paths
};

// Why a sender is to leave its place to another one.
enum class Leave : std::uint8_t {
  kNo,
  kSilent,
  kCompares,  // it is silent because it waits for our work
  kSlow,
};
// For the log line about that sender, which names it.
std::string text_of(Leave why);

// One sender, as seen by the thread that assigns the places. Both threads read and write it.
struct Presence {
  [[nodiscard]] Duration silence() const { return now() - Duration(heard); }
  // Nor was work done for it, of which it has to wait for the end.
  [[nodiscard]] Duration idleness() const {
    return now() - std::max(Duration(heard), Duration(worked));
  }
  void hear(std::size_t size = 0) {
    heard = now().count();
    bytes += size;
  }
  void work() { worked = now().count(); }
  static Duration now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  std::atomic<Duration::rep> heard{now().count()}, worked{0};
  std::atomic<std::uint64_t> bytes{0};  // of its messages
  std::atomic<Leave> leave{Leave::kNo};
};

// One of the senders that have places, when another one waits.
struct Placed {
  std::string host;
  Duration silence{}, idleness{}, age{};
  std::uint64_t bytes = 0;
};
// One that waits for a place.
struct Newcomer {
  std::string host;
  Duration waits{};
};
// One that loses its place.
struct Leaver {
  std::size_t number = 0;
  Leave why = Leave::kNo;
  bool operator==(const Leaver&) const = default;
};
// Which of them loses its place: the most silent one, or who is slow on purpose would keep its
// place for ever: the slowest one of a host with more than its share of the places, if that of the
// newcomer has less, and at least two places fewer, who has waited twice as long as a silent one
// would keep its place.
std::optional<Leaver> who_gives_way(const std::vector<Placed>& placed, const Newcomer& newcomer,
                                    Duration patience);
// Whose turn is next, by its number: of those hosts that have the fewest places, who waits longest.
// `waiting` is in the order in which they came, and is not empty.
std::size_t next_of(const std::vector<std::string>& waiting,
                    const std::vector<std::string>& placed);
// Who has to go when too many wait: of the host that has most places and waits for most, the
// newest.
std::size_t one_too_many(const std::vector<std::string>& waiting,
                         const std::vector<std::string>& placed);

// The receiving side of one connection between stp-send and stp-recv.
class FileReceiver {
 public:
  // Not for a sender that compares existing files: its disk may take longer.
  static constexpr Duration kDiskPatience = std::chrono::minutes(10);

  // `station` of the sender: as stm_peer_query() names it.
  FileReceiver(Channel& channel, ReceiverContext& context, Presence& presence,
               const std::string& station)
      : channel_(channel),
        context_(context),
        presence_(presence),
        files_(
            context.directory, context.progress, context.stop,
            WorkFor{context.turns, managed::host_of_station(station), [this] { return attend(); }},
            [this](const Note& note) { say(note); }, [this] { channel_.wake(); },
            context.descriptors) {
    files_.come_from(station);
    if (context.to_stdout) files_.write_to(STDOUT_FILENO);
  }

  // Runs until the sender closes the connection. Throws LinkFailure, Stopped.
  void serve();
  [[nodiscard]] unsigned files() const { return files_.files(); }
  [[nodiscard]] unsigned failures() const { return files_.failures() + broken_; }

 private:
  void serve_messages();
  void await(Message& message);
  // During long work. False: the program is to stop.
  [[nodiscard]] bool attend();
  [[nodiscard]] Duration patience() const;
  void look_at_way(Duration silence);
  void leave_if_asked();
  [[noreturn]] void give_up(Reason reason, const std::string& why, int error = 0);
  // False: the message is not one of ours.
  [[nodiscard]] bool handle(const Message& message);
  [[nodiscard]] bool told(const Note& note);
  void read_last_words();
  void list(std::span<const std::byte> path);
  // False: as of handle().
  [[nodiscard]] bool remove(std::span<const std::byte> message);
  Note reason_against_removal(std::span<const std::byte> path, Directory& directory) const;
  void say(const Note& note);
  void flush();

  Channel& channel_;
  ReceiverContext& context_;
  Presence& presence_;
  std::string way_;                 // what is wrong with the way to the sender, while it is silent
  bool has_looked_ = false;         // in this silence
  std::vector<std::byte> answers_;  // that were not sent yet
  IncomingFiles files_;
  bool sender_stopped_ = false;  // as it has said
  unsigned broken_ = 0;          // connections that broke before their sender had finished
};

// Whether a host has more than its share of the places, if another sender waits for one. `hosts`:
// who has each place. `newcomer`: the host of who waits.
bool has_more_than_its_share(const std::vector<std::string>& hosts, const std::string& host,
                             const std::string& newcomer);

// Serves every sender that connects, each in a thread of its own.
class Receiver {
 public:
  Receiver(const std::string& address, ReceiverContext& context);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Runs until the program must stop, or with `once` until the first sender has been served. True:
  // every file that any sender began has arrived.
  bool run(bool once);

 private:
  struct Place {
    explicit Place(std::string who)
        : station(std::move(who)), host(managed::host_of_station(station)) {}
    const std::string station;  // as stm_peer_query() names it
    const std::string host;
    std::thread thread;
    std::atomic<bool> done{false};
    Presence presence;
    const Duration since = Presence::now();
  };
  struct Waiting {
    stm_connection_t request;
    std::string station;  // "": it has gone
    Duration since;
    [[nodiscard]] std::string host() const { return managed::host_of_station(station); }
  };
  void take_request();
  void drop_gone();
  [[nodiscard]] bool has_enough_of(const std::string& peer) const;
  // False: nobody waits, or there is no place.
  bool begin_next();
  void ask_one_to_leave(const Newcomer& newcomer);
  void refuse(std::size_t waiting, const char* why);
  [[nodiscard]] std::vector<std::string> hosts_that_wait() const;
  [[nodiscard]] std::vector<std::string> hosts_with_places() const;
  void begin(stm_connection_t request, const std::string& station);
  void serve(stm_connection_t request, const std::string& station, Presence& presence);
  // A line about a sender.
  void complain_of(const std::string& station, const std::string& what);
  void reap(bool all);

  ReceiverContext& context_;
  FileLink link_;
  const Progress::Watch watch_{context_.progress, [this] { return link_.trouble(); }};
  Queue requests_;
  stm_listener_t listener_ = nullptr;
  std::list<Place> places_;
  std::deque<Waiting> waiting_;
  Mutex mutex_;
  unsigned files_ STP_GUARDED_BY(mutex_) = 0;
  unsigned failures_ STP_GUARDED_BY(mutex_) = 0;
};

}  // namespace stp::files
