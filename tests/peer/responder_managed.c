/* SPDX-License-Identifier: BSD-3-Clause
 * Commands of the managed API: calls of <stp/managed.h>, a word each. The link has a domain on each
 * of its shards; sessions take them in turn. */
#define _GNU_SOURCE
#include "responder.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
enum { kMostDomains = 16 };
static stm_domain_t domains[kMostDomains];
static size_t domain_count, next_domain;

static int open_domains(void) {
  int error = 0;
  while (error == 0 && domain_count < kMostDomains) {
    const stm_domain_attr_t attr = {.size = sizeof attr, .shard = domain_count + 1};
    error = stm_domain_open(&attr, &domains[domain_count]);
    if (error == 0) ++domain_count;
  }
  return error == -EINVAL && domain_count != 0 ? 0 : error; /* there are no more shards */
}

/* mopen: memory and a queue. */
static int open_session(struct session* s) {
  pthread_mutex_lock(&opening);
  int error = domain_count == 0 ? open_domains() : 0;
  if (error == 0) s->domain = domains[next_domain++ % domain_count];
  pthread_mutex_unlock(&opening);
  if (error != 0) return error;
  s->size = kMemory;
  s->rx = aligned_alloc(4096, s->size);
  if (s->rx == NULL) return -ENOMEM;
  memset(s->rx, 0, s->size);
  const unsigned all =
      STM_LOCAL_READ | STM_LOCAL_WRITE | STM_REMOTE_READ | STM_REMOTE_WRITE | STM_REMOTE_ATOMIC;
  error = stm_memory_register(s->domain, s->rx, s->size, all, &s->memory);
  return error != 0 ? error : stm_queue_create(s->domain, 4096, &s->queue);
}

static int next_report(struct session* s, uint64_t ms, char* out) {
  stm_event_t e;
  const int got = stm_queue_wait(s->queue, 1, &e, 1, (int64_t)ms * 1000);
  if (got == -EWOULDBLOCK) return strcpy(out, "none"), 0;
  if (got < 0) return got;
  if (e.kind == STM_REQUEST) s->managed = e.connection;
  sprintf(out, "%u %d %llu %llu %u %u %u", e.kind, e.status, (unsigned long long)e.context,
          (unsigned long long)e.length, e.message, e.tag, e.request);
  return 0;
}

/* [wait=MICROSECONDS] [pool=RECEIVES] [arrival=1] */
static int attributes(struct session* s, int count, char** words, stm_connection_attr_t* attr) {
  *attr = (stm_connection_attr_t){.size = sizeof *attr, .events = s->queue};
  attr->receive_wait = (int64_t)option(count, words, "wait", 0);
  if (option(count, words, "arrival", 0)) attr->flags = STM_ON_ARRIVAL;
  const uint64_t receives = option(count, words, "pool", 0);
  if (receives == 0) return 0;
  int error = stm_pool_create(s->domain, receives, &s->pool);
  enum { kEach = 8192 };
  for (uint64_t i = 0; error == 0 && i < receives; ++i)
    error = stm_pool_post(s->pool, 100 + i, s->memory, s->rx + i * kEach, kEach);
  attr->pool = s->pool;
  return error;
}

static size_t private_data(int count, char** words, int at, unsigned char* bytes) {
  if (count <= at || strchr(words[at], '=') != NULL || words[at][0] == '-') return 0;
  return from_hex(words[at], bytes, STM_PRIVATE_DATA);
}

static int connecting(struct session* s, int count, char** words, char* out) {
  unsigned char data[STM_PRIVATE_DATA];
  stm_connection_attr_t attr;
  int error;
  if (strcmp(words[0], "mlisten") == 0)
    return stm_listen(s->domain, words[1], s->queue, 0, 0, &s->listener);
  if (strcmp(words[0], "mprivate") == 0) {
    const int length = stm_private_data(s->managed, data, sizeof data);
    if (length < 0) return length;
    to_hex(data, (size_t)length, out);
    return 0;
  }
  if (strcmp(words[0], "mreject") == 0)
    return stm_reject(s->managed, data, private_data(count, words, 1, data));
  if (strcmp(words[0], "maccept") == 0) {
    const size_t length = private_data(count, words, 1, data);
    error = attributes(s, count, words, &attr);
    return error != 0 ? error : stm_accept(s->managed, &attr, data, length);
  }
  if (strcmp(words[0], "mconnect") == 0) { /* PEER MICROSECONDS PRIVATE */
    const size_t length = private_data(count, words, 3, data);
    error = attributes(s, count, words, &attr);
    if (error == 0) error = stm_connection_create(s->domain, &attr, &s->managed);
    if (error != 0) return error;
    return stm_connect(s->managed, words[1], (int64_t)number(count, words, 2), data, length);
  }
  if (strcmp(words[0], "mdisconnect") == 0)
    return stm_disconnect(s->managed, (int)number(count, words, 1));
  return 1;
}

