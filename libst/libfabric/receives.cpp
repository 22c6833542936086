// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/receives.h"

#include <rdma/fi_errno.h>

#include <utility>

#include "libst/libfabric/domain.h"
#include "libst/libfabric/ep.h"
#include "libst/libfabric/provider.h"

namespace stp::fi {

int Receives::post(PostedReceive&& receive) {
  if (posted.size() >= most) return -FI_EAGAIN;
  posted.push_back(std::move(receive));
  while (!hungry.empty() && !posted.empty()) {
    auto* const next = hungry.front();
    hungry.pop_front();
    next->match();
  }
  return 0;
}

namespace {

fi_ops srx_object_calls{
    .size = sizeof(fi_ops),
    .close = [](fid_t id) { return guarded([&] { return object_of<Srx, fid_ep>(id).close(); }); },
    .bind = refuse,
    .control = [](fid_t, int command, void*) { return command == FI_ENABLE ? 0 : -FI_ENOSYS; },
    .ops_open = refuse,
    .tostr = refuse,
    .ops_set = refuse,
};

fi_ops_ep srx_ep_calls{
    .size = sizeof(fi_ops_ep),
    .cancel = refuse,
    .getopt = refuse,
    .setopt = refuse,
    .tx_ctx = refuse,
    .rx_ctx = refuse,
    .rx_size_left = refuse,
    .tx_size_left = refuse,
};

}  // namespace

Srx::Srx(Domain& domain, const fi_rx_attr* attr, void* context)
    : MessageEnd({.fid = {.fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &srx_object_calls},
                  .ops = &srx_ep_calls,
                  .cm = nullptr,
                  .msg = &msg_calls,
                  .rma = nullptr,
                  .tagged = nullptr,
                  .atomic = nullptr,
                  .collective = nullptr},
                 kMsgOffer, {}),
      domain_(domain),
      link_(domain.link()) {
  if (attr != nullptr && attr->size != 0) receives_.most = attr->size;
  domain_.use();
}

int Srx::open(Domain& domain, const fi_rx_attr* attr, void* context, fid_ep*& out) {
  if (attr != nullptr && attr->size > kMostRxSize) return -FI_EINVAL;
  out = new Srx(domain, attr, context);
  return 0;
}

int Srx::close() {
  {
    const LinkLock lock(link_.mutex());
    if (users_ != 0) return -FI_EBUSY;
  }
  domain_.unuse();
  delete this;
  return 0;
}

ssize_t Srx::receive(const Inbound& inbound) {
  PostedReceive receive{.context = inbound.context, .flags = inbound.flags, .segments = {}};
  if (read_segments(inbound.iov, inbound.desc, inbound.count, receive.segments) != 0)
    return -FI_EINVAL;
  const LinkLock lock(link_.mutex());
  return receives_.post(std::move(receive));
}

}  // namespace stp::fi
