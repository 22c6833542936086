/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libst level 0: Scheduled Transfers from user programs, as in the "libst API" document (v04).
 * Section numbers below are that document's. See libst(7).
 *
 * Errors: 0 (or a call's own positive value) is success, a negative value is a negated errno.
 * Handles are opaque; NULL, foreign or closed ones give -EBADF, never a crash.
 * Threads: any call from any thread. Closing what another thread waits on ends its call with
 * -ECANCELED. Calls that block (st_accept, st_connect, st_tx, st_rx, st_flush, st_close,
 * st_delete) return -EINTR when a signal handler ran while they slept, whatever SA_RESTART says;
 * nothing was done then.
 * If stpd goes away every call fails with -ENOTCONN; st_create opens the link anew.
 * In a child of fork() no handle works (-EBADF); exec() and go on. Connections through stpd end
 * with the process that opened the link: daemons fork before their first call.
 * Sizes: Bufsize, Max_STU, Blocksize are exponents of two (14 = 16 KiB). Lengths are bytes.
 * Byte order: every field of st_header_t is in host order; libst converts.
 * The link is chosen by the environment variable STP_LINK, else the default stpd, else `loop`.
 * Language: C99 or later, C++11 or later.
 */
#ifndef STP_ST_H
#define STP_ST_H

#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ST_API __attribute__((visibility("default")))
#else
#define ST_API
#endif

/* C99 has no unnamed unions, compilers do: without it, -std=c99 -Wpedantic warns of each. */
#if defined(__GNUC__) && !defined(__cplusplus)
#define ST_UNNAMED __extension__
#else
#define ST_UNNAMED
#endif

/* 3.2 Datatypes */
typedef struct st_ehandle* st_ehandle_t; /* an endpoint: st_create, st_endpoint */
typedef struct st_chandle* st_chandle_t; /* a connection: st_connect, st_accept */
typedef void* st_mhandle_t;              /* a mapped region: st_map */
typedef uint64_t st_macaddr_t;           /* opaque to programs; 02:..:01 is 0x020000000001 */

/* Operations: the five high bits of op_flags. */
enum {
  ST_OP_RC = 0x01,   /* Request_Connection: sent by st_connect only */
  ST_OP_CA = 0x02,   /* Connection_Answer */
  ST_OP_RD = 0x03,   /* Request_Disconnect */
  ST_OP_DA = 0x04,   /* Disconnect_Answer */
  ST_OP_DC = 0x05,   /* Disconnect_Complete */
  ST_OP_NOP = 0x10,  /* No_Operation */
  ST_OP_RMR = 0x13,  /* Request_Memory_Region */
  ST_OP_MRA = 0x14,  /* Memory_Region_Available */
  ST_OP_GET = 0x15,  /* Get, FetchOp, FetchOp_Complete */
  ST_OP_RTS = 0x16,  /* Request_To_Send */
  ST_OP_RA = 0x17,   /* Request_Answer */
  ST_OP_RTR = 0x18,  /* Request_To_Receive */
  ST_OP_CTS = 0x1a,  /* Clear_To_Send */
  ST_OP_DATA = 0x1b, /* Data */
  ST_OP_RS = 0x1c,   /* Request_State */
  ST_OP_RSR = 0x1d,  /* Request_State_Response */
  ST_OP_END = 0x1e,  /* End */
  ST_OP_EA = 0x1f    /* End_Ack */
};

/* Flags: the eleven low bits of op_flags. */
enum {
  ST_FLAG_APPEND = 0x0002,     /* set by libst where append data is given */
  ST_FLAG_REJECT = 0x0004,     /* the answer refuses the request */
  ST_FLAG_LAST = 0x0008,       /* last STU of its Block: set by libst */
  ST_FLAG_ORDER = 0x0010,      /* STUs may be sent out of order */
  ST_FLAG_SEND_STATE = 0x0020, /* answer with RSR once this operation is processed */
  ST_FLAG_INTERRUPT = 0x0040,  /* wake a sleeping consumer at once */
  ST_FLAG_SILENT = 0x0080,     /* place the data, deliver no header */
  /* GET only: which function */
  ST_FLAG_FETCH_INCREMENT = 0x0100,
  ST_FLAG_FETCH_DECREMENT = 0x0200,
  ST_FLAG_FETCH_CLEAR = 0x0300,
  ST_FLAG_FETCH_ADD = 0x0400,
  ST_FLAG_COMPARE_AND_SWAP = 0x0500,
  ST_FLAG_FETCHOP_COMPLETE = 0x0700
};

/* C++ programs may be compiled with -Wold-style-cast. */
#ifdef __cplusplus
#define ST_AS(type, value) static_cast<type>(value)
#else
#define ST_AS(type, value) ((type)(value))
#endif
#define ST_OP_FLAGS(op, flags) \
  ST_AS(uint16_t, ST_AS(unsigned, op) << 11 | (ST_AS(unsigned, flags) & 0x07ffu))
#define ST_OP(op_flags) (ST_AS(unsigned, op_flags) >> 11)
#define ST_FLAGS(op_flags) (ST_AS(unsigned, op_flags) & 0x07ffu)

#define ST_NO_ID 0xffffffffu /* "no id", "no Block" in d_id, s_id and b_num */
#define ST_OPTION_SIZE 32    /* option payload of a control operation */
#define ST_APPEND_SIZE 64    /* append data of a DATA */

/* The Schedule Header: 40 bytes, host-order fields in wire order. Each word has one general name
 * and, in its union, the names that particular operations give it. */
typedef struct st_header {
  uint16_t op_flags; /* ST_OP_FLAGS(op, flags) */
  ST_UNNAMED union {
    uint16_t param;
    uint16_t i_slots, r_slots; /* RC; CA, RSR */
    uint16_t cts_req;          /* RTS: CTS wanted outstanding */
    uint16_t blocksize;        /* CTS: exponent */
    uint16_t stu_num;          /* DATA: set by libst, from the CTS and the address */
    uint16_t b_win;            /* RMR, MRA */
    uint16_t get_len;          /* GET: bytes, 0 means 65536 */
  };
  uint16_t d_port; /* on a connection set by libst */
  uint16_t s_port; /* always set by libst */
  uint32_t d_key;  /* on a connection set by libst */
  uint16_t cksum;  /* set by libst */
  ST_UNNAMED union {
    uint16_t mx;
    uint16_t r_mx, i_mx; /* CTS, MRA, DATA; GET */
    uint16_t ethertype;  /* RC */
    uint16_t max_block;  /* RTS: exponent */
  };
  ST_UNNAMED union {
    uint32_t bufx;
    uint32_t r_bufx;               /* CTS, MRA, DATA, GET */
    uint32_t i_bufsize, r_bufsize; /* RC, CA: exponents */
  };
  ST_UNNAMED union {
    uint32_t offset;
    uint32_t r_offset;     /* CTS, MRA, DATA, GET */
    uint32_t b_seq;        /* RSR: the first Block not yet complete */
    uint32_t i_key, r_key; /* RC, RD, DC; CA, DA */
  };
  ST_UNNAMED union {
    uint32_t sync;                 /* DATA, RS, RSR */
    uint32_t f_offset;             /* CTS: first byte of the Block still missing */
    uint32_t t_len_hi;             /* RTS, RTR, RMR, MRA */
    uint32_t i_bufx;               /* GET */
    uint32_t i_max_stu, r_max_stu; /* RC, CA: exponents */
  };
  ST_UNNAMED union {
    uint32_t b_num;    /* CTS, DATA, RS, RSR: number of the Block, from 0 */
    uint32_t t_len_lo; /* RTS, RTR, RMR, MRA */
    uint32_t i_offset; /* GET */
  };
  ST_UNNAMED union {
    uint32_t d_id;    /* the receiver's id */
    uint32_t d_uport; /* RC, CA: the receiver's upper-layer port */
  };
  ST_UNNAMED union {
    uint32_t s_id;    /* the sender's id */
    uint32_t opaque;  /* DATA: handed to the receiving user as it is */
    uint32_t g_num;   /* GET */
    uint32_t s_uport; /* RC, CA: the sender's upper-layer port */
  };
} st_header_t;

/* T_len of RTS, RTR, RMR and MRA: 64 bits over two fields. */
static inline uint64_t st_t_len(const st_header_t* header) {
  return ST_AS(uint64_t, header->t_len_hi) << 32 | header->t_len_lo;
}
static inline void st_set_t_len(st_header_t* header, uint64_t bytes) {
  header->t_len_hi = ST_AS(uint32_t, bytes >> 32);
  header->t_len_lo = ST_AS(uint32_t, bytes);
}

/* 6 Configuration. Every value is an unsigned int. Options are set on an endpoint that has no
 * memory mapped, does not listen and has no connection (-EBUSY else); a connection takes over what
 * its endpoint has. _REMOTE ones can never be set (-EPERM) and are known of a connection only
 * (-ENOTCONN on an endpoint). -EINVAL: no such option, or a value that it cannot have.
 * Connectionless: options are set before st_map, st_utx and st_urx, and before the Port or the Key
 * is asked for (-EBUSY after). PORT_LOCAL and KEY_LOCAL are what others have to know; asking for
 * them opens the endpoint: from here on it can be reached. MAXSTU_LOCAL is what the link really
 * carries. */
enum st_option {
  ST_OPT_BUFSIZE_LOCAL = 1, /* exponent, 8..30; default 14 */
  ST_OPT_BUFSIZE_REMOTE,
  ST_OPT_MAXSTU_LOCAL, /* exponent, 8..16; default 14; the link's MTU may lower what is used */
  ST_OPT_MAXSTU_REMOTE,
  ST_OPT_KEY_LOCAL, /* set by root only (-EPERM); 0: each connection draws its own */
  ST_OPT_KEY_REMOTE,
  ST_OPT_PORT_LOCAL, /* 1..65535; 0: each connection gets a free one */
  ST_OPT_PORT_REMOTE,
  ST_OPT_RX_BUFX_BASE,  /* default 0 */
  ST_OPT_RX_BUFX_COUNT, /* default 65536 */
  ST_OPT_RX_SLOTS,      /* 1..65535; default 64 */
  ST_OPT_TX_BUFX_BASE,  /* default 0 */
  ST_OPT_TX_BUFX_COUNT, /* default 65536 */
  ST_OPT_TX_CREDITS,    /* 1..65536; default 64: requests queued before st_tx blocks */
  /* beyond the document */
  ST_OPT_CHECKSUM,        /* 1: a checksum goes with all that is sent; default 0 */
  ST_OPT_KEEP_ALIVE,      /* 1: a peer that has fallen silent is noticed; default 1 */
  ST_OPT_RECOVER,         /* 1: CTS are repeated while granted bytes stay away; default 0 */
  ST_OPT_INSPECT,         /* 1: st_listen leaves each request to st_inspect; default 0 */
  ST_OPT_CONNECT_PATIENCE /* milliseconds to wait for an answer, up to an hour; default 0: the
                             protocol's eight tries, about 2 s */
};

/* 5 Constructors and destructors. `str`: "host:port", ":port" (this host) or NULL; host may be a
 * name, an IPv4 address or a MAC address in brackets, port a number (1..2^32-1) or a service name.
 * st_create: -EINVAL a malformed name or STP_LINK, -ENODEV no such link, -EADDRINUSE its UDP port
 * is another program's, -EHOSTUNREACH an unknown host, -EADDRNOTAVAIL another one than this.
 * st_delete closes the endpoint's connections as st_close does and unmaps its memory. -EINTR: it
 * has done nothing. */
ST_API int st_create(const char* str, st_ehandle_t* ehandle);
/* 5.2 An endpoint of the connectionless model (section 8): it sends to and receives from anybody,
 * by st_utx and st_urx. The port of `str` is its STP Port (-EADDRINUSE where it is used first, if
 * taken); NULL: any free one. The Mx of an st_map is good for everybody who knows the endpoint's
 * Port and Key: DATA needs no CTS. Those who talk to each other agree on BUFSIZE_LOCAL and
 * MAXSTU_LOCAL. st_listen and st_connect: -EOPNOTSUPP. Errors as of st_create. */
ST_API int st_endpoint(const char* str, st_ehandle_t* ehandle);
ST_API int st_delete(st_ehandle_t ehandle);

/* 6 Configuration. `handle`: st_ehandle_t or st_chandle_t. */
ST_API int st_getopt(void* handle, int opt, void* val);
ST_API int st_setopt(void* handle, int opt, void* val);

/* 7 Connections. st_listen: -EADDRINUSE, -EACCES (the operator of stpd does not let this user), or
 * -EINVAL without a port. st_accept waits for a client.
 * st_connect: -ECONNREFUSED nobody listens, -ETIMEDOUT nobody there (see ST_OPT_CONNECT_PATIENCE),
 * -EHOSTUNREACH an unknown host, -EINVAL a malformed name. st_close waits until what is
 * queued has been sent (for as long as the peer's program lives and does not read: -EINTR, and
 * nothing is closed), disconnects, and waits for the peer's confirmation for at most 1 s. Where not
 * all was sent it closes, and returns what st_flush would. */
ST_API int st_listen(st_ehandle_t ehandle);
ST_API int st_accept(st_ehandle_t ehandle, st_chandle_t* chandle);
ST_API int st_connect(st_ehandle_t ehandle, const char* peer, st_chandle_t* chandle);
ST_API int st_close(st_chandle_t chandle);

/* Option payload on the way to a connection, and a look before the answer (Appendix A).
 * `opt_pay`: NULL, or ST_OPTION_SIZE bytes that the other side is shown.
 *
 * st_connect_opt: `answer` (or NULL) tells what the peer said, as it accepted or (-ECONNREFUSED) as
 * it refused.
 *
 * A listener with ST_OPT_INSPECT is asked: st_inspect waits for the next request, `timeout` as of
 * select() (-EWOULDBLOCK), and nothing has been answered when it returns. `chandle` then is a
 * connection on which only st_accept_opt, st_reject, st_getpeer, st_mx_alloc and st_close (which
 * rejects) are of use; others give -ENOTCONN. Meanwhile the peer waits as long as its
 * ST_OPT_CONNECT_PATIENCE says; a request undecided after 60 s, or of which nothing was heard for
 * 5 s, is refused: -ETIMEDOUT, -ECONNABORTED. Such a handle still is to be closed.
 * st_accept_opt: -EISCONN if it is accepted already. st_reject ends the handle, too. st_accept on
 * such a listener accepts whoever is next. */
typedef struct st_peer {
  st_macaddr_t macaddr;
  uint32_t uport;   /* its upper-layer port; 0: it has none */
  uint32_t opt_len; /* 0, or ST_OPTION_SIZE: with option payload */
  unsigned char opt_pay[ST_OPTION_SIZE];
} st_peer_t;
ST_API int st_connect_opt(st_ehandle_t ehandle, const char* peer, const void* opt_pay,
                          st_chandle_t* chandle, st_peer_t* answer);
ST_API int st_inspect(st_ehandle_t ehandle, st_chandle_t* chandle, st_peer_t* peer,
                      struct timeval* timeout);
ST_API int st_accept_opt(st_chandle_t chandle, const void* opt_pay);
ST_API int st_reject(st_chandle_t chandle, const void* opt_pay);
/* Whom a connection is with, and what came along with its request or answer. */
ST_API int st_getpeer(st_chandle_t chandle, st_peer_t* peer);

/* Notice of what happens to an endpoint (Appendix A), for who does not wait in st_accept and st_rx:
 * 0 and the next event, or -EWOULDBLOCK after `timeout` (as of select()). That a connection waits
 * for st_accept or st_inspect is told for as long as one does; the end of a connection once, after
 * which st_rx still gives what had arrived before. */
enum {
  ST_EVENT_CONNECTION = 1, /* st_accept or st_inspect will not wait */
  ST_EVENT_PEER_GONE,      /* the peer has disconnected `chandle` */
  ST_EVENT_FAILED          /* `chandle` has failed: `error` tells why */
};
typedef struct st_event {
  int kind;
  st_chandle_t chandle;
  int error; /* what st_rx will return in the end */
} st_event_t;
ST_API int st_next_event(st_ehandle_t ehandle, st_event_t* event, struct timeval* timeout);

/* 8.1 `hostname` NULL: the local interface; else a name or an IPv4 address, which is resolved by
 * ARP or by what the link's option arp= says, or a MAC address in brackets. -EHOSTUNREACH: nobody
 * answers for it. Waits for an answer for at most 1 s. */
ST_API int st_macaddr(st_ehandle_t ehandle, const char* hostname, st_macaddr_t* macaddr);

/* 9 Memory. `ptr` and `len` are multiples of the local buffer size (-EINVAL); `base` and `count`
 * lie in the range of the options (-ERANGE) and no Bufx of theirs has memory yet (-EBUSY); len or
 * count may be -1: derived from the other. `ptr` names memory that is there, writable for
 * ST_MAP_RX (-EFAULT). `mx` of an ST_MAP_RX may be NULL: allocate one per connection with
 * st_mx_alloc; the one of st_map is good on every connection of the endpoint.
 *
 * Through stpd the pages that cover the memory are replaced, in place, by pages that stpd can see.
 * While st_map runs no other thread may write to them: matters for buffers smaller than a page,
 * whose neighbours lie on the same. A child of fork() shares none of them. -EOPNOTSUPP,
 * with the reason in st_strerror(): part of a MAP_SHARED mapping, executable memory, pages of the
 * calling thread's stack, or more than 16 separate mappings.
 *
 * st_unmap frees the Mx's, too, and returns when the link no longer uses the memory. st_mx_free:
 * -ERANGE for an Mx that is not the connection's. */
enum { ST_MAP_TX = 1, ST_MAP_RX = 2 };
ST_API int st_map(st_ehandle_t ehandle, int flags, void* ptr, int len, int base, int count,
                  st_mhandle_t* mhandle, int* mx);
/* Disjoint memory under consecutive Bufx (Appendix A): each piece is whole, aligned buffers; its
 * buffers take the Bufx after those of the piece before. One handle and one Mx for all of it. */
#define ST_MAX_PIECES 16
ST_API int st_mapv(st_ehandle_t ehandle, int flags, const struct iovec* pieces, int piece_count,
                   int base, st_mhandle_t* mhandle, int* mx);
ST_API int st_unmap(st_mhandle_t mhandle);
/* Memory to map (Appendix A): zeroed, aligned to and a multiple of the endpoint's present buffer
 * size and of the page; on huge pages where the system has some to give; on NUMA `node`, or -1.
 * Through stpd it needs no replacing. st_unmap it before st_free. st_meminfo tells what it has
 * become. st_malloc: -EINVAL no such node or
 * size, -ENOMEM. */
typedef struct st_meminfo_t {
  size_t size; /* usable bytes */
  size_t huge; /* bytes of them that lie on huge pages now: pages come as they are touched */
  int node;    /* where the first page lies; -1: the system does not tell */
} st_meminfo_t;
ST_API int st_malloc(st_ehandle_t ehandle, size_t size, int node, void** ptr);
ST_API int st_free(void* ptr);
ST_API int st_meminfo(const void* ptr, st_meminfo_t* info);
ST_API int st_mx_alloc(st_chandle_t chandle, st_mhandle_t mhandle, int* mx);
ST_API int st_mx_free(st_chandle_t chandle, int mx);

/* 10 Data transfer.
 * st_tx: `opt_pay` is NULL, 32 bytes of option payload (control) or 64 bytes of append (DATA).
 * Blocks while the transmit queue is full. -EPERM: a connection operation. -EINVAL: not a legal
 * header; len of what is not DATA. -ERANGE: DATA from memory that is not mapped with ST_MAP_TX, or
 * a CTS or MRA that grants what is not this connection's. -ENOTCONN: the peer has disconnected;
 * another reason where the connection failed (-ETIMEDOUT: the peer fell silent).
 * st_rx: 0, or 1 with option payload or append, copied to `opt_pay` (64 bytes or NULL). `timeout`
 * as of select(): -EWOULDBLOCK once it has passed; after a second or more st_strerror says what the
 * link knows to be wrong with the way to the peer. What has arrived is read first, then the reason
 * why the connection has ended is told. */
ST_API int st_tx(void* chandle, st_header_t* hdr, void* opt_pay, int len, int bufx, int off);
ST_API int st_rx(void* chandle, st_header_t* hdr, void* opt_pay, struct timeval* timeout);
/* 10.2 Connectionless. Both open the endpoint if nothing has.
 * st_utx: as st_tx, to the station `macaddr` (-EINVAL if it is none) and the endpoint that d_port
 * (-EINVAL for 0) and d_key of the header name. Nothing tells whether it arrives, nor whether the
 * receiver had a Slot for it. Each DATA takes a pair of d_id and b_num that was not used with that
 * receiver for 4 s (and the time that a frame may be under way): by them it knows a repeat, which
 * changes nothing once the whole Block is there, unless it comes more than 4 s after that.
 * Nothing is answered for an endpoint: RS, Get and FetchOp are handed to its user.
 * st_urx: as st_rx. `macaddr` NULL: from anyone; 0 there: from anyone, and whose it was is put
 * there; else from that station only. What others sent meanwhile waits for a later st_urx: 4096
 * headers, and as many as there are Slots; -ENOBUFS once that is full. s_port of the header is the
 * sender's. */
ST_API int st_utx(void* ehandle, st_macaddr_t macaddr, st_header_t* hdr, void* opt_pay, int len,
                  int bufx, int off);
ST_API int st_urx(void* ehandle, st_macaddr_t* macaddr, st_header_t* hdr, void* opt_pay,
                  struct timeval* timeout);
/* Until the link no longer reads the memory of anything sent before; of an endpoint: on all its
 * connections. -EIO: requests since the last flush could not be sent after all; -EDQUOT: since this
 * user's budget has no memory left to keep track of what they would permit. */
ST_API int st_flush(void* handle);

/* 11 Miscellaneous */
ST_API double st_time(void);
ST_API const char* st_version(void);
/* What `error` (either sign) means: in the words of this thread's last call if that is how it
 * failed, else the system's, and behind them what it means here if they do not say it. Good until
 * the thread's next call. */
ST_API const char* st_strerror(int error);

/* Hooks (Appendix A): one function each for the whole process, NULL for none. Called by the thread
 * that made the call, at its end: `call` is its name ("st_map"), `result` what it returns, `text`
 * as of st_strerror. The error handler hears of every call that fails; the log of these and of the
 * control calls that succeed. Calls that move frames (st_tx, st_rx, st_flush, ...) are told of only
 * when they fail, and then not with -EWOULDBLOCK or -EINTR. A hook may call libst (without being
 * called for that) and must not throw. One that is replaced may still be at work elsewhere. */
typedef void st_hook_t(void* context, const char* call, int result, const char* text);
ST_API void st_set_error_handler(st_hook_t* handler, void* context);
ST_API void st_set_log(st_hook_t* log, void* context);

#ifdef __cplusplus
}
#endif

#endif /* STP_ST_H */
