/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs have compiled into them: sizes, places of fields and values of constants. None of
 * it may change within a SONAME. layout_complete.sh sees that nothing of the headers is missing. */
#ifndef STP_TESTS_ABI_LAYOUT_H
#define STP_TESTS_ABI_LAYOUT_H

#include <stddef.h>
#include <stdio.h>

static int failures;

static void expect(const char* what, const char* property, long long is, long long was) {
  if (is == was) return;
  printf("%s: %s was %lld and is %lld\n", what, property, was, is);
  ++failures;
}

#define TYPE(type, size) expect(#type, "size", (long long)sizeof(type), size)
#define FIELD(type, field, offset, size)                                         \
  (expect(#type "." #field, "offset", (long long)offsetof(type, field), offset), \
   expect(#type "." #field, "size", (long long)sizeof(((type*)0)->field), size))
#define VALUE(constant, value) expect(#constant, "value", (long long)(constant), value)

#endif
