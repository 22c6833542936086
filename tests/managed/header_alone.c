/* SPDX-License-Identifier: BSD-3-Clause */
/* The header compiles alone, as C. */
#include <stp/managed.h>

int managed_header_alone(void);
int managed_header_alone(void) {
  stm_remote_t remote = {0, 0, 1, STM_REMOTE_READ};
  return (int)remote.key;
}
