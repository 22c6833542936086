// SPDX-License-Identifier: BSD-3-Clause
// How a call gets to the provider of its first handle.
#pragma once

#include "libst/udapl/dat1/registry/registry.h"

namespace stp::udapl::registry {

template <auto kCall, typename... Rest>
DAT_RETURN redirect(DAT_HANDLE handle, Rest... rest) {
  const auto* const provider = provider_of(handle);
  if (provider == nullptr) return DAT_INVALID_HANDLE;
  const auto call = provider->*kCall;
  return call != nullptr ? call(handle, rest...) : static_cast<DAT_RETURN>(DAT_NOT_IMPLEMENTED);
}

}  // namespace stp::udapl::registry
