/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two peers without a connection, as in section 8.2 of the libst document. Each sends the other its
 * Port, its Key and its memory's Mx in some other way, here by stdout and stdin:
 *
 *   mkfifo back
 *   peer_to_peer HOST_B <back | ssh HOST_B peer_to_peer HOST_A >back
 *
 * Then each puts a greeting into the other's memory and prints on stderr what it has received.
 * Without a connection only the programs can repeat lost frames: each sends its greeting until the
 * other side has thanked for it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <stp/st.h>
#include <string.h>

#include "example.h"

enum { kBufsize = 12, kBuffer = 1 << kBufsize, kTries = 300, kSilence = 10 };

static void must(int result, const char* call) {
  if (result >= 0) return;
  fprintf(stderr, "peer_to_peer: %s: %s\n", call, st_strerror(result));
  exit(1);
}

static unsigned option(st_ehandle_t endpoint, int which) {
  unsigned value = 0;
  must(st_getopt(endpoint, which, &value), "st_getopt");
  return value;
}

/* A header for the peer. */
static st_header_t addressed(unsigned op, unsigned port, unsigned key) {
  st_header_t header = {0};
  header.op_flags = ST_OP_FLAGS(op, 0);
  header.d_port = (uint16_t)port;
  header.d_key = key;
  return header;
}

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) return usage(argc, argv, "[HOST-OF-THE-PEER]");
  const char* const host = argc == 2 ? argv[1] : "localhost";
  static _Alignas(kBuffer) char out[kBuffer], in[kBuffer];

  tell_link();
  st_ehandle_t endpoint;
  unsigned bufsize = kBufsize;
  must(st_endpoint(NULL, &endpoint), "st_endpoint");
  must(st_setopt(endpoint, ST_OPT_BUFSIZE_LOCAL, &bufsize), "st_setopt");

  st_mhandle_t sending, receiving;
  int mx = 0;
  must(st_map(endpoint, ST_MAP_TX, out, kBuffer, 0, 1, &sending, NULL), "st_map");
  must(st_map(endpoint, ST_MAP_RX, in, kBuffer, 0, 1, &receiving, &mx), "st_map");

  /* Exchange what each side has to know of the other. */
  const unsigned own_port = option(endpoint, ST_OPT_PORT_LOCAL);
  printf("%u %u %d\n", own_port, option(endpoint, ST_OPT_KEY_LOCAL), mx);
  fflush(stdout);
  unsigned port = 0, key = 0, peer_mx = 0;
  if (scanf("%u %u %u", &port, &key, &peer_mx) != 3) {
    fprintf(stderr, "peer_to_peer: the peer has not said its PORT KEY MX\n");
    return 1;
  }
  st_macaddr_t mac;
  must(st_macaddr(endpoint, host, &mac), "st_macaddr");

  st_header_t data = addressed(ST_OP_DATA, port, key), thanks = addressed(ST_OP_NOP, port, key);
  data.mx = (uint16_t)peer_mx;
  const int length = snprintf(out, sizeof out, "Hello from Port %u", own_port) + 1;

  /* When both greetings are done, stay until the other side has been silent for a while: the thanks
   * may have been lost, and then the other side repeats its greeting. */
  int greeted = 0, thanked = 0;
  for (int tries = 0, silent = 0; !(greeted && thanked) || silent < kSilence;) {
    if (!thanked) {
      must(st_utx(endpoint, mac, &data, NULL, length, 0, 0), "st_utx");
      ++data.b_num; /* with the same number it would be a repeat, which is not reported */
    }
    st_header_t got;
    struct timeval patience = {0, 100000};
    const int result = st_urx(endpoint, &mac, &got, NULL, &patience);
    silent = result == -EWOULDBLOCK ? silent + 1 : 0;
    if (silent > 0 && ((greeted && thanked) || ++tries < kTries)) continue;
    must(result, "st_urx");
    if (ST_OP(got.op_flags) == ST_OP_NOP) thanked = 1;
    if (ST_OP(got.op_flags) != ST_OP_DATA) continue;
    if (!greeted) fprintf(stderr, "%s\n", in);
    greeted = 1;
    must(st_utx(endpoint, mac, &thanks, NULL, 0, 0, 0), "st_utx");
  }
  must(st_delete(endpoint), "st_delete");
  return 0;
}
