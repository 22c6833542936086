// SPDX-License-Identifier: BSD-3-Clause
// The calls that the registry handles itself: its own, and those that open and close IAs.
#include <algorithm>
#include <new>
#include <string_view>

#include "libst/udapl/dat1/registry/redirect.h"

using namespace stp::udapl::registry;

namespace {

// Programs that support relaxed memory ordering put this prefix before the IA's name.
constexpr std::string_view kRelaxed = "RO_AWARE_";

// The registry throws only when an allocation fails.
template <typename Call>
DAT_RETURN guarded(Call call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return DAT_INSUFFICIENT_RESOURCES;
  }
}

}  // namespace

DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT* number_entries,
                                       DAT_PROVIDER_INFO*(dat_provider_list[])) {
  if (number_entries == nullptr) return DAT_INVALID_PARAMETER;
  return guarded(
      [&] { return Registry::instance().list(max_to_return, *number_entries, dat_provider_list); });
}

DAT_RETURN dat_registry_add_provider(const DAT_PROVIDER* provider,
                                     const DAT_PROVIDER_INFO* provider_info) {
  if (provider == nullptr || provider_info == nullptr) return DAT_INVALID_PARAMETER;
  return guarded([&] { return Registry::instance().add(*provider, *provider_info); });
}

DAT_RETURN dat_registry_remove_provider(const DAT_PROVIDER* provider,
                                        const DAT_PROVIDER_INFO* provider_info) {
  if (provider == nullptr || provider_info == nullptr) return DAT_INVALID_PARAMETER;
  return Registry::instance().remove(*provider, *provider_info);
}

DAT_RETURN dat_ia_openv(const DAT_NAME_PTR ia_name_ptr, DAT_COUNT async_evd_min_qlen,
                        DAT_EVD_HANDLE* async_evd_handle, DAT_IA_HANDLE* ia_handle,
                        DAT_UINT32 dapl_major, DAT_UINT32 dapl_minor, DAT_BOOLEAN thread_safety) {
  if (ia_name_ptr == nullptr) return DAT_INVALID_PARAMETER;
  std::string_view name = ia_name_ptr;
  if (name.starts_with(kRelaxed)) name.remove_prefix(kRelaxed.size());
  DAT_PROVIDER_INFO wanted{{}, dapl_major, dapl_minor, thread_safety};
  if (name.size() >= sizeof wanted.ia_name) return DAT_INVALID_PARAMETER;
  std::copy(name.begin(), name.end(), wanted.ia_name);
  return guarded([&]() -> DAT_RETURN {
    const auto* const provider = Registry::instance().acquire(wanted);
    if (provider == nullptr) return DAT_PROVIDER_NOT_FOUND;
    const auto result = provider->ia_open_func != nullptr
                            ? provider->ia_open_func(wanted.ia_name, async_evd_min_qlen,
                                                     async_evd_handle, ia_handle)
                            : static_cast<DAT_RETURN>(DAT_NOT_IMPLEMENTED);
    if (result != DAT_SUCCESS) Registry::instance().release(*provider);
    return result;
  });
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags) {
  const auto* const provider = provider_of(ia_handle);
  const auto result = redirect<&DAT_PROVIDER::ia_close_func>(ia_handle, ia_flags);
  if (result == DAT_SUCCESS) Registry::instance().release(*provider);
  return result;
}
