/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of a Virtual Connection (docs/protocol.md, section 5).
 *
 * Host A connects to host B. Both may close, at any time and at once. The link loses, repeats and
 * reorders frames. A may restart: it forgets its connection without a word, and connects again.
 *
 * A name stands for a Port together with its Key. The names of A's two lives are 1 and 2; both have
 * the same Port. B makes VC 3 for name 1, and VC 4 for name 2.
 *
 * What must hold:
 *   - no VC stays for ever: when nothing can happen any more, all have gone (5.2, 5.16, 5.23);
 *   - nothing goes on for ever: there is no cycle among the states;
 *   - one Request_Connection makes one VC, however often it arrives (5.4, 5.10);
 *   - who is OPEN talks to the VC that was made for it, and to no other (5.8, 5.18).
 *
 * Broken variants, each of which must fail:
 *   BROKEN_MEMORY     a VC that has gone is not remembered (5.10)
 *   BROKEN_KEEPALIVE  nobody asks a silent peer (5.23)
 *   BROKEN_LAST_DC    the last DA waits for its DC for ever (5.16)
 *   BROKEN_KEY        frames are taken by their Port alone (5.8, 5.18)
 */

#define TRIES 1 /* of each request */

#define GONE 0
#define CONNECTING 1
#define OPEN 2
#define CLOSING 3
#define PEER_CLOSING 4
#define BOTH_CLOSING 5
#define PEER_CLOSED 6
#define FAILED 7

#define RC 0
#define CA 1
#define RD 2
#define DA 3
#define DC 4

/* The link is a set of frames: one bit for each that can be. */
int link = 0;
#ifndef REPEATS
#define REPEATS 2
#endif
byte repeats = REPEATS; /* frames that the link may yet deliver twice */

#define PAIR(a, b) (((b) - 3) * 2 + ((a) - 1))
#define FRAME(op, f, t)                                                              \
  ((op) == RC -> (f) - 1 : ((op) == CA -> 2 + PAIR(t, f) :                           \
   6 + ((op) - RD) * 8 + ((f) > 2 -> 4 + PAIR(t, f) : PAIR(f, t))))

typedef Vc {
  byte state;
  byte peer;   /* the name of the other side; 0: not known yet */
  byte tries;  /* of the request that waits for its answer */
  bool closed; /* the user has let go of it */
};
Vc vc[5];
bool made_for[3];   /* B has made a VC for this name of A's */
bool remembered[3]; /* at B: had a VC, which has gone */
byte life = 1;      /* A's name now */

inline send(op, f, t) { link = link | (1 << FRAME(op, f, t)) }

inline forget(me) {
#ifndef BROKEN_MEMORY
  if
  :: me > 2 -> remembered[vc[me].peer] = true
  :: else
  fi;
#endif
  vc[me].state = GONE;
  vc[me].peer = 0;
  vc[me].tries = 0;
  vc[me].closed = false
}

inline become(me, next) {
  vc[me].state = next;
  vc[me].tries = 0;
  if
  :: vc[me].closed && (next == PEER_CLOSED || next == FAILED) -> forget(me)
  :: else
  fi
}

/* B answers a Request_Connection of A's name f. */
inline request_connection(f) {
  if
  :: vc[3].peer == f && vc[3].state != GONE ->
     if
     :: vc[3].state == OPEN -> send(CA, 3, f)
     :: else
     fi
  :: vc[4].peer == f && vc[4].state != GONE ->
     if
     :: vc[4].state == OPEN -> send(CA, 4, f)
     :: else
     fi
  :: else ->
     if
     :: remembered[f]
     :: else ->
        assert(!made_for[f]);
        made_for[f] = true;
        me = f + 2;
        vc[me].peer = f;
        become(me, OPEN);
        send(CA, me, f)
     fi
  fi
}

inline connection_answer(f, t) {
  if
  :: vc[me].state == CONNECTING ->
     assert(vc[f].state == GONE || vc[f].peer == me);
     vc[me].peer = f;
     become(me, OPEN)
  :: vc[me].state != CONNECTING && vc[me].state != GONE && vc[me].peer == f
  :: else -> send(RD, t, f) /* nobody here wants that VC (5.9) */
  fi
}

inline request_disconnect(f, t) {
  if
  :: vc[me].state == GONE -> send(DA, t, f) /* 5.12 */
  :: vc[me].state == CONNECTING -> /* 5.14 */
     vc[me].peer = f;
     become(me, PEER_CLOSING);
     send(DA, me, f)
  :: vc[me].state > CONNECTING && vc[me].peer == f ->
     if
     :: vc[me].state == OPEN -> become(me, PEER_CLOSING)
     :: vc[me].state == CLOSING -> vc[me].state = BOTH_CLOSING
     :: else
     fi;
     send(DA, me, f)
  :: else
  fi
}

inline disconnect_answer(f) {
  if
  :: vc[me].peer == f && vc[me].state == CLOSING ->
     send(DC, me, f);
     forget(me)
  :: vc[me].peer == f && vc[me].state == BOTH_CLOSING ->
     send(DC, me, f);
     become(me, PEER_CLOSING)
  :: else
  fi
}

inline disconnect_complete(f) {
  if
  :: vc[me].peer == f && vc[me].state == PEER_CLOSING -> become(me, PEER_CLOSED)
  :: vc[me].peer == f && vc[me].state == BOTH_CLOSING -> vc[me].state = CLOSING
  :: else
  fi
}

