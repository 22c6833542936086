/* SPDX-License-Identifier: BSD-3-Clause */
/* uDAPL 1.2: attributes, states and parameters of objects, with the masks of their queries. */
#ifndef DAT_OBJECTS_H
#define DAT_OBJECTS_H

#include <dat/dat_types.h>

typedef struct dat_named_attr {
  const char* name;
  const char* value;
} DAT_NAMED_ATTR;

/* Programs of 1.1, and some of 1.2, call the size of messages by its older name. */
#define DAT_MESSAGE_SIZE       \
  __extension__ union {        \
    DAT_VLEN max_message_size; \
    DAT_VLEN max_mtu_size;     \
  }

/* ---- Endpoints ---- */

typedef struct dat_ep_attr {
  DAT_SERVICE_TYPE service_type;
  DAT_MESSAGE_SIZE;
  DAT_VLEN max_rdma_size;
  DAT_QOS qos;
  DAT_COMPLETION_FLAGS recv_completion_flags;
  DAT_COMPLETION_FLAGS request_completion_flags;
  DAT_COUNT max_recv_dtos;
  DAT_COUNT max_request_dtos;
  DAT_COUNT max_recv_iov;
  DAT_COUNT max_request_iov;
  DAT_COUNT max_rdma_read_in;
  DAT_COUNT max_rdma_read_out;
  DAT_COUNT srq_soft_hw;
  DAT_COUNT max_rdma_read_iov;
  DAT_COUNT max_rdma_write_iov;
  DAT_COUNT ep_transport_specific_count;
  DAT_NAMED_ATTR* ep_transport_specific;
  DAT_COUNT ep_provider_specific_count;
  DAT_NAMED_ATTR* ep_provider_specific;
} DAT_EP_ATTR;

typedef enum dat_ep_state {
  DAT_EP_STATE_UNCONNECTED,
  DAT_EP_STATE_UNCONFIGURED_UNCONNECTED,
  DAT_EP_STATE_RESERVED,
  DAT_EP_STATE_UNCONFIGURED_RESERVED,
  DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
  DAT_EP_STATE_UNCONFIGURED_PASSIVE,
  DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
  DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
  DAT_EP_STATE_UNCONFIGURED_TENTATIVE,
  DAT_EP_STATE_CONNECTED,
  DAT_EP_STATE_DISCONNECT_PENDING,
  DAT_EP_STATE_DISCONNECTED,
  DAT_EP_STATE_COMPLETION_PENDING
} DAT_EP_STATE;
#define DAT_EP_STATE_ERROR DAT_EP_STATE_DISCONNECTED /* as programs of 1.0 call it */

