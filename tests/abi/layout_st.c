/* SPDX-License-Identifier: BSD-3-Clause */
/* The ABI of level 0. */
#include <stp/st.h>

#include "tests/abi/layout.h"

static void types(void) {
  TYPE(st_ehandle_t, sizeof(void*));
  TYPE(st_chandle_t, sizeof(void*));
  TYPE(st_mhandle_t, sizeof(void*));
  TYPE(st_macaddr_t, 8);
  TYPE(st_header_t, 40);
  TYPE(st_peer_t, 48);
}

static void peer_fields(void) {
  FIELD(st_peer_t, macaddr, 0, 8);
  FIELD(st_peer_t, uport, 8, 4);
  FIELD(st_peer_t, opt_len, 12, 4);
  FIELD(st_peer_t, opt_pay, 16, 32);
}

static void header_fields(void) {
  FIELD(st_header_t, op_flags, 0, 2);
  FIELD(st_header_t, param, 2, 2);
  FIELD(st_header_t, i_slots, 2, 2);
  FIELD(st_header_t, r_slots, 2, 2);
  FIELD(st_header_t, cts_req, 2, 2);
  FIELD(st_header_t, blocksize, 2, 2);
  FIELD(st_header_t, stu_num, 2, 2);
  FIELD(st_header_t, b_win, 2, 2);
  FIELD(st_header_t, get_len, 2, 2);
  FIELD(st_header_t, d_port, 4, 2);
  FIELD(st_header_t, s_port, 6, 2);
  FIELD(st_header_t, d_key, 8, 4);
  FIELD(st_header_t, cksum, 12, 2);
  FIELD(st_header_t, mx, 14, 2);
  FIELD(st_header_t, r_mx, 14, 2);
  FIELD(st_header_t, i_mx, 14, 2);
  FIELD(st_header_t, ethertype, 14, 2);
  FIELD(st_header_t, max_block, 14, 2);
  FIELD(st_header_t, bufx, 16, 4);
  FIELD(st_header_t, r_bufx, 16, 4);
  FIELD(st_header_t, i_bufsize, 16, 4);
  FIELD(st_header_t, r_bufsize, 16, 4);
  FIELD(st_header_t, offset, 20, 4);
  FIELD(st_header_t, r_offset, 20, 4);
  FIELD(st_header_t, b_seq, 20, 4);
  FIELD(st_header_t, i_key, 20, 4);
  FIELD(st_header_t, r_key, 20, 4);
  FIELD(st_header_t, sync, 24, 4);
  FIELD(st_header_t, f_offset, 24, 4);
  FIELD(st_header_t, t_len_hi, 24, 4);
  FIELD(st_header_t, i_bufx, 24, 4);
  FIELD(st_header_t, i_max_stu, 24, 4);
  FIELD(st_header_t, r_max_stu, 24, 4);
  FIELD(st_header_t, b_num, 28, 4);
  FIELD(st_header_t, t_len_lo, 28, 4);
  FIELD(st_header_t, i_offset, 28, 4);
  FIELD(st_header_t, d_id, 32, 4);
  FIELD(st_header_t, d_uport, 32, 4);
  FIELD(st_header_t, s_id, 36, 4);
  FIELD(st_header_t, opaque, 36, 4);
  FIELD(st_header_t, g_num, 36, 4);
  FIELD(st_header_t, s_uport, 36, 4);
}

static void event_fields(void) {
  TYPE(st_event_t, 24);
  FIELD(st_event_t, kind, 0, 4);
  FIELD(st_event_t, chandle, 8, 8);
  FIELD(st_event_t, error, 16, 4);
  VALUE(ST_EVENT_CONNECTION, 1);
  VALUE(ST_EVENT_PEER_GONE, 2);
  VALUE(ST_EVENT_FAILED, 3);
}

static void meminfo_fields(void) {
  TYPE(st_meminfo_t, 24);
  FIELD(st_meminfo_t, size, 0, 8);
  FIELD(st_meminfo_t, huge, 8, 8);
  FIELD(st_meminfo_t, node, 16, 4);
}

