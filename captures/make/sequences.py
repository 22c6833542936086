# SPDX-License-Identifier: BSD-3-Clause
"""Every sequence, refusal and recovery, as it should be."""
from catalogue import trace
from frames import NONE, pattern
from talk import MILLISECOND, SECOND, Talk


def talk():
    return Talk().connect()


# --- connections -----------------------------------------------------------------------------------
@trace("RC, CA; RD, DA, DC: a connection's whole life")
def connect():
    t = talk()
    t.wait(MILLISECOND).disconnect()
    return t


@trace("an RC for a UPort without a listener: CA with Reject")
def connect_refused():
    t = Talk()
    t.rc(R_UPort=4000)
    t.ca_reject(R_UPort=4000)
    return t


@trace("B's listener goes, and comes back: the second of three RC is refused")
def listener_goes():
    t = Talk()
    for port in (101, 102, 103):
        t.A.port, t.A.key = port, t.A.key + 1
        t.B.port, t.B.key = 101 + port, t.B.key + 1
        t.rc()
        if port == 102:
            t.ca_reject()
        else:
            t.ca()
            t.disconnect()
        t.wait(MILLISECOND)
    return t


@trace("RC and CA with option payloads: words between the users")
def connect_options():
    t = Talk()
    t.rc(payload=pattern(32))
    t.ca(payload=pattern(32, 100))
    t.disconnect()
    return t


@trace("a user refuses, with an option payload that says why; the RC comes again, and the refusal")
def connect_refused_by_user():
    t = Talk()
    for _ in range(2):
        t.rc()
        t.ca_reject(payload=pattern(32, 100))
        t.wait(10 * MILLISECOND - 40_000)
    return t


@trace("two RC that nobody answers, after 10 and 20 ms again; the third is")
def connect_retried():
    t = Talk()
    for pause in (10, 20):
        t.rc()
        t.wait(pause * MILLISECOND - 20_000)
    t.rc()
    t.ca()
    t.disconnect()
    return t


@trace("the CA is lost behind the capture: its RC comes again and is answered with the same CA")
def ca_lost():
    t = talk()
    t.wait(10 * MILLISECOND - 40_000)
    t.rc()
    t.ca()
    t.disconnect()
    return t


@trace("A has restarted and gives its Port to a new connection; what B says there overtakes its CA")
def restarted():
    t = Talk().connect()
    t.wait(10 * MILLISECOND)
    t.A.key, t.B.port, t.B.key = 0xC1C1C1C1, 203, 0xC2C2C2C2
    t.rc()
    t.b("NOP")
    t.ca()
    t.a("NOP")
    t.disconnect()
    return t


@trace("eight RC, intervals doubling, and nobody there", play="-")
def connect_unanswered():
    t = Talk()
    for i in range(8):
        t.rc()
        t.wait(min(10 * MILLISECOND << i, SECOND) - 20_000)
    return t


@trace("both send RD at once; both answer")
def disconnect_crossed():
    t = talk()
    t.wait(MILLISECOND)
    t.b("RD")
    t.a("RD")
    t.b("DA")
    t.a("DA")
    t.b("DC")
    t.a("DC")
    return t


@trace("B's DA is lost behind the capture: the RD comes again and is answered again")
def disconnect_retried():
    t = talk()
    t.wait(MILLISECOND)
    t.a("RD")
    t.b("DA")
    t.wait(180_000)
    t.a("RD")
    t.b("DA")
    t.a("DC")
    return t


@trace("B ends the connection and says why, in the option payload of its RD")
def disconnect_says_why():
    t = talk()
    t.wait(MILLISECOND)
    t.b("RD", payload=b"enough".ljust(32, b"\0"))
    t.a("DA")
    t.b("DC")
    return t


@trace("A's RD meets DATA of B that is on its way")
def disconnect_meets_data():
    t = talk()
    t.b("RTS", CTS_req=1, Max_Block=16, T_len=1500, RTR_I_id=NONE, I_id=7)
    t.a("CTS", Blocksize=16, R_Mx=3, R_Bufx=0x200, I_id=7, R_id=9)
    t.a("RD")
    t.block(1500, bufx=0x200, sender=t.B)
    t.b("DA")
    t.a("DC")
    return t


