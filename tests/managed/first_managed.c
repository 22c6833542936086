/* SPDX-License-Identifier: BSD-3-Clause
 * A first program of the managed API: one side puts a text into memory of the other.
 * cc first_managed.c $(pkg-config --cflags --libs libst) && STP_LINK=loop ./a.out */
#include <stdio.h>
#include <stdlib.h>
#include <stp/managed.h>
#include <string.h>

static char source[64] = "Hello from the other memory", target[64];
static stm_queue_t queue; /* of both sides, because they are one program here */

static void check(const char* what, int result) {
  if (result >= 0) return;
  fprintf(stderr, "%s: %s\n", what, st_strerror(result));
  exit(1);
}

/* The next event, which has to be of that kind. */
static stm_event_t await(const char* what, enum stm_event_kind kind) {
  stm_event_t event;
  check(what, stm_queue_wait(queue, 1, &event, 1, 10000000)); /* 10 s */
  check(what, event.status);
  if (event.kind == (uint32_t)kind) return event;
  fprintf(stderr, "%s: event %u came instead of %d\n", what, event.kind, kind);
  exit(1);
}

int main(void) {
  stm_domain_t domain;
  stm_memory_t from, to;
  stm_region_t region;
  stm_remote_t remote;
  stm_listener_t listener;
  stm_connection_t in, out;
  char name[STM_REMOTE_SIZE]; /* of the region, as it travels */
  check("stm_domain_open", stm_domain_open(NULL, &domain));
  check("stm_queue_create", stm_queue_create(domain, 64, &queue));
  const stm_connection_attr_t attr = {.size = sizeof attr, .events = queue};

  /* The server: memory that peers may write to, and a port. */
  check("register", stm_memory_register(domain, target, sizeof target, STM_REMOTE_WRITE, &to));
  check("stm_region_open",
        stm_region_open(to, target, sizeof target, STM_REMOTE_WRITE, NULL, 0, &region, &remote));
  check("stm_listen", stm_listen(domain, ":3000", queue, 0, 8, &listener));

  /* The client: memory to send from, and a connection. */
  check("register", stm_memory_register(domain, source, sizeof source, STM_LOCAL_READ, &from));
  check("stm_connection_create", stm_connection_create(domain, &attr, &out));
  check("stm_connect", stm_connect(out, ":3000", -1, NULL, 0));

  /* The server accepts, and tells along how its region is called. */
  in = await("a request", STM_REQUEST).connection;
  stm_remote_encode(&remote, name);
  check("stm_accept", stm_accept(in, &attr, name, sizeof name));
  await("connecting", STM_CONNECTED);
  await("connecting", STM_CONNECTED);

  /* The client puts: the server's program does nothing for it. */
  check("stm_private_data", stm_private_data(out, name, sizeof name));
  stm_remote_decode(name, &remote);
  check("stm_put", stm_put(out, 0, 0, from, source, sizeof source, remote.key, remote.address));
  await("the put", STM_PUT);
  puts(target);

  check("stm_disconnect", stm_disconnect(out, STM_GRACEFUL));
  await("the end", STM_DISCONNECTED);
  await("the end", STM_DISCONNECTED);
  check("stm_domain_close", stm_domain_close(domain)); /* closes all of the above */
  return memcmp(source, target, sizeof source) != 0;
}
