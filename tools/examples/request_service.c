/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A service of requests and replies: its clients send files, it replies with their SHA-256.
 *
 *   request_service serve :3000
 *   request_service ask [--timeout SECONDS] HOST:3000 FILE...
 *
 * A request is a message of 1 byte to 1 MiB; the reply is a message with the same tag, by which the
 * client finds what it belongs to. The services of request_service.cpp and request_service.py do
 * the same: a client of one asks a server of another.
 *
 * - Back-pressure: the server has posted 16 receives for each connection. Further requests wait at
 *   their client, which has at most 64 on the way.
 * - Time limits: the client gives a request up after 20 s. A reply that comes later finds nobody.
 * - End: with SIGTERM or Ctrl-C the server replies to what it has, and disconnects.
 * - Restart: a client whose server is gone connects again, and repeats the requests that have no
 *   reply. They change nothing, so it does no harm if the server has seen one before. What is in
 *   the way is told, once.
 *
 * All is done by one thread; request_service.cpp has several that work.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stp/managed.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <time.h>

#include "example.h"
#include "sha256.h"

enum { kLongest = 1 << 20, kAtATime = 16, kOnTheWay = 64, kPeers = 32, kReply = 64, kEvents = 32 };

static stm_domain_t domain;
static stm_queue_t queue;

static void* memory_of(size_t length) {
  void* const memory =
      mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) check("mmap", -errno);
  return memory;
}

static stm_connection_attr_t attr_of(const void* context) {
  return (stm_connection_attr_t){
      .size = sizeof(stm_connection_attr_t), .context = (uintptr_t)context, .events = queue};
}

/* ---- the server ---- */

/* A place for one request: either a receive waits in it, or its reply is on its way. */
typedef struct Place {
  struct Peer* peer;
  unsigned char reply[kSha256Size];
} Place;
typedef struct Peer {
  stm_connection_t connection; /* NULL: nobody */
  stm_memory_t memory;
  Place places[kAtATime];
  unsigned char requests[kAtATime][kLongest];
} Peer;
static Peer* peers[kPeers];

static unsigned char* request_at(Place* place) {
  return place->peer->requests[place - place->peer->places];
}

/* If this fails, the connection has ended, and its last event comes. */
static void take_into(Place* place) {
  stm_receive(place->peer->connection, (uintptr_t)place, place->peer->memory, request_at(place),
              kLongest);
}

static void accept_peer(stm_connection_t connection) {
  Peer** free = peers;
  while (free < peers + kPeers && *free != NULL) ++free;
  if (free == peers + kPeers) {
    stm_reject(connection, NULL, 0);
    return;
  }
  Peer* const peer = memory_of(sizeof *peer);
  const stm_connection_attr_t attr = attr_of(peer);
  int result = stm_memory_register(domain, peer, sizeof *peer, STM_LOCAL_WRITE, &peer->memory);
  if (result == 0 && (result = stm_accept(connection, &attr, NULL, 0)) != 0)
    stm_memory_release(peer->memory);
  if (result != 0) {
    fprintf(stderr, "request_service: a client is turned away: %s\n", st_strerror(result));
    stm_connection_close(connection);
    munmap(peer, sizeof *peer);
    return;
  }
  peer->connection = connection;
  *free = peer;
  for (Place* place = peer->places; place < peer->places + kAtATime; ++place) {
    place->peer = peer;
    take_into(place);
  }
}

static void forget(Peer* peer) {
  for (Peer** at = peers; at < peers + kPeers; ++at)
    if (*at == peer) *at = NULL;
  stm_connection_close(peer->connection);
  stm_memory_release(peer->memory);
  munmap(peer, sizeof *peer);
}

/* `event` is one of an operation, whose context is its place, or of a connection. */
static void serve_event(const stm_event_t* event) {
  Place* const place = (Place*)(uintptr_t)event->context;
  if (event->kind == STM_REQUEST) {
    accept_peer(event->connection);
  } else if (event->kind == STM_FAILED || event->kind == STM_DISCONNECTED) {
    forget((Peer*)(uintptr_t)event->context);
  } else if (event->kind == STM_SEND) {
    take_into(place);
  } else if (event->kind == STM_RECEIVE && event->status == 0) {
    sha256(request_at(place), event->length, place->reply);
    if (stm_send(event->connection, event->context, 0, event->tag, place->peer->memory,
                 place->reply, kSha256Size) != 0)
      take_into(place);
  } else if (event->kind == STM_RECEIVE && event->status == -EMSGSIZE) {
    take_into(place); /* its client hears it, too */
  }
}

