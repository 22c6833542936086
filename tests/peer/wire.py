# SPDX-License-Identifier: BSD-3-Clause
"""Frames as bytes. Op codes, flags and fields are read from docs/protocol.md itself, so the peer sends
and demands what the document says."""
import pathlib
import re
import struct

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/protocol.md"
NONE = 0xFFFFFFFF
ETHERTYPE = 0x8181
SNAP = bytes.fromhex("aaaa03000000")
COLUMNS = ("param", "d", "s_port", "mx", "bufx", "offset", "sync", "b_num", "d_id", "s_id")
WORDS = ("param", "d_port", "s_port", "d_key", "cksum", "mx", "bufx", "offset", "sync", "b_num", "d_id",
         "s_id")


def _rows(section, columns):
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == columns:
            yield cells


def _read_document():
    text = DOCUMENT.read_text()
    ops, slots = {}, set()
    for code, name, slot in re.findall(r"\| (0x[01][0-9a-f]) \| [^|]+ \| ([A-Z]+) \| ([^|]*)\|", text):
        ops[name] = int(code, 16)
        if slot.strip():
            slots.add(name)
    flags = {name: int(bit, 16)
             for bit, name in re.findall(r"\| (0x0[0-9a-f]{3}) \| ([A-Z][A-Za-z_]+) \| \[", text)}
    table = text[text.index("| op | Param | D_Port, D_Key"):text.index("An empty cell is an unused field")]
    fields = {}
    for cells in _rows(table, 11):
        for op in cells[0].split(", "):
            if op in ops:
                fields[op] = _fields_of(op, cells[1:])
    return ops, slots, flags, fields


def _fields_of(op, cells):
    names = {}
    for word, cell in zip(COLUMNS, cells):
        name = re.split(r"[ (]", cell)[0]
        if not name or name in ("-",) or word in ("d", "s_port"):
            continue
        if op == "GET" and word == "param":
            name = "Length"
        if op == "RTS" and word == "d_id":
            name = "RTR_id"
        names.setdefault(word if name == "opaque" else name, word)
    return names


OPS, SLOT_OPS, FLAGS, FIELDS = _read_document()
CODES = {code: name for name, code in OPS.items()}
FUNCTIONS = {"Fetch_Increment": 1, "Fetch_Decrement": 2, "Fetch_Clear": 3, "Fetch_Add": 4,
             "Compare_And_Swap": 5, "FetchOp_Complete": 7}
assert len(OPS) == 18 and len(FLAGS) == 7, (OPS, FLAGS)
assert all(op in FIELDS for op in OPS), set(OPS) - set(FIELDS)


def ones_complement(data):
    """Rule 4.1: RFC 1071. Rule 4.2: 0 is sent as 0xffff."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF) or 0xFFFF


def flag_bits(flags):
    bits = 0
    for flag in flags:
        if isinstance(flag, int):
            bits |= flag
        elif flag in FUNCTIONS:
            bits |= FUNCTIONS[flag] << 8
        else:
            bits |= FLAGS[flag]
    return bits


def header(op, flags=(), **fields):
    values = dict.fromkeys(WORDS, 0)
    names = FIELDS.get(op, {})
    for name, value in fields.items():
        if name == "T_len":
            values["sync"], values["b_num"] = value >> 32 & NONE, value & NONE
        else:
            word = names.get(name, name)
            if word not in values:
                raise KeyError(f"{op} has no {name}")
            values[word] = value
    code = OPS[op] if isinstance(op, str) else op
    return struct.pack(">HHHHIHHIIIIII", code << 11 | flag_bits(flags), *(values[w] for w in WORDS))


class Frame:
    """A received frame: its words, their names, and what follows the header."""

    def __init__(self, raw):
        self.raw, self.time = raw, 0.0
        self.dst, self.src = raw[0:6], raw[6:12]
        at = 12
        kind = struct.unpack_from(">H", raw, at)[0]
        self.vlan = kind == 0x8100
        if self.vlan:
            at += 4
            kind = struct.unpack_from(">H", raw, at)[0]
        at += 2
        self.snap = kind <= 1500
        self.stp = kind == ETHERTYPE
        if self.snap:
            self.stp = raw[at:at + 8] == SNAP + struct.pack(">H", ETHERTYPE)
            raw = raw[:at + kind]
            at += 8
        if not self.stp or len(raw) < at + 40:
            self.stp = False
            return
        self.head = raw[at:at + 40]
        self.body = raw[at + 40:]
        words = struct.unpack(">HHHHIHHIIIIII", self.head)
        self.op = CODES.get(words[0] >> 11, words[0] >> 11)
        self.bits = words[0] & 0x7FF
        for name, value in zip(WORDS, words[1:]):
            setattr(self, name, value)
        self.payload = self.body
        if self.op != "DATA":
            self.payload = self.body[:32] if len(self.body) == 32 else b""

    def has(self, flag):
        return bool(self.bits & FLAGS[flag])

    @property
    def function(self):
        return self.bits >> 8 & 7

    @property
    def T_len(self):
        return self.sync << 32 | self.b_num

    def __getattr__(self, name):
        word = FIELDS.get(self.__dict__.get("op"), {}).get(name)
        if word is None:
            raise AttributeError(f"{self.__dict__.get('op')} has no {name}")
        return self.__dict__[word]

    def __repr__(self):
        names = " ".join(f"{name}={getattr(self, word):#x}" for name, word in FIELDS.get(self.op, {}).items())
        flags = " ".join(name for name, bit in FLAGS.items() if self.bits & bit)
        function = f" function={self.function}" if self.function else ""
        return f"{self.op} {flags}{function} {names} +{len(self.payload)}"

    def wrong(self, max_stu):
        """What is wrong with the form of the frame; None if nothing is."""
        if not isinstance(self.op, str):
            return f"3.4 op code {self.op:#x}"
        if self.vlan:
            return "2.3 a tag that nobody asked for"
        if self.snap != (self.op == "DATA" and len(self.body) < 6):
            return f"2.5 {'802.3' if self.snap else 'Ethernet II'} with {len(self.body)} bytes"
        if self.op != "DATA" and len(self.body) > 32:
            return f"2.7 {len(self.body)} bytes behind a control header"
        if self.op == "DATA" and len(self.body) > (1 << max_stu) + 64 * self.has("Append"):
            return f"8.7 an STU of {len(self.body)} bytes"
        used = set(FIELDS[self.op].values()) | {"d_port", "s_port", "d_key", "cksum"}
        if "T_len" in FIELDS[self.op]:
            used |= {"sync", "b_num"}
        if self.op == "RC":
            used -= {"d_port", "d_key", "mx"}
        for word in WORDS:
            if word not in used and self.op != "NOP" and getattr(self, word):
                return f"3.3 {word} of {self.op} is {getattr(self, word):#x}"
        if self.s_port == 0 and not (self.op == "CA" and self.has("Reject")):
            return "12.2 S_Port 0"
        if self.cksum:
            body = self.body if self.op == "DATA" else self.payload
            if ones_complement(self.head[:12] + b"\0\0" + self.head[14:] + body) != self.cksum:
                return "4.1 its checksum"
        return None


def ethernet(dst, src, content, snap=False, vlan=None, pad=True):
    frame = dst + src
    if vlan is not None:
        frame += struct.pack(">HH", 0x8100, vlan)
    if snap:
        frame += struct.pack(">H", 8 + len(content)) + SNAP
    frame += struct.pack(">H", ETHERTYPE) + content
    return frame.ljust(60, b"\0") if pad else frame
