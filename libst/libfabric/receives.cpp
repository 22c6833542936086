// SPDX-License-Identifier: BSD-3-Clause
#include "libst/libfabric/receives.h"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "libst/libfabric/ep.h"

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

}  // namespace stp::fi
