/* SPDX-License-Identifier: BSD-3-Clause */
/* A uDAPL 1.2 program in C99 that uses only the headers and -ldat: makes each call of the
 * interface, between two IAs of one link. Other tests check what the calls promise. */
#include <dat/dat_registry.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 20000000U
#include "succeeds.h"

#define PORT 3100
#define SIZE 4096

struct side {
  char name[8];
  DAT_IA_HANDLE ia;
  DAT_EVD_HANDLE async, recv, request, connect, requests;
  DAT_PZ_HANDLE pz;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET local;
  DAT_RMR_TRIPLET remote; /* as its peer sees it */
  DAT_EP_HANDLE ep;
  unsigned char memory[SIZE];
};

static struct side server, client;

static void provider_that_registers_itself(void) {
  static DAT_PROVIDER provider;
  DAT_PROVIDER_INFO info = {"mine", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE};
  DAT_PROVIDER_INFO found[16];
  DAT_PROVIDER_INFO* places[16];
  DAT_COUNT number = 0;
  for (int i = 0; i < 16; ++i) places[i] = &found[i];
  SUCCEEDS(dat_registry_add_provider(&provider, &info));
  SUCCEEDS(dat_registry_list_providers(16, &number, places));
  SUCCEEDS(dat_registry_remove_provider(&provider, &info));
}

static void open_side(struct side* side) {
  DAT_REGION_DESCRIPTION region;
  DAT_VLEN size;
  DAT_VADDR address;
  DAT_IA_ATTR ia_attr;
  DAT_PROVIDER_ATTR provider_attr;
  strcpy(side->name, "stp0");
  side->async = DAT_HANDLE_NULL;
  SUCCEEDS(dat_ia_open(side->name, 8, &side->async, &side->ia));
  SUCCEEDS(dat_ia_query(side->ia, &side->async, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_ALL,
                        &provider_attr));
  if (strcmp(ia_attr.adapter_name, "stp0") != 0 || provider_attr.max_private_data_size < 256 ||
      provider_attr.dapl_version_major != 1 || ia_attr.max_mtu_size != ia_attr.max_message_size)
    exit(1);
  SUCCEEDS(dat_evd_create(side->ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &side->recv));
  SUCCEEDS(dat_evd_create(side->ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
                          &side->request));
  SUCCEEDS(dat_evd_create(side->ia, 16, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &side->connect));
  SUCCEEDS(dat_evd_create(side->ia, 16, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &side->requests));
  SUCCEEDS(dat_pz_create(side->ia, &side->pz));
  region.for_va = side->memory;
  SUCCEEDS(dat_lmr_create(side->ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, side->pz,
                          DAT_MEM_PRIV_ALL_FLAG, &side->lmr, &side->local.lmr_context,
                          &side->remote.rmr_context, &size, &address));
  side->local.virtual_address = side->remote.target_address = address;
  side->local.segment_length = side->remote.segment_length = 64;
}

static void queries(struct side* side) {
  DAT_PZ_PARAM pz;
  DAT_LMR_PARAM lmr;
  DAT_EP_PARAM ep;
  DAT_EP_STATE state;
  DAT_BOOLEAN recv_idle, request_idle;
  DAT_CONTEXT context;
  DAT_HANDLE_TYPE type;
  SUCCEEDS(dat_pz_query(side->pz, DAT_PZ_FIELD_ALL, &pz));
  SUCCEEDS(dat_lmr_query(side->lmr, DAT_LMR_FIELD_ALL, &lmr));
  SUCCEEDS(dat_ep_query(side->ep, DAT_EP_FIELD_ALL, &ep));
  SUCCEEDS(dat_ep_modify(side->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &ep));
  SUCCEEDS(dat_ep_get_status(side->ep, &state, &recv_idle, &request_idle));
  context.as_ptr = side;
  SUCCEEDS(dat_set_consumer_context(side->ep, context));
  context.as_ptr = NULL;
  SUCCEEDS(dat_get_consumer_context(side->ep, &context));
  SUCCEEDS(dat_get_handle_type(side->ep, &type));
  if (pz.ia_handle != side->ia || lmr.length != SIZE || ep.pz_handle != side->pz ||
      state != DAT_EP_STATE_UNCONNECTED || context.as_ptr != side || type != DAT_HANDLE_TYPE_EP)
    exit(1);
}

