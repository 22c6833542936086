/* SPDX-License-Identifier: BSD-3-Clause
 * What the examples share: the link is named, and an error ends the program, with the reason in
 * words. */
#ifndef STP_EXAMPLE_H
#define STP_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <stp/st.h>
#include <string.h>
#include <unistd.h>

/* Returns what the call returned, if that is no error. */
static inline int check(const char* call, int result) {
  if (result >= 0) return result;
  fprintf(stderr, "%s: %s\n", call, st_strerror(result));
  exit(1);
}

/* What main() returns if its words are wrong, or --help, which is no error. Prints what the words
 * are. */
static inline int usage(int argc, char** argv, const char* words) {
  const int is_asked = argc == 2 && strcmp(argv[1], "--help") == 0;
  const char* slash = strrchr(argv[0], '/');
  fprintf(is_asked ? stdout : stderr, "usage: %s %s\nThe link is that of STP_LINK.\n",
          slash == NULL ? argv[0] : slash + 1, words);
  return is_asked ? 0 : 2;
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
