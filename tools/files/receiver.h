// SPDX-License-Identifier: BSD-3-Clause
// The receiving side: one connection with stp-send, and the threads that serve all of them.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tools/files/channel.h"
#include "tools/files/incoming_files.h"
#include "tools/files/turns.h"

namespace stp::files {

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
};

// One sender, as seen by the thread that assigns the places. Both threads read and write it.
struct Presence {
  [[nodiscard]] Duration silence() const { return now() - Duration(heard); }
  // Nor was work done for it, of which it has to wait for the end.
  [[nodiscard]] Duration idleness() const {
    return now() - std::max(Duration(heard), Duration(worked));
  }
  void hear() { heard = now().count(); }
  void work() { worked = now().count(); }
  static Duration now() { return std::chrono::steady_clock::now().time_since_epoch(); }

  std::atomic<Duration::rep> heard{now().count()}, worked{0};
  std::atomic<bool> leave{false};  // others need the place
};

// The receiving side of one connection between stp-send and stp-recv.
class FileReceiver {
 public:
  // Not for a sender that compares existing files: its disk may take longer.
  static constexpr Duration kDiskPatience = std::chrono::minutes(10);

  // `host` of the sender: see host_in().
  FileReceiver(Channel& channel, ReceiverContext& context, Presence& presence, std::string host)
      : channel_(channel),
        context_(context),
        presence_(presence),
        files_(
            context.directory, context.progress, context.stop,
            WorkFor{context.turns, std::move(host), [this] { return attend(); }},
            [this](const Note& note) { say(note); }, [this] { channel_.wake(); },
            context.descriptors) {
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
  [[noreturn]] void give_up(Reason reason, const std::string& why);
  // False: the message is not one of ours.
  [[nodiscard]] bool handle(const Message& message);
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
  unsigned broken_ = 0;  // connections that broke before their sender had finished
};

// Which senders count as one host. `station`: the address of a peer (stm_peer_info). On a link over
// UDP a host can have as many UDP ports as it likes, and as many IPv6 addresses as its network has:
// all of an IPv4 address are one host, and all of the first 64 bits of an IPv6 address, except for
// link-local ones, which all begin alike.
std::string host_in(const std::string& station);

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
    explicit Place(std::string who) : peer(std::move(who)) {}
    const std::string peer;  // its host
    std::thread thread;
    std::atomic<bool> done{false};
    Presence presence;
  };
  // nullptr: the program is to stop.
  stm_connection_t await_request();
  // False: the program is to stop.
  bool await_place(const std::string& newcomer);
  [[nodiscard]] bool has_enough_of(const std::string& peer) const;
  void ask_the_most_silent_to_leave(const std::string& newcomer);
  void begin(stm_connection_t request, const std::string& peer);
  void serve(stm_connection_t request, const std::string& peer, Presence& presence);
  void reap(bool all);

  ReceiverContext& context_;
  Link link_;
  const Progress::Watch watch_{context_.progress, [this] { return link_.trouble(); }};
  Queue requests_;
  stm_listener_t listener_ = nullptr;
  std::list<Place> places_;
  std::mutex mutex_;  // of the following
  unsigned files_ = 0, failures_ = 0;
};

}  // namespace stp::files
