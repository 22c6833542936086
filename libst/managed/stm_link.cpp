// SPDX-License-Identifier: BSD-3-Clause
// The managed C API: the state of a domain's link.
#include "libst/client/links.h"
#include "libst/managed/api.h"

using stp::managed::Domain;
using stp::managed::Queue;
using namespace stp::managed::api;

int stm_link_query(stm_domain_t domain, stm_link_info_t* info) {
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    auto& backend = found->backend();
    auto request = stp::client::request_for(stp::client::RequestKind::kLinkState);
    stp::client::Reply reply{};
    if (const auto error = backend.exchange(request, reply); error != 0) return error;
    stm_link_info_t known{};
    known.state = reply.state;
    known.changes = static_cast<std::uint32_t>(reply.value);
    known.age = reply.age / stp::kMicrosecond;
    known.mtu = reply.mtu;
    known.megabits = reply.megabits;
    stp::client::trouble_of(backend).copy(known.trouble, sizeof known.trouble - 1);
    return write_info(known, info);
  });
}

int stm_link_watch(stm_domain_t domain, stm_queue_t queue, uint64_t context) {
  return guarded([&] {
    const auto found = find<Domain>(domain);
    if (!found) return -EBADF;
    if (queue == nullptr) {
      std::lock_guard const guard(found->mutex());
      found->link_watch().end();
      return 0;
    }
    const auto events = find<Queue>(queue);
    if (!events) return -EBADF;
    if (&events->domain() != &*found) return fail(-EINVAL, "the queue is of another domain");
    std::lock_guard const guard(found->mutex());
    if (events->destroyed()) return -EBADF;
    if (!found->link_watch().begin(found->backend(), events.share(), context))
      return fail(-EAGAIN, "the queue has no place for the link's present state");
    return 0;
  });
}
