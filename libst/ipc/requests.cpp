// SPDX-License-Identifier: BSD-3-Clause
#include "libst/ipc/requests.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "stp/channel/layout.h"

namespace stp::service {

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

}  // namespace stp::service
