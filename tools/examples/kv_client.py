# SPDX-License-Identifier: BSD-3-Clause
"""A client of the store of kv_store.cpp: it finds, locks and changes the table in the server's memory by itself.

    kv_store serve :3000
    python3 kv_client.py set HOST:3000 KEY VALUE
    python3 kv_client.py get HOST:3000 KEY

The link is that of STP_LINK. Clients in C++ and Python use one table: an entry is a lock (8 bytes, 0: free), a key (56)
and a value (192), both UTF-8 that ends with a zero byte. The search for a key begins at its FNV-1a hash.
"""
import struct
import sys
from typing import List, Optional, Tuple

import stp

ENTRY = struct.Struct("Q56s192s")
TEXT = 8  # where key and value begin
PATIENCE = 20.0  # seconds


def hash_of(key: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in key:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def text_of(field: bytes) -> bytes:
    return field.split(b"\0", 1)[0]


class Store:
    def __init__(self, peer: stp.Connection) -> None:
        self._peer = peer
        self._table = stp.Remote.decode(peer.data)  # the server's answer says where it is

    def get(self, key: bytes) -> Optional[bytes]:
        found = self._find(key)
        return found[1] if found else None

    def set(self, key: bytes, value: bytes) -> None:
        if not 0 < len(key) < 56 or len(value) >= 192 or b"\0" in key + value:
            raise ValueError("a key has 1 to 55 bytes, a value at most 191, and neither has a zero byte")
        while True:
            self._find(key)
            self._lock()
            try:
                # Between finding and locking another client may have taken the entry.
                if self._read()[0] in (b"", key):
                    both = ENTRY.pack(0, key, value)[TEXT:]
                    self._peer.put(both, self._table, self._at + TEXT, timeout=PATIENCE)
                    return
            finally:
                self._peer.compare_and_swap(self._table, 1, 0, self._at, timeout=PATIENCE)

    def _lock(self) -> None:
        while self._peer.compare_and_swap(self._table, 0, 1, self._at, timeout=PATIENCE) != 0:
            pass

    def _read(self) -> Tuple[bytes, bytes]:
        _, key, value = ENTRY.unpack(self._peer.get(self._table, ENTRY.size, self._at, timeout=PATIENCE))
        return text_of(key), text_of(value)

    def _find(self, key: bytes) -> Optional[Tuple[bytes, bytes]]:
        """Leaves in `_at` the key's entry, or the free one where it belongs: None."""
        count = self._table.length // ENTRY.size
        for i in range(count):
            self._at = (hash_of(key) + i) % count * ENTRY.size
            entry = self._read()
            if entry[0] == key:
                return entry
            if not entry[0]:
                return None
        raise stp.Error(28, "the table is full")


def main(words: List[str]) -> int:
    if not (words[:1] == ["set"] and len(words) == 4) and not (words[:1] == ["get"] and len(words) == 3):
        is_asked = words == ["--help"]
        usage = "usage: kv_client.py set HOST:PORT KEY VALUE | get HOST:PORT KEY"
        print(usage, file=sys.stdout if is_asked else sys.stderr)
        return 0 if is_asked else 2
    with stp.Domain() as domain, domain.connect(words[1]) as peer:
        store = Store(peer)
        if words[0] == "set":
            store.set(words[2].encode(), words[3].encode())
            return 0
        value = store.get(words[2].encode())
        if value is None:
            return 1
        print(value.decode())
        return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (stp.Error, ValueError) as error:
        sys.exit(f"kv_client: {error}")
    except KeyboardInterrupt:  # Ctrl-C
        sys.exit(130)
