// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "dpdk_port/link/link.h"
#include "libst/managed/domain.h"
#include "stp/base/assert.h"

namespace stp::managed {

// Somebody may wait for the events that have just come.
[[gnu::noinline]] void Queue::tell(bool was_empty) {
  if (fd_ && was_empty) ::eventfd_write(fd_.get(), 1);
  if (waiters != 0) domain_->wake_waiters();
}

[[gnu::noinline]] void Queue::copy_first(stm_event_t* events, std::size_t count) const {
  for (std::size_t next = 0; next != count;) {
    const auto row = events_.row(next, count - next);
    events = std::copy(row.begin(), row.end(), events);
    next += row.size();
  }
}

int Queue::take(stm_event_t* events, int max) {
  const auto count = std::min(events_.size(), static_cast<std::size_t>(std::max(max, 0)));
  if (count == 0) return 0;
  if (count == 1)
    events[0] = events_.front();
  else
    copy_first(events, count);
  events_.pop_front(count);
  domain_->mutex().is_held();
  domain_->places_freed();
  if (fd_ && events_.empty()) {
    std::uint64_t value;
    // Reading resets the descriptor to not readable.
    [[maybe_unused]] const auto got = ::read(fd_.get(), &value, sizeof value);
  }
  return static_cast<int>(count);
}

int Queue::resize(std::size_t capacity) {
  if (capacity == 0 || capacity > kMaxCapacity || capacity < events_.size() + reserved_)
    return -EINVAL;
  capacity_ = capacity;
  return 0;
}

int Queue::descriptor() {
  if (!fd_) fd_.reset(::eventfd(events_.empty() ? 0 : 1, EFD_CLOEXEC | EFD_NONBLOCK));
  return fd_ ? fd_.get() : -errno;
}

int Reports::open(Outlets outlets) {
  constexpr std::size_t kOwnEvents = 2;
  if (!outlets.events.reserve(kOwnEvents)) return -EAGAIN;
  if (outlets.pool) ++outlets.pool->users;
  outlets_ = std::move(outlets);
  return 0;
}

void Reports::close() {
  STP_ASSERT(!outlets_.pool || outlets_.pool->users > 0, "a connection's pool is in use");
  if (outlets_.pool) --outlets_.pool->users;
  const auto context = outlets_.context;
  outlets_ = {};
  outlets_.context = context;
}

void Reports::tell(std::uint32_t kind, int status) {
  if (!outlets_.events || outlets_.events.held() == 0) return;
  outlets_.events.push(event(kind, status));
}

void Reports::release_send() {
  outlets_.sends.release();
  auto& domain = outlets_.sends->domain();
  domain.mutex().is_held();
  domain.places_freed();
}

namespace {

using port::LinkState;

constexpr bool same(LinkState state, stm_link_state known) {
  return static_cast<int>(state) == static_cast<int>(known);
}
static_assert(same(LinkState::kUnknown, STM_LINK_UNKNOWN) && same(LinkState::kUp, STM_LINK_UP) &&
              same(LinkState::kDown, STM_LINK_DOWN) &&
              same(LinkState::kNoCarrier, STM_LINK_NO_CARRIER) &&
              same(LinkState::kGone, STM_LINK_GONE) && same(LinkState::kNoPeer, STM_LINK_NO_PEER) &&
              same(LinkState::kTaken, STM_LINK_TAKEN) && same(LinkState::kMtu, STM_LINK_MTU) &&
              same(LinkState::kMac, STM_LINK_MAC) &&
              same(LinkState::kDuplicate, STM_LINK_DUPLICATE));
static_assert(port::kLinkStates.size() == STM_LINK_DUPLICATE + 1, "a state has no public name");

}  // namespace

LinkWatch::View LinkWatch::view_of(client::Backend& backend) {
  View view;
  view.error = backend.error();
  if (view.error != 0) return view;
  const auto& page = backend.page();
  view.changes = page.link_changes.load(std::memory_order_acquire);
  view.state = page.link_state.load(std::memory_order_relaxed);
  return view;
}

bool LinkWatch::begin(client::Backend& backend, std::shared_ptr<Queue> queue,
                      std::uint64_t context) {
  QueueUse use(std::move(queue));
  if (!use.reserve()) return false;
  queue_ = std::move(use);
  context_ = context;
  behind_ = false;
  report(view_of(backend));
  return true;
}

void LinkWatch::end() {
  queue_.reset();
  behind_ = false;
}

void LinkWatch::look_again(client::Backend& backend) {
  const View view = view_of(backend);
  if (view.error == reported_.error && view.changes == reported_.changes) return;
  behind_ = !queue_.reserve();
  if (!behind_) report(view);
}

void LinkWatch::report(const View& view) {
  const bool passes = port::carries_frames(static_cast<LinkState>(view.state));
  stm_event_t event{};
  event.kind = STM_LINK;
  event.status = view.error != 0 ? view.error : passes ? 0 : -ENETDOWN;
  event.context = context_;
  event.message = view.changes;
  event.tag = view.state;
  queue_.push(event);
  reported_ = view;
}

}  // namespace stp::managed
