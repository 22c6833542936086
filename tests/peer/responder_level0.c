/* SPDX-License-Identifier: BSD-3-Clause
 * Commands of level 0: calls of <stp/st.h>, a word each. Headers are their general words:
 *
 *   OP_FLAGS param mx bufx offset sync b_num d_id s_id */
#define _GNU_SOURCE
#include "responder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int set(struct session* s, int count, char** words, const char* name, int opt) {
  unsigned value = (unsigned)option(count, words, name, ~0ULL);
  return value == ~0U ? 0 : st_setopt(s->endpoint, opt, &value);
}

/* open NAME|- [endpoint=1] [bufs=N] [slots= bufsize= maxstu= checksum= keepalive= recover= inspect=
 * patience= key= port=]: an endpoint, and memory for it at Bufx 0x100 both ways. Its Mx. */
static int open_endpoint(struct session* s, int count, char** words, char* out) {
  static const struct {
    const char* name;
    int opt;
  } options[] = {{"bufsize", ST_OPT_BUFSIZE_LOCAL}, {"maxstu", ST_OPT_MAXSTU_LOCAL},
                 {"slots", ST_OPT_RX_SLOTS},        {"checksum", ST_OPT_CHECKSUM},
                 {"keepalive", ST_OPT_KEEP_ALIVE},  {"recover", ST_OPT_RECOVER},
                 {"inspect", ST_OPT_INSPECT},       {"patience", ST_OPT_CONNECT_PATIENCE},
                 {"key", ST_OPT_KEY_LOCAL},         {"port", ST_OPT_PORT_LOCAL}};
  const char* const name = strcmp(words[1], "-") == 0 ? NULL : words[1];
  const int made = option(count, words, "endpoint", 0) ? st_endpoint(name, &s->endpoint)
                                                       : st_create(name, &s->endpoint);
  unsigned bufsize = 12;
  if (made != 0) return made;
  if (st_setopt(s->endpoint, ST_OPT_BUFSIZE_LOCAL, &bufsize) != 0) return -EINVAL;
  for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
    const int error = set(s, count, words, options[i].name, options[i].opt);
    if (error != 0) return error;
  }
  st_getopt(s->endpoint, ST_OPT_BUFSIZE_LOCAL, &bufsize);
  s->size = option(count, words, "bufs", kBuffers) << bufsize;
  void *rx, *tx;
  int error = st_malloc(s->endpoint, s->size, -1, &rx);
  if (error == 0) error = st_malloc(s->endpoint, s->size, -1, &tx);
  if (error != 0) return error;
  s->rx = rx;
  s->tx = tx;
  error = st_map(s->endpoint, ST_MAP_RX, rx, (int)s->size, kBase, -1, &s->rx_map, &s->mx);
  if (error == 0)
    error = st_map(s->endpoint, ST_MAP_TX, tx, (int)s->size, kBase, -1, &s->tx_map, NULL);
  sprintf(out, "%d", s->mx);
  return error;
}

static void tell(const st_header_t* h, const unsigned char* payload, int has, char* out) {
  out += sprintf(out, "%u %u %u %u %u %u %u %u %u ", h->op_flags, h->param, h->mx, h->bufx,
                 h->offset, h->sync, h->b_num, h->d_id, h->s_id);
  if (has)
    to_hex(payload, ST_FLAGS(h->op_flags) & ST_FLAG_APPEND ? ST_APPEND_SIZE : ST_OPTION_SIZE, out);
  else
    strcpy(out, "-");
}

/* rx MS: the next header and its option payload or append, or `none`. urx: the sender's MAC before.
 */
static int receive(struct session* s, int count, char** words, char* out) {
  st_header_t header;
  struct timeval timeout;
  unsigned char payload[ST_APPEND_SIZE];
  st_macaddr_t from = 0;
  struct timeval* const until = milliseconds(number(count, words, 1), &timeout);
  const int any = words[0][0] == 'u';
  const int got = any ? st_urx(s->endpoint, &from, &header, payload, until)
                      : st_rx(s->connection, &header, payload, until);
  if (got == -EWOULDBLOCK) return strcpy(out, "none"), 0;
  if (got < 0) return got;
  if (any) out += sprintf(out, "%llu ", (unsigned long long)from);
  tell(&header, payload, got, out);
  return 0;
}

/* tx HEADER length bufx offset [PAYLOAD]; utx MAC D_PORT D_KEY before that. */
static int transmit(struct session* s, int count, char** words) {
  const int any = words[0][0] == 'u', at = any ? 4 : 1;
  unsigned char payload[ST_APPEND_SIZE] = {0};
  st_header_t h = {0};
  if (any) {
    h.d_port = (uint16_t)number(count, words, 2);
    h.d_key = (uint32_t)number(count, words, 3);
  }
  h.op_flags = (uint16_t)number(count, words, at);
  h.param = (uint16_t)number(count, words, at + 1);
  h.mx = (uint16_t)number(count, words, at + 2);
  h.bufx = (uint32_t)number(count, words, at + 3);
  h.offset = (uint32_t)number(count, words, at + 4);
  h.sync = (uint32_t)number(count, words, at + 5);
  h.b_num = (uint32_t)number(count, words, at + 6);
  h.d_id = (uint32_t)number(count, words, at + 7);
  h.s_id = (uint32_t)number(count, words, at + 8);
  const int length = (int)number(count, words, at + 9), bufx = (int)number(count, words, at + 10);
  const int offset = (int)number(count, words, at + 11);
  void* const extra = at + 12 < count ? payload : NULL;
  if (extra != NULL) from_hex(words[at + 12], payload, sizeof payload);
  if (any) return st_utx(s->endpoint, number(count, words, 1), &h, extra, length, bufx, offset);
  return st_tx(s->connection, &h, extra, length, bufx, offset);
}

