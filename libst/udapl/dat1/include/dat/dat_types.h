/* SPDX-License-Identifier: BSD-3-Clause */
/* uDAPL 1.2: handles, flags and what calls take and give back, but for attributes, parameters of
 * objects and events. */
#ifndef DAT_TYPES_H
#define DAT_TYPES_H

#include <dat/dat_error.h>

typedef enum dat_boolean { DAT_FALSE = 0, DAT_TRUE = 1 } DAT_BOOLEAN;

typedef char* DAT_NAME_PTR;
#define DAT_NAME_MAX_LENGTH 256

typedef DAT_PVOID DAT_HANDLE;
typedef DAT_HANDLE DAT_CNO_HANDLE;
typedef DAT_HANDLE DAT_CR_HANDLE;
typedef DAT_HANDLE DAT_EP_HANDLE;
typedef DAT_HANDLE DAT_EVD_HANDLE;
typedef DAT_HANDLE DAT_IA_HANDLE;
typedef DAT_HANDLE DAT_LMR_HANDLE;
typedef DAT_HANDLE DAT_PSP_HANDLE;
typedef DAT_HANDLE DAT_PZ_HANDLE;
typedef DAT_HANDLE DAT_RMR_HANDLE;
typedef DAT_HANDLE DAT_RSP_HANDLE;
typedef DAT_HANDLE DAT_SRQ_HANDLE;

#define DAT_HANDLE_NULL ((DAT_HANDLE)NULL)
/* Of dat_ia_open(): asynchronous events go to an EVD somewhere else on the host. */
#define DAT_EVD_ASYNC_EXISTS ((DAT_EVD_HANDLE)1)
#define DAT_EVD_OUT_OF_SCOPE ((DAT_EVD_HANDLE)2)

typedef enum dat_handle_type {
  DAT_HANDLE_TYPE_CR,
  DAT_HANDLE_TYPE_EP,
  DAT_HANDLE_TYPE_EVD,
  DAT_HANDLE_TYPE_IA,
  DAT_HANDLE_TYPE_LMR,
  DAT_HANDLE_TYPE_PSP,
  DAT_HANDLE_TYPE_PZ,
  DAT_HANDLE_TYPE_RMR,
  DAT_HANDLE_TYPE_RSP,
  DAT_HANDLE_TYPE_CNO,
  DAT_HANDLE_TYPE_SRQ
} DAT_HANDLE_TYPE;

/* What the program hangs on an object or an operation; nobody else looks at it. */
typedef union dat_context {
  DAT_PVOID as_ptr;
  DAT_UINT64 as_64;
  DAT_UVERYLONG as_index;
} DAT_CONTEXT;
typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;

typedef DAT_UINT32 DAT_TIMEOUT; /* microseconds */
#define DAT_TIMEOUT_INFINITE ((DAT_TIMEOUT)0xffffffffU)
#define DAT_TIMEOUT_MAX ((DAT_TIMEOUT)0xfffffffeU)

typedef DAT_UINT64 DAT_CONN_QUAL;
typedef DAT_UINT64 DAT_PORT_QUAL;

/* ---- memory ---- */

typedef DAT_UINT64 DAT_VADDR;
typedef DAT_UINT64 DAT_PADDR;
typedef DAT_UINT64 DAT_VLEN;
typedef DAT_UINT64 DAT_SEG_LENGTH;
typedef DAT_UINT32 DAT_LMR_CONTEXT;
typedef DAT_UINT32 DAT_RMR_CONTEXT;

#define DAT_OPTIMAL_ALIGNMENT 256

typedef struct dat_lmr_triplet {
  DAT_LMR_CONTEXT lmr_context;
  DAT_UINT32 pad;
  DAT_VADDR virtual_address;
  DAT_SEG_LENGTH segment_length;
} DAT_LMR_TRIPLET;

typedef struct dat_rmr_triplet {
  DAT_RMR_CONTEXT rmr_context;
  DAT_UINT32 pad;
  DAT_VADDR target_address;
  DAT_SEG_LENGTH segment_length;
} DAT_RMR_TRIPLET;

typedef enum dat_mem_type {
  DAT_MEM_TYPE_VIRTUAL = 0x00,
  DAT_MEM_TYPE_LMR = 0x01,
  DAT_MEM_TYPE_SHARED_VIRTUAL = 0x02,
  DAT_MEM_TYPE_SO_VIRTUAL = 0x03 /* strongly ordered: what all memory is here */
} DAT_MEM_TYPE;

