/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints what it is told of the link of STP_LINK, line by line: each event with what a question
 * tells then, and each address that the link has. It ends when the link itself has. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stp/managed.h>

static int failed(const char* what, int error) {
  fprintf(stderr, "%s: %s\n", what, st_strerror(error));
  return 1;
}

static void print_address(stm_domain_t domain) {
  static uint32_t last = 1;
  stm_domain_info_t info = {.size = sizeof info};
  if (stm_domain_query(domain, &info) != 0 || info.ipv4 == last) return;
  last = info.ipv4;
  printf("address %u.%u.%u.%u\n", last >> 24, last >> 16 & 255, last >> 8 & 255, last & 255);
}

static void print_event(stm_domain_t domain, const stm_event_t* event) {
  stm_link_info_t info = {.size = sizeof info};
  const int error = stm_link_query(domain, &info);
  printf("event %" PRIu32 " status %d\n", event->tag, event->status);
  if (error == 0)
    printf("asked: state %" PRIu32 " megabits %" PRIu32 " trouble: %s\n", info.state, info.megabits,
           info.trouble);
}

int main(void) {
  const int64_t interval = 100 * 1000;
  stm_domain_t domain;
  stm_queue_t queue;
  stm_event_t event;
  int result = stm_domain_open(NULL, &domain);
  if (result != 0) return failed("stm_domain_open", result);
  result = stm_queue_create(domain, 8, &queue);
  if (result == 0) result = stm_link_watch(domain, queue, 0);
  if (result != 0) return failed("stm_link_watch", result);
  setvbuf(stdout, NULL, _IOLBF, 0);
  do {
    print_address(domain);
    event.status = 0;
    result = stm_queue_wait(queue, 1, &event, 1, interval);
    if (result == 1) print_event(domain, &event);
  } while (result >= 0 ? event.status != -ENOTCONN : result == -EWOULDBLOCK || result == -EINTR);
  if (result < 0) return failed("stm_queue_wait", result);
  printf("the link has ended\n");
  return stm_domain_close(domain) == 0 ? 0 : 1;
}
