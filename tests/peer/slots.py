# SPDX-License-Identifier: BSD-3-Clause
"""Slots and state: section 6."""
import time

from connections import demand
from conversation import conversation, pattern
from station import Failed
from wire import NONE


def slots(*rules, **wants):
    return conversation("slots", *rules, **wants)


@slots("6.1", "6.3")
def credit_waits(t):
    vc = t.up(sizes=dict(slots=3))
    vc.answers_rs = False
    for i in range(6):
        t.tx("NOP", b_num=i)
    for i in range(3):
        vc.expect("NOP", b_num=i, skip=("RS",))
    # From now on only RSs arrive.
    until = time.monotonic() + 0.2
    question = None
    while time.monotonic() < until or question is None:
        frame = vc.take(0.05)
        if frame is None:
            continue
        demand(frame.op == "RS", f"6.3 {frame} without credit")
        question = frame
    # NOP 2 was sent after that RS: two of three Slots are left.
    vc.send("RSR", R_Slots=3, Sync=question.Sync, B_num=NONE, I_id=NONE)
    vc.expect("NOP", b_num=3, skip=("RS",))
    vc.expect("NOP", b_num=4, skip=("RS",))
    vc.ask(skip=("RS",))
    vc.answers_rs = True
    vc.expect("NOP", b_num=5, skip=("RS",))


@slots("6.5")
def credit_unasked(t):
    vc = t.up(sizes=dict(slots=1))
    vc.answers_rs = False
    for i in range(3):
        t.tx("NOP", b_num=i)
    vc.expect("NOP", b_num=0, skip=("RS",))
    vc.send("RSR", R_Slots=60, Sync=0xDEAD, B_num=NONE, I_id=NONE)  # nobody asked so
    vc.ask(skip=("RS",))
    vc.answers_rs = True
    vc.expect("NOP", b_num=1, skip=("RS", "RSR"))
    vc.expect("NOP", b_num=2, skip=("RS", "RSR"))


@slots("6.5")
def credit_counts_once(t):
    vc = t.up(sizes=dict(slots=1))
    vc.answers_rs = False
    for i in range(4):
        t.tx("NOP", b_num=i)
    vc.expect("NOP", b_num=0, skip=("RS",))
    question = vc.expect("RS")
    for _ in range(3):
        vc.send("RSR", R_Slots=1, Sync=question.Sync, B_num=NONE, I_id=NONE)
    vc.expect("NOP", b_num=1, skip=("RS",))
    vc.ask(skip=("RS",))
    vc.answers_rs = True
    vc.expect("NOP", b_num=2, skip=("RS",))
    vc.expect("NOP", b_num=3, skip=("RS",))


@slots("6.6")
def asks_early(t):
    vc = t.up(sizes=dict(slots=8))
    vc.answers_rs = False
    for i in range(4):
        t.tx("NOP", b_num=i)
    for i in range(4):
        vc.expect("NOP", b_num=i, skip=("RS",))
    demand(vc.expect("RS").R_id == NONE, "6.10 its own RS names no Transfer")
    vc.answers_rs = True
    vc.ask(skip=("RS",))


@slots("6.7")
def asks_again(t):
    vc = t.up(sizes=dict(slots=1))
    vc.answers_rs = False
    t.tx("NOP", b_num=0)
    t.tx("NOP", b_num=1)
    vc.expect("NOP", b_num=0, skip=("RS",))
    begin = time.monotonic()
    seen = set()
    while len(seen) < 6:
        question = vc.expect("RS")
        if question.Sync not in seen:
            vc.send("RSR", R_Slots=0, Sync=question.Sync, B_num=NONE, I_id=NONE)
        seen.add(question.Sync)
    demand(time.monotonic() - begin > 0.005, "6.7 questions without a pause")
    vc.answers_rs = True
    vc.expect("NOP", b_num=1, skip=("RS",))


@slots("6.3", "6.10")
def own_rs_not_told(t):
    vc = t.up(sizes=dict(slots=2))
    for i in range(6):
        t.tx("NOP", b_num=i)
        vc.expect("NOP", b_num=i)
    t.rx_none()
    t.tx("RS", Sync=77, B_num=NONE, R_id=NONE, I_id=0)
    t.rx("RSR", Sync=77)


