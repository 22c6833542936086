# SPDX-License-Identifier: BSD-3-Clause
"""Frames and capture files, written from docs/protocol.md and the file formats' descriptions.

Nothing here is shared with the code in stp/: a wrong number in one of the two shows.
"""
import struct

OPS = {
    "RC": 0x01, "CA": 0x02, "RD": 0x03, "DA": 0x04, "DC": 0x05, "NOP": 0x10, "RMR": 0x13,
    "MRA": 0x14, "GET": 0x15, "RTS": 0x16, "RA": 0x17, "RTR": 0x18, "CTS": 0x1A, "DATA": 0x1B,
    "RS": 0x1C, "RSR": 0x1D, "END": 0x1E, "EA": 0x1F,
}
FLAGS = {
    "Reserved": 0x0001, "Append": 0x0002, "Reject": 0x0004, "Last": 0x0008, "Order": 0x0010,
    "Send_state": 0x0020, "Interrupt": 0x0040, "Silent": 0x0080, "Fetch_Increment": 0x0100,
    "Fetch_Decrement": 0x0200, "Fetch_Clear": 0x0300, "Fetch_Add": 0x0400,
    "Compare_And_Swap": 0x0500, "Function_6": 0x0600, "FetchOp_Complete": 0x0700,
}
# Each operation's own names for the words of the header.
WORDS = ("param", "d_port", "s_port", "d_key", "cksum", "mx", "bufx", "offset", "sync", "b_num",
         "d_id", "s_id")
NAMES = {
    "RC": {"I_Slots": "param", "I_Bufsize": "bufx", "I_Key": "offset", "I_Max_STU": "sync",
           "R_UPort": "d_id", "I_UPort": "s_id"},
    "CA": {"R_Slots": "param", "R_Bufsize": "bufx", "R_Key": "offset", "R_Max_STU": "sync",
           "I_UPort": "d_id", "R_UPort": "s_id"},
    "RD": {"I_Key": "offset"}, "DC": {"I_Key": "offset"}, "DA": {"R_Key": "offset"}, "NOP": {},
    "RTS": {"CTS_req": "param", "Max_Block": "mx", "RTR_I_id": "d_id", "I_id": "s_id"},
    "RA": {"I_id": "d_id", "R_id": "s_id"}, "RTR": {"I_id": "s_id"},
    "CTS": {"Blocksize": "param", "R_Mx": "mx", "R_Bufx": "bufx", "R_Offset": "offset",
            "F_Offset": "sync", "B_num": "b_num", "I_id": "d_id", "R_id": "s_id"},
    "DATA": {"STU_num": "param", "R_Mx": "mx", "R_Bufx": "bufx", "R_Offset": "offset",
             "Sync": "sync", "B_num": "b_num", "R_id": "d_id", "Opaque": "s_id"},
    "RMR": {"B_win": "param", "I_id": "s_id"},
    "MRA": {"B_win": "param", "R_Mx": "mx", "R_Bufx": "bufx", "R_Offset": "offset", "I_id": "d_id",
            "R_id": "s_id"},
    "GET": {"Length": "param", "I_Mx": "mx", "R_Bufx": "bufx", "R_Offset": "offset",
            "I_Bufx": "sync", "I_Offset": "b_num", "R_id": "d_id", "G_num": "s_id"},
    "RS": {"Sync": "sync", "B_num": "b_num", "R_id": "d_id", "I_id": "s_id"},
    "RSR": {"R_Slots": "param", "B_seq": "offset", "Sync": "sync", "B_num": "b_num",
            "I_id": "d_id", "R_id": "s_id"},
    "END": {"R_id": "d_id", "I_id": "s_id"}, "EA": {"I_id": "d_id", "R_id": "s_id"},
}
NONE = 0xFFFFFFFF
ETHERTYPE = 0x8181


def header(op, flags=(), **fields):
    """The 40 bytes. Fields go by the operation's own names, or by those of the header's words."""
    words = dict.fromkeys(WORDS, 0)
    for name, value in fields.items():
        if name == "T_len":
            words["sync"], words["b_num"] = value >> 32, value & 0xFFFFFFFF
        else:
            words[NAMES.get(op, {}).get(name, name)] = value
    code = OPS[op] if isinstance(op, str) else op
    bits = 0
    for flag in flags:
        bits |= FLAGS[flag]
    return struct.pack(">HHHHIHHIIIIII", code << 11 | bits, *(words[name] for name in WORDS))


def ones_complement(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF or 0xFFFF


def ethernet(dst, src, payload, snap=False, vlan=None, padded=True, outer=None):
    """A whole frame. `snap`: as 802.3; else as Ethernet II. `outer`: type and number of another tag in front."""
    frame = dst + src
    if outer is not None:
        frame += struct.pack(">HH", *outer)
    if vlan is not None:
        frame += struct.pack(">HH", 0x8100, vlan)
    if snap:
        frame += struct.pack(">H", 8 + len(payload)) + bytes.fromhex("aaaa03000000")
    frame += struct.pack(">H", ETHERTYPE) + payload
    return frame.ljust(60, b"\0") if padded else frame


def pattern(length, start=0):
    """User bytes that differ from place to place."""
    return bytes((start + i) * 7 + (start + i) // 251 & 0xFF for i in range(length))


def in_datagram(frame, ports):
    """What a link over UDP sends for a frame of Ethernet: from 10.0.0.N with the N-th port to the other station."""
    to, source = frame[5], frame[11]
    data = frame[14:]
    udp = struct.pack(">HHHH", ports[source - 1], ports[to - 1], 8 + len(data), 0) + data
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0x4000, 64, 17, 0)
    return frame[:12] + b"\x08\0" + head + bytes([10, 0, 0, source, 10, 0, 0, to]) + udp


def pcapng(frames, order="<", nano=True, snaplen=0, link_types=(1,), dropped=0):
    """`frames`: pairs of nanoseconds and bytes. They take turns on the interfaces, one for each of
    `link_types`; 1 is Ethernet. `dropped`: as the statistics at the end say."""
    def block(kind, body):
        body += bytes(-len(body) % 4)
        length = struct.pack(order + "I", len(body) + 12)
        return struct.pack(order + "I", kind) + length + body + length

    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    resolution = struct.pack(order + "HHB3xHH", 9, 1, 9 if nano else 6, 0, 0)
    for link_type in link_types:
        out += block(1, struct.pack(order + "HHI", link_type, 0, snaplen) + resolution)
    for number, (time, frame) in enumerate(frames):
        ticks = time if nano else time // 1000
        held = frame[:snaplen] if snaplen else frame
        out += block(6, struct.pack(order + "IIIII", number % len(link_types), ticks >> 32,
                                    ticks & 0xFFFFFFFF, len(held), len(frame)) + held)
    if dropped:
        out += block(5, struct.pack(order + "III", 0, 0, 0) + struct.pack(order + "HHQHH", 5, 8, dropped, 0, 0))
    return out


def pcap(frames, order="<", nano=True, snaplen=0):
    out = struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0,
                      snaplen or 262144, 1)
    for time, frame in frames:
        held = frame[:snaplen] if snaplen else frame
        part = time % 10**9 // (1 if nano else 1000)
        out += struct.pack(order + "IIII", time // 10**9, part, len(held), len(frame)) + held
    return out
