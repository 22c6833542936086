// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/link_watch.h"

#include <cerrno>

#include "dpdk_port/link/link_state.h"

namespace stp::managed {
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

void LinkWatch::look(client::Backend& backend) {
  if (!queue_) return;
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
