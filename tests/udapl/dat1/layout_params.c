/* SPDX-License-Identifier: BSD-3-Clause */
/* uDAPL 1.2: the layout of structures that queries fill, which is compiled into programs. */
#include <dat/udat.h>

#include "tests/abi/layout.h"

static void check_named_attr(void) {
  TYPE(DAT_NAMED_ATTR, 16);
  FIELD(DAT_NAMED_ATTR, name, 0, 8);
  FIELD(DAT_NAMED_ATTR, value, 8, 8);
}

static void check_ep_attr(void) {
  TYPE(DAT_EP_ATTR, 104);
  FIELD(DAT_EP_ATTR, service_type, 0, 4);
  FIELD(DAT_EP_ATTR, max_message_size, 8, 8);
  FIELD(DAT_EP_ATTR, max_mtu_size, 8, 8);
  FIELD(DAT_EP_ATTR, max_rdma_size, 16, 8);
  FIELD(DAT_EP_ATTR, qos, 24, 4);
  FIELD(DAT_EP_ATTR, recv_completion_flags, 28, 4);
  FIELD(DAT_EP_ATTR, request_completion_flags, 32, 4);
  FIELD(DAT_EP_ATTR, max_recv_dtos, 36, 4);
  FIELD(DAT_EP_ATTR, max_request_dtos, 40, 4);
  FIELD(DAT_EP_ATTR, max_recv_iov, 44, 4);
  FIELD(DAT_EP_ATTR, max_request_iov, 48, 4);
  FIELD(DAT_EP_ATTR, max_rdma_read_in, 52, 4);
  FIELD(DAT_EP_ATTR, max_rdma_read_out, 56, 4);
  FIELD(DAT_EP_ATTR, srq_soft_hw, 60, 4);
  FIELD(DAT_EP_ATTR, max_rdma_read_iov, 64, 4);
  FIELD(DAT_EP_ATTR, max_rdma_write_iov, 68, 4);
  FIELD(DAT_EP_ATTR, ep_transport_specific_count, 72, 4);
  FIELD(DAT_EP_ATTR, ep_transport_specific, 80, 8);
  FIELD(DAT_EP_ATTR, ep_provider_specific_count, 88, 4);
  FIELD(DAT_EP_ATTR, ep_provider_specific, 96, 8);
}

static void check_ep_param(void) {
  TYPE(DAT_EP_PARAM, 192);
  FIELD(DAT_EP_PARAM, ia_handle, 0, 8);
  FIELD(DAT_EP_PARAM, ep_state, 8, 4);
  FIELD(DAT_EP_PARAM, local_ia_address_ptr, 16, 8);
  FIELD(DAT_EP_PARAM, local_port_qual, 24, 8);
  FIELD(DAT_EP_PARAM, remote_ia_address_ptr, 32, 8);
  FIELD(DAT_EP_PARAM, remote_port_qual, 40, 8);
  FIELD(DAT_EP_PARAM, pz_handle, 48, 8);
  FIELD(DAT_EP_PARAM, recv_evd_handle, 56, 8);
  FIELD(DAT_EP_PARAM, request_evd_handle, 64, 8);
  FIELD(DAT_EP_PARAM, connect_evd_handle, 72, 8);
  FIELD(DAT_EP_PARAM, srq_handle, 80, 8);
  FIELD(DAT_EP_PARAM, ep_attr, 88, 104);
}

static void check_srq_attr(void) {
  TYPE(DAT_SRQ_ATTR, 12);
  FIELD(DAT_SRQ_ATTR, max_recv_dtos, 0, 4);
  FIELD(DAT_SRQ_ATTR, max_recv_iov, 4, 4);
  FIELD(DAT_SRQ_ATTR, low_watermark, 8, 4);
}

static void check_srq_param(void) {
  TYPE(DAT_SRQ_PARAM, 48);
  FIELD(DAT_SRQ_PARAM, ia_handle, 0, 8);
  FIELD(DAT_SRQ_PARAM, srq_state, 8, 4);
  FIELD(DAT_SRQ_PARAM, pz_handle, 16, 8);
  FIELD(DAT_SRQ_PARAM, max_recv_dtos, 24, 4);
  FIELD(DAT_SRQ_PARAM, max_recv_iov, 28, 4);
  FIELD(DAT_SRQ_PARAM, low_watermark, 32, 4);
  FIELD(DAT_SRQ_PARAM, available_dto_count, 36, 4);
  FIELD(DAT_SRQ_PARAM, outstanding_dto_count, 40, 4);
}

static void check_pz_param(void) {
  TYPE(DAT_PZ_PARAM, 8);
  FIELD(DAT_PZ_PARAM, ia_handle, 0, 8);
}