@trace("B gives up, as nobody answers its eight RS; A comes back and finds no answer but to RD")
def given_up():
    t = talk()
    t.wait(2 * SECOND)
    for i in range(8):
        t.b("RS", Sync=0x61, B_num=NONE, R_id=NONE)
        t.wait(10 * MILLISECOND << i)
    t.wait(SECOND)
    t.a("NOP", "Send_state", sync=0x62)
    t.wait(100 * MILLISECOND)
    t.disconnect()
    return t


@trace("two RTS of one I_id differ; B's CTS was on its way when the second came", check="id-in-use")
def write_offer_changed():
    t = talk()
    t.rts(180)
    t.rts(5000)
    t.cts()
    t.block(180)
    t.rsr()
    t.disconnect()
    return t


@trace("an RD with the right D_Key and another I_Key: it is answered, as the receiver's own Key proves who asks",
       check="wrong-key")
def disconnect_other_key():
    t = talk()
    t.a("RD", I_Key=0xDEADBEEF)
    t.b("DA")
    t.a("DC")
    return t


@trace("RD for a connection that is gone: answered from its own fields")
def disconnect_gone():
    t = talk()
    t.wait(MILLISECOND).disconnect()
    t.wait(20 * MILLISECOND)
    t.a("RD")
    t.b("DA")
    return t


@trace("a CA that nobody waits for any more: ended at once by RD", play="-")
def ghost_answer():
    t = Talk()
    t.rc()
    t.wait(5 * SECOND)
    t.ca()
    t.disconnect()
    return t


@trace("a CA with a Key that no RC gave: A ends by RD, made of its fields, what it holds for a ghost",
       check="ca-key", play="-")
def ghost_wrong_key():
    t = Talk()
    t.rc()
    own = t.A.key
    t.ca(d_key=0x12345678)
    t.A.key = 0x12345678
    t.disconnect()
    t.A.key = own
    t.ca()
    t.a("NOP")
    t.disconnect()
    return t


@trace("A has restarted while its RC was answered: the CA is a ghost's, and ended", play="-")
def ghost_of_another_life():
    t = Talk()
    t.rc()
    t.A.key, before = 0xC1C1C1C1, t.A.key
    t.rc()
    t.ca(d_key=before)
    t.A.key, now = before, t.A.key
    t.disconnect()
    t.A.key, t.B.port, t.B.key = now, 203, 0xC2C2C2C2
    t.ca()
    t.disconnect()
    return t


@trace("2 s of silence: A asks whether B lives")
def keep_alive():
    t = talk()
    t.wait(SECOND)
    t.a("NOP", param=1)
    t.wait(SECOND + 980 * MILLISECOND)
    t.a("RS", Sync=0x77, B_num=NONE, R_id=NONE)
    t.b("RSR", R_Slots=63, Sync=0x77, B_num=NONE, I_id=NONE)
    t.disconnect()
    return t


@trace("two connections of the same stations, their frames mixed")
def two_connections():
    t = talk()
    first = (t.A.port, t.A.key, t.B.port, t.B.key)
    t.A.port, t.A.key, t.B.port, t.B.key = 102, 0xA2A2A2A2, 203, 0xB3B3B3B3
    t.connect()
    second = (t.A.port, t.A.key, t.B.port, t.B.key)
    for number, names in enumerate((first, second, first, second)):
        t.A.port, t.A.key, t.B.port, t.B.key = names
        t.a("NOP", param=number)
    for names in (first, second):
        t.A.port, t.A.key, t.B.port, t.B.key = names
        t.disconnect()
    return t


# --- Slots -----------------------------------------------------------------------------------------
@trace("a NOP with Send_state: RSR tells the Slots beside it")
def send_state():
    t = talk()
    t.a("NOP", "Send_state", sync=0x99)
    t.b("RSR", R_Slots=64, Sync=0x99, B_num=NONE, I_id=NONE)
    t.disconnect()
    return t


@trace("B has two Slots: A spends them, asks, and gets new credit", play="same")
def slots_spent():
    t = Talk()
    t.B.slots = 2
    t.connect()
    t.a("NOP", param=1)
    t.a("NOP", param=2)
    t.a("RS", Sync=0x31, B_num=NONE, R_id=NONE)
    t.b("RSR", R_Slots=2, Sync=0x31, B_num=NONE, I_id=NONE)
    t.a("NOP", param=3)
    t.disconnect()
    return t


