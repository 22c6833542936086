/* SPDX-License-Identifier: BSD-3-Clause */
/* uDAPL 1.2: the integers and pointers of which all its other types are made. */
#ifndef DAT_PLATFORM_SPECIFIC_H
#define DAT_PLATFORM_SPECIFIC_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Directions of parameters, as the manual pages of the interface write them. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

typedef int32_t DAT_INT32;
typedef uint32_t DAT_UINT32;
typedef uint64_t DAT_UINT64;
typedef unsigned long DAT_UVERYLONG;

typedef void* DAT_PVOID;
typedef int DAT_COUNT;

/* How programs declare calls as those of the interface are. */
#define DAT_API
#define DAT_EXPORT extern

/* A handle of an IA as a number, and back. */
#define DAT_IA_HANDLE_TO_UL(handle) ((DAT_UVERYLONG)(handle))
#define DAT_UL_TO_IA_HANDLE(number) ((DAT_IA_HANDLE)(number))

/* How programs print 64 bits. */
#define F64d "%" PRId64
#define F64u "%" PRIu64
#define F64x "%" PRIx64
#define F64X "%" PRIX64

/* Addresses of Interface Adapters; here those of IPv4. */
#define DAT_AF_INET AF_INET
#define DAT_AF_INET6 AF_INET6
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_storage DAT_SOCK_ADDR6;
typedef DAT_SOCK_ADDR* DAT_IA_ADDRESS_PTR;

#endif
