/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slots: the flow control of headers (docs/protocol.md, section 6).
 *
 * One side sends operations that use a Slot each. By RS, or by Send_state on an operation, it learns
 * how many Slots are free. The link loses any frame. It keeps the order of what the sender sends;
 * answers may come late, twice and in any order.
 *
 * What must hold:
 *   - no Slot is overrun: each operation that arrives finds a free one (6.2 to 6.5);
 *   - the sender is never stuck: all operations leave in the end, whatever was lost (6.7, 10.7);
 *   - nothing goes on for ever: there is no cycle among the states.
 *
 * Broken variants, each of which must fail:
 *   BROKEN_LATER  what was sent after the question is not taken off the answer (6.5)
 *   BROKEN_ONCE   an answer counts whenever it comes, and as often (6.5)
 *   BROKEN_RETRY  a question is asked once, whether its answer comes or not (10.7)
 *   BROKEN_FREE   the receiver tells of Slots whose headers its user has not taken (6.4)
 */

#define SLOTS 3
#define OPERATIONS 6 /* that the sender wants to send */
#define QUESTIONS 7  /* that it may ask; the Sync of each is its number */
#define NONE 255

#define OPERATION 0
#define OPERATION_ASKING 1 /* with Send_state */
#define REQUEST_STATE 2

chan there = [OPERATIONS + QUESTIONS] of { byte, byte }; /* what, Sync */
byte back[QUESTIONS]; /* the answer to that Sync: 0: is not on the link; else 1 + the free Slots */
byte losses = 2;      /* frames that the link may yet lose */
byte repeats = 1;     /* answers that it may yet deliver twice */
byte haste = 1;       /* how often the sender may yet ask before an answer can have come */

byte credit = SLOTS, sent = 0, asked = 0;
byte last_credit = SLOTS; /* what the last answer left */
byte open = NONE;         /* the question whose answer counts */
byte since = 0;           /* operations sent since the last question */

byte queued = 0; /* headers that the receiver's user has not taken */

inline operation(what) {
  credit--;
  sent++;
  since++;
  there!what, asked
}

inline question() {
  open = asked;
  asked++;
  since = 0
}

#ifdef BROKEN_LATER
#define NEW_CREDIT(told) told
#else
#define NEW_CREDIT(told) (told > since -> told - since : 0)
#endif
#ifdef BROKEN_ONCE
#define COUNTS(sync) true
#else
#define COUNTS(sync) (sync == open)
#endif
#ifdef BROKEN_FREE
#define FREE SLOTS
#else
#define FREE (SLOTS - queued)
#endif
#ifdef BROKEN_RETRY
#define QUIET (open == NONE && QUIET_LINK)
#else
#define QUIET QUIET_LINK
#endif
#define NO_ANSWERS \
  (back[0] + back[1] + back[2] + back[3] + back[4] + back[5] + back[6] == 0)
#define QUIET_LINK (len(there) == 0 && NO_ANSWERS && queued == 0)

/* An answer on the link arrives, perhaps to come again, or is lost. */
#define ANSWER(sync)                                          \
  atomic {                                                    \
    back[sync] != 0 ->                                        \
    told = back[sync] - 1;                                    \
    if                                                        \
    :: repeats > 0 -> repeats--                               \
    :: back[sync] = 0                                         \
    fi;                                                       \
    if                                                        \
    :: COUNTS(sync) -> credit = NEW_CREDIT(told); last_credit = credit; open = NONE \
    :: !COUNTS(sync)                                          \
    :: back[sync] == 0 && losses > 0 -> losses--              \
    fi;                                                       \
    told = 0                                                  \
  }

active proctype world() {
  byte what, sync, told;
  do
  :: atomic { credit > 0 && sent < OPERATIONS -> operation(OPERATION) }
  /* At half of what it had, it asks along with an operation (6.6). */
  :: atomic {
       credit > 0 && sent < OPERATIONS && credit * 2 <= last_credit + 1 && open == NONE &&
       asked < 2 ->
       operation(OPERATION_ASKING);
       question()
     }
  /* Without credit it asks, and asks again when no answer has come, or one of no credit. */
  :: atomic {
       credit == 0 && sent < OPERATIONS && asked < QUESTIONS && (QUIET || haste > 0) ->
       if
       :: QUIET
       :: !QUIET && haste > 0 -> haste--
       fi;
       there!REQUEST_STATE, asked;
       question()
     }
  :: atomic { len(there) > 0 && losses > 0 -> there?what, sync; losses--; what = 0; sync = 0 }
  :: atomic {
       there?what, sync ->
       if
       :: what != REQUEST_STATE -> assert(queued < SLOTS); queued++
       :: else
       fi;
       if
       :: what != OPERATION -> back[sync] = 1 + FREE
       :: else
       fi;
       what = 0; sync = 0
     }
  :: atomic { queued > 0 -> queued-- }
  :: ANSWER(0)
  :: ANSWER(1)
  :: ANSWER(2)
  :: ANSWER(3)
  :: ANSWER(4)
  :: ANSWER(5)
  :: ANSWER(6)
  :: sent == OPERATIONS && len(there) == 0 && NO_ANSWERS && queued == 0 -> break
  od
}