@slots("6.4", "6.12")
def rs_slots(t):
    vc = t.up(slots=16)
    state = vc.ask(B_num=5)
    demand((state.R_Slots, state.B_num, state.I_id, state.R_id, state.B_seq) == (16, 5, NONE, 0, 0), f"{state}")
    for i in range(3):
        vc.send("NOP")
        demand(vc.ask().R_Slots == 15 - i, "6.4 Slots")
    for _ in range(3):
        t.rx("NOP")
    demand(vc.ask().R_Slots == 16, "6.4 Slots after reading")


@slots("6.14")
def rs_unknown(t):
    vc = t.up()
    vc.send("RS", Sync=3, B_num=1, R_id=0x999, I_id=0x55)
    no = vc.expect("RSR", flags=("Reject",), Sync=3)
    demand((no.I_id, no.R_id, no.B_seq, no.B_num) == (0x55, 0x999, 0, 1), f"{no}")


@slots("6.13")
def rs_no_block(t):
    vc = t.up()
    cts = t.cts(vc, 100)
    for b_seq in (0, 1):
        vc.send("RS", Sync=3, B_num=NONE, R_id=cts.R_id, I_id=cts.I_id)
        state = vc.expect("RSR", flags=(), Sync=3)
        demand((state.B_seq, state.B_num, state.I_id, state.R_id) == (b_seq, NONE, 7, 9), f"{state}")
        if b_seq == 0:
            vc.block(cts, pattern(100))


@slots("6.13")
def rs_block(t):
    vc = t.up()
    cts = t.cts(vc, 100)
    demand(vc.ask(B_num=0, R_id=9, I_id=7).B_num == NONE, "6.13 a Block that is not complete")
    vc.block(cts, pattern(100))
    state = vc.ask(B_num=0, R_id=9, I_id=7)
    demand((state.B_seq, state.B_num) == (1, 0), f"{state}")


@slots("6.8", "6.2")
def overrun(t):
    vc = t.up(slots=4)
    for i in range(6):
        vc.send("NOP", b_num=i)
    demand(vc.ask().R_Slots == 0, "6.4 Slots of a full queue")
    for i in range(4):
        t.rx("NOP", b_num=i)
    t.rx_none()
    demand(vc.ask().R_Slots == 4, "6.4 Slots of an empty queue")


@slots("6.9")
def block_without_slot(t):
    vc = t.up(slots=2)
    cts = t.cts(vc, 1500)
    vc.send("NOP")
    vc.send("NOP")
    vc.block(cts, pattern(1500), "Send_state")
    state = vc.ask(R_id=9, I_id=7, B_num=0)
    demand(state.B_seq == 0 and state.B_num == NONE, f"6.9 complete without a Slot: {state}")
    t.untouched(1024, 476)
    t.rx("NOP")
    t.rx("NOP")
    sync = vc.block(cts, pattern(1500), "Send_state", f_offset=1024)
    vc.expect("RSR", Sync=sync, B_seq=1, B_num=0)
    t.rx("DATA")
    t.same(0, pattern(1500))


@slots("6.2", "6.15")
def silent_needs_none(t):
    vc = t.up(slots=1)
    cts = t.cts(vc, 100)
    vc.send("NOP")
    sync = vc.block(cts, pattern(100), "Send_state", "Silent", each=())
    vc.expect("RSR", Sync=sync, B_seq=1, R_Slots=0)
    t.rx("NOP")
    t.rx_none()


@slots("6.12", "6.13")
def send_state_nop(t):
    vc = t.up()
    vc.send("NOP", "Send_state", sync=0x4242)
    state = vc.expect("RSR", Sync=0x4242)
    demand((state.R_Slots, state.B_num, state.I_id, state.R_id, state.B_seq) == (63, NONE, NONE, 0, 0), f"{state}")


@slots("6.12")
def send_state_rts(t):
    vc = t.up()
    vc.send("RTS", "Send_state", CTS_req=1, Max_Block=16, T_len=0x1234500000010, RTR_id=NONE, I_id=1)
    vc.expect("RSR", Sync=0x12345, I_id=NONE, B_num=NONE)
    vc.send("CTS", "Send_state", Blocksize=10, F_Offset=0x77, I_id=4, R_id=5)
    vc.expect("RSR", Sync=0x77, I_id=NONE)
    vc.send("END", "Send_state", R_id=NONE, I_id=1)
    vc.expect("RSR", Sync=0, I_id=NONE)


