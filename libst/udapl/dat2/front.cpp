// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/dat2/front.h"

#include <arpa/inet.h>

// Of the registry, which exports it and declares it nowhere in public.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* pointer);

namespace stp::udapl::dat2 {
namespace {

// As many as the registry knows.
constexpr std::uintptr_t kMostIas = 128;

}  // namespace

DAT_HANDLE publish(DAT_HANDLE ia, const std::shared_ptr<Object>& object) {
  return add_shell(shell_of(ia).provider, object);
}

DAT_IA_HANDLE consumers_ia(const Ia& ia) {
  for (std::uintptr_t name = 1; name <= kMostIas; ++name) {
    auto* const handle = reinterpret_cast<DAT_IA_HANDLE>(name);
    DAT_IA_HANDLE pointer = nullptr;
    if (dats_get_ia_handle(handle, &pointer) == DAT_SUCCESS && pointer == ia.handle())
      return handle;
  }
  return ia.handle();
}

sockaddr_in address_of(std::uint32_t ipv4) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(ipv4 != 0 ? ipv4 : INADDR_LOOPBACK);
  return address;
}

std::span<const std::byte> bytes(const void* data, DAT_COUNT size) {
  if (data == nullptr || size <= 0) return {};
  return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

}  // namespace stp::udapl::dat2