typedef struct dat_ep_param {
  DAT_IA_HANDLE ia_handle;
  DAT_EP_STATE ep_state;
  DAT_IA_ADDRESS_PTR local_ia_address_ptr;
  DAT_PORT_QUAL local_port_qual;
  DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
  DAT_PORT_QUAL remote_port_qual;
  DAT_PZ_HANDLE pz_handle;
  DAT_EVD_HANDLE recv_evd_handle;
  DAT_EVD_HANDLE request_evd_handle;
  DAT_EVD_HANDLE connect_evd_handle;
  DAT_SRQ_HANDLE srq_handle;
  DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

typedef DAT_UINT32 DAT_EP_PARAM_MASK;
#define DAT_EP_FIELD_IA_HANDLE 0x00000001U
#define DAT_EP_FIELD_EP_STATE 0x00000002U
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR 0x00000004U
#define DAT_EP_FIELD_LOCAL_PORT_QUAL 0x00000008U
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR 0x00000010U
#define DAT_EP_FIELD_REMOTE_PORT_QUAL 0x00000020U
#define DAT_EP_FIELD_PZ_HANDLE 0x00000040U
#define DAT_EP_FIELD_RECV_EVD_HANDLE 0x00000080U
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE 0x00000100U
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE 0x00000200U
#define DAT_EP_FIELD_SRQ_HANDLE 0x00000400U
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE 0x00001000U
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE 0x00002000U
#define DAT_EP_FIELD_EP_ATTR_MAX_MTU_SIZE DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE 0x00004000U
#define DAT_EP_FIELD_EP_ATTR_QOS 0x00008000U
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS 0x00010000U
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS 0x00020000U
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS 0x00040000U
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS 0x00080000U
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV 0x00100000U
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV 0x00200000U
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN 0x00400000U
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT 0x00800000U
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW 0x01000000U
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV 0x02000000U
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV 0x04000000U
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR 0x08000000U
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR 0x10000000U
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR 0x20000000U
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR 0x40000000U
#define DAT_EP_FIELD_EP_ATTR_ALL 0x7ffff000U
#define DAT_EP_FIELD_ALL 0x7ffff7ffU

/* ---- Shared Receive Queues ---- */

typedef struct dat_srq_attr {
  DAT_COUNT max_recv_dtos;
  DAT_COUNT max_recv_iov;
  DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

typedef enum dat_srq_state { DAT_SRQ_STATE_OPERATIONAL, DAT_SRQ_STATE_ERROR } DAT_SRQ_STATE;

typedef struct dat_srq_param {
  DAT_IA_HANDLE ia_handle;
  DAT_SRQ_STATE srq_state;
  DAT_PZ_HANDLE pz_handle;
  DAT_COUNT max_recv_dtos;
  DAT_COUNT max_recv_iov;
  DAT_COUNT low_watermark;
  DAT_COUNT available_dto_count;
  DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

typedef DAT_UINT32 DAT_SRQ_PARAM_MASK;
#define DAT_SRQ_FIELD_IA_HANDLE 0x001U
#define DAT_SRQ_FIELD_SRQ_STATE 0x002U
#define DAT_SRQ_FIELD_PZ_HANDLE 0x004U
#define DAT_SRQ_FIELD_MAX_RECV_DTO 0x008U
#define DAT_SRQ_FIELD_MAX_RECV_IOV 0x010U
#define DAT_SRQ_FIELD_LOW_WATERMARK 0x020U
#define DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT 0x040U
#define DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT 0x080U
#define DAT_SRQ_FIELD_ALL 0x0ffU

/* ---- Protection Zones and memory ---- */

typedef struct dat_pz_param {
  DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

typedef DAT_UINT32 DAT_PZ_PARAM_MASK;
#define DAT_PZ_FIELD_IA_HANDLE 0x01U
#define DAT_PZ_FIELD_ALL 0x01U

typedef struct dat_lmr_param {
  DAT_IA_HANDLE ia_handle;
  DAT_MEM_TYPE mem_type;
  DAT_REGION_DESCRIPTION region_desc;
  DAT_VLEN length;
  DAT_PZ_HANDLE pz_handle;
  DAT_MEM_PRIV_FLAGS mem_priv;
  DAT_LMR_CONTEXT lmr_context;
  DAT_RMR_CONTEXT rmr_context;
  DAT_VLEN registered_size;
  DAT_VADDR registered_address;
} DAT_LMR_PARAM;

typedef DAT_UINT32 DAT_LMR_PARAM_MASK;
#define DAT_LMR_FIELD_IA_HANDLE 0x001U
#define DAT_LMR_FIELD_MEM_TYPE 0x002U
#define DAT_LMR_FIELD_REGION_DESC 0x004U
#define DAT_LMR_FIELD_LENGTH 0x008U
#define DAT_LMR_FIELD_PZ_HANDLE 0x010U
#define DAT_LMR_FIELD_MEM_PRIV 0x020U
#define DAT_LMR_FIELD_LMR_CONTEXT 0x040U
#define DAT_LMR_FIELD_RMR_CONTEXT 0x080U
#define DAT_LMR_FIELD_REGISTERED_SIZE 0x100U
#define DAT_LMR_FIELD_REGISTERED_ADDRESS 0x200U
#define DAT_LMR_FIELD_ALL 0x3ffU

typedef struct dat_rmr_param {
  DAT_IA_HANDLE ia_handle;
  DAT_PZ_HANDLE pz_handle;
  DAT_LMR_TRIPLET lmr_triplet;
  DAT_MEM_PRIV_FLAGS mem_priv;
  DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_PARAM;

typedef DAT_UINT32 DAT_RMR_PARAM_MASK;
#define DAT_RMR_FIELD_IA_HANDLE 0x01U
#define DAT_RMR_FIELD_PZ_HANDLE 0x02U
#define DAT_RMR_FIELD_LMR_TRIPLET 0x04U
#define DAT_RMR_FIELD_MEM_PRIV 0x08U
#define DAT_RMR_FIELD_RMR_CONTEXT 0x10U
#define DAT_RMR_FIELD_ALL 0x1fU

/* ---- Service Points and Connection Requests ---- */

typedef struct dat_psp_param {
  DAT_IA_HANDLE ia_handle;
  DAT_CONN_QUAL conn_qual;
  DAT_EVD_HANDLE evd_handle;
  DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef DAT_UINT32 DAT_PSP_PARAM_MASK;
#define DAT_PSP_FIELD_IA_HANDLE 0x01U
#define DAT_PSP_FIELD_CONN_QUAL 0x02U
#define DAT_PSP_FIELD_EVD_HANDLE 0x04U
#define DAT_PSP_FIELD_PSP_FLAGS 0x08U
#define DAT_PSP_FIELD_ALL 0x0fU

typedef struct dat_rsp_param {
  DAT_IA_HANDLE ia_handle;
  DAT_CONN_QUAL conn_qual;
  DAT_EVD_HANDLE evd_handle;
  DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

typedef DAT_UINT32 DAT_RSP_PARAM_MASK;
#define DAT_RSP_FIELD_IA_HANDLE 0x01U
#define DAT_RSP_FIELD_CONN_QUAL 0x02U
#define DAT_RSP_FIELD_EVD_HANDLE 0x04U
#define DAT_RSP_FIELD_EP_HANDLE 0x08U
#define DAT_RSP_FIELD_ALL 0x0fU

typedef struct dat_cr_param {
  DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
  DAT_PORT_QUAL remote_port_qual;
  DAT_COUNT private_data_size;
  DAT_PVOID private_data;
  DAT_EP_HANDLE local_ep_handle;
} DAT_CR_PARAM;

typedef DAT_UINT32 DAT_CR_PARAM_MASK;
#define DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR 0x01U
#define DAT_CR_FIELD_REMOTE_PORT_QUAL 0x02U
#define DAT_CR_FIELD_PRIVATE_DATA_SIZE 0x04U
#define DAT_CR_FIELD_PRIVATE_DATA 0x08U
#define DAT_CR_FIELD_LOCAL_EP_HANDLE 0x10U
#define DAT_CR_FIELD_ALL 0x1fU

/* ---- EVDs and CNOs ---- */

/* Enabled or disabled, waitable or not, and how the streams that feed it are notified of. */
typedef enum dat_evd_state {
  DAT_EVD_STATE_ENABLED = 0x01,
  DAT_EVD_STATE_DISABLED = 0x02,
  DAT_EVD_STATE_WAITABLE = 0x04,
  DAT_EVD_STATE_UNWAITABLE = 0x08,
  DAT_EVD_STATE_CONFIG_NOTIFY = 0x10,
  DAT_EVD_STATE_CONFIG_SOLICITED = 0x20,
  DAT_EVD_STATE_CONFIG_THRESHOLD = 0x30
} DAT_EVD_STATE;

typedef struct dat_evd_param {
  DAT_IA_HANDLE ia_handle;
  DAT_COUNT evd_qlen;
  DAT_EVD_STATE evd_state;
  DAT_CNO_HANDLE cno_handle;
  DAT_EVD_FLAGS evd_flags;
} DAT_EVD_PARAM;

typedef DAT_UINT32 DAT_EVD_PARAM_MASK;
#define DAT_EVD_FIELD_IA_HANDLE 0x01U
#define DAT_EVD_FIELD_EVD_QLEN 0x02U
#define DAT_EVD_FIELD_EVD_STATE 0x04U
#define DAT_EVD_FIELD_CNO 0x08U
#define DAT_EVD_FIELD_EVD_FLAGS 0x10U
#define DAT_EVD_FIELD_ALL 0x1fU

typedef struct dat_cno_param {
  DAT_IA_HANDLE ia_handle;
  DAT_OS_WAIT_PROXY_AGENT agent;
} DAT_CNO_PARAM;

typedef DAT_UINT32 DAT_CNO_PARAM_MASK;
#define DAT_CNO_FIELD_IA_HANDLE 0x01U
#define DAT_CNO_FIELD_AGENT 0x02U
#define DAT_CNO_FIELD_ALL 0x03U

#endif
