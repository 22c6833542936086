// SPDX-License-Identifier: BSD-3-Clause
#include "libst/managed/reports.h"

#include <cerrno>

#include "libst/managed/domain.h"
#include "stp/base/assert.h"

namespace stp::managed {

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

stm_event_t Reports::event(std::uint32_t kind, int status, std::uint64_t context) const {
  stm_event_t event{};
  event.kind = kind;
  event.status = status;
  event.context = context;
  event.connection = reinterpret_cast<stm_connection_t>(handle_);
  return event;
}

void Reports::tell(std::uint32_t kind, int status) {
  if (!outlets_.events || outlets_.events.held() == 0) return;
  outlets_.events.push(event(kind, status));
}

void Reports::release_send() {
  outlets_.sends.release();
  outlets_.sends->domain().places_freed();
}

}  // namespace stp::managed
