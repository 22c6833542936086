/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A Write with recovery (docs/protocol.md, sections 8, 9 and 10).
 *
 * One Transfer of two Blocks, of two STUs each. The link loses, repeats and reorders frames. Either
 * side may give up after its tries, and says so by END.
 *
 * What must hold:
 *   - no Block is told twice (8.9), and none before all its bytes have been placed (8.8);
 *   - what is told to be there is what the Initiator wrote: it may change a Block's bytes once it has
 *     been told that B_seq passed it (9.7), and even where a late CTS makes it send these, nothing of
 *     that reaches the Responder's memory;
 *   - "done" at the Initiator means that all Blocks were told at the Responder (9.6, 10.1);
 *   - where the link loses fewer frames than there are tries, both sides are done;
 *   - where it loses more (MANY_LOSSES), both sides end: done, or with an error (10.1, 10.11);
 *   - nothing goes on for ever: there is no cycle among the states.
 *
 * Broken variants, each of which must fail:
 *   BROKEN_COUNT    STUs are counted instead of noted by number (8.8, 8.10)
 *   BROKEN_AGAIN    STUs of a complete Block are taken again (8.10)
 *   BROKEN_RECOVERY nobody asks for what was lost (10.3)
 *   BROKEN_BSEQ     RSR tells of the newest complete Block, with a gap before it (9.6)
 */

#define BLOCKS 2
#define STUS 2
#ifndef REPEATS
#define REPEATS 1
#endif
#ifdef MANY_LOSSES
#define LOSSES 20
#define MAY_FAIL true
#else
#define LOSSES 2
#define MAY_FAIL false
#endif

byte losses = LOSSES, repeats = REPEATS;

/* The link: a set of frames. DATA carries whether its bytes are those that the Transfer is about, or
 * what its writer put there later. */
bool rts, end_there, ended_back;
bool cts[BLOCKS], cts_rest[BLOCKS]; /* F_Offset: from the start, from STU 1 */
bool data[BLOCKS * STUS], stale[BLOCKS * STUS];
bool rs;
bool rsr[BLOCKS + 1]; /* by B_seq */

#define LINK_EMPTY                                                                   \
  (!rts && !end_there && !ended_back && !cts[0] && !cts[1] && !cts_rest[0] && !cts_rest[1] && \
   !data[0] && !data[1] && !data[2] && !data[3] && !stale[0] && !stale[1] && !stale[2] &&     \
   !stale[3] && !rs && !rsr[0] && !rsr[1] && !rsr[2])

/* Either side. */
#define NONE 0
#define ACTIVE 1
#define DONE 2
#define FAILED 3
byte writer = NONE, reader = NONE;
byte rts_tries = 2, rs_tries = 2; /* the Initiator's */
byte cts_tries = 3;               /* the Responder's */
byte b_seq = 0;                   /* as the Initiator knows it */
bool offered = false;             /* a CTS has come: RTS need not be repeated */

bool placed[BLOCKS * STUS], complete[BLOCKS], granted[BLOCKS];
byte count[BLOCKS], told[BLOCKS];

#ifdef BROKEN_BSEQ
#define B_SEQ (complete[1] -> 2 : (complete[0] -> 1 : 0))
#else
#define B_SEQ (complete[0] -> (complete[1] -> 2 : 1) : 0)
#endif

inline send_stu(n) {
  if
  :: b_seq > n / STUS -> stale[n] = true
  :: else -> data[n] = true
  fi
}

inline grant(b) {
  granted[b] = true;
  if
  :: placed[b * STUS] -> cts_rest[b] = true
  :: else -> cts[b] = true
  fi
}

bool changed = false; /* the bytes that arrive are not those of the Transfer any more */

#ifdef BROKEN_AGAIN
#define TAKEN(n) (true)
#else
#ifdef BROKEN_COUNT
#define TAKEN(n) (!complete[(n) / STUS])
#else
#define TAKEN(n) (!complete[(n) / STUS] && !placed[n])
#endif
#endif
#ifdef BROKEN_COUNT
#define WHOLE(b) (count[b] == STUS)
#else
#define WHOLE(b) (placed[(b) * STUS] && placed[(b) * STUS + 1])
#endif

