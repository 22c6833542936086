# SPDX-License-Identifier: BSD-3-Clause
"""usage: fuzz.py SEEDS [FIRST]
Calls of the package in any order, with any arguments: each gives a result or raises an exception of the package. A seed
always makes the same calls. misuse_test.py runs a few seeds, address.sh many under AddressSanitizer."""
import gc
import random
import sys

import stp
from support import PATIENCE, Thread

ROUNDS = 400
SIZES = (0, 1, 7, 8, 100, 4096, 32_768, 32_769, 100_000)
OFFSETS = (0, 5, 8, 99, 1 << 20, 1 << 40)
# What wrong arguments raise, and objects that are used elsewhere.
EXPECTED = (stp.Error, TypeError, BufferError)


class Sequence:
    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.domain = stp.Domain("loop")
        self.listener = self.domain.listen(":3000")
        self.peers, self.operations, self.regions, self.kept = [], [], [], []
        self.pair()

    def pair(self):
        accepted = Thread(self.listener.accept, b"yes", PATIENCE)
        self.peers.append(self.domain.connect(":3000", data=b"me", timeout=PATIENCE))
        self.peers.append(accepted.result())

    def buffer(self):
        """Mostly one that only its operation refers to later."""
        memory = bytearray(self.dice.choice(SIZES))
        kind = self.dice.randrange(6)
        if kind == 0:
            memory = memoryview(memory)[self.dice.randrange(3):]  # fmt: skip
        elif kind == 1:
            memory = bytes(memory)
        elif kind == 2:
            self.kept.append(memory)
        return memory

    def remote(self):
        if self.regions and self.dice.random() < 0.9:
            return self.dice.choice(self.regions).remote
        return stp.Remote.decode(bytes(range(24)))

    def send(self, peer):
        self.operations.append(peer.begin_send(self.buffer(), self.dice.randrange(9), fence=self.dice.random() < 0.1))

    def receive(self, peer):
        self.operations.append(peer.begin_receive(self.dice.choice(SIZES)))

    def receive_into(self, peer):
        self.operations.append(peer.begin_receive_into(self.buffer()))

    def put(self, peer):
        self.operations.append(peer.begin_put(self.buffer(), self.remote(), self.dice.choice(OFFSETS)))

    def get_into(self, peer):
        self.operations.append(peer.begin_get_into(self.buffer(), self.remote(), self.dice.choice(OFFSETS)))

    def get(self, peer):
        peer.get(self.remote(), self.dice.choice((None, *SIZES)), timeout=0)

    def fetch(self, peer):
        call = self.dice.choice((peer.fetch_add, lambda *words, **limit: peer.compare_and_swap(words[0], 1, *words[1:], **limit)))
        call(self.remote(), self.dice.choice((1, -1, 1 << 63, 1 << 70)), self.dice.choice(OFFSETS), timeout=0)

    def receive_now(self, peer):
        peer.receive(self.dice.choice(SIZES), timeout=0)

    def cancel(self, _):
        if self.operations:
            self.dice.choice(self.operations).cancel()

    def wait(self, _):
        if self.operations:
            self.operations.pop(self.dice.randrange(len(self.operations))).wait(self.dice.choice((0, 0.001)))

    def forget(self, _):
        """Operations under way, whose memory nobody else has."""
        del self.operations[: self.dice.randrange(len(self.operations) + 1)]
        if self.dice.random() < 0.1:
            gc.collect()

    def open_region(self, peer):
        if len(self.regions) < 20:
            write = self.dice.random() < 0.8
            self.regions.append(self.domain.region(self.buffer(), write=write, atomic=write and self.dice.random() < 0.5,
                                                   only=self.dice.choice((None, peer))))  # fmt: skip

    def close_region(self, _):
        if self.regions:
            self.regions.pop(self.dice.randrange(len(self.regions))).close()

    def forget_region(self, _):
        if self.regions and self.dice.random() < 0.2:
            self.regions.pop()

    def change_memory(self, _):
        """Fails while it is exported."""
        if self.kept:
            self.kept.pop(self.dice.randrange(len(self.kept))).extend(b"more")

    def wrong(self, peer):
        call = self.dice.choice((peer.send, peer.receive, peer.receive_into, peer.put, peer.get, peer.fetch_add, self.domain.connect,
                                 self.domain.region, self.domain.listen, stp.Remote.decode))  # fmt: skip
        call(*(self.dice.choice((None, -1, "x", b"x", 1 << 70, peer, 0.5)) for _ in range(self.dice.randrange(1, 4))))

    def end_peer(self, peer):
        if self.dice.random() < 0.2:
            self.dice.choice((peer.abort, lambda: peer.close(0.01), lambda: self.peers.remove(peer)))()
            if self.dice.random() < 0.5:
                self.pair()

    def reject(self, _):
        if self.dice.random() < 0.2:
            connecting = Thread(self.domain.connect, ":3000")
            request = self.listener.request(PATIENCE)
            self.dice.choice((lambda: request.reject(b"no"), lambda: request.accept(b"x" * 2000, 0), lambda: None))()
            del request
            self.listener.close()
            self.listener = self.domain.listen(":3000")
            connecting.join(PATIENCE)

    def end_domain(self, _):
        if self.dice.random() < 0.02:
            self.domain.close()

    CALLS = (
        [send] * 5 + [receive] * 4 + [receive_into] * 3 + [put, get_into] * 2 + [get, fetch, receive_now, cancel, wait] * 2
        + [forget, open_region, open_region, close_region, forget_region, change_memory, wrong, end_peer, reject, end_domain]
    )  # fmt: skip

    def run(self):
        for _ in range(ROUNDS):
            try:
                if len(self.operations) > 40:
                    self.operations.pop(0).cancel()
                peer = self.dice.choice(self.peers) if self.peers else None
                call = self.dice.choice(self.CALLS)
                if peer is not None:
                    call(self, peer)
                else:
                    self.pair()
            except EXPECTED:
                pass
        for peer in self.peers if self.dice.random() < 0.5 else ():
            peer.abort()
        if self.dice.random() < 0.5:
            self.domain.close()
            for operation in self.operations:
                try:
                    operation.wait(0)
                except EXPECTED:
                    pass


def run(seed):
    Sequence(seed).run()
    gc.collect()


if __name__ == "__main__":
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for number in range(first, first + int(sys.argv[1])):
        print(f"seed {number}", flush=True)
        run(number)