@trace("B has no free Slot for a Block: its last STU is dropped; RS shows it, and a repeat completes it",
       check="no-credit")
def slots_overrun():
    t = Talk()
    t.B.slots = 2
    t.connect()
    t.rts(2000)
    t.cts()
    t.a("NOP")
    t.block(2000)
    t.wait(MILLISECOND)
    t.a("RS", Sync=0x52, B_num=NONE, R_id=9, I_id=7)
    t.b("RSR", R_Slots=0, B_seq=0, Sync=0x52, B_num=NONE, I_id=7, R_id=9)
    t.wait(MILLISECOND)
    t.a("RS", Sync=0x53, B_num=NONE, R_id=NONE)
    t.b("RSR", R_Slots=2, Sync=0x53, B_num=NONE, I_id=NONE)
    t.cts(F_Offset=1024)
    t.block(2000, only=(1,), Sync=0x54)
    t.rsr(R_Slots=1, Sync=0x54)
    t.disconnect()
    return t


@trace("a NOP with an option payload, another with Interrupt")
def no_operation():
    t = talk()
    t.a("NOP", param=5, mx=6, bufx=7, offset=8, sync=9, b_num=10, d_id=11, s_id=12,
        payload=pattern(32))
    t.a("NOP", "Interrupt")
    t.b("NOP", param=1)
    t.disconnect()
    return t


# --- Write -----------------------------------------------------------------------------------------
def written(length=3000, **cts):
    t = talk()
    t.rts(length)
    t.cts(**cts)
    return t


@trace("Write of one Block: RTS, CTS, three STUs, RSR")
def write():
    t = written()
    t.block(3000)
    t.rsr()
    t.disconnect()
    return t


@trace("the example of rule 8.2: 3000 bytes to Bufx 7, Offset 900, across a buffer's end")
def write_tiling():
    t = Talk()
    t.B.bufsize = 11
    t.connect()
    t.rts(3000)
    t.cts(bufx=7, offset=900)
    t.block(3000, 7, 900)
    t.rsr()
    t.disconnect()
    return t


@trace("Write of three Blocks, two CTS outstanding")
def write_blocks():
    t = talk()
    t.rts(2500, CTS_req=2, Max_Block=10)
    t.cts(0, Blocksize=10)
    t.cts(1, bufx=0x110, Blocksize=10)
    t.block(1024, B_num=0, Sync=0x51)
    t.rsr(1)
    t.cts(2, bufx=0x120, Blocksize=10)
    t.block(1024, bufx=0x110, B_num=1, Sync=0x52, source=1024)
    t.rsr(2, Sync=0x52)
    t.block(452, bufx=0x120, B_num=2, Sync=0x53, source=2048)
    t.rsr(3, Sync=0x53)
    t.disconnect()
    return t


@trace("Block 1 of a Write is complete before Block 0 is, and both are asked about")
def write_asked_ahead():
    t = talk()
    t.rts(2048, CTS_req=2, Max_Block=10)
    t.cts(0, Blocksize=10)
    t.cts(1, bufx=0x110, Blocksize=10)
    t.block(1024, bufx=0x110, B_num=1, Sync=0x52, source=1024)
    t.rsr(0, Sync=0x52, B_num=1)
    t.a("RS", Sync=0x61, B_num=0, R_id=9, I_id=7)
    t.rsr(0, Sync=0x61, B_num=NONE)
    t.block(1024, B_num=0, Sync=0x51)
    t.rsr(2, B_num=0)
    t.disconnect()
    return t


@trace("Write of no bytes: one empty STU with Last, in 802.3 + SNAP")
def write_empty():
    t = written(0)
    t.block(0)
    t.rsr()
    t.disconnect()
    return t


@trace("Write of 3 bytes: an STU too short for Ethernet II")
def write_short():
    t = written(3)
    t.block(3)
    t.rsr()
    t.disconnect()
    return t


@trace("a Block with an append behind its last STU, Order and Interrupt")
def write_append():
    t = written(2000)
    t.block(2000, flags=("Send_state", "Interrupt"), all_flags=("Order",), append=pattern(64, 9))
    t.rsr()
    t.disconnect()
    return t


