/* SPDX-License-Identifier: BSD-3-Clause
 * Sessions of the program at this project's end of the wire, which the peer controls. */
#ifndef STP_TESTS_PEER_RESPONDER_H
#define STP_TESTS_PEER_RESPONDER_H

#include <stdint.h>
#include <stp/managed.h>

enum { kBuffers = 64, kBase = 0x100, kMemory = 1 << 18, kMostWords = 24 };

/* One end of a conversation: a thread that carries out commands in order. */
struct session {
  char name[32];
  int commands; /* a pipe: lines, without the session's name */
  /* level 0 */
  st_ehandle_t endpoint;
  st_chandle_t connection;
  st_mhandle_t rx_map, tx_map;
  int mx;
  unsigned char *rx, *tx; /* managed: rx alone */
  size_t size;
  /* managed */
  stm_domain_t domain;
  stm_queue_t queue;
  stm_memory_t memory;
  stm_listener_t listener;
  stm_connection_t managed;
  stm_region_t region;
  stm_pool_t pool;
};

/* `words`: the words of a command, beginning with its name. Return an errno, or 0 with the answer
 * to the peer in `out`, or 1 if there is no such command. */
enum { kOut = 1 << 20 };
int level0_command(struct session* s, int count, char** words, char* out);
int managed_command(struct session* s, int count, char** words, char* out);
void level0_end(struct session* s);
void managed_end(struct session* s);
void managed_finish(void);

uint64_t number(int count, char** words, int at); /* 0 if there is none */
/* NAME=VALUE among the words */
uint64_t option(int count, char** words, const char* name, uint64_t otherwise);
void to_hex(const unsigned char* bytes, size_t length, char* out);
size_t from_hex(const char* text, unsigned char* bytes, size_t most);
struct timeval* milliseconds(uint64_t ms, struct timeval* tv);

#endif
