/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks calls in the C programs of this folder. Define PATIENCE, in microseconds, before it. */
#ifndef STP_TESTS_DAT1_SUCCEEDS_H
#define STP_TESTS_DAT1_SUCCEEDS_H

#include <dat/udat.h>
#include <stdio.h>
#include <stdlib.h>

static void check(const char* call, DAT_RETURN is, DAT_RETURN wanted) {
  const char *major = "?", *minor = "?";
  if (is == wanted) return;
  dat_strerror(is, &major, &minor);
  printf("%s: %s %s\n", call, major, minor);
  exit(1);
}
#define SUCCEEDS(call) check(#call, call, DAT_SUCCESS)
#define RETURNS(value, call) check(#call, call, value)

static DAT_DTO_COOKIE cookie(DAT_UINT64 value) {
  DAT_DTO_COOKIE made;
  made.as_64 = value;
  return made;
}

static DAT_EVENT next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  DAT_EVENT event;
  DAT_COUNT more;
  SUCCEEDS(dat_evd_wait(evd, PATIENCE, 1, &event, &more));
  if (event.event_number != number) {
    printf("event %#x instead of %#x\n", (unsigned)event.event_number, (unsigned)number);
    exit(1);
  }
  return event;
}

#endif
