/* SPDX-License-Identifier: BSD-3-Clause */
/* uDAPL 1.2: the layout of arguments and events, which is compiled into programs. */
#include <dat/udat.h>

#include "tests/abi/layout.h"

static void check_context(void) {
  TYPE(DAT_CONTEXT, 8);
  FIELD(DAT_CONTEXT, as_ptr, 0, 8);
  FIELD(DAT_CONTEXT, as_64, 0, 8);
  FIELD(DAT_CONTEXT, as_index, 0, 8);
}

static void check_lmr_triplet(void) {
  TYPE(DAT_LMR_TRIPLET, 24);
  FIELD(DAT_LMR_TRIPLET, lmr_context, 0, 4);
  FIELD(DAT_LMR_TRIPLET, pad, 4, 4);
  FIELD(DAT_LMR_TRIPLET, virtual_address, 8, 8);
  FIELD(DAT_LMR_TRIPLET, segment_length, 16, 8);
}

static void check_rmr_triplet(void) {
  TYPE(DAT_RMR_TRIPLET, 24);
  FIELD(DAT_RMR_TRIPLET, rmr_context, 0, 4);
  FIELD(DAT_RMR_TRIPLET, pad, 4, 4);
  FIELD(DAT_RMR_TRIPLET, target_address, 8, 8);
  FIELD(DAT_RMR_TRIPLET, segment_length, 16, 8);
}

static void check_shared_memory(void) {
  TYPE(DAT_SHARED_MEMORY, 16);
  FIELD(DAT_SHARED_MEMORY, shared_memory_id, 0, 8);
  FIELD(DAT_SHARED_MEMORY, virtual_address, 8, 8);
}

static void check_region_description(void) {
  TYPE(DAT_REGION_DESCRIPTION, 16);
  FIELD(DAT_REGION_DESCRIPTION, for_va, 0, 8);
  FIELD(DAT_REGION_DESCRIPTION, for_lmr_handle, 0, 8);
  FIELD(DAT_REGION_DESCRIPTION, for_shared_memory, 0, 16);
}

static void check_os_wait_proxy_agent(void) {
  TYPE(DAT_OS_WAIT_PROXY_AGENT, 16);
  FIELD(DAT_OS_WAIT_PROXY_AGENT, instance_data, 0, 8);
  FIELD(DAT_OS_WAIT_PROXY_AGENT, proxy_agent_func, 8, 8);
}

static void check_dto_completion_event_data(void) {
  TYPE(DAT_DTO_COMPLETION_EVENT_DATA, 32);
  FIELD(DAT_DTO_COMPLETION_EVENT_DATA, ep_handle, 0, 8);
  FIELD(DAT_DTO_COMPLETION_EVENT_DATA, user_cookie, 8, 8);
  FIELD(DAT_DTO_COMPLETION_EVENT_DATA, status, 16, 4);
  FIELD(DAT_DTO_COMPLETION_EVENT_DATA, transfered_length, 24, 8);
}

static void check_rmr_bind_completion_event_data(void) {
  TYPE(DAT_RMR_BIND_COMPLETION_EVENT_DATA, 24);
  FIELD(DAT_RMR_BIND_COMPLETION_EVENT_DATA, rmr_handle, 0, 8);
  FIELD(DAT_RMR_BIND_COMPLETION_EVENT_DATA, user_cookie, 8, 8);
  FIELD(DAT_RMR_BIND_COMPLETION_EVENT_DATA, status, 16, 4);
}

static void check_sp_handle(void) {
  TYPE(DAT_SP_HANDLE, 8);
  FIELD(DAT_SP_HANDLE, rsp_handle, 0, 8);
  FIELD(DAT_SP_HANDLE, psp_handle, 0, 8);
}

static void check_cr_arrival_event_data(void) {
  TYPE(DAT_CR_ARRIVAL_EVENT_DATA, 32);
  FIELD(DAT_CR_ARRIVAL_EVENT_DATA, sp_handle, 0, 8);
  FIELD(DAT_CR_ARRIVAL_EVENT_DATA, local_ia_address_ptr, 8, 8);
  FIELD(DAT_CR_ARRIVAL_EVENT_DATA, conn_qual, 16, 8);
  FIELD(DAT_CR_ARRIVAL_EVENT_DATA, cr_handle, 24, 8);
}

static void check_connection_event_data(void) {
  TYPE(DAT_CONNECTION_EVENT_DATA, 24);
  FIELD(DAT_CONNECTION_EVENT_DATA, ep_handle, 0, 8);
  FIELD(DAT_CONNECTION_EVENT_DATA, private_data_size, 8, 4);
  FIELD(DAT_CONNECTION_EVENT_DATA, private_data, 16, 8);
}

static void check_asynch_error_event_data(void) {
  TYPE(DAT_ASYNCH_ERROR_EVENT_DATA, 16);
  FIELD(DAT_ASYNCH_ERROR_EVENT_DATA, dat_handle, 0, 8);
  FIELD(DAT_ASYNCH_ERROR_EVENT_DATA, reason, 8, 4);
}

static void check_software_event_data(void) {
  TYPE(DAT_SOFTWARE_EVENT_DATA, 8);
  FIELD(DAT_SOFTWARE_EVENT_DATA, pointer, 0, 8);
}

static void check_event_data(void) {
  TYPE(DAT_EVENT_DATA, 32);
  FIELD(DAT_EVENT_DATA, dto_completion_event_data, 0, 32);
  FIELD(DAT_EVENT_DATA, rmr_completion_event_data, 0, 24);
  FIELD(DAT_EVENT_DATA, cr_arrival_event_data, 0, 32);
  FIELD(DAT_EVENT_DATA, connect_event_data, 0, 24);
  FIELD(DAT_EVENT_DATA, asynch_error_event_data, 0, 16);
  FIELD(DAT_EVENT_DATA, software_event_data, 0, 8);
}

static void check_event(void) {
  TYPE(DAT_EVENT, 48);
  FIELD(DAT_EVENT, event_number, 0, 4);
  FIELD(DAT_EVENT, evd_handle, 8, 8);
  FIELD(DAT_EVENT, event_data, 16, 32);
}

static void check_provider_info(void) {
  TYPE(DAT_PROVIDER_INFO, 268);
  FIELD(DAT_PROVIDER_INFO, ia_name, 0, 256);
  FIELD(DAT_PROVIDER_INFO, dapl_version_major, 256, 4);
  FIELD(DAT_PROVIDER_INFO, dapl_version_minor, 260, 4);
  FIELD(DAT_PROVIDER_INFO, is_thread_safe, 264, 4);
}

int main(void) {
  check_context();
  check_lmr_triplet();
  check_rmr_triplet();
  check_shared_memory();
  check_region_description();
  check_os_wait_proxy_agent();
  check_dto_completion_event_data();
  check_rmr_bind_completion_event_data();
  check_sp_handle();
  check_cr_arrival_event_data();
  check_connection_event_data();
  check_asynch_error_event_data();
  check_software_event_data();
  check_event_data();
  check_event();
  check_provider_info();
  return failures;
}
