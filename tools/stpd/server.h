// SPDX-License-Identifier: BSD-3-Clause
// The daemon's side of the socket: where clients come in, the Server, what slow sockets cost it,
// and what workers do for its requests.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dpdk_port/link/link_counters.h"
#include "libst/host/poll_loop.h"
#include "libst/host/service.h"
#include "libst/ipc/requests.h"
#include "libst/ipc/shared_memory.h"
#include "libst/ipc/socket.h"
#include "libst/os/unique_fd.h"
#include "tools/stpd/log.h"
#include "tools/stpd/region_memory.h"
#include "tools/stpd/workers.h"

namespace stp::stpd {

// Clients that were accepted and wait to be admitted. Users have their turn one after the other, so
// one that connects without pause delays its own programs only. Operators have every second turn.
class WaitingRoom {
 public:
  struct Guest {
    ipc::ClientIdentity who;
    os::UniqueFd socket;
  };
  explicit WaitingRoom(std::size_t most) : most_(most) {}

  // Returns who finds no place if the room is full: the newest of the user with the most, which may
  // be this one.
  [[nodiscard]] std::optional<Guest> enter(Guest guest);
  // The next to admit: the oldest of the user whose turn it is. nullopt: nobody waits.
  std::optional<Guest> next();
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  using Line = std::deque<Guest>;
  struct Group {
    std::map<uid_t, Line> lines;  // none is empty
    uid_t last = 0;               // whose turn it was
  };
  [[nodiscard]] Group& group_of(const ipc::ClientIdentity& who) {
    return groups_[who.administrator ? 1 : 0];
  }
  Guest leave(Group& group, std::map<uid_t, Line>::iterator line, bool newest);
  Guest displaced();

  const std::size_t most_;
  std::size_t size_ = 0;
  std::array<Group, 2> groups_;  // programs, operators
  std::size_t turn_ = 0;         // the group that is served next
};

// The sockets on which stpd accepts clients, and their files: one for all programs, and beside it
// one of the operators, whose backlog no other program can fill. It stops listening for a moment
// when no descriptor is free, because epoll would report it again and again; clients wait in the
// backlog meanwhile.
class Listener {
 public:
  // How long the listener accepts no clients after pause().
  static constexpr std::chrono::milliseconds kPause{100};

  // Creates the socket for all programs. Returns 0; -EADDRINUSE: another daemon answers there; or
  // another negative errno.
  int open(const std::string& path, const ipc::SocketAccess& access);
  // Creates the one at operators_socket_of(path), which root, this user and the members of `group`
  // may open. -EPERM: it cannot be given to that group, and is open for the others; or another
  // negative errno: operators have the first one only.
  int open_for_operators(const std::string& path, std::optional<gid_t> group);
  [[nodiscard]] bool is_open() const { return static_cast<bool>(doors_[kAll].socket); }
  // False: somebody has removed or replaced the file of the socket for all programs.
  [[nodiscard]] bool is_found() const { return !is_open() || !doors_[kAll].file.is_gone(); }
  // Removes the files. Closing the result also closes the connections in the backlogs and the
  // descriptors in their messages, which may block.
  std::vector<os::UniqueFd> end();

  // From now on epoll reports clients under this key.
  void watch(int epoll, std::uint64_t key);
  [[nodiscard]] bool is_paused() const { return !watched_; }
  void pause();
  // Ends a pause: at once, or `if_due`.
  void resume();
  void resume_if_due();

  // Accepts a client, of each socket in turn. Without one, `error` is an errno; starved(error)
  // tells whether clients have to wait because the process or the machine is short of something.
  // `as_operator`: it came through the operators' socket.
  os::UniqueFd accept(int& error, bool& as_operator);
  static bool starved(int error);

 private:
  using Clock = std::chrono::steady_clock;
  struct Door {
    os::UniqueFd socket;
    ipc::SocketFile file;
  };
  enum : std::size_t { kAll, kOperators, kDoors };

  std::array<Door, kDoors> doors_;
  std::size_t last_ = kAll;  // that accept() has looked at first
  int epoll_ = -1;
  std::uint64_t key_ = 0;
  bool watched_ = false;
  Clock::time_point accepts_from_{};
};

using stpd::LogBudget;
using stpd::LogLevel;

// Sockets whose messages take long. The kernel wakes whoever waits for a socket in the thread that
// sends to it or closes it, and a program can wait for its own a million times (epoll). So the time
// that takes is measured, and charged to the user of the program: one who costs too much is served
// no more until a hundred times as long has passed.
class SlowSockets {
 public:
  using Clock = UserCosts::Clock;
  using Time = UserCosts::Time;
  // A call that took this long counts (UserCosts); it usually takes a twentieth of it. A user with
  // so much of it costs too much.
  static constexpr std::chrono::microseconds kSlow{250};
  static constexpr std::chrono::milliseconds kMost{5};

