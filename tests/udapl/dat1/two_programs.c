/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: two_programs server CLIENT-ADDRESS | two_programs client SERVER-ADDRESS
 * Two uDAPL 1.2 programs in C99 that use only the headers and -ldat: they connect with private
 * data, send messages, write and read each other's memory, and disconnect. STP_LINK names their
 * link. */
#include <arpa/inet.h>
#include <dat/udat.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 30000000U
#include "succeeds.h"

#define PORT 3200
#define SIZE 200000 /* of what is sent, written and read */

static const char question[300] = "from the client", answer[64] = "from the server";

/* The private data of the server's answer: the word, and where its memory is. */
struct welcome {
  char word[sizeof answer];
  DAT_RMR_TRIPLET memory;
};

static void fail(const char* what) {
  printf("%s\n", what);
  exit(1);
}

static struct {
  DAT_IA_HANDLE ia;
  DAT_EVD_HANDLE async, recv, request, connect, requests;
  DAT_PZ_HANDLE pz;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET local;
  DAT_RMR_TRIPLET remote;
  DAT_EP_HANDLE ep;
} my;
static unsigned char memory[SIZE];

static void await(DAT_EVD_HANDLE evd, DAT_UINT64 value, DAT_VLEN length) {
  DAT_DTO_COMPLETION_EVENT_DATA done =
      next(evd, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data;
  if (done.status != DAT_DTO_SUCCESS || done.user_cookie.as_64 != value ||
      done.ep_handle != my.ep || done.transfered_length != length)
    fail("a completion is not the one that was waited for");
}

static void open_ia(void) {
  DAT_REGION_DESCRIPTION region;
  DAT_VLEN size;
  DAT_VADDR address;
  DAT_EP_ATTR attr;
  char name[] = "stp0";
  SUCCEEDS(dat_ia_open(name, 8, &my.async, &my.ia));
  SUCCEEDS(dat_pz_create(my.ia, &my.pz));
  SUCCEEDS(dat_evd_create(my.ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &my.recv));
  SUCCEEDS(dat_evd_create(my.ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &my.request));
  SUCCEEDS(dat_evd_create(my.ia, 16, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &my.connect));
  SUCCEEDS(dat_evd_create(my.ia, 16, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &my.requests));
  region.for_va = memory;
  SUCCEEDS(dat_lmr_create(my.ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, my.pz, DAT_MEM_PRIV_ALL_FLAG,
                          &my.lmr, &my.local.lmr_context, &my.remote.rmr_context, &size, &address));
  my.local.virtual_address = my.remote.target_address = address;
  my.local.segment_length = my.remote.segment_length = SIZE;
  memset(&attr, 0, sizeof attr);
  attr.max_rdma_read_in = attr.max_rdma_read_out = 1;
  SUCCEEDS(dat_ep_create(my.ia, my.pz, my.recv, my.request, my.connect, &attr, &my.ep));
}

static void receive_later(DAT_UINT64 value) {
  SUCCEEDS(dat_ep_post_recv(my.ep, 1, &my.local, cookie(value), DAT_COMPLETION_DEFAULT_FLAG));
}

static void send_message(DAT_UINT64 value, DAT_VLEN length) {
  DAT_LMR_TRIPLET part = my.local;
  part.segment_length = length;
  SUCCEEDS(dat_ep_post_send(my.ep, 1, &part, cookie(value), DAT_COMPLETION_DEFAULT_FLAG));
  await(my.request, value, length);
}

static void fill(int value) {
  memset(memory, value, SIZE);
}
static void expect(int value, size_t length) {
  for (size_t i = 0; i < length; ++i)
    if (memory[i] != value) fail("other bytes than were sent");
}

static void close_ia(void) {
  SUCCEEDS(dat_ep_free(my.ep));
  SUCCEEDS(dat_lmr_free(my.lmr));
  SUCCEEDS(dat_pz_free(my.pz));
  SUCCEEDS(dat_evd_free(my.recv));
  SUCCEEDS(dat_evd_free(my.request));
  SUCCEEDS(dat_evd_free(my.connect));
  SUCCEEDS(dat_evd_free(my.requests));
  SUCCEEDS(dat_ia_close(my.ia, DAT_CLOSE_GRACEFUL_FLAG));
}

static void accept_client(const char* client_address) {
  struct welcome welcome;
  DAT_PSP_HANDLE psp;
  DAT_CR_HANDLE cr;
  DAT_CR_PARAM param;
  struct in_addr ip;
  SUCCEEDS(dat_psp_create(my.ia, PORT, my.requests, DAT_PSP_CONSUMER_FLAG, &psp));
  puts("listening");
  fflush(stdout);
  cr = next(my.requests, DAT_CONNECTION_REQUEST_EVENT).event_data.cr_arrival_event_data.cr_handle;
  SUCCEEDS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
  ip = ((struct sockaddr_in*)param.remote_ia_address_ptr)->sin_addr;
  if (strcmp(inet_ntoa(ip), client_address) != 0 || param.remote_port_qual == 0)
    fail("another requester than asked");
  if (param.private_data_size != (DAT_COUNT)sizeof question ||
      memcmp(param.private_data, question, sizeof question) != 0)
    fail("another question than was asked");
  memcpy(welcome.word, answer, sizeof answer);
  welcome.memory = my.remote;
  SUCCEEDS(dat_cr_accept(cr, my.ep, sizeof welcome, &welcome));
  next(my.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  SUCCEEDS(dat_psp_free(psp));
}

static void serve(const char* client_address) {
  open_ia();
  receive_later(1);
  accept_client(client_address);
  await(my.recv, 1, 64); /* a short message */
  expect(1, 64);
  receive_later(2);
  send_message(11, 64);
  await(my.recv, 2, SIZE); /* a long one */
  expect(2, SIZE);
  receive_later(3);
  send_message(12, 64);
  await(my.recv, 3, 0); /* what was written is there before the message behind it */
  expect(3, SIZE);
  fill(4); /* for the client to read */
  receive_later(4);
  send_message(13, 64);
  next(my.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  if (next(my.recv, DAT_DTO_COMPLETION_EVENT).event_data.dto_completion_event_data.status !=
      DAT_DTO_ERR_FLUSHED)
    fail("the last receive is not flushed");
  close_ia();
}

static DAT_RMR_TRIPLET connect_to(const char* host) {
  struct sockaddr_in address;
  struct welcome welcome;
  DAT_CONNECTION_EVENT_DATA told;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail("not an address");
  SUCCEEDS(dat_ep_connect(my.ep, (DAT_IA_ADDRESS_PTR)&address, PORT, PATIENCE, sizeof question,
                          (DAT_PVOID)(uintptr_t)question, DAT_QOS_BEST_EFFORT,
                          DAT_CONNECT_DEFAULT_FLAG));
  told = next(my.connect, DAT_CONNECTION_EVENT_ESTABLISHED).event_data.connect_event_data;
  if (told.private_data_size != (DAT_COUNT)sizeof welcome) fail("another answer's length");
  memcpy(&welcome, told.private_data, sizeof welcome);
  if (memcmp(welcome.word, answer, sizeof answer) != 0) fail("another answer than was given");
  return welcome.memory;
}

static void ask(const char* host) {
  DAT_RMR_TRIPLET theirs;
  open_ia();
  receive_later(1);
  theirs = connect_to(host);
  fill(1);
  send_message(21, 64);
  await(my.recv, 1, 64);
  fill(2);
  receive_later(2);
  send_message(22, SIZE);
  await(my.recv, 2, 64);
  fill(3);
  receive_later(3);
  SUCCEEDS(dat_ep_post_rdma_write(my.ep, 1, &my.local, cookie(23), &theirs,
                                  DAT_COMPLETION_SUPPRESS_FLAG));
  send_message(24, 0);
  await(my.recv, 3, 64);
  fill(0);
  SUCCEEDS(
      dat_ep_post_rdma_read(my.ep, 1, &my.local, cookie(25), &theirs, DAT_COMPLETION_DEFAULT_FLAG));
  await(my.request, 25, SIZE);
  expect(4, SIZE);
  SUCCEEDS(dat_ep_disconnect(my.ep, DAT_CLOSE_GRACEFUL_FLAG));
  next(my.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  close_ia();
}

int main(int argc, char** argv) {
  if (argc != 3) fail("usage: two_programs server CLIENT-ADDRESS | client SERVER-ADDRESS");
  if (strcmp(argv[1], "server") == 0)
    serve(argv[2]);
  else
    ask(argv[2]);
  puts("good-bye");
  return 0;
}
