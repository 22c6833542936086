// SPDX-License-Identifier: BSD-3-Clause
// Threads for work on memory that a user shares with the daemon.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "libst/ipc/socket.h"
#include "libst/os/unique_fd.h"

namespace stp::stpd {

// What users have cost the daemon: time in calls that took long. One hundredth of the time that
// passes is forgiven. Root and the user of this process cost nothing.
class UserCosts {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::nanoseconds;
  // A call that took `counts` counts. Who has more than `most` of it costs too much.
  UserCosts(Time counts, Time most) : counts_(counts), most_(most) {}

  void took(uid_t user, Time time, Clock::time_point now);
  [[nodiscard]] bool is_too_much(uid_t user, Clock::time_point now) const;

 private:
  static constexpr int kForgiven = 100;
  struct Cost {
    Time total{0};
    Clock::time_point when;
    [[nodiscard]] Time at(Clock::time_point now) const { return total - (now - when) / kForgiven; }
  };

  const Time counts_, most_;
  std::map<uid_t, Cost> costs_;  // only what is not forgiven
};

// Threads for work on memory that a user shares with the daemon: mapping, unmapping, sealing,
// looking for missing pages. How long that takes depends on what the user does to the same file at
// that time: it may hold the file's locks for seconds, again and again. So each user has a few
// threads, which serve nobody else, and the work of one user never delays that of another.
//
// One thing they cannot avoid: while they map and unmap such a file, the process may be unable to
// map anything. So a user in whose work a thread has slept long there gets no more
// done until a hundred times as long has passed.
class UserWorkers {
 public:
  using Work = std::function<void()>;
  using Clock = std::chrono::steady_clock;
  // Limits: threads that work for one user, and for all users that are not trusted. As many again
  // as for one user are left for root and the daemon's own user. Threads are started on demand.
  static constexpr unsigned kThreadsPerUser = 2, kThreads = 32;
  // When all of these are taken, a user for whom none works gets one of so many more: a person may
  // have many uids, and hold up the threads of each.
  static constexpr unsigned kFirstThreads = 128;
  // A user with this much work waiting gets no more done. What is only released does not count: a
  // program that ends may have had thousands of regions.
  static constexpr std::size_t kMostPerUser = 256;
  // A sleep this long counts (UserCosts). A user with so much of it gets no more done.
  static constexpr std::chrono::milliseconds kLongSleep{50}, kMostSlept{1'000};

  UserWorkers();
  // Waits up to kFarewell for the threads, and abandons those that still work.
  ~UserWorkers();
  UserWorkers(const UserWorkers&) = delete;
  UserWorkers& operator=(const UserWorkers&) = delete;

  // Never blocks. Work of one user begins in the order in which it was given. It throws nothing.
  enum class Kind { kAsked, kRelease };
  void give(uid_t user, Work work, Kind kind = Kind::kAsked);
  // Wraps `thing`: when the last copy of the result is destroyed, a thread of `workers` releases
  // it. The copies keep the workers alive.
  static std::shared_ptr<void> guard(std::shared_ptr<UserWorkers> workers, uid_t user,
                                     std::shared_ptr<void> thing);
  // Whether the work of this user has slept too long.
  [[nodiscard]] bool has_slept(uid_t user, Clock::time_point now = Clock::now()) const;
  // Too much work of this user waits, or has slept too long. What must be done may be given all the
  // same.
  [[nodiscard]] bool is_stuck(uid_t user, Clock::time_point now = Clock::now()) const;
  // Call now and then: makes threads that could not be made when they were needed.
  void tend();
  // A user for whom a thread has been at one work for kHeldUp, which is told once of each: nullopt,
  // there is none (any more).
  std::optional<uid_t> held_up(Clock::time_point now = Clock::now());
  // Counts what was given and is not done yet, of one user.
  [[nodiscard]] std::size_t waiting(uid_t user) const;

  static constexpr std::chrono::milliseconds kFarewell{500};
  static constexpr std::chrono::seconds kHeldUp{10};

 private:
  struct State;
  const std::shared_ptr<State> state_;  // abandoned threads keep it alive
};

// Descriptors that clients send, and who closes them: the bounds, the threads that may block, and
// what wakes these.

// Ends waits in system calls that have no timeout. Closing a foreign descriptor can block: a socket
// with SO_LINGER, for example, waits until its peer has taken what was sent. A signal ends such
// waits, so the Nudge sends one to its thread every millisecond.
// Only the thread that constructs it may use it. Does nothing if the kernel provides no timer.
class Nudge {
 public:
  Nudge();
  ~Nudge();
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;

  void start();
  void stop();

  // While it exists, interruptible system calls of this thread return after a millisecond at most.
  class Span {
   public:
    explicit Span(Nudge& nudge) : nudge_(nudge) { nudge_.start(); }
    ~Span() { nudge_.stop(); }
    Span(const Span&) = delete;
    Span& operator=(const Span&) = delete;

   private:
    Nudge& nudge_;
  };

