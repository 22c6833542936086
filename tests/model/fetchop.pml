/* SPDX-License-Identifier: BSD-3-Clause
 *
 * FetchOp: an operation on a peer's memory that is executed exactly once (docs/protocol.md, 9.14 to
 * 9.19).
 *
 * The Initiator does three Fetch_Increments. The Responder keeps the results of the last two G_num (of
 * the last 64 in the protocol), and as many may be outstanding. The link loses, repeats and reorders
 * frames.
 *
 * What must hold:
 *   - no FetchOp is executed twice, however often it arrives (9.15);
 *   - the Initiator is told the value that its FetchOp found (9.14), and nothing after it gave up;
 *   - where the link loses fewer frames than there are tries, each is executed and told;
 *   - where it loses more (MANY_LOSSES), each ends: told, or given up; nothing goes on for ever.
 *
 * Broken variants, each of which must fail:
 *   BROKEN_RESULT   the result is forgotten once it has been answered (9.15)
 *   BROKEN_CONFIRM  FetchOp_Complete forgets that there was such a FetchOp (9.15)
 *   BROKEN_STALE    a FetchOp far behind the newest is taken for a new one (9.16)
 *   BROKEN_LATE     an answer counts after its FetchOp has ended (9.19)
 */

#define KEPT 2
#define COUNT 3 /* G_num 1 to 3 */
#define TRIES 3
#ifndef REPEATS
#define REPEATS 2
#endif

#ifdef MANY_LOSSES
#define LOSSES 9
#define MAY_FAIL true
#else
#define LOSSES 2
#define MAY_FAIL false
#endif
byte losses = LOSSES, repeats = REPEATS;

/* The link: a set of frames by G_num. An answer carries its value; 0: none is on the link. */
bool fetch[COUNT + 1], confirm[COUNT + 1];
byte answer[COUNT + 1];
#define LINK_EMPTY                                                                        \
  (!fetch[1] && !fetch[2] && !fetch[3] && !confirm[1] && !confirm[2] && !confirm[3] &&    \
   answer[1] + answer[2] + answer[3] == 0)

/* The Initiator. */
#define OPEN 1
#define TOLD 2
#define GIVEN_UP 3
byte state[COUNT + 1], tries[COUNT + 1];
byte begun = 0;

/* The Responder. `memory` counts from 1, so that no value is 0. */
#define NONE 0
#define KNOWN 1
#define CONFIRMED 2
byte memory = 1, newest = 0;
byte kept_number[KEPT], kept_state[KEPT], kept_value[KEPT];
byte executed[COUNT + 1], found[COUNT + 1];

#define AT(g) ((g) % KEPT)
#define IS_KEPT(g) (kept_number[AT(g)] == (g) && kept_state[AT(g)] != NONE)
#ifdef BROKEN_STALE
#define IS_STALE(g) false
#else
#define IS_STALE(g) ((g) + KEPT <= newest)
#endif

inline keep(g, what, value) {
  kept_number[AT(g)] = g;
  kept_state[AT(g)] = what;
  kept_value[AT(g)] = value;
  newest = (g > newest -> g : newest)
}

inline on_fetch(g) {
  if
  :: IS_STALE(g)
  :: !IS_STALE(g) && IS_KEPT(g) && kept_state[AT(g)] == KNOWN -> answer[g] = kept_value[AT(g)]
  :: !IS_STALE(g) && IS_KEPT(g) && kept_state[AT(g)] == CONFIRMED
  :: !IS_STALE(g) && !IS_KEPT(g) ->
     executed[g]++;
     assert(executed[g] == 1);
     found[g] = memory;
     answer[g] = memory;
#ifndef BROKEN_RESULT
     keep(g, KNOWN, memory);
#endif
     memory++
  fi
}

inline on_confirm(g) {
  if
  :: IS_STALE(g)
  :: else ->
#ifdef BROKEN_CONFIRM
     keep(g, NONE, 0)
#else
     keep(g, CONFIRMED, 0)
#endif
  fi
}

inline on_answer(g, value) {
  if
#ifdef BROKEN_LATE
  :: true ->
#else
  :: state[g] == OPEN ->
#endif
     assert(state[g] == OPEN && value == found[g] && executed[g] == 1);
     state[g] = TOLD;
     confirm[g] = true
#ifndef BROKEN_LATE
  :: else
#endif
  fi
}

#define TAKE(frame) if :: repeats > 0 -> repeats-- :: frame = 0 fi
#define LOST(frame) atomic { frame != 0 && losses > 0 -> frame = 0; losses-- }

#define OPERATION(g)                                                                        \
  atomic { fetch[g] -> TAKE(fetch[g]); on_fetch(g) }                                        \
  :: atomic { confirm[g] -> TAKE(confirm[g]); on_confirm(g) }                               \
  :: atomic { answer[g] != 0 -> value = answer[g]; TAKE(answer[g]); on_answer(g, value); value = 0 } \
  :: LOST(fetch[g])                                                                         \
  :: LOST(confirm[g])                                                                       \
  :: LOST(answer[g])                                                                        \
  :: atomic { MAY_REPEAT(g) -> tries[g]++; fetch[g] = true }                                \
  :: atomic {                                                                               \
       state[g] == OPEN && tries[g] == TRIES && LINK_EMPTY ->                               \
       state[g] = GIVEN_UP;                                                                 \
       confirm[g] = true                                                                    \
     }

/* A timer fires when nothing of it is on the link; the first time, perhaps earlier. */
#define MAY_REPEAT(g) \
  (state[g] == OPEN && tries[g] < TRIES && ((!fetch[g] && answer[g] == 0) || tries[g] == 0))

#define ENDED(g) (state[g] > OPEN)

active proctype world() {
  byte value;
  do
  :: atomic {
       begun < COUNT && (begun < KEPT || ENDED(begun + 1 - KEPT)) ->
       begun++;
       state[begun] = OPEN;
       fetch[begun] = true
     }
  :: OPERATION(1)
  :: OPERATION(2)
  :: OPERATION(3)
  :: LINK_EMPTY && ENDED(1) && ENDED(2) && ENDED(3) ->
     assert(MAY_FAIL || (state[1] == TOLD && state[2] == TOLD && state[3] == TOLD));
     break
  od
}
