/* SPDX-License-Identifier: BSD-3-Clause
 * Level 0, server (libst document, 7.5): accepts one connection, lets its client write a text into
 * memory of this program, and prints it.
 *
 *   level0_server :PORT
 */
#include "example.h"

enum { BUFFERS = 4, BLOCKSIZE = 16 }; /* four buffers of 16 KiB, and Blocks of up to 2^16 bytes */

/* Waits for the next operation, which must be `op`. */
static void expect(st_chandle_t connection, unsigned op, st_header_t* header) {
  check("st_rx", st_rx(connection, header, NULL, NULL));
  if (ST_OP(header->op_flags) == op) return;
  fprintf(stderr, "the client sent operation 0x%02x instead of 0x%02x\n", ST_OP(header->op_flags),
          op);
  exit(1);
}

int main(int argc, char** argv) {
  st_ehandle_t endpoint;
  st_chandle_t connection;
  st_mhandle_t region;
  st_header_t header, permit = {0};
  unsigned slots = 16, bufsize, client;
  void* memory;
  uint64_t length;
  int mx;
  if (argc != 2 || argv[1][0] == '-') return usage(argc, argv, ":PORT");

  tell_link();
  /* An endpoint, and options for its later connections. */
  check("st_create", st_create(argv[1], &endpoint));
  check("st_setopt", st_setopt(endpoint, ST_OPT_RX_SLOTS, &slots));
  check("st_getopt", st_getopt(endpoint, ST_OPT_BUFSIZE_LOCAL, &bufsize));

  /* Memory that clients may be allowed to write to. */
  check("st_malloc", st_malloc(endpoint, (size_t)BUFFERS << bufsize, -1, &memory));
  check("st_map", st_map(endpoint, ST_MAP_RX, memory, -1, 0, BUFFERS, &region, &mx));

  /* The connection. */
  check("st_listen", st_listen(endpoint));
  printf("listening on %s\n", argv[1]);
  fflush(stdout);
  check("st_accept", st_accept(endpoint, &connection));
  check("st_getopt", st_getopt(connection, ST_OPT_PORT_REMOTE, &client));
  printf("connected with port %u\n", client);

  /* The client asks to send: permit it, to the beginning of the memory. */
  expect(connection, ST_OP_RTS, &header);
  length = st_t_len(&header);
  permit.op_flags = ST_OP_FLAGS(ST_OP_CTS, 0);
  if (length == 0 || length > (uint64_t)BUFFERS << bufsize) {
    permit.op_flags = ST_OP_FLAGS(ST_OP_RA, ST_FLAG_REJECT);
    fprintf(stderr, "a text of %llu bytes is refused\n", (unsigned long long)length);
  }
  permit.blocksize = BLOCKSIZE < header.max_block ? BLOCKSIZE : header.max_block;
  permit.r_mx = (uint16_t)mx;
  permit.d_id = header.s_id;
  permit.s_id = 1; /* what we call this Transfer */
  check("st_tx", st_tx(connection, &permit, NULL, 0, 0, 0));

  /* st_rx returns the header of the Block when all of its bytes have arrived. */
  if (ST_OP(permit.op_flags) == ST_OP_CTS) {
    expect(connection, ST_OP_DATA, &header);
    printf("%.*s\n", (int)length, (const char*)memory);
  }

  check("st_close", st_close(connection));
  check("st_unmap", st_unmap(region));
  check("st_free", st_free(memory));
  check("st_delete", st_delete(endpoint));
  return 0;
}
