// SPDX-License-Identifier: BSD-3-Clause
// What is specific to uDAPL 1.2, for tests that run with both interfaces.
#pragma once

#include <dat/udat.h>

namespace stp::test {

inline DAT_LMR_TRIPLET segment(DAT_LMR_CONTEXT context, const void* data, std::size_t length) {
  return {context, 0, reinterpret_cast<DAT_VADDR>(data), length};
}
inline DAT_RMR_TRIPLET target(DAT_RMR_CONTEXT context, const void* data, std::size_t length) {
  return {context, 0, reinterpret_cast<DAT_VADDR>(data), length};
}

inline DAT_RETURN create_lmr(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
                             DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
                             DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* context,
                             DAT_RMR_CONTEXT* remote) {
  return dat_lmr_create(ia, type, region, length, pz, privileges, lmr, context, remote, nullptr,
                        nullptr);
}
inline DAT_RETURN bind_rmr(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE, const DAT_LMR_TRIPLET* part,
                           DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                           DAT_RMR_CONTEXT* context) {
  return dat_rmr_bind(rmr, part, privileges, ep, cookie, DAT_COMPLETION_DEFAULT_FLAG, context);
}
inline DAT_RETURN reject(DAT_CR_HANDLE cr) {
  return dat_cr_reject(cr);
}
inline DAT_OS_WAIT_PROXY_AGENT agent_of(const DAT_CNO_PARAM& param) {
  return param.agent;
}
// Sets the attribute by its name in uDAPL 1.1.
inline void ask_for_message_size(DAT_EP_ATTR& attr, DAT_VLEN size) {
  attr.max_mtu_size = size;
}

}  // namespace stp::test
