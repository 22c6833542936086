# SPDX-License-Identifier: BSD-3-Clause
# hello_send.py HOST:PORT sends a message and prints the answer. The link is that of STP_LINK.
import sys

import stp

if len(sys.argv) != 2:
    print("usage: hello_send.py HOST:PORT", file=sys.stderr)
    raise SystemExit(2)
try:
    with stp.Domain() as domain, domain.connect(sys.argv[1]) as peer:
        peer.send(b"Hello from the other program")
        print(peer.receive().decode())
except KeyboardInterrupt:
    raise SystemExit(130)
except stp.Error as error:
    raise SystemExit(f"hello_send: {error}")
