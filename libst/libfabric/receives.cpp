// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/receives.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
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

int read_segments(const iovec* iov, void** desc, std::size_t count, Segments& out) {
  if (count > kSegments) return -FI_EINVAL;
  out.count = count;
  for (std::size_t i = 0; i < count; ++i) {
    out.iov[i] = iov[i];
    out.desc[i] = desc != nullptr ? desc[i] : nullptr;
    out.length += iov[i].iov_len;
  }
  return 0;
}

Segments one_segment(const void* buffer, std::size_t length, void* desc) {
  Segments one;
  one.count = 1;
  one.iov[0] = {const_cast<void*>(buffer), length};
  one.desc[0] = desc;
  one.length = length;
  return one;
}

Segments shortened(const Segments& segments, std::size_t length) {
  auto result = segments;
  result.length = std::min(length, segments.length);
  auto left = result.length;
  for (std::size_t i = 0; i < result.count; ++i) {
    result.iov[i].iov_len = std::min(result.iov[i].iov_len, left);
    left -= result.iov[i].iov_len;
  }
  return result;
}

Segments without(const Segments& segments, std::size_t length) {
  auto result = segments;
  result.length -= std::min(length, result.length);
  for (std::size_t i = 0; i < result.count; ++i) {
    auto& part = result.iov[i];
    const auto left_out = std::min(length, part.iov_len);
    if (left_out != 0) part.iov_base = static_cast<std::byte*>(part.iov_base) + left_out;
    part.iov_len -= left_out;
    length -= left_out;
  }
  return result;
}

void gather(const Segments& from, std::byte* to) {
  for (std::size_t i = 0; i < from.count; ++i) {
    if (from.iov[i].iov_len != 0) std::memcpy(to, from.iov[i].iov_base, from.iov[i].iov_len);
    to += from.iov[i].iov_len;
  }
}

void scatter(const std::byte* from, const Segments& to, std::size_t length) {
  for (std::size_t i = 0; i < to.count && length != 0; ++i) {
    const auto part = std::min(length, to.iov[i].iov_len);
    if (part == 0) continue;
    std::memcpy(to.iov[i].iov_base, from, part);
    from += part;
    length -= part;
  }
}

// ---- srx

namespace {

Srx& srx_of(fid_ep* ep) {
  return *static_cast<Srx*>(ep);
}

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

fi_ops_msg msg_calls{
    .size = sizeof(fi_ops_msg),
    .recv =
        [](fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t, void* context) {
          return guarded([&] {
            return srx_of(ep).post(
                {.context = context, .segments = one_segment(buffer, length, desc)});
          });
        },
    .recvv = [](fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t,
                void* context) -> ssize_t {
      PostedReceive receive{.context = context, .segments = {}};
      if (const auto error = read_segments(iov, desc, count, receive.segments); error != 0)
        return error;
      return guarded([&] { return srx_of(ep).post(std::move(receive)); });
    },
    .recvmsg = [](fid_ep* ep, const fi_msg* msg, std::uint64_t flags) -> ssize_t {
      PostedReceive receive{.context = msg->context, .flags = flags, .segments = {}};
      const auto error = read_segments(msg->msg_iov, msg->desc, msg->iov_count, receive.segments);
      if (error != 0) return error;
      return guarded([&] { return srx_of(ep).post(std::move(receive)); });
    },
    .send = refuse,
    .sendv = refuse,
    .sendmsg = refuse,
    .inject = refuse,
    .senddata = refuse,
    .injectdata = refuse,
};

}  // namespace

Srx::Srx(Domain& domain, const fi_rx_attr* attr, void* context)
    : fid_ep{.fid = {.fclass = FI_CLASS_SRX_CTX, .context = context, .ops = &srx_object_calls},
             .ops = &srx_ep_calls,
             .cm = nullptr,
             .msg = &msg_calls,
             .rma = nullptr,
             .tagged = nullptr,
             .atomic = nullptr,
             .collective = nullptr},
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

ssize_t Srx::post(PostedReceive&& receive) {
  const LinkLock lock(link_.mutex());
  return receives_.post(std::move(receive));
}

}  // namespace stp::fi