static void events(struct side* side) {
  DAT_EVD_HANDLE evd, triggered;
  DAT_CNO_HANDLE cno;
  DAT_CNO_PARAM cno_param;
  DAT_EVD_PARAM evd_param;
  DAT_EVENT event;
  memset(&event, 0, sizeof event);
  event.event_number = DAT_SOFTWARE_EVENT;
  SUCCEEDS(dat_cno_create(side->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
  SUCCEEDS(dat_cno_modify_agent(cno, DAT_OS_WAIT_PROXY_AGENT_NULL));
  SUCCEEDS(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &cno_param));
  SUCCEEDS(dat_evd_create(side->ia, 4, DAT_HANDLE_NULL, DAT_EVD_SOFTWARE_FLAG, &evd));
  SUCCEEDS(dat_evd_modify_cno(evd, cno));
  SUCCEEDS(dat_evd_disable(evd));
  SUCCEEDS(dat_evd_enable(evd));
  SUCCEEDS(dat_evd_resize(evd, 8));
  SUCCEEDS(dat_evd_query(evd, DAT_EVD_FIELD_ALL, &evd_param));
  RETURNS(DAT_INVALID_PARAMETER, dat_evd_query(evd, ~0U, &evd_param));
  SUCCEEDS(dat_evd_post_se(evd, &event));
  SUCCEEDS(dat_cno_wait(cno, PATIENCE, &triggered));
  SUCCEEDS(dat_evd_dequeue(evd, &event));
  SUCCEEDS(dat_evd_set_unwaitable(evd));
  SUCCEEDS(dat_evd_clear_unwaitable(evd));
  SUCCEEDS(dat_evd_free(evd));
  SUCCEEDS(dat_cno_free(cno));
  if (triggered != evd || cno_param.agent.proxy_agent_func != NULL) exit(1);
}

static DAT_CR_HANDLE request_of_client(DAT_CONN_QUAL port) {
  struct sockaddr_in here;
  memset(&here, 0, sizeof here);
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SUCCEEDS(dat_ep_connect(client.ep, (DAT_IA_ADDRESS_PTR)&here, port, PATIENCE, 6, "hello",
                          DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
  return next(server.requests, DAT_CONNECTION_REQUEST_EVENT)
      .event_data.cr_arrival_event_data.cr_handle;
}

static void requests_that_are_rejected_or_handed_off(void) {
  DAT_PSP_HANDLE psp, other;
  DAT_PSP_PARAM psp_param;
  DAT_CONN_QUAL port;
  DAT_CR_HANDLE cr;
  SUCCEEDS(dat_psp_create(server.ia, PORT, server.requests, DAT_PSP_CONSUMER_FLAG, &psp));
  SUCCEEDS(dat_psp_create_any(server.ia, &port, server.requests, DAT_PSP_CONSUMER_FLAG, &other));
  SUCCEEDS(dat_psp_query(other, DAT_PSP_FIELD_ALL, &psp_param));
  if (psp_param.conn_qual != port) exit(1);
  cr = request_of_client(PORT);
  SUCCEEDS(dat_cr_handoff(cr, port));
  cr = next(server.requests, DAT_CONNECTION_REQUEST_EVENT)
           .event_data.cr_arrival_event_data.cr_handle;
  SUCCEEDS(dat_cr_reject(cr));
  next(client.connect, DAT_CONNECTION_EVENT_PEER_REJECTED);
  SUCCEEDS(dat_ep_reset(client.ep));
  SUCCEEDS(dat_psp_free(other));
  SUCCEEDS(dat_psp_free(psp));
}

static void connect_sides(void) {
  DAT_RSP_HANDLE rsp, unused;
  DAT_RSP_PARAM rsp_param;
  DAT_CR_PARAM cr_param;
  DAT_CR_HANDLE cr;
  SUCCEEDS(dat_rsp_create(server.ia, PORT + 1, server.ep, server.requests, &unused));
  SUCCEEDS(dat_rsp_free(unused));
  SUCCEEDS(dat_rsp_create(server.ia, PORT, server.ep, server.requests, &rsp));
  SUCCEEDS(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &rsp_param));
  cr = request_of_client(PORT);
  SUCCEEDS(dat_cr_query(cr, DAT_CR_FIELD_ALL, &cr_param));
  if (rsp_param.ep_handle != server.ep || cr_param.private_data_size != 6 ||
      strcmp(cr_param.private_data, "hello") != 0)
    exit(1);
  SUCCEEDS(dat_cr_accept(cr, server.ep, 0, NULL));
  next(client.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
  next(server.connect, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static void transfers(void) {
  DAT_RMR_HANDLE rmr;
  DAT_RMR_PARAM rmr_param;
  DAT_RMR_CONTEXT context;
  DAT_COUNT buffers, span;
  memset(client.memory, 7, SIZE);
  SUCCEEDS(dat_ep_post_recv(server.ep, 1, &server.local, cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
  SUCCEEDS(dat_ep_recv_query(server.ep, &buffers, &span));
  SUCCEEDS(dat_ep_post_send(client.ep, 1, &client.local, cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
  next(server.recv, DAT_DTO_COMPLETION_EVENT);
  next(client.request, DAT_DTO_COMPLETION_EVENT);
  SUCCEEDS(dat_rmr_create(server.pz, &rmr));
  SUCCEEDS(dat_rmr_bind(rmr, &server.local, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, server.ep, cookie(3),
                        DAT_COMPLETION_DEFAULT_FLAG, &context));
  next(server.request, DAT_RMR_BIND_COMPLETION_EVENT);
  SUCCEEDS(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &rmr_param));
  SUCCEEDS(dat_ep_post_rdma_write(client.ep, 1, &client.local, cookie(4), &server.remote,
                                  DAT_COMPLETION_DEFAULT_FLAG));
  next(client.request, DAT_DTO_COMPLETION_EVENT);
  SUCCEEDS(dat_lmr_sync_rdma_write(server.ia, &server.local, 1));
  SUCCEEDS(dat_lmr_sync_rdma_read(server.ia, &server.local, 1));
  SUCCEEDS(dat_ep_post_rdma_read(client.ep, 1, &client.local, cookie(5), &server.remote,
                                 DAT_COMPLETION_DEFAULT_FLAG));
  next(client.request, DAT_DTO_COMPLETION_EVENT);
  SUCCEEDS(dat_rmr_free(rmr));
  if (buffers != 1 || span != 1 || rmr_param.rmr_context != context || server.memory[63] != 7)
    exit(1);
}

static void shared_receive_queue(void) {
  DAT_SRQ_ATTR attr = {4, 1, DAT_SRQ_LW_DEFAULT};
  DAT_SRQ_PARAM param;
  DAT_SRQ_HANDLE srq;
  DAT_EP_ATTR ep_attr;
  DAT_EP_HANDLE ep;
  memset(&ep_attr, 0, sizeof ep_attr);
  SUCCEEDS(dat_srq_create(server.ia, server.pz, &attr, &srq));
  SUCCEEDS(dat_ep_create_with_srq(server.ia, server.pz, server.recv, server.request, server.connect,
                                  srq, &ep_attr, &ep));
  SUCCEEDS(dat_ep_set_watermark(ep, 3, DAT_WATERMARK_INFINITE));
  SUCCEEDS(dat_srq_post_recv(srq, 1, &server.local, cookie(6)));
  SUCCEEDS(dat_srq_resize(srq, 8));
  SUCCEEDS(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
  SUCCEEDS(dat_srq_set_lw(srq, 0));
  SUCCEEDS(dat_ep_free(ep));
  SUCCEEDS(dat_srq_free(srq));
  if (param.max_recv_dtos != 8 || param.available_dto_count != 1) exit(1);
}

/* A second connection to the peer of the first, where nobody listens any more. */
static void duplicate(void) {
  DAT_EP_HANDLE first = client.ep;
  SUCCEEDS(dat_ep_create(client.ia, client.pz, client.recv, client.request, client.connect, NULL,
                         &client.ep));
  SUCCEEDS(dat_ep_dup_connect(client.ep, first, PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT));
  next(client.connect, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
  SUCCEEDS(dat_ep_free(client.ep));
  client.ep = first;
}

static void close_side(struct side* side) {
  SUCCEEDS(dat_ep_free(side->ep));
  SUCCEEDS(dat_lmr_free(side->lmr));
  SUCCEEDS(dat_pz_free(side->pz));
  SUCCEEDS(dat_evd_free(side->recv));
  SUCCEEDS(dat_evd_free(side->request));
  SUCCEEDS(dat_evd_free(side->connect));
  SUCCEEDS(dat_evd_free(side->requests));
  SUCCEEDS(dat_ia_close(side->ia, DAT_CLOSE_GRACEFUL_FLAG));
  RETURNS(DAT_INVALID_HANDLE, dat_ia_close(side->ia, DAT_CLOSE_DEFAULT));
}

int main(void) {
  struct side* sides[] = {&server, &client};
  DAT_EP_ATTR attr;
  memset(&attr, 0, sizeof attr);
  attr.max_rdma_read_in = attr.max_rdma_read_out = 1;
  provider_that_registers_itself();
  for (int i = 0; i < 2; ++i) {
    open_side(sides[i]);
    SUCCEEDS(dat_ep_create(sides[i]->ia, sides[i]->pz, sides[i]->recv, sides[i]->request,
                           sides[i]->connect, &attr, &sides[i]->ep));
    queries(sides[i]);
    events(sides[i]);
  }
  requests_that_are_rejected_or_handed_off();
  connect_sides();
  transfers();
  shared_receive_queue();
  duplicate();
  SUCCEEDS(dat_ep_disconnect(client.ep, DAT_CLOSE_GRACEFUL_FLAG));
  next(client.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  next(server.connect, DAT_CONNECTION_EVENT_DISCONNECTED);
  close_side(&client);
  close_side(&server);
  puts("every call");
  return 0;
}