static void operations(void) {
  VALUE(ST_OP_RC, 0x01);
  VALUE(ST_OP_CA, 0x02);
  VALUE(ST_OP_RD, 0x03);
  VALUE(ST_OP_DA, 0x04);
  VALUE(ST_OP_DC, 0x05);
  VALUE(ST_OP_NOP, 0x10);
  VALUE(ST_OP_RMR, 0x13);
  VALUE(ST_OP_MRA, 0x14);
  VALUE(ST_OP_GET, 0x15);
  VALUE(ST_OP_RTS, 0x16);
  VALUE(ST_OP_RA, 0x17);
  VALUE(ST_OP_RTR, 0x18);
  VALUE(ST_OP_CTS, 0x1a);
  VALUE(ST_OP_DATA, 0x1b);
  VALUE(ST_OP_RS, 0x1c);
  VALUE(ST_OP_RSR, 0x1d);
  VALUE(ST_OP_END, 0x1e);
  VALUE(ST_OP_EA, 0x1f);
}

static void flags(void) {
  VALUE(ST_FLAG_APPEND, 0x0002);
  VALUE(ST_FLAG_REJECT, 0x0004);
  VALUE(ST_FLAG_LAST, 0x0008);
  VALUE(ST_FLAG_ORDER, 0x0010);
  VALUE(ST_FLAG_SEND_STATE, 0x0020);
  VALUE(ST_FLAG_INTERRUPT, 0x0040);
  VALUE(ST_FLAG_SILENT, 0x0080);
  VALUE(ST_FLAG_FETCH_INCREMENT, 0x0100);
  VALUE(ST_FLAG_FETCH_DECREMENT, 0x0200);
  VALUE(ST_FLAG_FETCH_CLEAR, 0x0300);
  VALUE(ST_FLAG_FETCH_ADD, 0x0400);
  VALUE(ST_FLAG_COMPARE_AND_SWAP, 0x0500);
  VALUE(ST_FLAG_FETCHOP_COMPLETE, 0x0700);
}

static void options(void) {
  VALUE(ST_OPT_BUFSIZE_LOCAL, 1);
  VALUE(ST_OPT_BUFSIZE_REMOTE, 2);
  VALUE(ST_OPT_MAXSTU_LOCAL, 3);
  VALUE(ST_OPT_MAXSTU_REMOTE, 4);
  VALUE(ST_OPT_KEY_LOCAL, 5);
  VALUE(ST_OPT_KEY_REMOTE, 6);
  VALUE(ST_OPT_PORT_LOCAL, 7);
  VALUE(ST_OPT_PORT_REMOTE, 8);
  VALUE(ST_OPT_RX_BUFX_BASE, 9);
  VALUE(ST_OPT_RX_BUFX_COUNT, 10);
  VALUE(ST_OPT_RX_SLOTS, 11);
  VALUE(ST_OPT_TX_BUFX_BASE, 12);
  VALUE(ST_OPT_TX_BUFX_COUNT, 13);
  VALUE(ST_OPT_TX_CREDITS, 14);
  VALUE(ST_OPT_CHECKSUM, 15);
  VALUE(ST_OPT_KEEP_ALIVE, 16);
  VALUE(ST_OPT_RECOVER, 17);
  VALUE(ST_OPT_INSPECT, 18);
  VALUE(ST_OPT_CONNECT_PATIENCE, 19);
}

static void others(void) {
  VALUE(ST_MAP_TX, 1);
  VALUE(ST_MAP_RX, 2);
  VALUE(ST_MAX_PIECES, 16);
  VALUE(ST_NO_ID, 0xffffffffLL);
  VALUE(ST_OPTION_SIZE, 32);
  VALUE(ST_APPEND_SIZE, 64);
  VALUE(ST_OP_FLAGS(ST_OP_DATA, ST_FLAG_SILENT), 0xd880);
  VALUE(ST_OP(0xd880), ST_OP_DATA);
  VALUE(ST_FLAGS(0xd880), ST_FLAG_SILENT);
}

int main(void) {
  types();
  header_fields();
  peer_fields();
  event_fields();
  meminfo_fields();
  operations();
  flags();
  options();
  others();
  return failures != 0;
}