@slots("6.12", "9.13")
def send_state_get(t):
    vc = t.up()
    mra = t.region(vc)
    vc.send("GET", "Send_state", Length=16, I_Mx=1, R_Bufx=mra.R_Bufx, I_Bufx=5, R_id=9, G_num=1)
    vc.expect("DATA", B_num=1)
    vc.quiet()


@slots("6.15")
def send_state_hole(t):
    vc = t.up()
    cts = t.cts(vc, 3000)
    sync = vc.block(cts, pattern(3000), "Send_state", skip=(1,))
    vc.quiet()
    vc.block(cts, pattern(3000), skip=(0, 2), sync=sync + 1)
    state = vc.expect("RSR")
    demand((state.Sync, state.B_seq, state.B_num) == (sync, 1, 0), f"6.15 {state}")
    t.rx("DATA")
    t.same(0, pattern(3000))


@slots("6.13", "6.15", "9.6")
def send_state_behind_hole(t):
    vc = t.up()
    first = t.cts(vc, 3000, blocksize=10)
    second = t.cts(vc, 3000, blocksize=10, b_num=1, offset=1024, rts=False)
    sync = vc.block(second, pattern(1024, 1), "Send_state")
    state = vc.expect("RSR", Sync=sync)
    demand((state.B_seq, state.B_num) == (0, 1), f"{state}")
    sync = vc.block(first, pattern(1024), "Send_state")
    state = vc.expect("RSR", Sync=sync)
    demand((state.B_seq, state.B_num) == (2, 0), f"{state}")


@slots("6.16", "8.10")
def send_state_duplicate(t):
    vc = t.up()
    cts = t.cts(vc, 1500)
    for i in range(3):
        sync = vc.block(cts, pattern(1500) if i == 0 else bytes(1500), "Send_state")
        vc.expect("RSR", Sync=sync, B_seq=1, B_num=0)
    t.rx("DATA")
    t.rx_none()
    t.same(0, pattern(1500))


@slots("6.11")
def rsr_room(t):
    vc = t.up(slots=2)
    vc.send("NOP")
    vc.send("NOP")
    for i in range(8):
        vc.send("RSR", R_Slots=9, Sync=i, B_num=NONE, I_id=1, R_id=2)
    vc.quiet()
    t.rx("NOP")
    t.rx("NOP")
    for i in range(8):
        t.rx("RSR", Sync=i)


@slots("6.3")
def order_kept(t):
    vc = t.up(sizes=dict(slots=2))
    t.fill(pattern(100))
    for i in range(5):
        t.tx("NOP", b_num=i)
    t.tx("DATA", "Silent", R_Mx=3, R_Bufx=1, R_id=5, length=100)  # needs no Slot, waits all the same
    for i in range(5):
        vc.expect("NOP", b_num=i)
    vc.expect("DATA")


@slots("6.17")
def interrupt_told(t):
    vc = t.up()
    t.side.begin("rx", 10000)
    time.sleep(0.05)
    begin = time.monotonic()
    vc.send("NOP", "Interrupt", b_num=9)
    told = t.side.answer()
    demand(told != "none" and time.monotonic() - begin < 5, f"6.17 {told}")


@slots("6.5", "10.1")
def lossy_credit(t):
    """While a third of all frames is lost, each NOP arrives at most once and in order; credit recovers."""
    vc = t.up(sizes=dict(slots=4))
    vc.wire.random.seed(7)
    vc.wire.loss = 0.3
    for i in range(60):
        t.tx("NOP", b_num=i)
    last = -1
    until = time.monotonic() + 20
    while last < 59 and time.monotonic() < until:
        frame = vc.take(0.5)
        if frame is None:
            if last >= 50:
                break
            continue
        if frame.op != "NOP":
            continue
        demand(frame.b_num > last, f"NOP {frame.b_num} after {last}")
        last = frame.b_num
    vc.wire.loss = 0
    while vc.take(1.5) is not None:  # what is queued still has to find Slots, or the end waits for them
        pass
    if last < 45:
        raise Failed(f"credit is never found again: NOP {last} was the last; what befell the VC: "
                     f"{t.side.do('event', 0)}")