inline place(n) {
  if
  :: reader == ACTIVE && granted[n / STUS] && TAKEN(n) ->
     assert(!changed);
     placed[n] = true;
     count[n / STUS]++;
     if
     :: WHOLE(n / STUS) ->
        complete[n / STUS] = true;
        told[n / STUS]++;
        assert(told[n / STUS] == 1);
        assert(placed[(n / STUS) * STUS] && placed[(n / STUS) * STUS + 1]);
        rsr[B_SEQ] = true;
        if
        :: complete[0] && complete[1] -> reader = DONE
        :: else
        fi
     :: else
     fi
  :: else ->
     /* Known already: the asker may have lost the answer (6.16). */
     if
     :: reader != NONE && complete[n / STUS] -> rsr[B_SEQ] = true
     :: else
     fi
  fi
}

inline hear_b_seq(s) {
  if
  :: writer == ACTIVE ->
     b_seq = (s > b_seq -> s : b_seq);
     if
     :: b_seq == BLOCKS -> assert(told[0] == 1 && told[1] == 1); writer = DONE
     :: else
     fi
  :: else
  fi
}

/* The frame is taken from the link, or stays to come again. */
#define TAKE(frame) if :: repeats > 0 -> repeats-- :: frame = false fi
/* A frame comes, or is lost. */
#define ARRIVES(frame, action)                            \
  atomic { frame -> TAKE(frame); action }                 \
  :: atomic { frame && losses > 0 -> frame = false; losses-- }

#define DATA_ARRIVES(n)                                                          \
  ARRIVES(data[n], place(n))                                                     \
  :: atomic { stale[n] -> stale[n] = false; changed = true; place(n); changed = false }

inline send_block(b, first) {
  offered = true;
  if
  :: writer != FAILED ->
     if
     :: first == 0 -> send_stu(b * STUS)
     :: else
     fi;
     send_stu(b * STUS + 1)
  :: else
  fi
}

inline begin_reader() {
  if
  :: reader == NONE -> reader = ACTIVE; grant(0); grant(1)
  :: reader == ACTIVE && cts_tries > 0 && !complete[0] -> grant(0)
  :: else
  fi
}

inline answer_state() {
  if
  :: reader == ACTIVE || reader == DONE -> rsr[B_SEQ] = true
  :: else
  fi
}

#ifdef BROKEN_RECOVERY
#define RECOVERS false
#else
#define RECOVERS (reader == ACTIVE && cts_tries > 0)
#endif

/* Nothing on the link: what a timer does for which nothing came. A timer that fires early repeats what
 * is on its way, which a link that repeats frames does as well. */
active proctype world() {
  atomic { writer = ACTIVE; rts = true };
  do
  :: ARRIVES(rts, begin_reader())
  :: ARRIVES(cts[0], send_block(0, 0))
  :: ARRIVES(cts[1], send_block(1, 0))
  :: ARRIVES(cts_rest[0], send_block(0, 1))
  :: ARRIVES(cts_rest[1], send_block(1, 1))
  :: DATA_ARRIVES(0)
  :: DATA_ARRIVES(1)
  :: DATA_ARRIVES(2)
  :: DATA_ARRIVES(3)
  :: ARRIVES(rs, answer_state())
  :: ARRIVES(rsr[0], hear_b_seq(0))
  :: ARRIVES(rsr[1], hear_b_seq(1))
  :: ARRIVES(rsr[2], hear_b_seq(2))
  /* The Initiator: RTS again; RS once all has been offered; then it gives up. */
  :: atomic { writer == ACTIVE && !offered && LINK_EMPTY && rts_tries > 0 -> rts_tries--; rts = true }
  :: atomic {
       writer == ACTIVE && offered && LINK_EMPTY && rs_tries > 0 && !RECOVERS ->
       rs_tries--;
       rs = true
     }
  :: atomic {
       writer == ACTIVE && LINK_EMPTY && !RECOVERS && (offered -> rs_tries == 0 : rts_tries == 0) ->
       writer = FAILED;
       end_there = true
     }
  /* The Responder: the CTS of the first Block that lacks something; then it gives up. */
  :: atomic {
       RECOVERS && LINK_EMPTY ->
       cts_tries--;
       if
       :: !complete[0] -> grant(0)
       :: complete[0] -> grant(1)
       fi
     }
  :: atomic {
       reader == ACTIVE && LINK_EMPTY && cts_tries == 0 ->
       reader = FAILED;
       ended_back = true
     }
  /* END is repeated until EA comes: only its effect is shown here. */
  :: atomic { end_there -> end_there = false; reader = (reader == ACTIVE -> FAILED : reader) }
  :: atomic { ended_back -> ended_back = false; writer = (writer == ACTIVE -> FAILED : writer) }
  :: LINK_EMPTY && writer > ACTIVE && reader != ACTIVE ->
     assert(MAY_FAIL || (writer == DONE && reader == DONE));
     break
  od
}
