/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The managed API: bytes moved over Scheduled Transfers without driving headers by hand. It stands
 * above level 0 (<stp/st.h>) and drives its sequences, with recovery, for any number of
 * connections. docs/managed.md tells the model; here stand the shapes and the rules.
 *
 * Errors: 0 (or a call's own positive value) is success, a negative value is a negated errno;
 * st_strerror() says more of this thread's last call, and what the status of an event means.
 * Handles are opaque; NULL, foreign or closed ones give -EBADF. In a child of fork() no handle
 * works.
 * Threads: any call from any thread. Calls that post never wait for the peer; those that may block
 * say so. Through stpd, what opens, listens, connects, registers, disconnects, closes or asks about
 * the link waits for its answer: some 0.1 ms, more where stpd has much to do, 10 s at most where it
 * is stopped. While memory is registered or a connection ends, other threads' calls wait with it.
 * Progress: a thread of the domain makes it, and whoever polls or waits on a queue. It never
 * depends on the program's next call. Completions: what was posted (the call returned 0) completes
 * exactly once, into the queue that was chosen for it, with a definite status. Until then its
 * memory belongs to the operation. When a connection ends, what is outstanding completes with the
 * reason of the end, before the event that tells of the end. Times are microseconds; a negative one
 * is for ever, but for stm_connect, which says what it takes. Lengths are bytes. Cancel no
 * thread that makes calls (pthread_cancel): one that waits goes on waiting. stm_queue_post wakes
 * it.
 */
#ifndef STP_MANAGED_H
#define STP_MANAGED_H

#include <stddef.h>
#include <stdint.h>
#include <stp/st.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct stm_domain* stm_domain_t;         /* a link, and all that lives on it */
typedef struct stm_queue* stm_queue_t;           /* events: completions, and news of connections */
typedef struct stm_memory* stm_memory_t;         /* registered memory */
typedef struct stm_region* stm_region_t;         /* a part of it that peers may access */
typedef struct stm_pool* stm_pool_t;             /* receives shared by connections */
typedef struct stm_listener* stm_listener_t;     /* takes connection requests */
typedef struct stm_connection* stm_connection_t; /* also one that is requested or not begun */

/* ---- domains ---------------------------------------------------------------------------------
 * Structures that begin with `size` may grow: set it to sizeof; what lies beyond it is 0. */
typedef struct stm_domain_attr {
  size_t size;
  const char* link;     /* as STP_LINK; NULL: what STP_LINK says, or its default */
  uint32_t checksum;    /* 1: every frame that leaves carries one */
  uint32_t buffer_log2; /* Bufsize, an exponent, 12..24; 0: 12. See stm_memory_register */
  uint32_t slots;       /* headers that may wait on a connection, 64..65535; 0: 192 */
  uint64_t shard;       /* of a link with queues=: 1 is its first; 0: the next in turn */
} stm_domain_attr_t;

/* `attr` may be NULL. -EINVAL, also where there is no such shard; -ENODEV no such link, -EADDRINUSE
 * its UDP port is another program's. What moves on domains of different shards takes no lock in
 * common. stm_domain_close ends, abruptly, all that is on the domain; every handle of it is closed
 * by that. It may block while the link lets go of memory. */
ST_API int stm_domain_open(const stm_domain_attr_t* attr, stm_domain_t* domain);
ST_API int stm_domain_close(stm_domain_t domain);

/* Whether the domain keeps registrations that are released (see below). */
enum {
  STM_CACHE_ON = 1,
  STM_CACHE_OFF = 2,   /* STP_REGISTRATION_CACHE=0 */
  STM_CACHE_CANNOT = 3 /* the kernel does not tell what is mapped at an address */
};
typedef struct stm_domain_info {
  size_t size;
  st_macaddr_t mac;
  uint32_t ipv4; /* host order; 0: the link has none */
  uint32_t mtu;
  uint32_t cache; /* STM_CACHE_ON, ... */
  /* Of a link over UDP, else 0: its own port, and that of a peer that is named without one. */
  uint16_t udp_port, peer_udp_port;
} stm_domain_info_t;
ST_API int stm_domain_query(stm_domain_t domain, stm_domain_info_t* info);

/* ---- memory ----------------------------------------------------------------------------------
 * Any pointer and length will do while buffer_log2 is 12: nothing is copied, whatever the
 * alignment. With larger buffers, which make longer STUs possible (8 KiB at MTU 9000 need 13), both
 * are multiples of the buffer size (-EINVAL). Registrations may overlap. -EFAULT: it is not there,
 * or not writable. -EDQUOT: more than the link gives to one program. stm_memory_release: -EBUSY
 * while operations or regions use it; may block while frames that leave still do. If only
 * operations with STM_QUIET or STM_LAZY use it, it waits up to 100 ms for their end.
 *
 * Through stpd the pages that cover the memory are replaced, in place, by pages that stpd can see
 * (as st_map does), and are shared with no child of fork(). Limits: this cannot be done with memory
 * of a MAP_SHARED mapping, with executable memory, with pages of the calling thread's stack, nor
 * with memory of more than 16 separate mappings. Such memory is copied instead, if it is registered
 * without STM_REMOTE_* and is no longer than 64 KiB (buffer_log2 12): from the program's bytes when
 * an operation begins, to them before its completion is told. Else -EOPNOTSUPP, and st_strerror()
 * says why. The operator of stpd limits bytes and registrations of a program: -EDQUOT.
 *
 * A registration that is released may be kept, out of reach of peers, for the next one of the same
 * bytes and access: docs/managed.md says what is promised. STP_REGISTRATION_CACHE=0 in the
 * environment switches that off. */
enum {
  STM_LOCAL_READ = 1,    /* always implied: source of send, put, serve */
  STM_LOCAL_WRITE = 2,   /* landing of receive, read, get, fetch; implied by the following */
  STM_REMOTE_READ = 4,   /* peers may get */
  STM_REMOTE_WRITE = 8,  /* peers may put */
  STM_REMOTE_ATOMIC = 16 /* peers may fetch-and-op */
};
ST_API int stm_memory_register(stm_domain_t domain, void* ptr, size_t length, unsigned access,
                               stm_memory_t* memory);
ST_API int stm_memory_release(stm_memory_t memory);
/* As stm_memory_release, but operations hinder nothing. Receives that wait in it stay posted: a
 * message that one of them gets is refused. The receive hears -EACCES, and the send -EMSGSIZE; but
 * a message that was small enough to have left already has been sent, and its sender hears 0. A
 * connection of which anything else in it is under way breaks. -EBUSY: regions use it. */
ST_API int stm_memory_withdraw(stm_memory_t memory);

/* What a peer needs to know of a region: by whatever way the program sends it. */
typedef struct stm_remote {
  uint64_t address; /* of its first byte, as chosen by who opened it */
  uint64_t length;
  uint32_t key; /* names the region at its owner; unguessable, never 0 */
  uint32_t access;
} stm_remote_t;
#define STM_REMOTE_SIZE 24 /* of its form on the wire, big-endian */
ST_API void stm_remote_encode(const stm_remote_t* remote, void* bytes);
ST_API void stm_remote_decode(const void* bytes, stm_remote_t* remote);

/* Lets peers access [ptr, ptr + length) of `memory`, as `access` says (STM_REMOTE_*, all of them
 * granted at its registration: -EACCES), by `address` (any number: 0, or what the pointer is here).
 * `connection`: the only one that may, or NULL: every connection of the domain.
 * stm_region_close revokes: once it has returned no peer's access changes a byte or is begun any
 * more; the answer to a get that was granted before may still be on its way out. */
ST_API int stm_region_open(stm_memory_t memory, void* ptr, size_t length, unsigned access,
                           stm_connection_t connection, uint64_t address, stm_region_t* region,
                           stm_remote_t* remote);
/* For the connections of a group (see stm_connection_attr), those to come as well. -EINVAL: group
 * 0 is none. */
ST_API int stm_region_open_group(stm_memory_t memory, void* ptr, size_t length, unsigned access,
                                 uint64_t group, uint64_t address, stm_region_t* region,
                                 stm_remote_t* remote);
ST_API int stm_region_close(stm_region_t region);

/* ---- queues ----------------------------------------------------------------------------------
 * A queue is bounded and loses nothing: a call that posts an operation reserves its place and
 * returns -EAGAIN where there is none; requests for connections and for reads that find no place
 * wait outside until one is free; a connection reserves two places for its own news. */
enum stm_event_kind {
  STM_REQUEST = 1,  /* somebody wants to connect: stm_accept or stm_reject `connection` */
  STM_CONNECTED,    /* both sides have said yes */
  STM_REFUSED,      /* the peer has said no: stm_private_data may tell why */
  STM_FAILED,       /* not connected, or no more: `status` is the reason */
  STM_DISCONNECTED, /* ended in good order, by either side: told after the last message */
  STM_SEND,         /* the message is with the peer; its memory can be used again */
  STM_RECEIVE,      /* `length`, `message` and `tag` are the message's */
  STM_READ,         /* all of it has arrived */
  STM_READ_REQUEST, /* the peer wants to read `length` bytes: stm_serve_read or _refuse_read */
  STM_SERVED,       /* a read that was served is in the peer's memory */
  STM_PUT,          /* it is in the peer's memory */
  STM_GET,          /* all of it has arrived */
  STM_FETCH,        /* the old value, 8 bytes in host order, has arrived */
  STM_USER,         /* stm_queue_post */
  STM_HIGH,         /* more receives of the pool than stm_set_watermark said: `length` are taken */
  STM_LINK          /* the link's state, `tag` (stm_link_state): see stm_link_watch */
};

/* status: 0, or
 *   -EMSGSIZE     a message longer than the receive that it came to (told to the receive, with the
 *                 message's `length`; to the send, unless the message was small enough to have left
 *                 already)
 *   -EACCES       a key that is none, is revoked, or does not give this access; a message came to a
 *                 receive whose memory has been withdrawn (told to the receive)
 *   -ERANGE       beyond the end of the region
 *   -EINVAL       a fetch at an address that is not 8-aligned in the peer's memory; _SERVED: the
 *                 peer has asked for another length
 *   -ECONNREFUSED nobody listens there; the read was refused
 *   -ECANCELED    ended by stm_cancel, by either side; or this side has disconnected
 *   -ENOTCONN     the peer has disconnected, or its program is gone
 *   -ETIMEDOUT    the peer fell silent, or the time to connect was over
 *   -ECONNRESET   the peer's program broke the connection off (STM_BROKEN)
 *   -ENOBUFS      a message waited for a receive for longer than `receive_wait` of its receiver:
 *                 told to both sides, as the reason of the end
 *   -EPROTO       the peer does not speak the managed layer, or another version of it
 *   -ENETDOWN     _LINK alone: no frame passes in this state
 * or why the link is gone. */
typedef struct stm_event {
  uint32_t kind;
  int32_t status;
  uint64_t context; /* of the operation; of the connection (_CONNECTED to _DISCONNECTED,
                       _READ_REQUEST and _HIGH), the listener (_REQUEST), of stm_link_watch
                       (_LINK), or as posted (_USER) */
  uint64_t length;
  stm_connection_t connection;
  uint32_t message; /* _SEND, _RECEIVE: number of the message, from 1, in the order of sending;
                       _LINK: `changes` of stm_link_info */
  uint32_t tag;     /* _RECEIVE: what the sender gave along; _LINK: the state */
  uint32_t request; /* _READ_REQUEST: names it in the answer */
  uint32_t reserved;
} stm_event_t;

/* `capacity`: 1..1048576. stm_queue_resize: -EINVAL below what is reserved or waits.
 * stm_queue_destroy: -EBUSY while anything uses it as its queue; what waits in it is dropped. */
ST_API int stm_queue_create(stm_domain_t domain, size_t capacity, stm_queue_t* queue);
ST_API int stm_queue_resize(stm_queue_t queue, size_t capacity);
ST_API int stm_queue_destroy(stm_queue_t queue);
/* Moves frames, then takes what is there: the number of events, 0..max. */
ST_API int stm_queue_poll(stm_queue_t queue, stm_event_t* events, int max);
/* Blocks until `threshold` events are there (1..max, 1..capacity) or `timeout` has passed, then
 * takes up to `max`: their number (after the time-out perhaps fewer than the threshold), or
 * -EWOULDBLOCK when there is none, -EINTR when a signal handler ran, -ECANCELED when the queue was
 * destroyed meanwhile. Any number of threads may wait; each event goes to one of them. */
ST_API int stm_queue_wait(stm_queue_t queue, int threshold, stm_event_t* events, int max,
                          int64_t timeout);
/* A descriptor for poll() and epoll: readable exactly while events wait in the queue (level
 * triggered; edge triggered works as well if the queue is polled until it gives 0). It belongs to
 * the queue: neither read nor close it. */
ST_API int stm_queue_fd(stm_queue_t queue);
/* An event of the program's own. -EAGAIN: no place. */
ST_API int stm_queue_post(stm_queue_t queue, uint64_t context);

/* ---- the link --------------------------------------------------------------------------------
 * The worst condition that the link knows of. Connections survive each of them that is shorter than
 * their time-outs; most are over when somebody has done what `trouble` says. Other numbers may
 * follow. */
enum stm_link_state {
  STM_LINK_UNKNOWN = 0,    /* not reported */
  STM_LINK_UP = 1,         /* frames go both ways */
  STM_LINK_DOWN = 2,       /* the interface is switched off */
  STM_LINK_NO_CARRIER = 3, /* no device answers at the other end of the cable */
  STM_LINK_GONE = 4,       /* the interface, or the NIC, is not there */
  STM_LINK_NO_PEER = 5,    /* memif: nobody has opened the other side */
  STM_LINK_TAKEN = 6,      /* the interface is back, but another program owns it */
  STM_LINK_MTU = 7,        /* short frames pass, the longest do not */
  STM_LINK_MAC = 8,        /* frames pass, but the interface has another MAC address */
  STM_LINK_DUPLICATE = 9   /* frames pass, but another station has the IPv4 address */
};
typedef struct stm_link_info {
  size_t size;
  uint32_t state;    /* enum stm_link_state */
  uint32_t changes;  /* of the state, since the link was opened */
  uint64_t age;      /* how long it has been in this state */
  uint32_t mtu;      /* bytes, as the link was opened */
  uint32_t megabits; /* speed of the line in 10^6 bits a second; 0: not known */
  char trouble[512]; /* the cause and the remedy, ended by 0; "": none known */
} stm_link_info_t;
/* -ENOTCONN: stpd is gone. It may wait for stpd. */
ST_API int stm_link_query(stm_domain_t domain, stm_link_info_t* info);
/* From here on `queue`, one of the domain's, gets STM_LINK: at once with the present state, then
 * with each change, some 10 ms after it. While the queue has no place changes wait outside of it,
 * and only the state that is then the present one is told: `message` shows how many were passed
 * over. `status` is 0 where frames pass, -ENETDOWN where none do, or why the link itself is gone
 * (-ENOTCONN: stpd has ended), and nothing follows that. A domain has one watch: another one takes
 * its place, and NULL for `queue` ends it. -EAGAIN: the queue has no place. */
ST_API int stm_link_watch(stm_domain_t domain, stm_queue_t queue, uint64_t context);

/* ---- connections -----------------------------------------------------------------------------
 * Queues may be one and the same. `pool`: where its messages find their receives, or NULL. */
typedef struct stm_connection_attr {
  size_t size;
  uint64_t context;
  stm_queue_t events;   /* _CONNECTED to _DISCONNECTED, _READ_REQUEST */
  stm_queue_t sends;    /* completions of all but receives; NULL: events */
  stm_queue_t receives; /* NULL: sends */
  stm_pool_t pool;
  uint64_t group;       /* any number; 0: none. See stm_region_open_group */
  int64_t receive_wait; /* how long the peer's next message may wait for a receive before the
                           connection ends with -ENOBUFS; 0: for ever */
  uint32_t flags;       /* STM_ON_ARRIVAL, STM_FRUGAL, STM_PATIENT */
  uint32_t reserved;    /* 0 */
} stm_connection_attr_t;

enum {
  STM_ON_ARRIVAL = 1, /* a message that is announced ahead of earlier ones takes its receive from
                         the pool at once, if as many stay as there are earlier ones without; it is
                         told in its turn. Without this flag, and without a pool, messages take
                         their receives in the order in which they were sent. */
  STM_FRUGAL = 2,     /* one of many connections: the memory that messages pass through goes back to
                         the system whenever it holds none, unless the connection is among those of
                         the domain that use theirs first */
  STM_PATIENT = 4 /* the peer's program may be stopped: operations do not fail after 30 s without
                     it, but wait for 24 hours if its host answers */
};

#define STM_PRIVATE_DATA 1024 /* bytes that connect, accept and reject may send along */

/* One that is not connected yet: receives may be posted. */
ST_API int stm_connection_create(stm_domain_t domain, const stm_connection_attr_t* attr,
                                 stm_connection_t* connection);
enum { STM_WHILE_ALIVE = -2 }; /* a time-out of stm_connect */
/* Begins to connect to "host:port" (as st_connect names it, but of 32 bits); _CONNECTED, _REFUSED
 * or _FAILED follows, within `timeout`. -1: 30 s, but 4.5 s (_FAILED, -ETIMEDOUT) if the peer's
 * host does not answer at all. STM_WHILE_ALIVE: the same without the 30 s, so a peer that is busy
 * may decide as late as it likes. No other time may be negative (-EINVAL). Resolving the host is
 * done in the caller and may block for a second (10 while a memif has no peer): -EHOSTUNREACH;
 * -ECANCELED: another thread has closed the connection meanwhile. -EISCONN: it was begun before; a
 * connection is used once. Operations may be posted from here on; they leave once the peer has
 * accepted. */
ST_API int stm_connect(stm_connection_t connection, const char* peer, int64_t timeout,
                       const void* private_data, size_t length);

/* `port`: ":port" or "host:port" (this host). Each request comes as _REQUEST into `queue`, with a
 * connection that any thread may accept or reject; `backlog` (0: 64) may wait undecided, more have
 * to ask again. -EADDRINUSE. stm_listener_close rejects those that nobody has been told of. */
ST_API int stm_listen(stm_domain_t domain, const char* port, stm_queue_t queue, uint64_t context,
                      unsigned backlog, stm_listener_t* listener);
ST_API int stm_listener_close(stm_listener_t listener);
/* The requester waits for one of these; its own time-out tells it when to give up. Accepting gives
 * the connection its queues; _CONNECTED follows, or _FAILED if the requester is gone. Receives may
 * be posted after stm_accept returned: the peer's messages wait for them. */
ST_API int stm_accept(stm_connection_t connection, const stm_connection_attr_t* attr,
                      const void* private_data, size_t length);
/* Closes the connection as well. */
ST_API int stm_reject(stm_connection_t connection, const void* private_data, size_t length);
/* What the peer sent along (requester: with its answer). Copies at most `size` bytes; returns how
 * many there are. */
ST_API int stm_private_data(stm_connection_t connection, void* data, size_t size);

/* Graceful: nothing new may be posted (-ESHUTDOWN), what was posted is done, but for receives; then
 * the connection ends. Abrupt: it ends at once. What is left completes with -ECANCELED;
 * _DISCONNECTED follows. Does not wait for the peer. When the peer has disconnected, messages of
 * its that are here can still be received, and _DISCONNECTED follows the last one: this call drops
 * them. Broken: as abrupt, but the peer hears _FAILED, with -ECONNRESET. */
enum { STM_GRACEFUL = 0, STM_ABRUPT = 1, STM_BROKEN = 2 };
ST_API int stm_disconnect(stm_connection_t connection, int how);
/* The handle is none from here on. One that is up ends abruptly; what is outstanding completes
 * first, without a further event; of a connection that was closed before its end no news comes. It
 * may block for as long as frames that leave still use the memory of what was outstanding. */
ST_API int stm_connection_close(stm_connection_t connection);

enum stm_state {
  STM_IDLE,       /* created */
  STM_CONNECTING, /* stm_connect, or accepted and not confirmed */
  STM_REQUESTED,  /* a request that is not decided */
  STM_UP,
  STM_ENDING, /* graceful disconnection under way */
  STM_ENDED
};
typedef struct stm_connection_info {
  size_t size;
  uint32_t state;
  int32_t reason; /* STM_ENDED: 0 in good order, else a status */
  uint64_t context;
  st_macaddr_t peer_mac;
  uint64_t operations; /* outstanding, without receives */
  uint64_t receives;   /* posted, not filled */
  uint64_t eager;      /* messages up to this length need no round trip before they leave */
  uint64_t span;       /* pool: messages from the one behind the last that was told, to the last
                          that has a receive: more than `receives` where earlier ones have none */
  uint16_t local_port; /* of the connection itself, as peer_mac from its establishing on */
  uint16_t peer_port;
  uint32_t quiet; /* of the operations, those with STM_QUIET */
} stm_connection_info_t;
ST_API int stm_connection_query(stm_connection_t connection, stm_connection_info_t* info);
typedef struct stm_peer_info {
  size_t size;
  char address[72];  /* how to name the peer's host, ended by 0: 10.0.0.5/8181, [2001:db8::5]/8181
                        (with its UDP port) on a link over UDP, 10.0.0.5 on one over IP itself,
                        once it has answered; else [02:00:00:00:00:02] */
  char trouble[512]; /* what the link knows to be wrong with the way to the peer, and the remedy,
                        ended by 0; "": nothing */
} stm_peer_info_t;
/* Of the other side of a connection, also when it has ended. -ENOTCONN: it was never to be
 * connected. It may wait for stpd. */
ST_API int stm_peer_query(stm_connection_t connection, stm_peer_info_t* info);

/* ---- receives --------------------------------------------------------------------------------
 * Messages take receives in the order in which they were sent, and are told in it; one message, one
 * receive. When a connection ends, none is told as received behind one that was not. One that finds
 * no receive waits at its sender. `memory` is registered with STM_LOCAL_WRITE; `length` may be 0,
 * and `memory` NULL then. A receive on a connection with a pool is refused (-EINVAL). */
ST_API int stm_receive(stm_connection_t connection, uint64_t context, stm_memory_t memory,
                       void* ptr, size_t length);
/* Receives for any of the connections that were given the pool: first posted, first taken. Their
 * completions go to the connection's queue (a message waits while that has no place). */
ST_API int stm_pool_create(stm_domain_t domain, size_t capacity, stm_pool_t* pool);
ST_API int stm_pool_resize(stm_pool_t pool, size_t capacity);
/* The receives that are left in the pool are given back: each is told to `give_back` (may be NULL).
 */
ST_API int stm_pool_destroy(stm_pool_t pool, void (*give_back)(void* user, uint64_t context),
                            void* user);
ST_API int stm_pool_post(stm_pool_t pool, uint64_t context, stm_memory_t memory, void* ptr,
                         size_t length);
/* How many receives wait in it. */
ST_API int64_t stm_pool_available(stm_pool_t pool);
/* One STM_HIGH to the connection's events when it has taken more than `receives` of its pool for
 * messages that have not been told yet, or has now. -EAGAIN: the queue has no place for that.
 * -EINVAL: no pool; -ENOTCONN: no queues yet, or none any more. */
ST_API int stm_set_watermark(stm_connection_t connection, uint64_t receives);

/* ---- operations ------------------------------------------------------------------------------
 * They begin in the order of posting; several are under way at once. Only what the peer reads
 * (stm_serve_read without STM_FENCE) passes operations that wait. -EAGAIN: the queue has no
 * place, or 65536 are outstanding on the connection. -EINVAL: not inside `memory`. -EACCES: memory
 * not registered for it. -ENOTCONN, or the reason of the end: the connection is none any more. */
enum {
  STM_QUIET = 1,  /* no event where the status is 0. Puts of up to 128 KiB, and short messages, are
                     then acknowledged together: each counts as outstanding, and keeps its place in
                     the queue, for up to a few milliseconds more. A message that the peer's program
                     has received does not fail when that program disconnects. */
  STM_FENCE = 2,  /* begins only when all operations posted before it are complete: a message that
                     tells of a put */
  STM_URGENT = 4, /* wakes a peer that sleeps */
  STM_LAZY = 8    /* the event may come late: these are acknowledged together, as with
                     STM_QUIET */
};
ST_API int stm_send(stm_connection_t connection, uint64_t context, unsigned flags, uint32_t tag,
                    stm_memory_t memory, const void* ptr, size_t length);
enum { STM_HEAD = 32 };
struct iovec; /* <sys/uio.h> */
/* A short message from memory that need not be registered: a header of up to STM_HEAD bytes, then
 * the parts. It begins at once or not at all. When the call has returned, all its memory is the
 * program's again; STM_SEND comes as for stm_send. -EAGAIN: also where the peer has no room for it
 * now, where operations wait in front of it, and before the connection is up: stm_send waits. */
ST_API int stm_send_short(stm_connection_t connection, uint64_t context, unsigned flags,
                          uint32_t tag, const void* head, size_t head_length,
                          const struct iovec* parts, size_t count);
/* Asks the peer's program for exactly `length` bytes, which it serves from where it likes. A
 * request that is none any more (the peer has taken it back, or it was answered): STM_SERVED says
 * -ECANCELED, and stm_refuse_read returns it. Another length than was asked for: STM_SERVED says
 * -EINVAL. */
ST_API int stm_read(stm_connection_t connection, uint64_t context, unsigned flags,
                    stm_memory_t memory, void* ptr, size_t length);
ST_API int stm_serve_read(stm_connection_t connection, uint32_t request, uint64_t context,
                          unsigned flags, stm_memory_t memory, const void* ptr, size_t length);
ST_API int stm_refuse_read(stm_connection_t connection, uint32_t request);
/* Without the peer's program. `address`: in the region that `key` names at the peer. Lengths of 0
 * are legal for put. The first use of a key on a connection costs a round trip of its own. */
ST_API int stm_put(stm_connection_t connection, uint64_t context, unsigned flags,
                   stm_memory_t memory, const void* ptr, size_t length, uint32_t key,
                   uint64_t address);
ST_API int stm_get(stm_connection_t connection, uint64_t context, unsigned flags,
                   stm_memory_t memory, void* ptr, size_t length, uint32_t key, uint64_t address);
enum stm_fetch_op {
  STM_FETCH_INCREMENT = 1,
  STM_FETCH_DECREMENT = 2,
  STM_FETCH_CLEAR = 3,
  STM_FETCH_ADD = 4,
  STM_COMPARE_AND_SWAP = 5 /* sets `operand` where `compare` stands */
};
/* On 8 bytes in the peer's byte order, `address` 8-aligned in its memory; the value that was there
 * before lands at `ptr` (8-aligned). Executed exactly once, atomically to the peer's own threads.
 */
ST_API int stm_fetch(stm_connection_t connection, uint64_t context, unsigned flags,
                     enum stm_fetch_op op, uint64_t operand, uint64_t compare, stm_memory_t memory,
                     void* ptr, uint32_t key, uint64_t address);
/* One operation of a list: what the call for it alone takes. What its kind does not use is not
 * looked at. */
typedef struct stm_operation {
  uint32_t kind; /* STM_SEND, STM_READ, STM_PUT or STM_GET */
  uint32_t flags;
  uint64_t context;
  stm_memory_t memory;
  void* ptr; /* STM_SEND, STM_PUT: it is only read */
  size_t length;
  uint64_t address;  /* STM_PUT, STM_GET */
  uint32_t key;      /* STM_PUT, STM_GET */
  uint32_t tag;      /* STM_SEND */
  uint64_t reserved; /* 0 */
} stm_operation_t;
/* As if each of them were posted by its own call, one after the other, and no others between them;
 * but the connection is looked up once for all, and they leave together. How many have been posted:
 * all, or those before the first that cannot be. A negative error number where that is the first of
 * all. -EINVAL: an unknown kind, `reserved` is not 0, or more than INT_MAX. */
ST_API int stm_post_list(stm_connection_t connection, const stm_operation_t* operations,
                         size_t count);
/* Ends the oldest outstanding operation (a receive, too) of that context, at both sides; it
 * completes with -ECANCELED, or as done when it was too late: once the link reads and writes its
 * memory no more. A message that is arriving for the receive is either received, or not delivered
 * for its sender either (-ECANCELED). -ENOENT: there is none. */
ST_API int stm_cancel(stm_connection_t connection, uint64_t context);
/* Takes the oldest receive of that context back for which no message has come: it completes with
 * -ECANCELED, and the peer loses nothing. -EBUSY: a message is arriving for it, and it completes
 * with that message. -ENOENT: there is none. */
ST_API int stm_withdraw(stm_connection_t connection, uint64_t context);

#ifdef __cplusplus
}
#endif

#endif /* STP_MANAGED_H */
