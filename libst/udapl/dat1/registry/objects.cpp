// SPDX-License-Identifier: BSD-3-Clause
// Interface Adapters, all objects, Protection Zones, memory.
#include "libst/udapl/dat1/registry/redirect.h"

using namespace stp::udapl::registry;

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE* async_evd_handle,
                        DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR* ia_attributes,
                        DAT_PROVIDER_ATTR_MASK provider_attr_mask,
                        DAT_PROVIDER_ATTR* provider_attributes) {
  return redirect<&DAT_PROVIDER::ia_query_func>(ia_handle, async_evd_handle, ia_attr_mask,
                                                ia_attributes, provider_attr_mask,
                                                provider_attributes);
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context) {
  return redirect<&DAT_PROVIDER::set_consumer_context_func>(dat_handle, context);
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT* context) {
  return redirect<&DAT_PROVIDER::get_consumer_context_func>(dat_handle, context);
}

DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE* handle_type) {
  return redirect<&DAT_PROVIDER::get_handle_type_func>(dat_handle, handle_type);
}

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* pz_handle) {
  return redirect<&DAT_PROVIDER::pz_create_func>(ia_handle, pz_handle);
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
                        DAT_PZ_PARAM* pz_param) {
  return redirect<&DAT_PROVIDER::pz_query_func>(pz_handle, pz_param_mask, pz_param);
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle) {
  return redirect<&DAT_PROVIDER::pz_free_func>(pz_handle);
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
                          DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
                          DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS mem_privileges,
                          DAT_LMR_HANDLE* lmr_handle, DAT_LMR_CONTEXT* lmr_context,
                          DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_size,
                          DAT_VADDR* registered_address) {
  return redirect<&DAT_PROVIDER::lmr_create_func>(
      ia_handle, mem_type, region_description, length, pz_handle, mem_privileges, lmr_handle,
      lmr_context, rmr_context, registered_size, registered_address);
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
                         DAT_LMR_PARAM* lmr_param) {
  return redirect<&DAT_PROVIDER::lmr_query_func>(lmr_handle, lmr_param_mask, lmr_param);
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle) {
  return redirect<&DAT_PROVIDER::lmr_free_func>(lmr_handle);
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                  DAT_VLEN num_segments) {
  return redirect<&DAT_PROVIDER::lmr_sync_rdma_read_func>(ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                   DAT_VLEN num_segments) {
  return redirect<&DAT_PROVIDER::lmr_sync_rdma_write_func>(ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE* rmr_handle) {
  return redirect<&DAT_PROVIDER::rmr_create_func>(pz_handle, rmr_handle);
}

DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
                         DAT_RMR_PARAM* rmr_param) {
  return redirect<&DAT_PROVIDER::rmr_query_func>(rmr_handle, rmr_param_mask, rmr_param);
}

DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT_LMR_TRIPLET* lmr_triplet,
                        DAT_MEM_PRIV_FLAGS mem_privileges, DAT_EP_HANDLE ep_handle,
                        DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
                        DAT_RMR_CONTEXT* rmr_context) {
  return redirect<&DAT_PROVIDER::rmr_bind_func>(rmr_handle, lmr_triplet, mem_privileges, ep_handle,
                                                user_cookie, completion_flags, rmr_context);
}

DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle) {
  return redirect<&DAT_PROVIDER::rmr_free_func>(rmr_handle);
}
