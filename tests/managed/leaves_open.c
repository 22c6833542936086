/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that ends in the middle of its work, which the library permits: tools that look for
 * leaks find none. */
#include <stddef.h>

#include <stp/managed.h>

static char bytes[64];

int main(void) {
  stm_domain_t domain;
  stm_queue_t queue;
  stm_memory_t memory;
  stm_listener_t listener;
  stm_connection_t connection;
  stm_event_t event;
  stm_connection_attr_t attr = {.size = sizeof attr};
  int i;
  if (stm_domain_open(NULL, &domain) != 0 || stm_queue_create(domain, 64, &queue) != 0) return 1;
  attr.events = queue;
  if (stm_memory_register(domain, bytes, sizeof bytes, STM_LOCAL_READ, &memory) != 0) return 1;
  if (stm_listen(domain, ":3000", queue, 0, 8, &listener) != 0) return 1;
  if (stm_connection_create(domain, &attr, &connection) != 0) return 1;
  if (stm_connect(connection, ":3000", -1, NULL, 0) != 0) return 1;
  for (i = 0; i < 3; i++) { /* the request, then both sides are connected */
    if (stm_queue_wait(queue, 1, &event, 1, -1) != 1 || event.status != 0) return 1;
    if (event.kind == STM_REQUEST && stm_accept(event.connection, &attr, NULL, 0) != 0) return 1;
  }
  return stm_send(connection, 0, 0, 0, memory, bytes, sizeof bytes) != 0;
}
