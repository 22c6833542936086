# SPDX-License-Identifier: BSD-3-Clause
# Prints each message and answers it, until the peer is done. The link is that of STP_LINK.
import stp
try:
    with stp.Domain() as domain, domain.listen(":3000") as listener:
        print("listening", flush=True)
        with listener.accept() as peer:
            for message in peer:
                print(message.decode())
                peer.send(b"I have read it")
except KeyboardInterrupt:
    raise SystemExit(130)
except stp.Error as error:
    raise SystemExit(f"hello_receive: {error}")