static int regions(struct session* s, int count, char** words, char* out) {
  if (strcmp(words[0], "mregion") == 0) { /* OFFSET LENGTH ACCESS ADDRESS: its key */
    stm_remote_t remote;
    const int error = stm_region_open(s->memory, s->rx + number(count, words, 1),
                                      number(count, words, 2), (unsigned)number(count, words, 3),
                                      NULL, number(count, words, 4), &s->region, &remote);
    sprintf(out, "%u", remote.key);
    return error;
  }
  if (strcmp(words[0], "mrevoke") == 0) return stm_region_close(s->region);
  return connecting(s, count, words, out);
}

/* CONTEXT FLAGS OFFSET LENGTH ... */
int managed_command(struct session* s, int count, char** words, char* out) {
  const char* const name = words[0];
  uint64_t n[kMostWords] = {0};
  for (int i = 1; i < count; ++i) n[i] = number(count, words, i);
  if (strcmp(name, "mopen") == 0) return open_session(s);
  if (s->queue == NULL) return -EBADF;
  if (strcmp(name, "mwait") == 0) return next_report(s, n[1], out);
  if (strcmp(name, "mcancel") == 0) return stm_cancel(s->managed, n[1]);
  if (strcmp(name, "mrefuse") == 0) return stm_refuse_read(s->managed, (uint32_t)n[1]);
  if (strcmp(name, "mread") == 0 && n[1] + n[2] <= s->size)
    return to_hex(s->rx + n[1], n[2], out), 0;
  if (strcmp(name, "mwrite") == 0 && n[1] < s->size)
    return from_hex(words[2], s->rx + n[1], s->size - n[1]), 0;
  unsigned char* const ptr = s->rx + (n[3] < s->size ? n[3] : 0);
  const unsigned flags = (unsigned)n[2];
  if (strcmp(name, "mreceive") == 0)
    return stm_receive(s->managed, n[1], n[4] ? s->memory : NULL, n[4] ? ptr : NULL, n[4]);
  if (strcmp(name, "msend") == 0)
    return stm_send(s->managed, n[1], flags, (uint32_t)n[5], s->memory, ptr, n[4]);
  if (strcmp(name, "mask") == 0) return stm_read(s->managed, n[1], flags, s->memory, ptr, n[4]);
  if (strcmp(name, "mserve") == 0)
    return stm_serve_read(s->managed, (uint32_t)n[5], n[1], flags, s->memory, ptr, n[4]);
  if (strcmp(name, "mput") == 0)
    return stm_put(s->managed, n[1], flags, s->memory, ptr, n[4], (uint32_t)n[5], n[6]);
  if (strcmp(name, "mget") == 0)
    return stm_get(s->managed, n[1], flags, s->memory, ptr, n[4], (uint32_t)n[5], n[6]);
  if (strcmp(name, "mfetch") == 0)
    return stm_fetch(s->managed, n[1], flags, (enum stm_fetch_op)n[4], n[7], n[8], s->memory, ptr,
                     (uint32_t)n[5], n[6]);
  return regions(s, count, words, out);
}

void managed_end(struct session* s) {
  if (s->queue == NULL) return;
  if (s->managed != NULL) stm_connection_close(s->managed);
  if (s->listener != NULL) stm_listener_close(s->listener);
  if (s->region != NULL) stm_region_close(s->region);
  if (s->pool != NULL) stm_pool_destroy(s->pool, NULL, NULL);
  stm_queue_destroy(s->queue);
  stm_memory_release(s->memory);
  free(s->rx);
  s->rx = NULL;
}

void managed_finish(void) {
  while (domain_count != 0) stm_domain_close(domains[--domain_count]);
}
