/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that ends without closing anything, which the library permits. */
#include <stddef.h>

#include <stp/st.h>

int main(void) {
  st_ehandle_t server, client;
  st_chandle_t in, out;
  if (st_create(":3000", &server) != 0 || st_create(NULL, &client) != 0) return 1;
  if (st_listen(server) != 0 || st_connect(client, ":3000", &out) != 0) return 1;
  return st_accept(server, &in) != 0;
}