  // A reply took so much of this thread's time; `last`: what the one before it took on that socket.
  // Something else can make one call slow, but hardly two in a row, of one socket or of one user.
  // Returns true if the socket is served no more.
  bool replied(uid_t user, Time time, Time& last, Clock::time_point now = Clock::now());
  // A call for this user took so much of it.
  void took(uid_t user, Time time, Clock::time_point now = Clock::now()) {
    costs_.took(user, time, now);
  }
  [[nodiscard]] bool costs_too_much(uid_t user, Clock::time_point now = Clock::now()) const {
    return costs_.is_too_much(user, now);
  }

 private:
  UserCosts costs_{kSlow, kMost};
  std::map<uid_t, Time> slow_;  // the last reply of those for whom it was slow
};

// Processor time of this thread: what others run meanwhile does not count.
SlowSockets::Time time_of_thread();
// How much of it a call takes.
template <typename Call>
SlowSockets::Time time_of(Call&& call) {
  const auto began = time_of_thread();
  call();
  return time_of_thread() - began;
}

// Files that stpd has made for programs and given up, and that programs keep.
//
// What a program has been given (its page, the memory of a connection) it may keep when stpd has
// given it up. The pages are the program's, but what the kernel remembers of the file, one or two
// kilobytes, counts as stpd's memory. So a user with many such files gets no more. The kernel tells
// when a file has gone (inotify); where it does not, nothing is counted. One thread has it.
class KeptFiles {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kMost = 4'096;

  // A user with `most` of them gets no more.
  explicit KeptFiles(std::size_t most);

  // Readable when files have gone: call look() then. -1: the kernel does not tell.
  [[nodiscard]] int news_fd() const { return news_.get(); }
  // Handles a bounded number of news. When the kernel has lost some, because thousands of files
  // have gone at once, looks at all files.
  void look();
  void look_at_all();
  // Call before a program of `user` gets `file`. `memory`: what it is; stpd has given it up when
  // that has expired.
  void handed_out(uid_t user, int file, const std::weak_ptr<const void>& memory);
  // Files of this user that stpd has given up, if they are too many; otherwise 0.
  [[nodiscard]] std::size_t too_many(uid_t user, Clock::time_point now = Clock::now());
  // Files that are there, given up or not.
  [[nodiscard]] std::size_t count() const { return users_of_.size(); }

 private:
  // How often the files of one user are counted at most.
  static constexpr std::chrono::milliseconds kInterval{100};
  struct User {
    std::unordered_map<int, std::weak_ptr<const void>> files;  // by watch
    std::size_t given_up = 0;                                  // when they were counted
    Clock::time_point counted{};
  };

  void forget(int watch);

  const std::size_t most_;
  os::UniqueFd news_;
  bool has_lost_news_ = false;
  std::map<uid_t, User> users_;
  std::unordered_map<int, uid_t> users_of_;  // by watch
};

// Starts and stops a trace of a service's frames on request. The Server calls it, one thread at a
// time and without a drive lock. No function waits for the file. Functions return 0 or a negative
// errno.
class TraceControl {
 public:
  virtual ~TraceControl() = default;
  // Takes ownership of `file` on success. status() reports errors of the file itself.
  virtual int start(const ipc::TraceOrder& order, host::ClientId by, os::UniqueFd& file) = 0;
  virtual int stop() = 0;
  virtual int status(ipc::TraceState& out) = 0;
  // Call when the client has gone. Ends its trace unless the trace was ordered to stay.
  virtual void client_gone(host::ClientId client) = 0;
};

// Answers requests about traces. `control` may be null: -EOPNOTSUPP.
void answer_trace(TraceControl* control, host::ClientId client, bool administrator,
                  const ipc::RequestMessage& message, std::span<os::UniqueFd> fds,
                  ipc::ReplyMessage& reply);

struct Errand {
  std::uint64_t key = 0;  // identifies the client
  uid_t user = 0;
  ipc::RequestMessage request;
  int result = 0;
  std::string why;  // -EDQUOT, where the worker knows
  // Nobody waits for the result any more.
  std::atomic<bool> abandoned{false};
  // kMapped: what the client was offered, and who pays for what keeps its pages from being moved.
  std::shared_ptr<ipc::SharedMemory> offered;
  host::Account payer;
  bool kept = false;  // its pages are
  // kMap. When it is done, `files` holds those that are still to be closed: that may block.
  std::vector<os::UniqueFd> files;
  host::RegionClaim claim;
  std::uint64_t most = 0;  // bytes of a request
  std::shared_ptr<RegionMemory> memory;
};

// What a request needs of memory that its user shares with the daemon: a worker of the user does it
// (UserWorkers), and the server replies when it is done. A program has one errand at a time.
class Errands {
 public:
  explicit Errands(std::shared_ptr<UserWorkers> workers);
  ~Errands();
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  // An eventfd that becomes readable when an errand is done. Call take() until it returns nullptr.
  [[nodiscard]] int done_fd() const;
  void begin(std::shared_ptr<Errand> errand);
  // Returns an errand that is done, also one that was abandoned; nullptr: there is none.
  std::shared_ptr<Errand> take();