inline receive(op, f, t) {
#ifdef BROKEN_KEY
  me = (t == 1 || t == 2 -> life : t);
#else
  me = t;
#endif
  if
  :: op == RC -> request_connection(f)
  :: op == CA -> connection_answer(f, t)
  :: op == RD -> request_disconnect(f, t)
  :: op == DA -> disconnect_answer(f)
  :: op == DC -> disconnect_complete(f)
  fi
}

/* The timer of the request that waits for its answer. */
inline expire(me) {
  if
  :: vc[me].tries < TRIES ->
     vc[me].tries++;
     if
     :: vc[me].state == CONNECTING -> send(RC, me, 0)
     :: vc[me].state == CLOSING || vc[me].state == BOTH_CLOSING -> send(RD, me, vc[me].peer)
     :: vc[me].state == PEER_CLOSING -> send(DA, me, vc[me].peer)
     fi
  :: else ->
     if
     :: vc[me].state == CONNECTING -> become(me, FAILED)
     :: vc[me].state == CLOSING || vc[me].state == BOTH_CLOSING -> forget(me)
     :: vc[me].state == PEER_CLOSING -> become(me, PEER_CLOSED)
     fi
  fi
}

inline user_closes(me) {
  if
  :: vc[me].state == OPEN ->
     vc[me].closed = true;
     become(me, CLOSING);
     send(RD, me, vc[me].peer)
  :: vc[me].state == PEER_CLOSING -> vc[me].closed = true
  :: else -> forget(me)
  fi
}

#ifdef BROKEN_LAST_DC
#define WAITS(me) (vc[me].state == CONNECTING || vc[me].state == CLOSING || \
                   vc[me].state == BOTH_CLOSING)
#else
#define WAITS(me) (vc[me].state == CONNECTING || vc[me].state == CLOSING || \
                   vc[me].state == BOTH_CLOSING || vc[me].state == PEER_CLOSING)
#endif

/* The peer of an OPEN VC has it no more, and so answers no RS: five in a row tell (5.23). A peer that
 * is still CONNECTING has given up long before. */
#ifdef BROKEN_KEEPALIVE
#define UNANSWERED(me) false
#else
#define UNANSWERED(me) \
  (vc[me].state == OPEN && vc[vc[me].peer].peer != me && vc[vc[me].peer].state != CONNECTING)
#endif

/* B's user keeps a connection for as long as its peer does: nothing but the protocol ends it. */
#define MAY_CLOSE(me)                                                               \
  (vc[me].state == PEER_CLOSED || vc[me].state == FAILED ||                         \
   (vc[me].state == PEER_CLOSING && !vc[me].closed) ||                              \
   (vc[me].state == CONNECTING && me <= 2) ||                                       \
   (vc[me].state == OPEN && (me <= 2 || life == 1)))

#define ALL_GONE \
  (vc[1].state == GONE && vc[2].state == GONE && vc[3].state == GONE && vc[4].state == GONE)

active proctype world() {
  byte me, frame, op, from, to;
  atomic {
    vc[1].state = CONNECTING;
    send(RC, 1, 0)
  };
  do
  /* Any frame on the link is lost, or arrives; and perhaps is still on its way then. */
  :: atomic {
       link != 0 ->
       frame = 0;
       do
       :: ((link >> frame) & 1) == 1 -> break
       :: (link >> (frame + 1)) != 0 -> frame++
       od;
       if
       :: repeats > 0 -> repeats--
       :: link = link & ~(1 << frame)
       fi;
       if
       :: frame < 2 -> op = RC; from = frame + 1; to = 0
       :: frame >= 2 && frame < 6 -> op = CA; from = 3 + (frame - 2) / 2; to = 1 + (frame - 2) % 2
       :: frame >= 6 ->
          op = RD + (frame - 6) / 8;
          from = 1 + (frame - 6) % 2;
          to = 3 + ((frame - 6) % 4) / 2;
          if
          :: (frame - 6) % 8 >= 4 -> me = from; from = to; to = me
          :: else
          fi
       fi;
       if
       :: receive(op, from, to)
       :: ((link >> frame) & 1) == 0 /* lost */
       fi;
       frame = 0; op = 0; from = 0; to = 0; me = 0
     }
  :: atomic { WAITS(1) -> expire(1) }
  :: atomic { WAITS(2) -> expire(2) }
  :: atomic { WAITS(3) -> expire(3) }
  :: atomic { WAITS(4) -> expire(4) }
  :: atomic { UNANSWERED(1) -> become(1, FAILED) }
  :: atomic { UNANSWERED(2) -> become(2, FAILED) }
  :: atomic { UNANSWERED(3) -> become(3, FAILED) }
  :: atomic { UNANSWERED(4) -> become(4, FAILED) }
  :: atomic { MAY_CLOSE(1) -> user_closes(1) }
  :: atomic { MAY_CLOSE(2) -> user_closes(2) }
  :: atomic { MAY_CLOSE(3) -> user_closes(3) }
  :: atomic { MAY_CLOSE(4) -> user_closes(4) }
  /* A starts again, with or without having closed. What it had is gone. */
  :: atomic {
       life == 1 ->
       vc[1].state = GONE;
       vc[1].peer = 0;
       vc[1].tries = 0;
       vc[1].closed = false;
       life = 2;
       vc[2].state = CONNECTING;
       send(RC, 2, 0)
     }
  /* The only good end. Anything else that cannot go on is an error. */
  :: ALL_GONE && link == 0 && life == 2 -> break
  od
}
