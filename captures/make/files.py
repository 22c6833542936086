# SPDX-License-Identifier: BSD-3-Clause
"""What captures do to a trace: formats, cuts, losses, a late start."""
from catalogue import trace
from frames import pcap, pcapng
from talk import MILLISECOND, SECOND, Talk


def small():
    t = Talk().connect()
    t.rts(1500)
    t.cts()
    t.block(1500)
    t.rsr()
    t.disconnect()
    return t


class File:
    def __init__(self, content):
        self.content = content

    def file(self):
        return self.content


@trace("pcap, microseconds, little-endian", suffix="pcap")
def format_pcap_micro():
    return File(pcap(small().frames, nano=False))


@trace("pcap, nanoseconds, big-endian", suffix="pcap")
def format_pcap_nano_big_endian():
    return File(pcap(small().frames, order=">"))


@trace("pcapng, microseconds, big-endian")
def format_pcapng_micro_big_endian():
    return File(pcapng(small().frames, order=">", nano=False))


@trace("pcapng of two interfaces, whose frames take turns")
def format_two_interfaces():
    return File(pcapng(small().frames, link_types=(1, 1)))


@trace("cut after 80 bytes: headers are whole, users' bytes are not", play="-")
def cut_payload():
    return File(pcapng(small().frames, snaplen=80))


@trace("cut after 40 bytes: no header is whole", check="capture-cut", play="-")
def cut_header():
    return File(pcapng(small().frames, snaplen=40))


@trace("the capture begins after the connection did", check="mid-trace", play="-")
def mid_trace():
    t = small()
    t.frames = t.frames[3:]
    return t


@trace("the capture begins with a CA", check="mid-trace", play="-")
def mid_connect():
    t = small()
    t.frames = t.frames[1:]
    return t


@trace("the capture lacks an STU that both sides know of", check="capture-loss", play="-")
def capture_loss():
    t = small()
    del t.frames[4]
    return t


@trace("the clock steps back by 10 s in the middle", check="clock-backwards", play="-")
def clock_backwards():
    t = small()
    t.frames = [(time - (10 * SECOND if i >= 5 else 0), frame)
                for i, (time, frame) in enumerate(t.frames)]
    return t


@trace("frames of other protocols between those of STP")
def other_protocols():
    t = small()
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    other_snap = bytes(12) + (46).to_bytes(2, "big") + bytes.fromhex("aaaa03000000888e") + bytes(38)
    t.frames[2:2] = [(t.frames[2][0], arp), (t.frames[2][0], other_snap)]
    return t
