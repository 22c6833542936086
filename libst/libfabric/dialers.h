// SPDX-License-Identifier: BSD-3-Clause
// Threads that connect, because resolving a host may take a second. A few of them run at once, and
// hosts that have not answered before are left behind: so those that are not there do not hold up
// the others for long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "libst/include/stp/managed.h"
#include "libst/libfabric/link.h"

namespace stp::fi {

class Owner;

// A connect that is to begin.
struct Dial {
  Owner* owner;
  stm_connection_t connection;
  std::string peer;  // host:port
  std::vector<std::byte> data;
};

class Dialers {
 public:
  static constexpr std::size_t kMost = 16;
  // So many at last, if those that there are connect for long (hurry()).
  static constexpr std::size_t kMostSlow = 128;
  // Who is there answers sooner.
  static constexpr std::chrono::milliseconds kSlow{50};
  // So many of them connect to hosts that have not answered before.
  static constexpr std::size_t kMostToSilent = kMost / 2;

  // `connect` begins the connect, without the mutex. 0 or a status, of which the owner hears.
  Dialers(LinkMutex& mutex, std::function<int(const Dial&)> connect);
  ~Dialers();
  Dialers(const Dialers&) = delete;
  Dialers& operator=(const Dialers&) = delete;

  // Throws if there is no thread for it: then nothing has changed.
  void dial(Dial&& dial) STP_REQUIRES(mutex_);
  // Call now and then. If some wait although none has begun for a while, there are twice as many
  // threads: hosts that are new and not there hold up the others no longer.
  // True: call again before kSlow has passed.
  bool hurry(std::chrono::steady_clock::time_point now) STP_REQUIRES(mutex_);
  // Afterwards none connects for `owner`. If one does now, the connection is closed.
  void stop(LinkLock& lock, const Owner& owner) STP_REQUIRES(mutex_);

 private:
  struct Dialing {
    const Owner* owner;
    stm_connection_t connection;
    bool to_silent;
  };

  void run();
  // False: there is no thread for it.
  bool add_thread();
  [[nodiscard]] bool is_silent(const Dial& dial) const STP_REQUIRES(mutex_);
  // The one to begin now; the end: there is none.
  std::deque<Dial>::iterator next() STP_REQUIRES(mutex_);
  void note(const Dial& dial, int status) STP_REQUIRES(mutex_);

  LinkMutex& mutex_;
  const std::function<int(const Dial&)> connect_;
  std::vector<std::thread> threads_;
  std::condition_variable_any changed_;
  std::deque<Dial> waiting_ STP_GUARDED_BY(mutex_);
  std::list<Dialing> now_ STP_GUARDED_BY(mutex_);        // each in a thread
  std::set<std::string> silent_ STP_GUARDED_BY(mutex_);  // hosts that have not answered before
  // When the last one of them began, or threads were added.
  std::chrono::steady_clock::time_point begun_at_ STP_GUARDED_BY(mutex_);
  bool closing_ STP_GUARDED_BY(mutex_) = false;
};

}  // namespace stp::fi
