/* SPDX-License-Identifier: BSD-3-Clause
 * What the examples share: the link is named, and an error ends the program, with the reason in
 * words. */
#ifndef STP_EXAMPLE_H
#define STP_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <stp/st.h>
#include <unistd.h>

/* Returns what the call returned, if that is no error. */
static inline int check(const char* call, int result) {
  if (result >= 0) return result;
  fprintf(stderr, "%s: %s\n", call, st_strerror(result));
  exit(1);
}

/* Says which link it will be: that of STP_LINK, else the daemon's, else loop. */
static inline void tell_link(void) {
  const char* link = getenv("STP_LINK");
  if (link == NULL || *link == '\0')
    link = access("/run/stpd/stpd.sock", F_OK) == 0
               ? "stpd:"
               : "loop, this process alone: set STP_LINK, or start stpd";
  fprintf(stderr, "link %s\n", link);
}

#endif
