#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: under_unit.py UNIT[:DROP-IN] COMMAND...

Runs COMMAND as a service manager would under UNIT, as far as that takes no service manager: its
limits, capabilities, umask, filters of system calls and address families, and a user without rights.
Exit status 77: something that takes is missing here.
"""
import ctypes
import ctypes.util
import errno
import os
import resource
import socket
import subprocess
import sys

NOBODY = 65534
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
ALLOW, DENY_EPERM = 0x7FFF0000, 0x00050000 | errno.EPERM
DENY_FAMILY = 0x00050000 | errno.EAFNOSUPPORT
SAME = 4  # SCMP_CMP_EQ


def missing(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def settings_of(paths):
    """The settings of the section [Service]: name -> values in their order. An empty one begins anew."""
    settings, section = {}, ""
    for path in paths.split(":"):
        for line in open(path, encoding="utf-8"):
            line = line.strip()
            if line.startswith("["):
                section = line
            elif section == "[Service]" and "=" in line and not line.startswith("#"):
                name, value = line.split("=", 1)
                settings[name] = settings.get(name, []) + [value] if value else []
    return settings


def size_of(text):
    if text == "infinity":
        return resource.RLIM_INFINITY
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def set_limits(settings):
    for name, values in settings.items():
        if not name.startswith("Limit"):
            continue
        kind = getattr(resource, "RLIMIT_" + name[len("Limit"):])
        wanted = size_of(values[-1])
        hard = resource.getrlimit(kind)[1]
        if hard != resource.RLIM_INFINITY:  # more may not be allowed here
            wanted = hard if wanted == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (wanted, wanted))


def calls_of(names, known):
    """The system calls that a value of SystemCallFilter= stands for."""
    calls = set()
    for name in names:
        if name.startswith("@"):
            calls |= calls_of(known[name], known)
        else:
            calls.add(name)
    return calls


def known_sets():
    try:
        listing = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True,
                                 text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        missing(f"systemd-analyze: {error}")
    known, current = {}, None
    for line in listing.splitlines():
        if line.startswith("@"):
            current = known.setdefault(line.strip(), [])
        elif line.startswith(" ") and current is not None and not line.strip().startswith("#"):
            current.append(line.strip())
    return known


def allowed_calls(settings):
    known = known_sets()
    allowed = calls_of(["@default"], known)  # systemd adds them to every list
    for value in settings["SystemCallFilter"]:
        if value.startswith("~"):
            allowed -= calls_of(value[1:].split(), known)
        else:
            allowed |= calls_of(value.split(), known)
    return allowed


class Comparison(ctypes.Structure):
    _fields_ = [("argument", ctypes.c_uint), ("how", ctypes.c_int), ("a", ctypes.c_uint64),
                ("b", ctypes.c_uint64)]


def load_seccomp():
    name = ctypes.util.find_library("seccomp")
    if name is None:
        missing("no libseccomp here")
    library = ctypes.CDLL(name)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
    return library


def add(library, filter_, action, call, comparisons=()):
    number = library.seccomp_syscall_resolve_name(call.encode())
    if number >= 0:  # this machine has it
        array = (Comparison * len(comparisons))(*comparisons)
        if library.seccomp_rule_add_array(filter_, action, number, len(comparisons), array) != 0:
            sys.exit(f"no rule for {call}")


def load(library, filter_):
    if library.seccomp_load(filter_) != 0:
        missing("this kernel takes no filter of system calls")


def filter_calls(settings, library):
    allowed = allowed_calls(settings)
    filter_ = library.seccomp_init(DENY_EPERM)
    for call in sorted(allowed):
        add(library, filter_, ALLOW, call)
    return filter_


def filter_families(settings, library):
    wanted = {int(getattr(socket, name)) for name in settings["RestrictAddressFamilies"][-1].split()}
    filter_ = library.seccomp_init(ALLOW)
    for family in range(64):
        if family not in wanted:
            add(library, filter_, DENY_FAMILY, "socket", [Comparison(0, SAME, family, 0)])
    return filter_


def main():
    unit, command = sys.argv[1], sys.argv[2:]
    settings = settings_of(unit)
    if "--restricted" not in command[:1]:
        # First as root, to become who it will be; then once more as that.
        set_limits(settings)
        names = " ".join(settings["AmbientCapabilities"]).lower().replace("cap_", "").split()
        kept = ",".join(["-all", *("+" + name for name in names)])
        os.execvp("setpriv", [
            "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
            f"--inh-caps={kept}", f"--bounding-set={kept}", f"--ambient-caps={kept}",
            "--no-new-privs", sys.executable, sys.argv[0], unit, "--restricted", *command])
    os.umask(int(settings["UMask"][-1], 8))
    libc = ctypes.CDLL(None, use_errno=True)
    if settings.get("MemoryDenyWriteExecute") == ["yes"]:
        libc.prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)  # where the kernel has it
    library = load_seccomp()
    filters = [filter_families(settings, library), filter_calls(settings, library)]
    for filter_ in filters:
        load(library, filter_)
    os.execv(command[1], command[1:])


main()
