// SPDX-License-Identifier: BSD-3-Clause
// Fills the fields that only the structures of uDAPL 2.0 have.
#include "libst/udapl/front/front.h"

// The registry exports this function but no public header declares it.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* pointer);

namespace stp::udapl::front {
namespace {

// The registry's limit.
constexpr std::uintptr_t kMostIas = 128;

}  // namespace

// The registry gives programs a number for each IA. The provider knows only the pointer.
DAT_IA_HANDLE consumers_ia(const Ia& ia) {
  for (std::uintptr_t name = 1; name <= kMostIas; ++name) {
    auto* const handle = reinterpret_cast<DAT_IA_HANDLE>(name);
    DAT_IA_HANDLE pointer = nullptr;
    if (dats_get_ia_handle(handle, &pointer) == DAT_SUCCESS && pointer == ia.handle())
      return handle;
  }
  return ia.handle();
}

void fill_own(const Registration&, DAT_IA_ATTR& attr) {
  copy_name(attr.adapter_name, "Scheduled Transfer");
  attr.zb_supported = DAT_TRUE;
  attr.extension_supported = DAT_EXTENSION_NONE;
}

void fill_own(DAT_PROVIDER_ATTR& attr) {
  attr.provider_version_major = 2;
  attr.lmr_mem_types_supported = DAT_MEM_TYPE_VIRTUAL;
  attr.rmr_scope_supported = DAT_RMR_SCOPE_EP;
}

void fill_own(const Event& event, DAT_DTO_COMPLETION_EVENT_DATA& data) {
  switch (event.dto) {
    case Dto::kSend:
      data.operation = DAT_DTO_SEND;
      break;
    case Dto::kRdmaWrite:
      data.operation = DAT_DTO_RDMA_WRITE;
      break;
    case Dto::kRdmaRead:
      data.operation = DAT_DTO_RDMA_READ;
      break;
    case Dto::kReceive:
      data.operation = DAT_DTO_RECEIVE;
      break;
    case Dto::kBind:
      data.operation = DAT_DTO_BIND_MW;
      break;
  }
}

void fill_own(const Lmr::Attr& attr, DAT_LMR_PARAM& param) {
  param.va_type = attr.zero_based ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
}

void fill_own(DAT_RMR_PARAM& param) {
  param.rmr_scope = DAT_RMR_SCOPE_EP;
}

void fill_own(const Cno& cno, const DAT_OS_WAIT_PROXY_AGENT& agent, DAT_CNO_PARAM& param) {
  if (cno.fd() >= 0) {
    param.proxy_type = DAT_PROXY_TYPE_FD;
    param.proxy.fd = cno.fd();
  } else if (agent.proxy_agent_func != nullptr) {
    param.proxy_type = DAT_PROXY_TYPE_AGENT;
    param.proxy.agent = agent;
  } else {
    param.proxy_type = DAT_PROXY_TYPE_NONE;
  }
}

}  // namespace stp::udapl::front
