# SPDX-License-Identifier: BSD-3-Clause
"""What captures do to a trace: formats, cuts, losses, a late start."""
from catalogue import trace
from frames import NONE, in_datagram, pcap, pcapng
from managed import managed_messages
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


@trace("a managed connection, cut after 80 bytes: the messages' heads are there, their bytes are not", play="-")
def cut_managed():
    return File(pcapng(managed_messages().frames, snaplen=80))


@trace("a managed connection, cut after 66 bytes: nothing that depends on the heads of messages is judged", play="-")
def cut_managed_heads():
    return File(pcapng(managed_messages().frames, snaplen=66))


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


@trace("the file says that the capturing program dropped a frame: it was A's question", check="capture-loss", play="-")
def dropped():
    t = Talk().connect()
    t.b("RSR", R_Slots=63, Sync=0x99, B_num=NONE, I_id=NONE)
    t.disconnect()
    return File(pcapng(t.frames, dropped=1))


@trace("the capture has the frames of B only, as tcpdump sees on a host that runs stpd", check="mid-trace, one-sided", play="-")
def one_sided():
    t = small()
    t.frames = [frame for frame in t.frames if frame[1][6:12] == t.B.mac]
    return t


@trace("the clock steps back by 10 s in the middle", check="clock-backwards", play="-")
def clock_backwards():
    t = small()
    t.frames = [(time - (10 * SECOND if i >= 5 else 0), frame)
                for i, (time, frame) in enumerate(t.frames)]
    return t


def joined(talk, ports):
    """As a capture at a host shows these frames over UDP: those that are equally long as one, with a shorter last one."""
    content, last = [], b""
    for time, frame in talk:
        if len(frame) == 60 and frame[14] >> 3 != 0x1b:  # Ethernet's padding
            frame = frame[:54]
        if frame[:14] == last[:14] and len(frame) <= len(last):
            content[-1] = (content[-1][0], content[-1][1] + frame[14:])
        else:
            content.append((time, frame))
        last = frame
    return [(time, in_datagram(frame, ports)) for time, frame in content]


@trace("over UDP, with datagrams that the sending host has joined", play="-")
def joined_datagrams():
    return File(pcapng(joined(small().frames, (8181, 9001))))


@trace("frames of other protocols between those of STP")
def other_protocols():
    t = small()
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    other_snap = bytes(12) + (46).to_bytes(2, "big") + bytes.fromhex("aaaa03000000888e") + bytes(38)
    t.frames[2:2] = [(t.frames[2][0], arp), (t.frames[2][0], other_snap)]
    return t
