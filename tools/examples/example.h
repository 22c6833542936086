/* SPDX-License-Identifier: BSD-3-Clause
 * What the examples share: an error ends the program, with the reason in words. */
#ifndef STP_EXAMPLE_H
#define STP_EXAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <stp/st.h>

/* Returns what the call returned, if that is no error. */
static inline int check(const char* call, int result) {
  if (result >= 0) return result;
  fprintf(stderr, "%s: %s\n", call, st_strerror(result));
  exit(1);
}

#endif
