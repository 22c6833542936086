/* SPDX-License-Identifier: BSD-3-Clause */
/* uDAPL 1.2: what dat_ia_open() asks the registry for. A program may define its own before. */
#ifndef UDAT_CONFIG_H
#define UDAT_CONFIG_H

#define DAT_VERSION_MAJOR 1
#define DAT_VERSION_MINOR 2

/* Whether the program needs a provider whose calls several threads may make at once. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE DAT_FALSE
#endif

#endif
