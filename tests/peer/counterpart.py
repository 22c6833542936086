# SPDX-License-Identifier: BSD-3-Clause
"""Controls the program at the other end (responder.c) by a line for each call."""
import subprocess
import threading

from station import Failed, Inbox

PATIENCE = 60.0


class Refused(Failed):
    def __init__(self, command, number, text):
        super().__init__(f"`{command}` gave {number}: {text}")
        self.number = number


class Counterpart:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.sessions, self.lock = {}, threading.Lock()
        self.over = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            name, _, rest = line.rstrip("\n").partition(" ")
            session = self.sessions.get(name)
            if session is not None:
                session.replies.put(rest)
        self.over.set()
        for session in self.sessions.values():
            session.replies.put("error 0 the program has ended")

    def session(self, name):
        self.sessions[name] = Session(self, name)
        return self.sessions[name]

    def write(self, line):
        with self.lock:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(60)


class Session:
    def __init__(self, counterpart, name):
        self.counterpart, self.name, self.replies = counterpart, name, Inbox()
        self.asked = []

    def begin(self, *words):
        """Does not wait; answer() returns the result."""
        command = " ".join(str(word) for word in words)
        self.asked.append(command)
        self.counterpart.write(f"{self.name} {command}")

    def answer(self, timeout=PATIENCE):
        command = self.asked.pop(0)
        reply = self.replies.take(timeout)
        if reply is None:
            raise Failed(f"`{command}` does not return")
        kind, _, rest = reply.partition(" ")
        if kind != "ok":
            number, _, text = rest.partition(" ")
            raise Refused(command, int(number), text)
        return rest

    def do(self, *words):
        self.begin(*words)
        return self.answer()

    def refused(self, *words):
        """The errno (positive) with which the call fails."""
        try:
            self.do(*words)
        except Refused as refusal:
            return -refusal.number
        raise Failed(f"`{' '.join(map(str, words))}` succeeds")

    def end(self):
        while self.asked:
            try:
                self.answer()
            except Refused:
                pass
        self.do("end")
