// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/front/front.h"

namespace stp::udapl::front {

// --- the structures of uDAPL 1.2 that differ from those of 2.0

DAT_IA_HANDLE consumers_ia(const Ia& ia) {
  return ia.handle();
}

void fill_own(const Registration& registration, DAT_IA_ATTR& attr) {
  copy_name(attr.adapter_name, registration.info.ia_name);
}

void fill_own(DAT_PROVIDER_ATTR& attr) {
  attr.provider_version_major = 1;
  attr.provider_version_minor = 2;
  attr.lmr_mem_types_supported = static_cast<DAT_MEM_TYPE>(DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR);
}

void fill_own(const Event&, DAT_DTO_COMPLETION_EVENT_DATA&) {}

void fill_own(const Lmr::Attr&, DAT_LMR_PARAM&) {}

void fill_own(DAT_RMR_PARAM&) {}

void fill_own(const Cno&, const DAT_OS_WAIT_PROXY_AGENT& agent, DAT_CNO_PARAM& param) {
  param.agent = agent;
}

// --- the calls whose arguments differ between uDAPL 1.2 and 2.0

namespace {

DAT_RETURN lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
                      DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
                      DAT_LMR_HANDLE* out, DAT_LMR_CONTEXT* lmr_context,
                      DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_size,
                      DAT_VADDR* registered_address) {
  return create_lmr(ia, {type, region, length, pz, privileges, false},
                    {out, lmr_context, rmr_context, registered_size, registered_address});
}

DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, const DAT_LMR_TRIPLET* triplet,
                    DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                    DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* out) {
  return bind_rmr(rmr, {triplet, privileges, false, ep, cookie, flags}, out);
}

DAT_RETURN cr_reject(DAT_CR_HANDLE handle) {
  const auto cr = find_cr(handle);
  return cr ? decided(handle, cr->reject({})) : bad_handle();
}

}  // namespace

void fill_own(DAT_PROVIDER& table) {
  table.lmr_create_func = lmr_create;
  table.rmr_bind_func = rmr_bind;
  table.cr_reject_func = cr_reject;
}

}  // namespace stp::udapl::front
