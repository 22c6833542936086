/* SPDX-License-Identifier: BSD-3-Clause */
/* The ABI of the managed API, where pointers and size_t have 8 bytes. */
#include <stp/managed.h>

#include "tests/abi/layout.h"

static void domain_attr(void) {
  TYPE(stm_domain_attr_t, 40);
  FIELD(stm_domain_attr_t, size, 0, 8);
  FIELD(stm_domain_attr_t, link, 8, 8);
  FIELD(stm_domain_attr_t, checksum, 16, 4);
  FIELD(stm_domain_attr_t, buffer_log2, 20, 4);
  FIELD(stm_domain_attr_t, slots, 24, 4);
  /* Not at 28: older programs have padding there, which may hold anything. */
  FIELD(stm_domain_attr_t, shard, 32, 8);
}

static void domain_info(void) {
  TYPE(stm_domain_info_t, 32); /* 24 before it had the field cache */
  FIELD(stm_domain_info_t, size, 0, 8);
  FIELD(stm_domain_info_t, mac, 8, 8);
  FIELD(stm_domain_info_t, ipv4, 16, 4);
  FIELD(stm_domain_info_t, mtu, 20, 4);
  FIELD(stm_domain_info_t, cache, 24, 4);
  FIELD(stm_domain_info_t, udp_port, 28, 2); /* reserved before, with the next one */
  FIELD(stm_domain_info_t, peer_udp_port, 30, 2);
}

static void remote(void) {
  TYPE(stm_remote_t, 24);
  FIELD(stm_remote_t, address, 0, 8);
  FIELD(stm_remote_t, length, 8, 8);
  FIELD(stm_remote_t, key, 16, 4);
  FIELD(stm_remote_t, access, 20, 4);
}

static void event(void) {
  TYPE(stm_event_t, 48);
  FIELD(stm_event_t, kind, 0, 4);
  FIELD(stm_event_t, status, 4, 4);
  FIELD(stm_event_t, context, 8, 8);
  FIELD(stm_event_t, length, 16, 8);
  FIELD(stm_event_t, connection, 24, 8);
  FIELD(stm_event_t, message, 32, 4);
  FIELD(stm_event_t, tag, 36, 4);
  FIELD(stm_event_t, request, 40, 4);
  FIELD(stm_event_t, reserved, 44, 4);
}

static void operation(void) {
  TYPE(stm_operation_t, 64);
  FIELD(stm_operation_t, kind, 0, 4);
  FIELD(stm_operation_t, flags, 4, 4);
  FIELD(stm_operation_t, context, 8, 8);
  FIELD(stm_operation_t, memory, 16, 8);
  FIELD(stm_operation_t, ptr, 24, 8);
  FIELD(stm_operation_t, length, 32, 8);
  FIELD(stm_operation_t, address, 40, 8);
  FIELD(stm_operation_t, key, 48, 4);
  FIELD(stm_operation_t, tag, 52, 4);
  FIELD(stm_operation_t, reserved, 56, 8);
}

static void connection_attr(void) {
  TYPE(stm_connection_attr_t, 72);
  FIELD(stm_connection_attr_t, size, 0, 8);
  FIELD(stm_connection_attr_t, context, 8, 8);
  FIELD(stm_connection_attr_t, events, 16, 8);
  FIELD(stm_connection_attr_t, sends, 24, 8);
  FIELD(stm_connection_attr_t, receives, 32, 8);
  FIELD(stm_connection_attr_t, pool, 40, 8);
  FIELD(stm_connection_attr_t, group, 48, 8);
  FIELD(stm_connection_attr_t, receive_wait, 56, 8);
  FIELD(stm_connection_attr_t, flags, 64, 4);
  FIELD(stm_connection_attr_t, reserved, 68, 4);
}

static void connection_info(void) {
  TYPE(stm_connection_info_t, 72);
  FIELD(stm_connection_info_t, size, 0, 8);
  FIELD(stm_connection_info_t, state, 8, 4);
  FIELD(stm_connection_info_t, reason, 12, 4);
  FIELD(stm_connection_info_t, context, 16, 8);
  FIELD(stm_connection_info_t, peer_mac, 24, 8);
  FIELD(stm_connection_info_t, operations, 32, 8);
  FIELD(stm_connection_info_t, receives, 40, 8);
  FIELD(stm_connection_info_t, eager, 48, 8);
  FIELD(stm_connection_info_t, span, 56, 8);
  FIELD(stm_connection_info_t, local_port, 64, 2);
  FIELD(stm_connection_info_t, peer_port, 66, 2);
  FIELD(stm_connection_info_t, quiet, 68, 4);
}

