/* SPDX-License-Identifier: BSD-3-Clause */
/* The public header compiles without another header before it, in C11 and in C++. */
#include <stp/st.h>

#include <stddef.h>

#ifdef __cplusplus
#define CHECK(condition) static_assert(condition, #condition)
#else
#define CHECK(condition) _Static_assert(condition, #condition)
#endif

CHECK(sizeof(st_header_t) == 40);
CHECK(offsetof(st_header_t, param) == 2);
CHECK(offsetof(st_header_t, d_port) == 4);
CHECK(offsetof(st_header_t, d_key) == 8);
CHECK(offsetof(st_header_t, max_block) == 14);
CHECK(offsetof(st_header_t, r_bufx) == 16);
CHECK(offsetof(st_header_t, b_seq) == 20);
CHECK(offsetof(st_header_t, t_len_hi) == 24);
CHECK(offsetof(st_header_t, t_len_lo) == 28);
CHECK(offsetof(st_header_t, d_id) == 32);
CHECK(offsetof(st_header_t, opaque) == 36);
CHECK(ST_OP(ST_OP_FLAGS(ST_OP_DATA, ST_FLAG_LAST)) == ST_OP_DATA);
CHECK(ST_FLAGS(ST_OP_FLAGS(ST_OP_DATA, ST_FLAG_LAST)) == ST_FLAG_LAST);
