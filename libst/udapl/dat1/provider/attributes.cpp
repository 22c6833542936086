// SPDX-License-Identifier: BSD-3-Clause
// Fills the structures of uDAPL 1.2 that differ from those of 2.0.
#include "libst/udapl/front/front.h"

namespace stp::udapl::front {

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

}  // namespace stp::udapl::front