 private:
  void set(long nanoseconds);
  timer_t timer_{};
  bool made_ = false;
};

// Closes descriptors that clients have sent, and sockets in which clients may have left some.
// close() may call whoever implements a file: a FUSE server that does not answer blocks the caller
// for ever, even against SIGKILL. So separate threads close them, and such a thread may be lost.
// Each user gets few of them, so that the descriptors of one user never delay those of another.
class Closer {
 public:
  // kFile: descriptors that a client has sent. kSocket: sockets of clients, which seldom block for
  // long. Limits apply to each kind, so a user's sockets are closed even while its files block.
  enum class Kind { kFile, kSocket };
  // Limits: threads per user and kind, and in all. Threads are started on demand.
  static constexpr unsigned kThreadsPerUser = 2, kThreads = 32;
  // Of these threads, so many only for root and for the user of this process.
  static constexpr unsigned kThreadsOfOperators = 4;
  // As UserWorkers::kFirstThreads, for each kind.
  static constexpr unsigned kFirstThreads = 64;
  // A thread that spends this long on one descriptor counts as lost.
  static constexpr std::chrono::milliseconds kLost{1'000};
  // The Server accepts no more files from a user with this many waiting, until some are closed.
  static constexpr std::size_t kMostPerUser = 256;
  // The Server admits no more clients of a user with this many sockets waiting.
  static constexpr std::size_t kMostSocketsPerUser = 64;

  Closer();
  // Waits up to kFarewell for the threads. Abandons those that still close a descriptor.
  ~Closer();
  Closer(const Closer&) = delete;
  Closer& operator=(const Closer&) = delete;

  // Never blocks. `user`: the user who made the descriptor.
  void close(uid_t user, os::UniqueFd file, Kind kind = Kind::kFile);
  void close(uid_t user, std::vector<os::UniqueFd>& files);
  // Call now and then: makes threads that could not be made when they were needed.
  void tend();

  // Counts descriptors handed over and not closed yet: all, or those of one user.
  [[nodiscard]] std::size_t waiting() const;
  [[nodiscard]] std::size_t waiting(uid_t user, Kind kind = Kind::kFile) const;
  // Counts lost threads: of all users, or of one.
  [[nodiscard]] std::size_t lost() const;
  [[nodiscard]] std::size_t lost(uid_t user) const;
  // Returns a user whose descriptor blocks a lost thread; nullopt: no thread is lost.
  [[nodiscard]] std::optional<uid_t> who_holds_up() const;

  static constexpr std::chrono::milliseconds kFarewell{500};

 private:
  struct State;
  const std::shared_ptr<State> state_;  // lost threads keep it alive
};

// Descriptors that clients send to stpd, and sockets in which clients may have left some. The
// server's thread takes only as many as the process has room for, and never closes one: that may
// block for ever. A user whose files cannot be closed may send no more of them.
class ForeignFiles {
 public:
  // `room`: how many may be attached to requests or wait to be closed.
  explicit ForeignFiles(std::size_t room) : room_(room) {}
  ~ForeignFiles();
  ForeignFiles(const ForeignFiles&) = delete;
  ForeignFiles& operator=(const ForeignFiles&) = delete;

  // The thread that calls receive() calls these first and last.
  void begin_receiving() { nudge_.emplace(); }
  void end_receiving() { nudge_.reset(); }
  // Receives a request of `user` without waiting, as receive_request(). -EMFILE: its descriptors
  // were refused.
  int receive(int socket, uid_t user, ipc::RequestMessage& request, std::vector<os::UniqueFd>& fds);
  // Closes what nobody has taken over. Never blocks.
  void close(uid_t user, std::vector<os::UniqueFd>& fds) { closer_.close(user, fds); }
  // Closes a socket of a client, in which descriptors may be left, as it closes descriptors.
  // hang_up(): the client sees the end of its connection at once.
  void hang_up(uid_t user, os::UniqueFd socket);
  void close_socket(uid_t user, os::UniqueFd socket) {
    closer_.close(user, std::move(socket), Closer::Kind::kSocket);
  }

  // Keeps a socket that was shut down until the client has read its last reply or closed its end:
  // till then the reply is in the daemon's memory and its descriptors count, whether the daemon
  // has closed the socket or not.
  void keep_until_read(uid_t user, os::UniqueFd socket);
  // Clients of this user that are gone have left so many of them that no more of its are admitted:
  // kMostUnread, or one if all users together have left kMostUnreadOfAll.
  static constexpr std::size_t kMostUnread = 16, kMostUnreadOfAll = 256;
  [[nodiscard]] bool has_too_many_unread(uid_t user, std::size_t most = kMostUnread);

  // Too many of this user wait to be closed, or one cannot be closed.
  [[nodiscard]] bool is_stuck(uid_t user) const {
    return closer_.waiting(user) >= Closer::kMostPerUser || has_lost(user);
  }
  // A descriptor of this user cannot be closed.
  [[nodiscard]] bool has_lost(uid_t user) const { return closer_.lost(user) != 0; }
  // Too many sockets of this user wait to be closed.
  [[nodiscard]] bool has_left_sockets(uid_t user) const {
    return closer_.waiting(user, Closer::Kind::kSocket) >= Closer::kMostSocketsPerUser;
  }
  // So many wait to be closed that no more clients should be accepted for a moment.
  [[nodiscard]] bool is_crowded() const { return closer_.waiting() > room_ / 2; }

  struct Lost {
    std::size_t more = 0;  // descriptors
    uid_t user = 0;        // whose one of them is
  };
  // Call now and then. Returns the threads that were lost to a descriptor since the last call.
  std::optional<Lost> tend();

 private:
  [[nodiscard]] bool may_take(uid_t user) const;

  [[nodiscard]] std::size_t unread_count() const;
  void close_those_read(uid_t user, std::vector<os::UniqueFd>& sockets);

  const std::size_t room_;
  Closer closer_;
  std::map<uid_t, std::vector<os::UniqueFd>> unread_;  // no entry is empty after tend()
  std::optional<Nudge> nudge_;
  std::size_t lost_ = 0;  // at the last tend()
};

}  // namespace stp::stpd