 private:
  struct State;
  const std::shared_ptr<UserWorkers> workers_;
  const std::shared_ptr<State> state_;  // errands under way keep it alive
};

// One for each row of STP_SERVER_COUNTERS.
struct ServerCounts {
#define STP_COUNT(member, name, unit, text) std::atomic<std::uint64_t> member{0};
  STP_SERVER_COUNTERS(STP_COUNT)
#undef STP_COUNT
};

// The daemon's side of the socket: one thread that accepts clients, checks their requests and
// passes them to the Services of the link's shards. It trusts no client: it disconnects one that
// sends what libst would never send, or that does not read its replies. It never waits for one. It
// holds at most one Service's lock at a time.
class Server {
 public:
  // Receives log lines, for example about clients that come and go. Called on the server's thread
  // and by stop().
  using Log = std::function<void(LogLevel, const std::string&)>;

  using Counts = ServerCounts;

  // `shards`: the Services of one link, in order, which outlive the Server.
  Server(std::vector<host::Service*> shards, std::string path, Log log = {});
  Server(host::Service& service, std::string path, Log log = {})
      : Server(std::vector{&service}, std::move(path), std::move(log)) {}
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Call before start(). `group`: its members are administrators. `trace`: starts and stops traces;
  // it outlives the Server's thread.
  void set_admin(std::optional<gid_t> group, TraceControl* trace);
  // Limits the number of clients and the bytes of one kMap request; the Service applies the other
  // quotas. May be called at any time. limits::kOperatorPlaces additional places are reserved for
  // administrators, who may only watch in them.
  void set_quotas(const host::Quotas& quotas);
  // Call before start(). How many files of what has ended a user's programs may keep (KeptFiles).
  void set_most_kept(std::size_t files) { most_kept_ = files; }
  // Creates the socket, and beside it the one of the administrators; if that cannot be made, logs
  // why. Returns 0; -EADDRINUSE: another daemon answers there; or another negative errno.
  int listen(const ipc::SocketAccess& access = {});
  // Instead: takes the socket over from another Server of the same path.
  void take_over(Listener listener) { listener_ = std::move(listener); }
  // Whether programs find the socket. In the thread that starts and stops the Server.
  [[nodiscard]] bool is_found() const { return listener_.is_found(); }
  // Starts to serve; calls listen() first unless that was done. `links`: the number of servers in
  // this process, which share its open files and mappings.
  int start(std::size_t links = 1);
  // Ends the thread, removes the socket file and all clients. Their connections end while the
  // Services continue to be polled.
  void stop();
  // The same, but keeps the socket: who connects waits for the Server that takes it over.
  Listener stop_and_keep_listening();
  [[nodiscard]] const Counts& counts() const { return counts_; }
  // Beats at least once per second.
  [[nodiscard]] const host::Heartbeat& heartbeat() const { return heartbeat_; }

 private:
  using Clock = std::chrono::steady_clock;
  // This bit above the ClientId in an epoll key marks the descriptor of the client's process.
  static constexpr std::uint64_t kProcessBit = std::uint64_t{1} << 32;
  struct Peer {
    os::UniqueFd socket;
    os::UniqueFd process;  // readable when the process has ended, even if others hold its socket
    host::ClientId client = 0;  // its id on the first shard, and its key in peers_
    // Its id on each shard; 0: it has not said hello there.
    std::vector<host::ClientId> clients;
    std::shared_ptr<host::ProgramUse> use;
    ipc::ClientIdentity identity;
    std::optional<unsigned> begins;  // the shard that it was told to begin with
    std::shared_ptr<Errand> errand;  // under way: no request is read until the reply
    bool operating = false;          // has a place reserved for operators
    bool uses_link = false;          // has asked for more than what only_watches() names
    std::uint64_t last_asked = 0;    // time of the last request, counted in requests of all clients
    SlowSockets::Time last_reply{0};  // what it took to send
  };

