// SPDX-License-Identifier: BSD-3-Clause
// What is specific to uDAPL 2.0, for tests that run with both interfaces.
#pragma once

#include <dat2/udat.h>

namespace stp::test {

inline DAT_LMR_TRIPLET segment(DAT_LMR_CONTEXT context, const void* data, std::size_t length) {
  return {reinterpret_cast<DAT_VADDR>(data), static_cast<DAT_SEG_LENGTH>(length), context};
}
inline DAT_RMR_TRIPLET target(DAT_RMR_CONTEXT context, const void* data, std::size_t length) {
  return {reinterpret_cast<DAT_VADDR>(data), static_cast<DAT_SEG_LENGTH>(length), context};
}

inline DAT_RETURN create_lmr(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
                             DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
                             DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* context,
                             DAT_RMR_CONTEXT* remote) {
  return dat_lmr_create(ia, type, region, length, pz, privileges, DAT_VA_TYPE_VA, lmr, context,
                        remote, nullptr, nullptr);
}
inline DAT_RETURN bind_rmr(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET* part,
                           DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                           DAT_RMR_CONTEXT* context) {
  return dat_rmr_bind(rmr, lmr, part, privileges, DAT_VA_TYPE_VA, ep, cookie,
                      DAT_COMPLETION_DEFAULT_FLAG, context);
}
inline DAT_RETURN reject(DAT_CR_HANDLE cr) {
  return dat_cr_reject(cr, 0, nullptr);
}
inline DAT_OS_WAIT_PROXY_AGENT agent_of(const DAT_CNO_PARAM& param) {
  if (param.proxy_type == DAT_PROXY_TYPE_AGENT) return param.proxy.agent;
  return DAT_OS_WAIT_PROXY_AGENT_NULL;
}
inline void ask_for_message_size(DAT_EP_ATTR& attr, DAT_VLEN size) {
  attr.max_message_size = static_cast<DAT_SEG_LENGTH>(size);
}

}  // namespace stp::test
