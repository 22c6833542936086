/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that a signal ends in the middle of a call: its handler calls exit(), like those of some
 * libraries. Each program must end. */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stp/managed.h>

enum { PROGRAMS = 8, PATIENCE = 60 /* s */ };

static void end(int number) {
  (void)number;
  exit(7);
}

static int run(unsigned microseconds) {
  struct sigaction action;
  stm_domain_t domain;
  stm_queue_t queue;
  stm_event_t event;
  memset(&action, 0, sizeof action);
  action.sa_handler = end;
  if (stm_domain_open(NULL, &domain) != 0 || stm_queue_create(domain, 1, &queue) != 0) return 1;
  if (sigaction(SIGALRM, &action, NULL) != 0) return 1;
  ualarm(microseconds, 0);
  for (;;) stm_queue_poll(queue, &event, 1);
}

int main(void) {
  for (int i = 0; i < PROGRAMS; ++i) {
    int status = 0, tries = PATIENCE * 1000;
    const pid_t child = fork();
    if (child == 0) _exit(run(2000u + 137u * (unsigned)i));
    while (waitpid(child, &status, WNOHANG) == 0 && tries-- > 0) usleep(1000);
    if (tries < 0) {
      kill(child, SIGKILL);
      fprintf(stderr, "program %d does not end\n", i);
      return 1;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) {
      fprintf(stderr, "program %d: status %d\n", i, status);
      return 1;
    }
  }
  return 0;
}
