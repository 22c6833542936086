/* SPDX-License-Identifier: BSD-3-Clause
 * Level 0, client (libst document, 7.5): connects and writes a text into the memory of the server.
 *
 *   level0_client HOST:PORT TEXT
 */
#include <string.h>

#include "example.h"

int main(int argc, char** argv) {
  st_ehandle_t endpoint;
  st_chandle_t connection;
  st_mhandle_t region;
  st_header_t ask = {0}, header;
  st_meminfo_t facts;
  unsigned patience = 5000;
  void* memory;
  size_t length;
  if (argc != 3 || argv[1][0] == '-') return usage(argc, argv, "HOST:PORT TEXT");
  length = strlen(argv[2]);

  tell_link();
  /* An endpoint without a name: st_connect chooses its port and interface. */
  check("st_create", st_create(NULL, &endpoint));
  check("st_setopt", st_setopt(endpoint, ST_OPT_CONNECT_PATIENCE, &patience));

  /* Memory to send from. */
  check("st_malloc", st_malloc(endpoint, length + 1, -1, &memory));
  check("st_meminfo", st_meminfo(memory, &facts)); /* the size is a multiple of a buffer */
  check("st_map", st_map(endpoint, ST_MAP_TX, memory, (int)facts.size, 0, -1, &region, NULL));
  memcpy(memory, argv[2], length);

  /* The connection. */
  check("st_connect", st_connect(endpoint, argv[1], &connection));

  /* Ask for permission to send. The server answers with the place, or refuses. */
  ask.op_flags = ST_OP_FLAGS(ST_OP_RTS, 0);
  ask.cts_req = 1;
  ask.max_block = 16;
  ask.d_id = ST_NO_ID;
  ask.s_id = 1; /* this side's number of the Transfer */
  st_set_t_len(&ask, length);
  check("st_tx", st_tx(connection, &ask, NULL, 0, 0, 0));
  check("st_rx", st_rx(connection, &header, NULL, NULL));
  if (ST_OP(header.op_flags) != ST_OP_CTS) {
    fprintf(stderr, "%s does not want the text\n", argv[1]);
    return 1;
  }

  /* Send the bytes into the server's memory: Mx, Bufx and Offset are those of the CTS. */
  header.op_flags = ST_OP_FLAGS(ST_OP_DATA, 0);
  header.d_id = header.s_id; /* the server's number of the Transfer */
  check("st_tx", st_tx(connection, &header, NULL, (int)length, 0, 0));

  /* st_close sends what is queued before it disconnects. */
  check("st_close", st_close(connection));
  check("st_unmap", st_unmap(region));
  check("st_free", st_free(memory));
  check("st_delete", st_delete(endpoint));
  return 0;
}
