# SPDX-License-Identifier: BSD-3-Clause
"""All traces by name, with what stp-replay has to say about each."""

TRACES = {}


class Entry:
    def __init__(self, name, shows, check, play, make):
        self.name, self.shows, self.check, self.play, self.make = name, shows, check, play, make


def trace(shows, check="nothing", play="same", suffix="pcapng"):
    """`check`: the rules that are broken, or notes. `play`: `same`, `differs` or `-` as B."""
    def register(make):
        name = make.__name__.replace("_", "-") + "." + suffix
        assert name not in TRACES, name
        TRACES[name] = Entry(name, shows, check, play, make)
        return make
    return register