@trace("a Silent Block: no Slot, no header; the writer asks by RS")
def write_silent():
    t = written(2000)
    t.block(2000, flags=(), all_flags=("Silent",))
    t.a("RS", Sync=0x61, B_num=0, R_id=9, I_id=7)
    t.b("RSR", R_Slots=64, B_seq=1, Sync=0x61, B_num=0, I_id=7, R_id=9)
    t.disconnect()
    return t


@trace("an RTS refused: RA with Reject")
def write_refused():
    t = talk()
    t.rts(3000)
    t.b("RA", "Reject", I_id=7)
    t.disconnect()
    return t


@trace("an offer that waits: RA now, CTS 5 ms later")
def write_waits():
    t = talk()
    t.rts(3000)
    t.b("RA", I_id=7, R_id=9)
    t.wait(5 * MILLISECOND)
    t.cts()
    t.block(3000)
    t.rsr()
    t.disconnect()
    return t


@trace("the RTS is lost behind the capture and comes again")
def write_rts_retried():
    t = talk()
    t.rts(1000)
    t.wait(10 * MILLISECOND)
    t.rts(1000)
    t.cts()
    t.block(1000)
    t.rsr()
    t.disconnect()
    return t


@trace("STU 1 is lost: the CTS comes again with F_Offset, the Block's tail is repeated")
def write_stu_lost():
    t = written()
    t.block(3000, skip=(1,))
    t.wait(2 * MILLISECOND)
    t.cts(F_Offset=1024)
    t.block(3000, only=(1, 2))
    t.rsr()  # for the Block, which is complete
    t.rsr()  # for STU 2, which came again and asks again
    t.disconnect()
    return t


@trace("all DATA is lost behind the capture: the CTS comes again, and all of the Block")
def write_block_repeated():
    t = written()
    t.block(3000)
    t.rsr()
    t.wait(2 * MILLISECOND)
    t.block(3000)
    t.rsr()
    t.disconnect()
    return t


@trace("STUs arrive in another order than they were sent in")
def write_reordered():
    t = written()
    t.block(3000, order=(2, 0, 1))
    t.rsr()
    t.disconnect()
    return t


@trace("STU 0 comes twice; the second changes nothing")
def write_duplicate():
    t = written()
    t.block(3000, order=(0, 0, 1, 2))
    t.rsr()
    t.disconnect()
    return t


@trace("the RSR is lost: RS asks for it")
def write_rsr_lost():
    t = written()
    t.block(3000, flags=())
    for sync in (0x61, 0x62):
        t.wait(MILLISECOND)
        t.a("RS", Sync=sync, B_num=0, R_id=9, I_id=7)
        t.rsr(1, Sync=sync)
    t.disconnect()
    return t


@trace("A repeats an STU whose Block B_seq has passed; its bytes have changed since its checksum was made")
def write_late_repeat():
    t = Talk()
    t.checksum = True
    t.connect()
    t.rts(2000)
    t.cts()
    t.block(2000)
    t.rsr()
    t.block(2000, only=(0,), damage=True)
    t.disconnect()
    return t


@trace("B has a Block whole, with a Slot for it, and says that it has not", play="differs")
def write_not_seen():
    t = talk()
    t.rts(2000)
    t.cts()
    t.block(2000, flags=())
    t.wait(MILLISECOND)
    t.a("RS", Sync=0x52, B_num=NONE, R_id=9, I_id=7)
    t.b("RSR", R_Slots=62, B_seq=0, Sync=0x52, B_num=NONE, I_id=7, R_id=9)
    t.disconnect()
    return t


@trace("A ends its Transfer after one Block of two: END, EA")
def write_ended():
    t = talk()
    t.rts(2000, Max_Block=10)
    t.cts(Blocksize=10)
    t.block(1024)
    t.rsr()
    t.a("END", R_id=9, I_id=7)
    t.b("EA", I_id=7, R_id=9)
    t.disconnect()
    return t


@trace("B ends the Transfer that it receives: END, EA")
def write_ended_by_receiver():
    t = written()
    t.b("END", R_id=7, I_id=9)
    t.a("EA", I_id=9, R_id=7)
    t.disconnect()
    return t


