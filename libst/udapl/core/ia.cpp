// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/core/ia.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "dpdk_port/link/start_thread.h"
#include "libst/udapl/core/ep.h"
#include "libst/udapl/core/private_data.h"
#include "libst/udapl/core/service_point.h"
#include "stp/base/assert.h"
#include "stp/base/fetch_ahead.h"

namespace stp::udapl {
namespace {

// A capacity costs no memory. The consumer's limits are the sizes of the EVDs.
constexpr std::size_t kQueueCapacity = std::size_t{1} << 20;

// The mutexes of all IAs, and those that no IA has now.
class Mutexes {
 public:
  // Never destroyed: threads of the program may still call while it exits.
  static Mutexes& instance() {
    static auto& made = *new Mutexes;
    return made;
  }
  Mutex& take() {
    const Lock guard(mutex_);
    if (idle_.empty()) return (new Place)->mutex;
    auto& mutex = *idle_.back();
    idle_.pop_back();
    return mutex;
  }
  void give_back(Mutex& mutex) {
    const Lock guard(mutex_);
    idle_.push_back(&mutex);
  }

 private:
  struct alignas(kCacheLine) Place {
    Mutex mutex{LockRank::kIa};
  };
  Mutex mutex_;
  std::vector<Mutex*> idle_ STP_GUARDED_BY(mutex_);
};

}  // namespace

Ia::Ia()
    : Object(Kind::kIa, *this),
      mutex_(Mutexes::instance().take()),
      progress_([this](const stm_event_t& e) {
        mutex_.is_held();
        on_event(e);
      }) {}

Ia::~Ia() {
  if (domain_ != nullptr) stm_domain_close(domain_);
  Mutexes::instance().give_back(mutex_);
}

int Ia::open_domain(const std::string& link) {
  stm_domain_attr_t attr{};
  attr.size = sizeof attr;
  attr.link = link.empty() ? nullptr : link.c_str();
  stm_domain_t domain = nullptr;
  auto error = stm_domain_open(&attr, &domain);
  if (error != 0) return error;
  domain_ = domain;
  info_.size = sizeof info_;
  error = stm_domain_query(domain, &info_);
  if (error != 0) return error;
  stm_queue_t queue = nullptr;
  error = stm_queue_create(domain, kQueueCapacity, &queue);
  if (error == 0) error = stm_link_watch(domain, queue, 0);
  progress_.set_queue(queue);
  staging_.set_domain(domain);
  return error;
}

stm_domain_info_t Ia::info() const {
  auto present = info_;
  stm_domain_query(domain_, &present);
  return present;
}

Result Ia::open(const std::string& link, int async_length, std::shared_ptr<Evd>& async,
                std::shared_ptr<Ia>& out) {
  if (!async && async_length <= 0) return Result::kInvalidParameter;
  auto ia = std::make_shared<Ia>();
  if (const auto error = ia->open_domain(link); error != 0)
    return told_result_of(error, "cannot open an IA on the link '" + link + "'");
  if (!async) {
    const auto result = Evd::create(*ia, async_length, nullptr, kStreamAsync, async);
    if (result != Result::kSuccess) return result;
    ia->own_async_ = true;
  }
  const Lock lock(async->ia().mutex());
  if (const auto result = async->attach_other(); result != Result::kSuccess) return result;
  ia->async_ = async;
  out = std::move(ia);
  return Result::kSuccess;
}

Result Ia::close(bool abrupt) {
  {
    const Lock lock(mutex_);
    if (freed()) return Result::kInvalidHandle;
    const auto own = own_async_ ? 1U : 0U;
    if (!abrupt && objects_.size() > own) return Result::kInvalidState;
    mark_freed();
    for (const auto& [object, owner] : objects_) object->mark_freed();
    for (const auto& [object, owner] : objects_) object->abandon();
    stopping_ = true;
    progress_.wake_all();
  }
  if (watcher_.joinable()) watcher_.join();
  stop();
  // The IA's own asynchronous EVD keeps the IA alive.
  const auto async = std::move(async_);
  const Lock lock(async->ia().mutex());
  async->detach_other();
  return Result::kSuccess;
}

// The IA's objects can no longer be found. Wakes the threads that wait in one and closes the domain
// after they have left.
void Ia::stop() {
  for (Lock lock(mutex_); !progress_.idle(); lock.lock()) {
    progress_.wake_all();
    lock.unlock();
    std::this_thread::yield();
  }
  stm_domain_close(domain_.exchange(nullptr));
  const Lock lock(mutex_);
  connections_.clear();
  known_ep_ = {};
  listeners_.forget();
  objects_.clear();
}

void Ia::forget(Object& object) {
  object.mark_freed();
  objects_.erase(&object);
}

std::uint32_t Ia::add_lmr(Lmr& lmr) {
  STP_ASSERT(!lmrs_.contains(next_lmr_), "an LMR's context is its own");
  lmrs_.emplace(next_lmr_, &lmr);
  return next_lmr_++;
}

void Ia::remove_lmr(std::uint32_t context) {
  lmrs_.erase(context);
  if (known_lmr_.first == context) known_lmr_ = {};
}

Lmr* Ia::look_up_lmr(std::uint32_t context) {
  const auto found = lmrs_.find(context);
  if (found == lmrs_.end()) return nullptr;
  known_lmr_ = *found;
  return found->second;
}

Ep* Ia::find_ep(stm_connection_t connection) {
  if (connection == known_ep_.first) return known_ep_.second;
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return nullptr;
  known_ep_ = {connection, found->second.get()};
  return known_ep_.second;
}

void Ia::add_connection(stm_connection_t connection, std::shared_ptr<Ep> ep) {
  connections_.emplace(connection, std::move(ep));
}

void Ia::close_connection(stm_connection_t connection) {
  stm_connection_close(connection);
  const auto marker = next_id_++;
  // If the queue has no place for the marker, the EP is kept as long as the IA.
  if (stm_queue_post(progress_.queue(), marker) == 0) graves_.emplace(marker, connection);
}

void Ia::on_event(const stm_event_t& event) {
  if (event.kind == STM_USER) {
    const auto found = graves_.find(event.context);
    if (found == graves_.end()) return;
    connections_.erase(found->second);
    known_ep_ = {};
    graves_.erase(found);
    return;
  }
  if (event.kind == STM_REQUEST) {
    request(event);
    return;
  }
  if (event.kind == STM_LINK) {
    link_event(event);
    return;
  }
  // Only the marker of its connection ends an EP that has one.
  if (auto* const ep = find_ep(event.connection); ep != nullptr) ep->on_event(event);
}

// The interface has no event for a link that is down for a while: an IA survives that.
void Ia::link_event(const stm_event_t& event) {
  if (event.status == 0 || event.status == -ENETDOWN) return;
  Event catastrophic;
  catastrophic.number = EventNumber::kIaCatastrophic;
  catastrophic.reason = AsyncReason::kCatastrophic;
  catastrophic.handle = handle();
  tell_async(std::move(catastrophic));
}

void Ia::request(const stm_event_t& event) {
  const auto data = unpack(event.connection);
  const auto point = data ? listeners_.asked(event.context, data->conn_qual) : nullptr;
  if (point)
    point->arrived(event.connection);
  else  // no DAT peer, or a qualifier that nobody listens on: rejected by the provider
    stm_reject(event.connection, nullptr, 0);
}

void Ia::tell_async(Event event, const Evd* about) {
  if (async_ && async_.get() != about && &async_->ia() == this) async_->push(std::move(event));
}

void Ia::watch() {
  if (!watcher_.joinable()) watcher_ = start_thread([this] { run_watcher(); });
}

void Ia::call_later(std::function<void()> call) {
  calls_.push_back(std::move(call));
  progress_.wake(watcher_waiter_);
}

void Ia::run_watcher() {
  Lock lock(mutex_);
  while (!stopping_) {
    progress_.wait(
        lock, watcher_waiter_,
        [this] {
          mutex_.is_held();
          return stopping_ || !calls_.empty();
        },
        Deadline::max());
    while (!calls_.empty()) {
      const auto call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      call();
      lock.lock();
    }
  }
}

}  // namespace stp::udapl
