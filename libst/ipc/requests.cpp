// SPDX-License-Identifier: BSD-3-Clause
#include "libst/ipc/requests.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <type_traits>

#include "stp/channel/layout.h"

namespace stp::ipc {
namespace {

// Messages have no padding, which would send bytes of the sender's stack.
template <typename T>
constexpr bool kIsTight = std::is_empty_v<T> || std::has_unique_object_representations_v<T>;
static_assert(kIsTight<RequestHead> && kIsTight<ReplyHead> && kIsTight<Refusal>);
#define STP_IS_TIGHT(Name, ...) \
  static_assert(kIsTight<ask::Name> && kIsTight<ask::Name::Reply>, #Name);
STP_REQUESTS(STP_IS_TIGHT)
#undef STP_IS_TIGHT

template <typename Reply>
const GivenChannel* channel_of(const Reply& reply) {
  if constexpr (requires { reply.channel; }) return &reply.channel;
  return nullptr;
}

}  // namespace

const GivenChannel* channel_in(const ReplyMessage& message) {
  if (message.head.result != 0) return nullptr;
  switch (message.head.kind) {
    case RequestKind::kNone:
      break;
#define STP_CHANNEL(Name, ...) \
  case RequestKind::k##Name:   \
    return channel_of(message.as<ask::Name>());
      STP_REQUESTS(STP_CHANNEL)
#undef STP_CHANNEL
  }
  return nullptr;
}

std::size_t size_of(const RequestHead& head) {
  const auto* const rule = rule_of(head.kind);
  return rule == nullptr ? 0 : sizeof head + rule->size;
}

std::size_t size_of(const ReplyHead& head) {
  if (head.result != 0) return sizeof head + sizeof(Refusal);
  const auto* const rule = rule_of(head.kind);
  return rule == nullptr ? 0 : sizeof head + rule->reply_size;
}

bool makes_sense(const RequestMessage& message, std::size_t fd_count) {
  const auto* const rule = rule_of(message.head.kind);
  if (rule == nullptr || message.head.reserved != 0) return false;
  if (fd_count < rule->least_files || fd_count > rule->most_files) return false;
  const auto wrong = dispatch(message, [](const auto& request) {
    if constexpr (requires { request.reserved; }) return request.reserved == 0 ? 0 : -EINVAL;
    return 0;
  });
  return wrong == 0;
}

bool only_watches(RequestKind kind) {
  const auto* const rule = rule_of(kind);
  return rule != nullptr && rule->who != Who::kProgram;
}

int from_wire(const WireConfig& given, EndpointConfig& out) {
  if (given.port > wire::kMaxPort) return -EINVAL;
  for (const auto flag :
       {given.connectionless, given.checksum, given.keep_alive, given.recover, given.inspect})
    if (flag > 1) return -EINVAL;
  if (given.connect_patience > kLongestPatience) return -EINVAL;
  // These decide how much memory a channel takes, so they are checked first.
  if (given.slots == 0 || given.slots > kMaxSlots) return -EINVAL;
  if (given.credits == 0 || given.credits > kMaxCredits) return -EINVAL;
  out.connectionless = given.connectionless != 0;
  out.bufsize = given.bufsize;
  out.max_stu = given.max_stu;
  out.port = static_cast<std::uint16_t>(given.port);
  out.key = given.key;
  out.rx_bufx_base = given.rx_bufx_base;
  out.rx_bufx_count = given.rx_bufx_count;
  out.tx_bufx_base = given.tx_bufx_base;
  out.tx_bufx_count = given.tx_bufx_count;
  out.slots = given.slots;
  out.credits = given.credits;
  out.checksum = given.checksum != 0;
  out.keep_alive = given.keep_alive != 0;
  out.recover = given.recover != 0;
  out.inspect = given.inspect != 0;
  out.connect_patience = given.connect_patience * kMillisecond;
  return 0;
}

WireConfig to_wire(const EndpointConfig& config) {
  WireConfig made{};
  made.connectionless = config.connectionless ? 1 : 0;
  made.bufsize = config.bufsize;
  made.max_stu = config.max_stu;
  made.port = config.port;
  made.key = config.key;
  made.rx_bufx_base = config.rx_bufx_base;
  made.rx_bufx_count = config.rx_bufx_count;
  made.tx_bufx_base = config.tx_bufx_base;
  made.tx_bufx_count = config.tx_bufx_count;
  made.slots = config.slots;
  made.credits = config.credits;
  made.checksum = config.checksum ? 1 : 0;
  made.keep_alive = config.keep_alive ? 1 : 0;
  made.recover = config.recover ? 1 : 0;
  made.inspect = config.inspect ? 1 : 0;
  made.connect_patience = static_cast<std::uint32_t>(config.connect_patience / kMillisecond);
  return made;
}

int from_wire(const WireOption& given, OptionPayload& out) {
  if (given.length != 0 && given.length != wire::kOptionSize) return -EINVAL;
  out = to_option(Bytes(given.bytes).first(given.length));
  return 0;
}

WireOption to_wire(const OptionPayload& option) {
  WireOption made{};
  if (!option) return made;
  made.length = wire::kOptionSize;
  std::ranges::copy(*option, made.bytes);
  return made;
}

}  // namespace stp::ipc
