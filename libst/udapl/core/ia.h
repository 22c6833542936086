// SPDX-License-Identifier: BSD-3-Clause
// An Interface Adapter: a link and all objects on it, under one mutex.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/evd.h"
#include "libst/udapl/core/memory.h"
#include "libst/udapl/core/service_point.h"
#include "libst/udapl/core/srq.h"
#include "stp/base/assert.h"
#include "stp/base/mutex.h"

namespace stp::udapl {

class Ep;

class Ia : public Object {
 public:
  Ia();
  ~Ia() override;
  // `link`: as in STP_LINK; empty: uses STP_LINK. `async`: an EVD of another IA; null: makes one.
  static Result open(const std::string& link, int async_length, std::shared_ptr<Evd>& async,
                     std::shared_ptr<Ia>& out);
  // Unless `abrupt`: kInvalidState while there are objects other than the asynchronous EVD. Waiters
  // get kAbort.
  Result close(bool abrupt);

  // Of the link at present; after close() what it was when the link was opened.
  [[nodiscard]] stm_domain_info_t info() const;
  [[nodiscard]] const std::shared_ptr<Evd>& async_evd() const { return async_; }

  // ---- for the objects; all except mutex() under the mutex ----
  // It outlives the IA, and is that of a later one: so a call may take the mutex of an object
  // before it knows whether the object and its IA are still there.
  Mutex& mutex() STP_RETURNS_LOCK(mutex_) { return mutex_; }
  Progress& progress() STP_REQUIRES(mutex_) { return progress_; }
  StagingPool& staging() STP_REQUIRES(mutex_) { return staging_; }
  [[nodiscard]] stm_domain_t domain() const { return domain_; }

  template <typename Made>
  std::shared_ptr<Made> adopt(std::shared_ptr<Made> object) STP_REQUIRES(mutex_) {
    objects_.emplace(object.get(), object);
    return object;
  }
  void forget(Object& object) STP_REQUIRES(mutex_);
  // The object need not be freed any more before the IA closes.
  void release(Object& object) STP_REQUIRES(mutex_) { objects_.erase(&object); }

  [[nodiscard]] bool has_place_for_ep() const STP_REQUIRES(mutex_) { return eps_ < kMaxEps; }
  void count_ep(int change) STP_REQUIRES(mutex_) {
    STP_ASSERT(eps_ + change >= 0 && eps_ + change <= kMaxEps, "an EP is counted once");
    eps_ += change;
  }

  std::uint32_t add_lmr(Lmr& lmr) STP_REQUIRES(mutex_);
  void remove_lmr(std::uint32_t context) STP_REQUIRES(mutex_);
  [[nodiscard]] Lmr* find_lmr(std::uint32_t context) STP_REQUIRES(mutex_) {
    return context == known_lmr_.first ? known_lmr_.second : look_up_lmr(context);
  }

  void add_connection(stm_connection_t connection, std::shared_ptr<Ep> ep) STP_REQUIRES(mutex_);
  // Closes it. The EP lives until all events of the connection have been dispatched.
  void close_connection(stm_connection_t connection) STP_REQUIRES(mutex_);

  Listeners& listeners() STP_REQUIRES(mutex_) { return listeners_; }

  // `about`: the EVD that the event concerns; it does not get the event itself.
  void tell_async(Event event, const Evd* about = nullptr) STP_REQUIRES(mutex_);
  // Starts a thread that dispatches events while nobody waits: for agents and descriptors.
  void watch() STP_REQUIRES(mutex_);
  // Calls it from that thread.
  void call_later(std::function<void()> call) STP_REQUIRES(mutex_);

 private:
  // Nobody else knows the IA yet.
  int open_domain(const std::string& link) STP_THREAD_SAFETY(no_thread_safety_analysis);
  void on_event(const stm_event_t& event) STP_REQUIRES(mutex_);
  // nullptr: none.
  Ep* find_ep(stm_connection_t connection) STP_REQUIRES(mutex_);
  Lmr* look_up_lmr(std::uint32_t context) STP_REQUIRES(mutex_);
  void link_event(const stm_event_t& event) STP_REQUIRES(mutex_);
  void request(const stm_event_t& event) STP_REQUIRES(mutex_);
  void run_watcher();
  void stop();

  Mutex& mutex_;
  Progress progress_ STP_GUARDED_BY(mutex_);
  std::atomic<stm_domain_t> domain_ = nullptr;
  stm_domain_info_t info_{};  // when the link was opened
  std::shared_ptr<Evd> async_;
  bool own_async_ = false;
  StagingPool staging_ STP_GUARDED_BY(mutex_);
  std::unordered_map<Object*, std::shared_ptr<Object>> objects_ STP_GUARDED_BY(mutex_);
  int eps_ STP_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::uint32_t, Lmr*> lmrs_ STP_GUARDED_BY(mutex_);
  std::uint32_t next_lmr_ STP_GUARDED_BY(mutex_) = 1;
  std::unordered_map<stm_connection_t, std::shared_ptr<Ep>> connections_ STP_GUARDED_BY(mutex_);
  // Those found last.
  std::pair<std::uint32_t, Lmr*> known_lmr_ STP_GUARDED_BY(mutex_){};
  std::pair<stm_connection_t, Ep*> known_ep_ STP_GUARDED_BY(mutex_){};
  Listeners listeners_ STP_GUARDED_BY(mutex_);
  std::uint64_t next_id_ STP_GUARDED_BY(mutex_) = 1;
  // Markers in the queue: no event of the connection follows its marker.
  std::unordered_map<std::uint64_t, stm_connection_t> graves_ STP_GUARDED_BY(mutex_);
  std::deque<std::function<void()>> calls_ STP_GUARDED_BY(mutex_);
  std::thread watcher_;
  Progress::Waiter watcher_waiter_ STP_GUARDED_BY(mutex_);
  bool stopping_ STP_GUARDED_BY(mutex_) = false;
};

}  // namespace stp::udapl