  void end_thread();
  void end_clients();
  void run();
  void handle_event_safely(std::uint64_t key);
  void give_up(std::uint64_t key, const char* why);
  void handle_event(std::uint64_t key);
  int watch(int fd, std::uint64_t key);
  void tend();
  void report_lost_threads();
  void accept_clients();
  void accept_failed(int error);
  void receive(os::UniqueFd socket, bool as_operator);
  void admit_clients();
  void admit(WaitingRoom::Guest guest);
  // Why a client is not admitted: what it is told. 0: it is.
  struct Refused {
    int error = 0;
    std::string why;
  };
  Refused admit(const ipc::ClientIdentity& who, os::UniqueFd& socket, os::UniqueFd& process);
  [[nodiscard]] bool cannot_close_files_of(uid_t user) const;
  [[nodiscard]] bool is_crowded() const;
  bool find_place(const ipc::ClientIdentity& who, bool scarce, bool& operating);
  bool find_operator_place(const ipc::ClientIdentity& who);
  host::ClientId join(const ipc::ClientIdentity& who, bool operating,
                      std::shared_ptr<host::ProgramUse>& use, Refused& refused);
  Refused refuse(const ipc::ClientIdentity& who, int error, const std::string& why);
  void make_room_for_operator();
  void hang_up(uid_t user, os::UniqueFd socket) { hang_up(user, std::move(socket), {}); }
  void hang_up(uid_t user, os::UniqueFd socket, const Refused& refused);
  void serve(std::uint64_t key);
  void judge(std::uint64_t key, int result);
  int answer(Peer& peer);
  int answer(Peer& peer, int received, const ipc::RequestMessage& request,
             std::span<os::UniqueFd> fds);
  int refuse_descriptors(Peer& peer, ipc::RequestKind kind);
  int refuse_request(Peer& peer, ipc::RequestKind kind, int error, std::string_view why = {});
  int pass_on(Peer& peer, const ipc::RequestMessage& request, std::span<os::UniqueFd> fds);
  void ask_service(Peer& peer, const ipc::RequestMessage& request, host::Attachments& attachments,
                   ipc::ReplyMessage& reply, int& bell);
  void greet(const host::Turn& turn, Peer& peer, const ipc::RequestMessage& request,
             host::Attachments& attachments, ipc::ReplyMessage& reply, int& bell);
  void log_no_hello(const Peer& peer, const ipc::ReplyMessage& reply);
  int say_hello(const host::Turn& turn, Peer& peer, unsigned shard, ipc::ReplyMessage& reply);
  [[nodiscard]] bool makes_sense(const Peer& peer, const ipc::RequestMessage& request,
                                 std::size_t fd_count) const;
  int reply_to(Peer& peer, host::Attachments& attachments, const ipc::ReplyMessage& reply,
               int bell = -1);
  void hear(const Peer& peer, bool requests);
  int begin_map(Peer& peer, const ipc::RequestMessage& message, std::span<os::UniqueFd> fds);
  int begin_mapped(Peer& peer, const ipc::RequestMessage& message);
  int send_out(Peer& peer, std::shared_ptr<Errand> errand);
  int end_errand(Peer& peer, const std::shared_ptr<Errand>& done);
  void end_errands();
  void drop_expelled(unsigned shard);
  // `expected`: programs leave so.
  void drop(std::uint64_t key, const std::string& why, bool expected = false);
  void log(LogLevel level, const std::string& text) const;
  // For events that a client can cause as often as it likes.
  void log_client(uid_t user, LogLevel level, const std::string& text);

  const std::vector<host::Service*> shards_;
  unsigned next_shard_ = 0;  // for the next program to begin with
  const std::string path_;
  const Log log_;
  std::optional<gid_t> admin_group_;
  TraceControl* trace_ = nullptr;
  std::atomic<std::size_t> most_clients_{host::Quotas{}.clients};
  std::atomic<std::uint64_t> most_map_bytes_{host::Quotas{}.map_bytes};
  Counts counts_;
  host::Heartbeat heartbeat_;
  std::shared_ptr<UserWorkers> workers_;
  std::optional<ForeignFiles> foreign_;
  // Closes what this thread has made and shares with clients, so that they can delay whoever closes
  // it: their bells, and the descriptors of their processes (whose locks can be many).
  std::shared_ptr<Closer> closer_;
  std::size_t lost_closing_ = 0;  // threads of `closer_`, at the last tend()
  std::optional<WaitingRoom> waiting_;
  SlowSockets slow_sockets_;
  std::optional<KeptFiles> kept_files_;
  std::size_t most_kept_ = KeptFiles::kMost;
  std::optional<Errands> errands_;
  Listener listener_;
  os::UniqueFd epoll_, stop_;
  LogBudget log_budget_, debug_budget_;  // the second: of lines at debug
  int first_reserved_file_ = 0;
  bool starved_ = false;                 // a client waits because no descriptor is free
  std::map<std::uint64_t, Peer> peers_;  // by the epoll key of the socket
  std::size_t operators_ = 0;            // peers in places for operators
  std::uint64_t asked_ = 0;
  std::thread thread_;
};

}  // namespace stp::stpd