static void check_lmr_param(void) {
  TYPE(DAT_LMR_PARAM, 80);
  FIELD(DAT_LMR_PARAM, ia_handle, 0, 8);
  FIELD(DAT_LMR_PARAM, mem_type, 8, 4);
  FIELD(DAT_LMR_PARAM, region_desc, 16, 16);
  FIELD(DAT_LMR_PARAM, length, 32, 8);
  FIELD(DAT_LMR_PARAM, pz_handle, 40, 8);
  FIELD(DAT_LMR_PARAM, mem_priv, 48, 4);
  FIELD(DAT_LMR_PARAM, lmr_context, 52, 4);
  FIELD(DAT_LMR_PARAM, rmr_context, 56, 4);
  FIELD(DAT_LMR_PARAM, registered_size, 64, 8);
  FIELD(DAT_LMR_PARAM, registered_address, 72, 8);
}

static void check_rmr_param(void) {
  TYPE(DAT_RMR_PARAM, 48);
  FIELD(DAT_RMR_PARAM, ia_handle, 0, 8);
  FIELD(DAT_RMR_PARAM, pz_handle, 8, 8);
  FIELD(DAT_RMR_PARAM, lmr_triplet, 16, 24);
  FIELD(DAT_RMR_PARAM, mem_priv, 40, 4);
  FIELD(DAT_RMR_PARAM, rmr_context, 44, 4);
}

static void check_psp_param(void) {
  TYPE(DAT_PSP_PARAM, 32);
  FIELD(DAT_PSP_PARAM, ia_handle, 0, 8);
  FIELD(DAT_PSP_PARAM, conn_qual, 8, 8);
  FIELD(DAT_PSP_PARAM, evd_handle, 16, 8);
  FIELD(DAT_PSP_PARAM, psp_flags, 24, 4);
}

static void check_rsp_param(void) {
  TYPE(DAT_RSP_PARAM, 32);
  FIELD(DAT_RSP_PARAM, ia_handle, 0, 8);
  FIELD(DAT_RSP_PARAM, conn_qual, 8, 8);
  FIELD(DAT_RSP_PARAM, evd_handle, 16, 8);
  FIELD(DAT_RSP_PARAM, ep_handle, 24, 8);
}

static void check_cr_param(void) {
  TYPE(DAT_CR_PARAM, 40);
  FIELD(DAT_CR_PARAM, remote_ia_address_ptr, 0, 8);
  FIELD(DAT_CR_PARAM, remote_port_qual, 8, 8);
  FIELD(DAT_CR_PARAM, private_data_size, 16, 4);
  FIELD(DAT_CR_PARAM, private_data, 24, 8);
  FIELD(DAT_CR_PARAM, local_ep_handle, 32, 8);
}

static void check_evd_param(void) {
  TYPE(DAT_EVD_PARAM, 32);
  FIELD(DAT_EVD_PARAM, ia_handle, 0, 8);
  FIELD(DAT_EVD_PARAM, evd_qlen, 8, 4);
  FIELD(DAT_EVD_PARAM, evd_state, 12, 4);
  FIELD(DAT_EVD_PARAM, cno_handle, 16, 8);
  FIELD(DAT_EVD_PARAM, evd_flags, 24, 4);
}

static void check_cno_param(void) {
  TYPE(DAT_CNO_PARAM, 24);
  FIELD(DAT_CNO_PARAM, ia_handle, 0, 8);
  FIELD(DAT_CNO_PARAM, agent, 8, 16);
}

