// SPDX-License-Identifier: BSD-3-Clause
#include "libst/udapl/front/front.h"

// The registry exports this function but no public header declares it.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* pointer);

namespace stp::udapl::front {

// --- the fields that only the structures of uDAPL 2.0 have

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

// --- the calls that only uDAPL 2.0 has, and those whose arguments differ from 1.2

namespace {

DAT_RETURN lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
                      DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
                      DAT_VA_TYPE va_type, DAT_LMR_HANDLE* out, DAT_LMR_CONTEXT* lmr_context,
                      DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                      DAT_VADDR* registered_address) {
  return create_lmr(ia, {type, region, length, pz, privileges, va_type == DAT_VA_TYPE_ZB},
                    {out, lmr_context, rmr_context, registered_length, registered_address});
}

DAT_RETURN rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET* triplet,
                    DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va_type, DAT_EP_HANDLE ep,
                    DAT_RMR_COOKIE cookie, DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* out) {
  if (lmr != DAT_HANDLE_NULL && !front::find_lmr(lmr)) return bad_handle();
  return bind_rmr(rmr, {triplet, privileges, va_type == DAT_VA_TYPE_ZB, ep, cookie, flags}, out);
}

DAT_RETURN create_fd(DAT_IA_HANDLE ia_handle, DAT_FD* fd, DAT_CNO_HANDLE* out) {
  const auto ia = find_ia(ia_handle);
  if (!ia) return bad_handle();
  if (fd == nullptr || out == nullptr) return bad_parameter();
  std::shared_ptr<Cno> cno;
  const auto result = Cno::create_with_fd(*ia, *fd, cno);
  if (result == Result::kSuccess) *out = publish(ia_handle, cno);
  return to_dat(result);
}

DAT_RETURN trigger(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE* evd) {
  const auto cno = find_cno(handle);
  if (!cno) return bad_handle();
  if (evd == nullptr) return bad_parameter();
  return to_dat(cno->take_trigger(*evd));
}

DAT_RETURN cr_reject(DAT_CR_HANDLE handle, DAT_COUNT size, const DAT_PVOID data) {
  const auto cr = find_cr(handle);
  if (!cr) return bad_handle();
  if (!is_data(size, data)) return bad_parameter();
  return decided(handle, cr->reject(bytes(data, size)));
}

// The protocol has no remote invalidation.
DAT_RETURN post_send_with_invalidate(DAT_EP_HANDLE handle, DAT_COUNT count, DAT_LMR_TRIPLET* iov,
                                     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                                     DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT) {
  if (invalidate == DAT_TRUE) return error(DAT_MODEL_NOT_SUPPORTED);
  if (!find<Ep, Object::Kind::kEp>(handle)) return bad_handle();
  return shell_of(handle).provider->ep_post_send_func(handle, count, iov, cookie, flags);
}

DAT_RETURN post_rdma_read_to_rmr(DAT_EP_HANDLE, const DAT_RMR_TRIPLET*, DAT_DTO_COOKIE,
                                 const DAT_RMR_TRIPLET*, DAT_COMPLETION_FLAGS) {
  return error(DAT_MODEL_NOT_SUPPORTED);
}

DAT_RETURN ep_common_connect(DAT_EP_HANDLE, DAT_IA_ADDRESS_PTR, DAT_TIMEOUT, DAT_COUNT,
                             const DAT_PVOID) {
  return error(DAT_MODEL_NOT_SUPPORTED);
}

DAT_RETURN csp_create(DAT_IA_HANDLE, DAT_COMM*, DAT_IA_ADDRESS_PTR, DAT_EVD_HANDLE,
                      DAT_CSP_HANDLE*) {
  return error(DAT_MODEL_NOT_SUPPORTED);
}
DAT_RETURN csp_query(DAT_CSP_HANDLE, DAT_CSP_PARAM_MASK, DAT_CSP_PARAM*) {
  return bad_handle();
}
DAT_RETURN csp_free(DAT_CSP_HANDLE) {
  return bad_handle();
}

DAT_RETURN no_extension(DAT_HANDLE, DAT_EXTENDED_OP, va_list) {
  return error(DAT_NOT_IMPLEMENTED);
}

DAT_RETURN not_related(DAT_IA_HANDLE, const DAT_NAME_PTR, DAT_BOOLEAN* answer) {
  if (answer == nullptr) return bad_parameter();
  *answer = DAT_FALSE;
  return DAT_SUCCESS;
}

}  // namespace

void fill_own(DAT_PROVIDER& table) {
  table.lmr_create_func = lmr_create;
  table.rmr_bind_func = rmr_bind;
  table.rmr_create_for_ep_func = table.rmr_create_func;
  table.cno_fd_create_func = create_fd;
  table.cno_trigger_func = trigger;
  table.cr_reject_func = cr_reject;
  table.ep_post_send_with_invalidate_func = post_send_with_invalidate;
  table.ep_post_rdma_read_to_rmr_func = post_rdma_read_to_rmr;
  table.ep_common_connect_func = ep_common_connect;
  table.csp_create_func = csp_create;
  table.csp_query_func = csp_query;
  table.csp_free_func = csp_free;
  table.handle_extendedop_func = no_extension;
  table.ia_ha_related_func = not_related;
}

}  // namespace stp::udapl::front