static int await_connection(struct session* s, uint64_t ms) {
  struct timeval timeout;
  st_event_t event;
  for (;;) {
    const int error = st_next_event(s->endpoint, &event, milliseconds(ms, &timeout));
    if (error != 0) return error;
    if (event.kind == ST_EVENT_CONNECTION) return st_accept(s->endpoint, &s->connection);
  }
}

static int next_event(struct session* s, int count, char** words, char* out) {
  struct timeval timeout;
  st_event_t event;
  const int error =
      st_next_event(s->endpoint, &event, milliseconds(number(count, words, 1), &timeout));
  if (error == -EWOULDBLOCK) return strcpy(out, "none"), 0;
  sprintf(out, "%d %d", event.kind, event.error);
  return error;
}

static void tell_peer(const st_peer_t* peer, char* out) {
  if (peer->opt_len != 0)
    to_hex(peer->opt_pay, peer->opt_len, out);
  else
    strcpy(out, "-");
}

static int connections(struct session* s, int count, char** words, char* out) {
  unsigned char payload[ST_OPTION_SIZE] = {0};
  struct timeval timeout;
  st_peer_t peer = {0};
  int error;
  if (strcmp(words[0], "listen") == 0) return st_listen(s->endpoint);
  if (strcmp(words[0], "accept") == 0) return await_connection(s, number(count, words, 1));
  if (strcmp(words[0], "event") == 0) return next_event(s, count, words, out);
  if (strcmp(words[0], "connect") == 0) {
    if (count > 2) from_hex(words[2], payload, sizeof payload);
    error =
        st_connect_opt(s->endpoint, words[1], count > 2 ? payload : NULL, &s->connection, &peer);
    tell_peer(&peer, out);
    return error;
  }
  if (strcmp(words[0], "inspect") == 0) {
    error = st_inspect(s->endpoint, &s->connection, &peer,
                       milliseconds(number(count, words, 1), &timeout));
    tell_peer(&peer, out);
    return error;
  }
  if (count > 1) from_hex(words[1], payload, sizeof payload);
  if (strcmp(words[0], "admit") == 0)
    return st_accept_opt(s->connection, count > 1 ? payload : NULL);
  if (strcmp(words[0], "reject") == 0) return st_reject(s->connection, count > 1 ? payload : NULL);
  if (strcmp(words[0], "close") == 0) return st_close(s->connection);
  return 1;
}

int level0_command(struct session* s, int count, char** words, char* out) {
  const uint64_t at = number(count, words, 1);
  if (strcmp(words[0], "open") == 0 && count > 1) return open_endpoint(s, count, words, out);
  if (s->endpoint == NULL) return -EBADF;
  if (strcmp(words[0], "rx") == 0 || strcmp(words[0], "urx") == 0)
    return receive(s, count, words, out);
  if (strcmp(words[0], "tx") == 0 || strcmp(words[0], "utx") == 0) return transmit(s, count, words);
  if (strcmp(words[0], "get") == 0) {
    unsigned value = 0;
    const int error =
        st_getopt(s->connection ? (void*)s->connection : (void*)s->endpoint, (int)at, &value);
    sprintf(out, "%u", value);
    return error;
  }
  if (strcmp(words[0], "unmap") == 0) {
    const st_mhandle_t map = s->rx_map;
    s->rx_map = NULL;
    return st_unmap(map);
  }
  if (strcmp(words[0], "flush") == 0) return st_flush(s->connection);
  if (strcmp(words[0], "freemx") == 0) return st_mx_free(s->connection, (int)at);
  if (strcmp(words[0], "newmx") == 0) {
    int mx = 0;
    const int error = st_mx_alloc(s->connection, s->rx_map, &mx);
    sprintf(out, "%d", mx);
    return error;
  }
  if (at <= s->size && count > 2) {
    const size_t left = s->size - at;
    if (strcmp(words[0], "read") == 0 && number(count, words, 2) <= left && left < kOut / 2)
      return to_hex(s->rx + at, number(count, words, 2), out), 0;
    if (strcmp(words[0], "write") == 0) return from_hex(words[2], s->rx + at, left), 0;
    if (strcmp(words[0], "fill") == 0) return from_hex(words[2], s->tx + at, left), 0;
  }
  return connections(s, count, words, out);
}

void level0_end(struct session* s) {
  if (s->endpoint == NULL) return;
  st_delete(s->endpoint);
  if (s->rx != NULL) st_free(s->rx);
  if (s->tx != NULL) st_free(s->tx);
}