static int anybody_left(void) {
  for (int i = 0; i < kPeers; ++i)
    if (peers[i] != NULL) return 1;
  return 0;
}

static int serve(const char* port, const sigset_t* ends) {
  stm_event_t events[kEvents];
  stm_listener_t listener;
  check("listening", stm_listen(domain, port, queue, 0, 0, &listener));
  struct pollfd waits[] = {{.fd = signalfd(-1, ends, SFD_CLOEXEC), .events = POLLIN},
                           {.fd = check("a descriptor", stm_queue_fd(queue)), .events = POLLIN}};
  printf("serving on %s\n", port);
  fflush(stdout);
  while (waits[0].revents == 0) {
    poll(waits, 2, -1);
    for (int i = 0, count; (count = stm_queue_poll(queue, events, kEvents)) > 0; i = 0)
      while (i < count) serve_event(&events[i++]);
  }
  stm_listener_close(listener);
  for (int i = 0; i < kPeers; ++i)
    if (peers[i] != NULL) stm_disconnect(peers[i]->connection, STM_GRACEFUL);
  while (anybody_left()) {
    const int count = stm_queue_wait(queue, 1, events, kEvents, -1);
    for (int i = 0; i < count; ++i)
      if (events[i].kind != STM_REQUEST) serve_event(&events[i]);
  }
  return 0;
}

/* ---- the client ---- */

/* A place for one file: its request is on the way until it has its reply or is given up, and its
 * bytes are in use until it is not `sending` any more. */
typedef struct Asked {
  const char* name; /* NULL: none */
  size_t length;
  double until;
  uint32_t tag;
  int sending;
  stm_memory_t memory; /* of the bytes; NULL: it was never used */
} Asked;
static struct {
  Asked asked[kOnTheWay];
  unsigned char replies[kOnTheWay][kReply];
  unsigned char requests[][kLongest]; /* as many as are needed */
} * client;
static int places, left, failed;
static stm_memory_t reply_memory;
static stm_connection_t server; /* NULL: none, until `next_try` */
static const char* server_name;
static int is_up, last_trouble;
static double next_try;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void done(Asked* asked, const char* why_not) {
  if (why_not != NULL) {
    fprintf(stderr, "%s: %s\n", asked->name, why_not);
    failed = 1;
  }
  asked->name = NULL;
  --left;
}

static void send_to_server(Asked* asked) {
  const ptrdiff_t i = asked - client->asked;
  if (stm_send(server, (uint64_t)i, 0, asked->tag, asked->memory, client->requests[i],
               asked->length) == 0)
    asked->sending = 1;
}

/* Reads a file into a free place, and sends it. */
static void ask_for(Asked* asked, const char* name, double patience) {
  static uint32_t last_tag;
  unsigned char one_more;
  if (asked->memory != NULL) stm_memory_release(asked->memory);
  asked->memory = NULL;
  asked->name = name;
  FILE* const file = fopen(name, "rb");
  if (file == NULL) {
    done(asked, strerror(errno));
    return;
  }
  asked->length = fread(client->requests[asked - client->asked], 1, kLongest, file);
  const int is_longer = fread(&one_more, 1, 1, file) == 1;
  const char* const why_not = ferror(file)                      ? strerror(errno)
                              : asked->length == 0 || is_longer ? "not 1 byte to 1 MiB long"
                                                                : NULL;
  fclose(file);
  if (why_not != NULL) {
    done(asked, why_not);
    return;
  }
  check("registering memory", stm_memory_register(domain, client->requests[asked - client->asked],
                                                  asked->length, STM_LOCAL_READ, &asked->memory));
  asked->tag = ++last_tag;
  asked->until = now() + patience;
  if (is_up) send_to_server(asked);
}

/* Says why there is no connection; only once if it is the same at each try. */
static void tell_trouble(int status, const char* why) {
  if (status != last_trouble)
    fprintf(stderr, "request_service: no connection to %s: %s; trying again\n", server_name, why);
  last_trouble = status;
}

static void await_reply(uint64_t place) {
  stm_receive(server, place, reply_memory, client->replies[place], kReply);
}