@trace("A asks about a Transfer that B does not know: RSR with Reject")
def state_unknown():
    t = talk()
    t.a("RS", Sync=0x61, B_num=0, R_id=99, I_id=7)
    t.b("RSR", "Reject", R_Slots=64, Sync=0x61, B_num=0, I_id=7, R_id=99)
    t.disconnect()
    return t


@trace("a numbered message of the managed layer: the number stands in the RTS's option payload")
def write_managed():
    t = talk()
    t.rts(1000, payload=(1).to_bytes(4, "big") + bytes(28))
    t.cts()
    t.block(1000)
    t.rsr()
    t.disconnect()
    return t


# --- Read ------------------------------------------------------------------------------------------
@trace("Read: RTR, and the Responder writes back")
def read():
    t = talk()
    t.a("RTR", T_len=1500, I_id=4)
    t.b("RTS", CTS_req=1, Max_Block=16, T_len=1500, RTR_I_id=4, I_id=11)
    t.a("CTS", Blocksize=16, R_Mx=5, R_Bufx=0x200, I_id=11, R_id=12)
    t.block(1500, 0x200, sender=t.B, R_Mx=5, R_id=12, flags=())
    t.disconnect()
    return t


@trace("an RTR refused: RA with Reject")
def read_refused():
    t = talk()
    t.a("RTR", T_len=1500, I_id=4)
    t.b("RA", "Reject", I_id=4)
    t.disconnect()
    return t


# --- Put -------------------------------------------------------------------------------------------
@trace("Put: RMR, MRA, two Blocks without a CTS")
def put():
    t = talk()
    t.region()
    t.block(2000, B_num=0, Sync=0x51)
    t.rsr(1)
    t.block(500, 0x101, 100, B_num=1, Sync=0x52)
    t.rsr(2, Sync=0x52)
    t.a("END", R_id=9, I_id=7)
    t.b("EA", I_id=7, R_id=9)
    t.disconnect()
    return t


@trace("an STU of a Put is lost: no RSR comes, RS finds out, the Block is sent again")
def put_lost():
    t = talk()
    t.region()
    t.block(2000, skip=(0,))
    t.wait(10 * MILLISECOND)
    t.a("RS", Sync=0x61, B_num=0, R_id=9, I_id=7)
    t.b("RSR", R_Slots=64, B_seq=0, Sync=0x61, B_num=NONE, I_id=7, R_id=9)
    t.block(2000)
    t.rsr()
    t.rsr()
    t.disconnect()
    return t


@trace("an RMR refused: MRA with Reject")
def put_refused():
    t = talk()
    t.a("RMR", B_win=2, T_len=8192, I_id=7)
    t.b("MRA", "Reject", I_id=7)
    t.disconnect()
    return t


# --- Get and FetchOp -------------------------------------------------------------------------------
@trace("Get of 100 bytes from a region")
def get():
    t = talk()
    t.region()
    t.get()
    t.got()
    t.disconnect()
    return t


@trace("a Silent Get of 1500 bytes: two STUs")
def get_long():
    t = talk()
    t.region()
    t.get("Silent", Length=1500)
    t.block(1500, 0x200, sender=t.B, R_Mx=5, B_num=1, Sync=0, Opaque=0, flags=(),
            all_flags=("Silent",))
    t.disconnect()
    return t


@trace("a Get's answer and a Block have the same R_id and B_num: their places tell them apart")
def get_or_block():
    t = talk()
    t.region()
    t.b("RTS", CTS_req=2, Max_Block=10, T_len=2048, RTR_I_id=NONE, I_id=11)
    t.a("CTS", Blocksize=10, R_Mx=5, R_Bufx=0x210, B_num=1, I_id=11, R_id=9)
    t.get()
    t.got()
    t.block(1024, 0x210, sender=t.B, R_Mx=5, B_num=1, flags=(), source=1024)
    t.disconnect()
    return t


@trace("a Get outside every region is sent back with Reject", check="get-checks")
def get_refused():
    t = talk()
    t.region(length=4096)
    t.get(R_Offset=4090)
    t.b("GET", "Reject", Length=100, I_Mx=5, R_Bufx=0x100, R_Offset=4090, I_Bufx=0x200, R_id=9,
        G_num=1)
    t.disconnect()
    return t


