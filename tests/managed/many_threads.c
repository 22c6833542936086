/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread posts messages and receives, others take their events and use the memory again. With
 * "race", two threads change a number besides, which nothing guards. */
#include <pthread.h>
#include <string.h>

#include <stp/managed.h>

enum { MESSAGES = 200, THREADS = 3 };
struct job {
  char bytes[64];
  int used;
};
static struct job sent[MESSAGES], received[MESSAGES];
static stm_queue_t queue;
static stm_connection_t in, out;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int left = 2 * MESSAGES;
static long counted;
static int has_race;

static void* take(void* unused) {
  stm_event_t event;
  struct job* job;
  int i, last;
  if (has_race) counted++;
  for (;;) {
    if (stm_queue_wait(queue, 1, &event, 1, -1) != 1 || event.status != 0) return &mutex;
    if (event.kind == STM_USER) return unused;
    job = (struct job*)(uintptr_t)event.context;
    job->used += job->bytes[0];
    memset(job->bytes, 0, sizeof job->bytes);
    pthread_mutex_lock(&mutex);
    last = --left == 0;
    pthread_mutex_unlock(&mutex);
    for (i = 0; last && i < THREADS; i++) /* wakes each */
      if (stm_queue_post(queue, 0) != 0) return &mutex;
  }
}

static int connected(stm_domain_t domain) {
  const stm_connection_attr_t attr = {.size = sizeof attr, .events = queue};
  stm_listener_t listener;
  stm_event_t event;
  int i;
  if (stm_listen(domain, ":3000", queue, 0, 8, &listener) != 0) return 0;
  if (stm_connection_create(domain, &attr, &out) != 0) return 0;
  if (stm_connect(out, ":3000", -1, NULL, 0) != 0) return 0;
  for (i = 0; i < 3; i++) { /* the request, then both sides are connected */
    if (stm_queue_wait(queue, 1, &event, 1, -1) != 1 || event.status != 0) return 0;
    if (event.kind != STM_REQUEST) continue;
    in = event.connection;
    if (stm_accept(in, &attr, NULL, 0) != 0) return 0;
  }
  return 1;
}

static int post(stm_memory_t from, stm_memory_t into) {
  int i;
  for (i = 0; i < MESSAGES; i++) {
    received[i].used = 1;
    memset(sent[i].bytes, 'a', sizeof sent[i].bytes);
    if (stm_receive(in, (uintptr_t)&received[i], into, received[i].bytes, 64) != 0) return 0;
    if (stm_send(out, (uintptr_t)&sent[i], 0, 0, from, sent[i].bytes, 64) != 0) return 0;
  }
  return 1;
}

int main(int count, char** arguments) {
  pthread_t threads[THREADS];
  stm_domain_t domain;
  stm_memory_t from, into;
  void* failed;
  int i, bad = 0;
  has_race = count > 1 && strcmp(arguments[1], "race") == 0;
  if (stm_domain_open(NULL, &domain) != 0) return 1;
  if (stm_queue_create(domain, 1024, &queue) != 0 || !connected(domain)) return 1;
  if (stm_memory_register(domain, sent, sizeof sent, STM_LOCAL_READ, &from) != 0) return 1;
  if (stm_memory_register(domain, received, sizeof received, STM_LOCAL_WRITE, &into) != 0) return 1;
  for (i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, take, NULL) != 0) return 1;
  if (!post(from, into)) return 1;
  for (i = 0; i < THREADS; i++) {
    pthread_join(threads[i], &failed);
    bad |= failed != NULL;
  }
  for (i = 0; i < MESSAGES; i++) bad |= received[i].used != 1 + 'a';
  return bad || stm_domain_close(domain) != 0;
}