static void connect_to_server(void) {
  const stm_connection_attr_t attr = attr_of(NULL);
  check("a connection", stm_connection_create(domain, &attr, &server));
  for (uint64_t i = 0; i < kOnTheWay; ++i) await_reply(i);
  next_try = now() + 0.1;
  const int result = stm_connect(server, server_name, 5000000, NULL, 0);
  if (result == 0) return;
  if (result == -EINVAL) check("connecting", result); /* no name of a server */
  tell_trouble(result, st_strerror(result));
  stm_connection_close(server);
  server = NULL;
}

/* All operations of the connection have been told. */
static void disconnected(const stm_event_t* event) {
  stm_peer_info_t peer = {.size = sizeof peer};
  stm_peer_query(server, &peer);
  if (event->kind == STM_REFUSED)
    tell_trouble(-ECONNREFUSED, "the server takes no more clients");
  else if (event->kind == STM_FAILED)
    tell_trouble(event->status, peer.trouble[0] != 0 ? peer.trouble : strerror(-event->status));
  stm_connection_close(server);
  server = NULL;
  is_up = 0;
  next_try = now() + 0.1;
}

static void handle(const stm_event_t* event) {
  if (event->kind == STM_CONNECTED) {
    is_up = 1;
    last_trouble = 0;
    for (Asked* asked = client->asked; asked < client->asked + places; ++asked)
      if (asked->name != NULL) send_to_server(asked);
  } else if (event->kind == STM_SEND) {
    client->asked[event->context].sending = 0;
  } else if (event->kind == STM_RECEIVE && event->status == 0) {
    for (Asked* asked = client->asked; asked < client->asked + places; ++asked) {
      if (asked->name == NULL || asked->tag != event->tag) continue;
      for (size_t i = 0; i < event->length; ++i) printf("%02x", client->replies[event->context][i]);
      printf(" %s\n", asked->name);
      fflush(stdout);
      done(asked, NULL);
    }
    await_reply(event->context);
  } else if (event->kind == STM_REFUSED || event->kind == STM_FAILED ||
             event->kind == STM_DISCONNECTED) {
    disconnected(event);
  }
}

static int ask(char** files, int count, double patience) {
  places = count < kOnTheWay ? count : kOnTheWay;
  client = memory_of(sizeof *client + (size_t)places * kLongest);
  check("registering memory", stm_memory_register(domain, client->replies, sizeof client->replies,
                                                  STM_LOCAL_WRITE, &reply_memory));
  for (left = count; left > 0;) {
    stm_event_t events[kEvents];
    for (Asked* asked = client->asked; asked < client->asked + places; ++asked)
      while (count > 0 && asked->name == NULL && !asked->sending) {
        --count;
        ask_for(asked, *files++, patience);
      }
    if (server == NULL && now() >= next_try) connect_to_server();
    const int events_there = stm_queue_wait(queue, 1, events, kEvents, 50000);
    for (int i = 0; i < events_there; ++i) handle(&events[i]);
    for (Asked* asked = client->asked; asked < client->asked + places; ++asked)
      if (asked->name != NULL && now() > asked->until)
        done(asked, is_up ? "no reply in time" : "no reply in time: there is no connection");
  }
  if (is_up) stm_disconnect(server, STM_GRACEFUL);
  for (stm_event_t event; is_up && stm_queue_wait(queue, 1, &event, 1, 5000000) == 1;)
    handle(&event);
  return failed;
}

int main(int argc, char** argv) {
  const int has_patience = argc > 3 && strcmp(argv[2], "--timeout") == 0;
  char* behind = "";
  const double patience = has_patience ? strtod(argv[3], &behind) : 20;
  char** const rest = argv + (has_patience ? 4 : 2);
  const int serves = argc == 3 && strcmp(argv[1], "serve") == 0;
  const int asks = argc - (rest - argv) >= 2 && strcmp(argv[1], "ask") == 0;
  if (!serves && (!asks || *behind != 0 || !(patience > 0 && patience < 1e9)))
    return usage(argc, argv, "serve :PORT | ask [--timeout SECONDS] HOST:PORT FILE...");
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  if (serves) sigprocmask(SIG_BLOCK, &ends, NULL); /* before the domain starts its thread */
  tell_link();
  check("opening the link", stm_domain_open(NULL, &domain));
  check("making a queue", stm_queue_create(domain, 1024, &queue));
  server_name = rest[0];
  const int status =
      serves ? serve(argv[2], &ends) : ask(rest + 1, argc - (int)(rest - argv) - 1, patience);
  stm_domain_close(domain);
  return status;
}
