# SPDX-License-Identifier: BSD-3-Clause
"""A conversation of two stations, A and B, and a capture file made of it."""
from frames import NONE, ethernet, header, ones_complement, pattern, pcapng

MICROSECOND, MILLISECOND, SECOND = 10**3, 10**6, 10**9
START = 1_700_000_000 * SECOND


class Station:
    def __init__(self, number):
        self.mac = bytes([2, 0, 0, 0, 0, number])
        self.port = 100 * number + number
        self.key = 0x01010101 * (0xA0 + number)
        self.bufsize, self.max_stu, self.slots = 12, 10, 64


class Talk:
    """Each call of a() or b() is a frame that A or B sends, 20 microseconds after the last."""

    def __init__(self):
        self.now = START
        self.A, self.B = Station(1), Station(2)
        self.frames = []
        self.checksum = False
        self.vlan = self.outer = None

    def wait(self, span):
        self.now += span
        return self

    def raw(self, frame):
        self.frames.append((self.now, frame))
        self.now += 20 * MICROSECOND

    def send(self, sender, to, op, *flags, payload=b"", append=b"", snap=None, padded=True,
             src=None, dst=None, damage=False, cut=0, **fields):
        names = {"s_port": sender.port, "d_port": to.port, "d_key": to.key}
        if op == "RC":
            names.update(d_port=0, d_key=0)
        if op in ("RD", "DA", "DC"):
            names["offset"] = sender.key
        head = header(op, flags, **{**names, **fields})
        body = payload + append
        if self.checksum and "cksum" not in fields:
            sum_ = ones_complement(head + body)
            if damage:
                sum_ ^= 0x0100
            head = head[:12] + sum_.to_bytes(2, "big") + head[14:]
        if snap is None:
            snap = op == "DATA" and len(body) < 6
        frame = ethernet(dst or to.mac, src or sender.mac, head + body, snap, self.vlan, padded, self.outer)
        self.raw(frame[:-cut] if cut else frame)

    def a(self, op, *flags, **fields):
        self.send(self.A, self.B, op, *flags, **fields)

    def b(self, op, *flags, **fields):
        self.send(self.B, self.A, op, *flags, **fields)

    # --- connections ---------------------------------------------------------------------------
    def rc(self, **changed):
        s = self.A
        self.a("RC", **{**dict(I_Slots=s.slots, I_Bufsize=s.bufsize, I_Key=s.key,
                               I_Max_STU=s.max_stu, R_UPort=3000), **changed})

    def ca(self, **changed):
        s = self.B
        self.b("CA", **{**dict(R_Slots=s.slots, R_Bufsize=s.bufsize, R_Key=s.key,
                               R_Max_STU=s.max_stu, R_UPort=3000), **changed})

    def ca_reject(self, **changed):
        self.b("CA", "Reject", **{**dict(s_port=0, R_UPort=3000), **changed})

    def connect(self):
        self.rc()
        self.ca()
        return self

    def disconnect(self):
        self.a("RD")
        self.b("DA")
        self.a("DC")

    # --- a Write from A to B ---------------------------------------------------------------------
    def rts(self, length, **changed):
        self.a("RTS", **{**dict(CTS_req=1, Max_Block=16, T_len=length, RTR_I_id=NONE, I_id=7),
                         **changed})

    def cts(self, b_num=0, bufx=0x100, offset=0, **changed):
        self.b("CTS", **{**dict(Blocksize=16, R_Mx=3, R_Bufx=bufx, R_Offset=offset, B_num=b_num,
                                I_id=7, R_id=9), **changed})

    def tiles(self, length, bufx=0x100, offset=0, to=None):
        """The STUs of a Block: number, Bufx, Offset, place in the Block, length."""
        to = to or self.B
        size = 1 << min(self.A.max_stu, self.B.max_stu, to.bufsize)
        at = start = (bufx << to.bufsize) + offset
        number = 0
        while True:
            part = min(start + length - at, size - at % size)
            yield number, at >> to.bufsize, at & ((1 << to.bufsize) - 1), at - start, part
            at, number = at + part, number + 1
            if at >= start + length:
                return

    def block(self, length, bufx=0x100, offset=0, flags=("Send_state",), skip=(), only=None,
              order=None, sender=None, all_flags=(), append=b"", source=0, **changed):
        """All STUs of a Block but those in `skip`. `flags` stand on its Last."""
        sender = sender or self.A
        to = self.B if sender is self.A else self.A
        stus = list(self.tiles(length, bufx, offset, to))
        last = stus[-1][0]
        for i in order or range(len(stus)):
            number, b, o, place, part = stus[i]
            if number in skip or (only is not None and number not in only):
                continue
            ends = number == last
            self.send(sender, to, "DATA", *all_flags,
                      *((("Last",) + tuple(flags) + (("Append",) if append else ())) if ends else ()),
                      payload=pattern(part, source + place), append=append if ends else b"",
                      **{**dict(STU_num=number, R_Mx=3, R_Bufx=b, R_Offset=o, Sync=0x51, R_id=9,
                                Opaque=0xBEEF), **changed})

    def rsr(self, b_seq=1, **changed):
        self.b("RSR", **{**dict(R_Slots=63, B_seq=b_seq, Sync=0x51, B_num=b_seq - 1, I_id=7, R_id=9),
                         **changed})

    # --- a region at B -----------------------------------------------------------------------------
    def region(self, length=8192, b_win=2, **changed):
        self.a("RMR", B_win=b_win, T_len=length, I_id=7)
        self.b("MRA", **{**dict(B_win=b_win, R_Mx=3, R_Bufx=0x100, R_Offset=0, T_len=length, I_id=7,
                                R_id=9), **changed})

    def get(self, *flags, **changed):
        self.a("GET", *flags, **{**dict(Length=100, I_Mx=5, R_Bufx=0x100, R_Offset=0, I_Bufx=0x200,
                                        I_Offset=0, R_id=9, G_num=1), **changed})

    def got(self, *flags, payload=None, **changed):
        self.b("DATA", "Last", *flags, payload=pattern(100) if payload is None else payload,
               **{**dict(R_Mx=5, R_Bufx=0x200, R_Offset=0, B_num=1, R_id=9), **changed})

    def file(self):
        return pcapng(self.frames)
