// SPDX-License-Identifier: BSD-3-Clause
// Service Points, Connection Requests and Shared Receive Queues.
#include "libst/udapl/dat1/registry/redirect.h"

using namespace stp::udapl::registry;

DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
                          DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
                          DAT_PSP_HANDLE* psp_handle) {
  return redirect<&DAT_PROVIDER::psp_create_func>(ia_handle, conn_qual, evd_handle, psp_flags,
                                                  psp_handle);
}

DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL* conn_qual,
                              DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
                              DAT_PSP_HANDLE* psp_handle) {
  return redirect<&DAT_PROVIDER::psp_create_any_func>(ia_handle, conn_qual, evd_handle, psp_flags,
                                                      psp_handle);
}

DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
                         DAT_PSP_PARAM* psp_param) {
  return redirect<&DAT_PROVIDER::psp_query_func>(psp_handle, psp_param_mask, psp_param);
}

DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle) {
  return redirect<&DAT_PROVIDER::psp_free_func>(psp_handle);
}

DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual, DAT_EP_HANDLE ep_handle,
                          DAT_EVD_HANDLE evd_handle, DAT_RSP_HANDLE* rsp_handle) {
  return redirect<&DAT_PROVIDER::rsp_create_func>(ia_handle, conn_qual, ep_handle, evd_handle,
                                                  rsp_handle);
}

DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
                         DAT_RSP_PARAM* rsp_param) {
  return redirect<&DAT_PROVIDER::rsp_query_func>(rsp_handle, rsp_param_mask, rsp_param);
}

DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle) {
  return redirect<&DAT_PROVIDER::rsp_free_func>(rsp_handle);
}

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
                        DAT_CR_PARAM* cr_param) {
  return redirect<&DAT_PROVIDER::cr_query_func>(cr_handle, cr_param_mask, cr_param);
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
                         DAT_COUNT private_data_size, const DAT_PVOID private_data) {
  return redirect<&DAT_PROVIDER::cr_accept_func>(cr_handle, ep_handle, private_data_size,
                                                 private_data);
}

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle) {
  return redirect<&DAT_PROVIDER::cr_reject_func>(cr_handle);
}

DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff) {
  return redirect<&DAT_PROVIDER::cr_handoff_func>(cr_handle, handoff);
}

DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* srq_attr,
                          DAT_SRQ_HANDLE* srq_handle) {
  return redirect<&DAT_PROVIDER::srq_create_func>(ia_handle, pz_handle, srq_attr, srq_handle);
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle) {
  return redirect<&DAT_PROVIDER::srq_free_func>(srq_handle);
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
                             DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie) {
  return redirect<&DAT_PROVIDER::srq_post_recv_func>(srq_handle, num_segments, local_iov,
                                                     user_cookie);
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
                         DAT_SRQ_PARAM* srq_param) {
  return redirect<&DAT_PROVIDER::srq_query_func>(srq_handle, srq_param_mask, srq_param);
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto) {
  return redirect<&DAT_PROVIDER::srq_resize_func>(srq_handle, srq_max_recv_dto);
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark) {
  return redirect<&DAT_PROVIDER::srq_set_lw_func>(srq_handle, low_watermark);
}
