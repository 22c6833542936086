// SPDX-License-Identifier: BSD-3-Clause
// An Interface Adapter: a link, and all objects that live on it, under one mutex.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>

#include "libst/udapl/core/cno.h"
#include "libst/udapl/core/ep_attr.h"
#include "libst/udapl/core/listeners.h"
#include "libst/udapl/core/lmr.h"
#include "libst/udapl/core/srq.h"
#include "libst/udapl/core/staging.h"
#include "stp/base/assert.h"

namespace stp::udapl {

class Ep;

class Ia : public Object {
 public:
  Ia();
  ~Ia() override;
  // `link` as STP_LINK, empty: what that says. `async`: an EVD of another IA, or null: one is made.
  static Result open(const std::string& link, int async_length, std::shared_ptr<Evd>& async,
                     std::shared_ptr<Ia>& out);
  // Not abrupt: kInvalidState while there are objects but the asynchronous EVD. Waiters get kAbort.
  Result close(bool abrupt);

  [[nodiscard]] const stm_domain_info_t& info() const { return info_; }
  [[nodiscard]] const std::shared_ptr<Evd>& async_evd() const { return async_; }

  // ---- for the objects; but for the first, under the mutex ----
  std::mutex& mutex() { return mutex_; }
  Progress& progress() { return progress_; }
  StagingPool& staging() { return staging_; }
  [[nodiscard]] stm_domain_t domain() const { return domain_; }

  template <typename Made>
  std::shared_ptr<Made> adopt(std::shared_ptr<Made> object) {
    objects_.emplace(object.get(), object);
    return object;
  }
  void forget(Object& object);
  // No longer one that has to be freed before the IA closes.
  void release(Object& object) { objects_.erase(&object); }

  [[nodiscard]] bool has_place_for_ep() const { return eps_ < kMaxEps; }
  void count_ep(int change) {
    STP_ASSERT(eps_ + change >= 0 && eps_ + change <= kMaxEps, "an EP is counted once");
    eps_ += change;
  }

  std::uint32_t add_lmr(Lmr& lmr);
  void remove_lmr(std::uint32_t context) { lmrs_.erase(context); }
  [[nodiscard]] Lmr* find_lmr(std::uint32_t context) const;

  void add_connection(stm_connection_t connection, std::shared_ptr<Ep> ep);
  // Closes it; the EP lives until all that the connection told has been handed out.
  void close_connection(stm_connection_t connection);

  Listeners& listeners() { return listeners_; }

  // `about`: the EVD that the event is about, which does not hear of itself.
  void tell_async(Event event, const Evd* about = nullptr);
  // A thread that hands out events though nobody waits: for agents and descriptors.
  void watch();
  // From that thread.
  void call_later(std::function<void()> call);

 private:
  int open_domain(const std::string& link);
  void on_event(const stm_event_t& event);
  void request(const stm_event_t& event);
  void run_watcher();
  void stop();

  std::mutex mutex_;
  Progress progress_;
  stm_domain_t domain_ = nullptr;
  stm_domain_info_t info_{};
  std::shared_ptr<Evd> async_;
  bool own_async_ = false;
  StagingPool staging_;
  std::unordered_map<Object*, std::shared_ptr<Object>> objects_;
  int eps_ = 0;
  std::unordered_map<std::uint32_t, Lmr*> lmrs_;
  std::uint32_t next_lmr_ = 1;
  std::unordered_map<stm_connection_t, std::shared_ptr<Ep>> connections_;
  Listeners listeners_;
  std::uint64_t next_id_ = 1;
  // Markers in the queue: behind each, nothing more of that connection.
  std::unordered_map<std::uint64_t, stm_connection_t> graves_;
  std::deque<std::function<void()>> calls_;
  std::thread watcher_;
  Progress::Waiter watcher_waiter_;
  bool stopping_ = false;
};

}  // namespace stp::udapl
