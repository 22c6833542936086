// SPDX-License-Identifier: BSD-3-Clause
#include "libst/client/trouble.h"

#include <cerrno>

#include "libst/client/error.h"
#include "libst/service/text_field.h"

namespace stp::client {
namespace {

constexpr std::size_t kLongest = 1'024;

}  // namespace

std::string trouble_of(Backend& backend, const MacAddr& peer) {
  std::string text;
  while (text.size() < kLongest) {
    auto request = request_for(RequestKind::kTrouble);
    request.index = static_cast<std::uint32_t>(text.size());
    request.mac = peer.to_u64();
    Reply reply{};
    if (backend.exchange(request, reply) != 0) break;
    const auto piece = service::text_of(reply.text);
    if (piece.empty()) break;
    text += piece;
  }
  return text;
}

int fail_in_time(Backend& backend, const MacAddr& peer) {
  const auto trouble = trouble_of(backend, peer);
  if (trouble.empty()) return -ETIMEDOUT;
  return fail(-ETIMEDOUT, "nobody answered in time, and the link has trouble: " + trouble);
}

}  // namespace stp::client
