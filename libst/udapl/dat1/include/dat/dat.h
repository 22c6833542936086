/* SPDX-License-Identifier: BSD-3-Clause */
/* uDAPL 1.2: all types of the interface. Programs include <dat/udat.h>. */
#ifndef DAT_H
#define DAT_H

#include <dat/dat_event.h>
#include <dat/dat_ia.h>

#endif