@trace("B's user closes while its Node answers a Get: one STU of two has been sent")
def get_torn():
    t = talk()
    t.region()
    t.get(Length=1500)
    t.block(1500, 0x200, sender=t.B, R_Mx=5, B_num=1, Sync=0, Opaque=0, flags=(), only=(0,))
    t.b("RD")
    t.a("DA")
    t.b("DC")
    return t


@trace("a Get that B has no credit to answer, and that A takes back")
def get_taken_back():
    t = talk()
    t.region()
    t.get()
    t.wait(MILLISECOND)
    t.a("GET", "FetchOp_Complete", R_id=9, G_num=1)
    t.wait(2 * SECOND)
    t.disconnect()
    return t


@trace("the answer to a Get is lost behind the capture: the GET comes again")
def get_repeated():
    t = talk()
    t.region()
    for _ in range(2):
        t.get()
        t.got()
        t.wait(10 * MILLISECOND)
    t.disconnect()
    return t


@trace("a GET that is refused has a flag that it does not use, and comes back with it",
       check="unused-flags", play="-")
def get_refused_flags():
    t = talk()
    t.region()
    t.get("Last")
    t.b("GET", "Reject", "Last", Length=100, I_Mx=5, R_Bufx=0x100, I_Bufx=0x200, R_id=9, G_num=1)
    t.disconnect()
    return t


def fetch(t, function, g_num, before, operands=b""):
    t.get(function, Length=8, G_num=g_num, payload=operands)
    t.got(B_num=g_num, payload=before.to_bytes(8, "big"))
    t.get("FetchOp_Complete", Length=8, G_num=g_num)


@trace("all five FetchOps on one word, each answered with what stood there before")
def fetch_ops():
    t = talk()
    t.region()
    fetch(t, "Fetch_Increment", 1, 5)
    fetch(t, "Fetch_Decrement", 2, 6)
    fetch(t, "Fetch_Add", 3, 5, (100).to_bytes(8, "big") + bytes(24))
    fetch(t, "Compare_And_Swap", 4, 105,
          (7).to_bytes(8, "big") + (105).to_bytes(8, "big") + bytes(16))
    fetch(t, "Fetch_Clear", 5, 7)
    fetch(t, "Fetch_Increment", 6, 0)
    t.disconnect()
    return t


@trace("a FetchOp whose answer is lost behind the capture: executed once, answered twice")
def fetch_repeated():
    t = talk()
    t.region()
    for _ in range(2):
        t.get("Fetch_Increment", Length=8)
        t.got(payload=(5).to_bytes(8, "big"))
        t.wait(10 * MILLISECOND)
    t.get("FetchOp_Complete", Length=8)
    fetch(t, "Fetch_Increment", 2, 6)
    t.disconnect()
    return t


# --- encapsulation and checksums -------------------------------------------------------------------
@trace("130 requests are withdrawn, and the first END is answered last, when check has forgotten it", check="forgotten")
def end_forgotten():
    t = Talk()
    t.A.slots = t.B.slots = 1000
    t.connect()
    for i in range(130):
        t.a("RTR", T_len=10, I_id=i)
    for i in range(130):
        t.a("END", R_id=NONE, I_id=i)
    for i in range(129, -1, -1):
        t.b("EA", I_id=i, R_id=NONE)
    return t


@trace("checksums on every frame of a Write")
def checksums():
    t = Talk()
    t.checksum = True
    t.connect()
    t.rts(1001)
    t.cts()
    t.block(1001)
    t.rsr()
    t.disconnect()
    return t


def in_vlan(outer=None):
    t = Talk()
    t.vlan, t.outer = 7, outer
    t.connect()
    t.rts(3)
    t.cts()
    t.block(3)
    t.rsr()
    t.disconnect()
    return t


@trace("a Write in VLAN 7")
def vlan():
    return in_vlan()


@trace("a Write in VLAN 7 of a provider's VLAN 300: two tags (802.1ad)", play="-")
def vlan_of_provider():
    return in_vlan((0x88A8, 300))


@trace("a Write with two tags of 802.1Q, 300 and 7", play="-")
def vlan_twice():
    return in_vlan((0x8100, 300))