typedef enum dat_mem_priv_flags {
  DAT_MEM_PRIV_NONE_FLAG = 0x00,
  DAT_MEM_PRIV_LOCAL_READ_FLAG = 0x01,
  DAT_MEM_PRIV_REMOTE_READ_FLAG = 0x02,
  DAT_MEM_PRIV_LOCAL_WRITE_FLAG = 0x10,
  DAT_MEM_PRIV_REMOTE_WRITE_FLAG = 0x20,
  DAT_MEM_PRIV_ALL_FLAG = 0x33
} DAT_MEM_PRIV_FLAGS;
/* As programs of 1.0 have them. */
#define DAT_MEM_PRIV_READ_FLAG (DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define DAT_MEM_PRIV_WRITE_FLAG (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* Names memory that processes share; all its bytes count. */
#define DAT_LMR_COOKIE_SIZE 40
typedef char (*DAT_LMR_COOKIE)[DAT_LMR_COOKIE_SIZE];

typedef struct dat_shared_memory {
  DAT_LMR_COOKIE shared_memory_id;
  DAT_PVOID virtual_address;
} DAT_SHARED_MEMORY;

typedef union dat_region_description {
  DAT_PVOID for_va;
  DAT_LMR_HANDLE for_lmr_handle;
  DAT_SHARED_MEMORY for_shared_memory;
} DAT_REGION_DESCRIPTION;

/* ---- flags ---- */

typedef enum dat_close_flags {
  DAT_CLOSE_ABRUPT_FLAG = 0,
  DAT_CLOSE_GRACEFUL_FLAG = 1,
  DAT_CLOSE_DEFAULT = DAT_CLOSE_ABRUPT_FLAG
} DAT_CLOSE_FLAGS;

typedef enum dat_connect_flags {
  DAT_CONNECT_DEFAULT_FLAG = 0x00,
  DAT_MULTIPATH_FLAG = 0x01,
  DAT_CONNECT_MULTIPATH_FLAG = DAT_MULTIPATH_FLAG
} DAT_CONNECT_FLAGS;
#define DAT_CONNECT_MULTIPATH_REQUESTED_FLAG DAT_CONNECT_MULTIPATH_FLAG

typedef enum dat_psp_flags {
  DAT_PSP_CONSUMER_FLAG = 0x00,
  DAT_PSP_PROVIDER_FLAG = 0x01,
  DAT_PSP_CONSUMER = DAT_PSP_CONSUMER_FLAG,
  DAT_PSP_PROVIDER = DAT_PSP_PROVIDER_FLAG
} DAT_PSP_FLAGS;

typedef enum dat_evd_flags {
  DAT_EVD_SOFTWARE_FLAG = 0x001,
  DAT_EVD_CR_FLAG = 0x010,
  DAT_EVD_DTO_FLAG = 0x020,
  DAT_EVD_CONNECTION_FLAG = 0x040,
  DAT_EVD_RMR_BIND_FLAG = 0x080,
  DAT_EVD_ASYNC_FLAG = 0x100,
  DAT_EVD_DEFAULT_FLAG = DAT_EVD_CR_FLAG | DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG
} DAT_EVD_FLAGS;

typedef enum dat_completion_flags {
  DAT_COMPLETION_DEFAULT_FLAG = 0x00,
  DAT_COMPLETION_SUPPRESS_FLAG = 0x01,
  DAT_COMPLETION_SOLICITED_WAIT_FLAG = 0x02,
  DAT_COMPLETION_UNSIGNALLED_FLAG = 0x04,
  DAT_COMPLETION_BARRIER_FENCE_FLAG = 0x08,
  DAT_COMPLETION_EVD_THRESHOLD_FLAG = 0x10
} DAT_COMPLETION_FLAGS;

typedef enum dat_qos {
  DAT_QOS_BEST_EFFORT = 0x00,
  DAT_QOS_HIGH_THROUGHPUT = 0x01,
  DAT_QOS_LOW_LATENCY = 0x02,
  DAT_QOS_ECONOMY = 0x04,
  DAT_QOS_PREMIUM = 0x08
} DAT_QOS;

typedef enum dat_service_type { DAT_SERVICE_TYPE_RC = 0x00 } DAT_SERVICE_TYPE;

/* ---- what a CNO calls when it is triggered, once ---- */

typedef void (*DAT_AGENT_FUNC)(DAT_PVOID instance_data, DAT_EVD_HANDLE evd_handle);
typedef struct dat_os_wait_proxy_agent {
  DAT_PVOID instance_data;
  DAT_AGENT_FUNC proxy_agent_func;
} DAT_OS_WAIT_PROXY_AGENT;
#ifdef __cplusplus
#define DAT_OS_WAIT_PROXY_AGENT_NULL (DAT_OS_WAIT_PROXY_AGENT())
#else
#define DAT_OS_WAIT_PROXY_AGENT_NULL ((DAT_OS_WAIT_PROXY_AGENT){NULL, NULL})
#endif

/* ---- watermarks and counts of receives ---- */

#define DAT_WATERMARK_INFINITE ((DAT_COUNT)(-1))
#define DAT_HW_DEFAULT DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT ((DAT_COUNT)0)
#define DAT_VALUE_UNKNOWN ((DAT_COUNT)(-2))

#endif