static void check_ia_attr(void) {
  TYPE(DAT_IA_ATTR, 688);
  FIELD(DAT_IA_ATTR, adapter_name, 0, 256);
  FIELD(DAT_IA_ATTR, vendor_name, 256, 256);
  FIELD(DAT_IA_ATTR, hardware_version_major, 512, 4);
  FIELD(DAT_IA_ATTR, hardware_version_minor, 516, 4);
  FIELD(DAT_IA_ATTR, firmware_version_major, 520, 4);
  FIELD(DAT_IA_ATTR, firmware_version_minor, 524, 4);
  FIELD(DAT_IA_ATTR, ia_address_ptr, 528, 8);
  FIELD(DAT_IA_ATTR, max_eps, 536, 4);
  FIELD(DAT_IA_ATTR, max_dto_per_ep, 540, 4);
  FIELD(DAT_IA_ATTR, max_rdma_read_per_ep_in, 544, 4);
  FIELD(DAT_IA_ATTR, max_rdma_read_per_ep, 544, 4);
  FIELD(DAT_IA_ATTR, max_rdma_read_per_ep_out, 548, 4);
  FIELD(DAT_IA_ATTR, max_evds, 552, 4);
  FIELD(DAT_IA_ATTR, max_evd_qlen, 556, 4);
  FIELD(DAT_IA_ATTR, max_iov_segments_per_dto, 560, 4);
  FIELD(DAT_IA_ATTR, max_lmrs, 564, 4);
  FIELD(DAT_IA_ATTR, max_lmr_block_size, 568, 8);
  FIELD(DAT_IA_ATTR, max_lmr_virtual_address, 576, 8);
  FIELD(DAT_IA_ATTR, max_pzs, 584, 4);
  FIELD(DAT_IA_ATTR, max_message_size, 592, 8);
  FIELD(DAT_IA_ATTR, max_mtu_size, 592, 8);
  FIELD(DAT_IA_ATTR, max_rdma_size, 600, 8);
  FIELD(DAT_IA_ATTR, max_rmrs, 608, 4);
  FIELD(DAT_IA_ATTR, max_rmr_target_address, 616, 8);
  FIELD(DAT_IA_ATTR, max_srqs, 624, 4);
  FIELD(DAT_IA_ATTR, max_ep_per_srq, 628, 4);
  FIELD(DAT_IA_ATTR, max_recv_per_srq, 632, 4);
  FIELD(DAT_IA_ATTR, max_iov_segments_per_rdma_read, 636, 4);
  FIELD(DAT_IA_ATTR, max_iov_segments_per_rdma_write, 640, 4);
  FIELD(DAT_IA_ATTR, max_rdma_read_in, 644, 4);
  FIELD(DAT_IA_ATTR, max_rdma_read_out, 648, 4);
  FIELD(DAT_IA_ATTR, max_rdma_read_per_ep_in_guaranteed, 652, 4);
  FIELD(DAT_IA_ATTR, max_rdma_read_per_ep_out_guaranteed, 656, 4);
  FIELD(DAT_IA_ATTR, num_transport_attr, 660, 4);
  FIELD(DAT_IA_ATTR, transport_attr, 664, 8);
  FIELD(DAT_IA_ATTR, num_vendor_attr, 672, 4);
  FIELD(DAT_IA_ATTR, vendor_attr, 680, 8);
}

static void check_provider_attr(void) {
  TYPE(DAT_PROVIDER_ATTR, 504);
  FIELD(DAT_PROVIDER_ATTR, provider_name, 0, 256);
  FIELD(DAT_PROVIDER_ATTR, provider_version_major, 256, 4);
  FIELD(DAT_PROVIDER_ATTR, provider_version_minor, 260, 4);
  FIELD(DAT_PROVIDER_ATTR, dapl_version_major, 264, 4);
  FIELD(DAT_PROVIDER_ATTR, dapl_version_minor, 268, 4);
  FIELD(DAT_PROVIDER_ATTR, lmr_mem_types_supported, 272, 4);
  FIELD(DAT_PROVIDER_ATTR, iov_ownership_on_return, 276, 4);
  FIELD(DAT_PROVIDER_ATTR, dat_qos_supported, 280, 4);
  FIELD(DAT_PROVIDER_ATTR, completion_flags_supported, 284, 4);
  FIELD(DAT_PROVIDER_ATTR, is_thread_safe, 288, 4);
  FIELD(DAT_PROVIDER_ATTR, max_private_data_size, 292, 4);
  FIELD(DAT_PROVIDER_ATTR, supports_multipath, 296, 4);
  FIELD(DAT_PROVIDER_ATTR, ep_creator, 300, 4);
  FIELD(DAT_PROVIDER_ATTR, pz_support, 304, 4);
  FIELD(DAT_PROVIDER_ATTR, optimal_buffer_alignment, 308, 4);
  FIELD(DAT_PROVIDER_ATTR, evd_stream_merging_supported, 312, 144);
  FIELD(DAT_PROVIDER_ATTR, srq_supported, 456, 4);
  FIELD(DAT_PROVIDER_ATTR, srq_watermarks_supported, 460, 4);
  FIELD(DAT_PROVIDER_ATTR, srq_ep_pz_difference_supported, 464, 4);
  FIELD(DAT_PROVIDER_ATTR, srq_info_supported, 468, 4);
  FIELD(DAT_PROVIDER_ATTR, ep_recv_info_supported, 472, 4);
  FIELD(DAT_PROVIDER_ATTR, lmr_sync_req, 476, 4);
  FIELD(DAT_PROVIDER_ATTR, dto_async_return_guaranteed, 480, 4);
  FIELD(DAT_PROVIDER_ATTR, rdma_write_for_rdma_read_req, 484, 4);
  FIELD(DAT_PROVIDER_ATTR, num_provider_specific_attr, 488, 4);
  FIELD(DAT_PROVIDER_ATTR, provider_specific_attr, 496, 8);
}

int main(void) {
  check_named_attr();
  check_ep_attr();
  check_ep_param();
  check_srq_attr();
  check_srq_param();
  check_pz_param();
  check_lmr_param();
  check_rmr_param();
  check_psp_param();
  check_rsp_param();
  check_cr_param();
  check_evd_param();
  check_cno_param();
  check_ia_attr();
  check_provider_attr();
  return failures;
}
