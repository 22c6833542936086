/* SPDX-License-Identifier: BSD-3-Clause
 * A first program: a buffer of text travels from one memory to another by Scheduled Transfer.
 * cc first_program.c $(pkg-config --cflags --libs libst) && STP_LINK=loop ./a.out */
#include <stdio.h>
#include <stdlib.h>
#include <stp/st.h>
#include <string.h>

enum { SIZE = 16384 }; /* one buffer of the default size */
static _Alignas(SIZE) char source[SIZE], target[SIZE];

static void check(const char* what, int result) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", what, st_strerror(result));
  exit(1);
}

int main(void) {
  st_ehandle_t server, client;
  st_chandle_t in, out;
  st_mhandle_t from, to;
  st_header_t rts = {0}, cts = {0}, data, got;
  int mx;
  strcpy(source, "Hello from the other memory");
  check("st_create", st_create(":3000", &server));
  check("st_create", st_create(NULL, &client));
  check("st_map", st_map(client, ST_MAP_TX, source, SIZE, 0, -1, &from, NULL));
  check("st_map", st_map(server, ST_MAP_RX, target, SIZE, 0, -1, &to, &mx));
  check("st_listen", st_listen(server));
  check("st_connect", st_connect(client, ":3000", &out));
  check("st_accept", st_accept(server, &in));

  rts.op_flags = ST_OP_FLAGS(ST_OP_RTS, 0); /* the sender: may I send SIZE bytes? */
  rts.cts_req = 1;
  rts.max_block = 14;
  rts.d_id = ST_NO_ID;
  rts.s_id = 1; /* how the sender calls this Transfer */
  st_set_t_len(&rts, SIZE);
  check("st_tx RTS", st_tx(out, &rts, NULL, 0, 0, 0));
  check("st_rx RTS", st_rx(in, &got, NULL, NULL));

  cts.op_flags = ST_OP_FLAGS(ST_OP_CTS, 0); /* the receiver: yes, there */
  cts.blocksize = got.max_block;
  cts.r_mx = (uint16_t)mx;
  cts.d_id = got.s_id;
  cts.s_id = 2; /* how the receiver calls it */
  check("st_tx CTS", st_tx(in, &cts, NULL, 0, 0, 0));
  check("st_rx CTS", st_rx(out, &got, NULL, NULL));

  data = got; /* the sender: here it is, where the CTS says */
  data.op_flags = ST_OP_FLAGS(ST_OP_DATA, 0);
  data.d_id = got.s_id;
  check("st_tx DATA", st_tx(out, &data, NULL, SIZE, 0, 0));
  check("st_rx DATA", st_rx(in, &got, NULL, NULL)); /* all of the Block is in `target` */
  puts(target);
  check("st_delete", st_delete(client));
  check("st_delete", st_delete(server));
  return memcmp(source, target, SIZE) != 0;
}