static void peer_info(void) {
  TYPE(stm_peer_info_t, 592);
  FIELD(stm_peer_info_t, size, 0, 8);
  FIELD(stm_peer_info_t, address, 8, 72);
  FIELD(stm_peer_info_t, trouble, 80, 512);
}

static void link_info(void) {
  TYPE(stm_link_info_t, 544);
  FIELD(stm_link_info_t, size, 0, 8);
  FIELD(stm_link_info_t, state, 8, 4);
  FIELD(stm_link_info_t, changes, 12, 4);
  FIELD(stm_link_info_t, age, 16, 8);
  FIELD(stm_link_info_t, mtu, 24, 4);
  FIELD(stm_link_info_t, megabits, 28, 4);
  FIELD(stm_link_info_t, trouble, 32, 512);
}

static void link_states(void) {
  VALUE(STM_LINK_UNKNOWN, 0);
  VALUE(STM_LINK_UP, 1);
  VALUE(STM_LINK_DOWN, 2);
  VALUE(STM_LINK_NO_CARRIER, 3);
  VALUE(STM_LINK_GONE, 4);
  VALUE(STM_LINK_NO_PEER, 5);
  VALUE(STM_LINK_TAKEN, 6);
  VALUE(STM_LINK_MTU, 7);
  VALUE(STM_LINK_MAC, 8);
  VALUE(STM_LINK_DUPLICATE, 9);
}

static void events(void) {
  VALUE(STM_REQUEST, 1);
  VALUE(STM_CONNECTED, 2);
  VALUE(STM_REFUSED, 3);
  VALUE(STM_FAILED, 4);
  VALUE(STM_DISCONNECTED, 5);
  VALUE(STM_SEND, 6);
  VALUE(STM_RECEIVE, 7);
  VALUE(STM_READ, 8);
  VALUE(STM_READ_REQUEST, 9);
  VALUE(STM_SERVED, 10);
  VALUE(STM_PUT, 11);
  VALUE(STM_GET, 12);
  VALUE(STM_FETCH, 13);
  VALUE(STM_USER, 14);
  VALUE(STM_HIGH, 15);
  VALUE(STM_LINK, 16);
}

static void states(void) {
  VALUE(STM_IDLE, 0);
  VALUE(STM_CONNECTING, 1);
  VALUE(STM_REQUESTED, 2);
  VALUE(STM_UP, 3);
  VALUE(STM_ENDING, 4);
  VALUE(STM_ENDED, 5);
}

static void others(void) {
  VALUE(STM_CACHE_ON, 1);
  VALUE(STM_CACHE_OFF, 2);
  VALUE(STM_CACHE_CANNOT, 3);
  VALUE(STM_LOCAL_READ, 1);
  VALUE(STM_LOCAL_WRITE, 2);
  VALUE(STM_REMOTE_READ, 4);
  VALUE(STM_REMOTE_WRITE, 8);
  VALUE(STM_REMOTE_ATOMIC, 16);
  VALUE(STM_REMOTE_SIZE, 24);
  VALUE(STM_PRIVATE_DATA, 1024);
  VALUE(STM_GRACEFUL, 0);
  VALUE(STM_ABRUPT, 1);
  VALUE(STM_BROKEN, 2);
  VALUE(STM_ON_ARRIVAL, 1);
  VALUE(STM_FRUGAL, 2);
  VALUE(STM_PATIENT, 4);
  VALUE(STM_WHILE_ALIVE, -2);
  VALUE(STM_QUIET, 1);
  VALUE(STM_FENCE, 2);
  VALUE(STM_URGENT, 4);
  VALUE(STM_LAZY, 8);
  VALUE(STM_HEAD, 32);
  VALUE(STM_FETCH_INCREMENT, 1);
  VALUE(STM_FETCH_DECREMENT, 2);
  VALUE(STM_FETCH_CLEAR, 3);
  VALUE(STM_FETCH_ADD, 4);
  VALUE(STM_COMPARE_AND_SWAP, 5);
}

int main(void) {
  domain_attr();
  domain_info();
  remote();
  event();
  operation();
  connection_attr();
  connection_info();
  peer_info();
  link_info();
  events();
  link_states();
  states();
  others();
  return failures != 0;
}
