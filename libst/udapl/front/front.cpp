// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/front/front.h"

#include <mutex>

namespace stp::udapl::front {

DAT_HANDLE publish(DAT_HANDLE ia, const std::shared_ptr<Object>& object) {
  return add_shell(shell_of(ia).provider, object);
}

sockaddr_in address_of(std::uint32_t ipv4) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(ipv4 != 0 ? ipv4 : INADDR_LOOPBACK);
  return address;
}

DAT_IA_ADDRESS_PTR local_address(const Ia& ia) {
  static std::mutex mutex;
  const auto present = address_of(ia.info().ipv4);
  auto& shown = shell_of(ia.handle()).local;
  const std::lock_guard guard(mutex);
  if (shown.sin_addr.s_addr != present.sin_addr.s_addr || shown.sin_family != present.sin_family)
    shown = present;
  return reinterpret_cast<DAT_IA_ADDRESS_PTR>(&shown);
}

std::span<const std::byte> bytes(const void* data, DAT_COUNT size) {
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

}  // namespace stp::udapl::front
