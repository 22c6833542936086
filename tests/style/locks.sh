#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: locks.sh ROOT
# clang checks the use of locks only if they are those of stp/base/mutex.h. So the product has no others, but for examples,
# which are for programs that do not know that header.
set -uo pipefail
cd "${1:?usage: locks.sh ROOT}" || exit 1
elsewhere='stp/base/mutex\.h|tools/examples/'
bare='std::((recursive_|shared_|timed_|recursive_timed_|shared_timed_)?mutex|lock_guard|unique_lock|scoped_lock|shared_lock)\b'
bare+='|pthread_(mutex|rwlock|spin)_[a-z]+ *\('
found=$(grep -rnE --include='*.cpp' --include='*.h' --include='*.c' "$bare" stp dpdk_port libst tools |
  grep -vE "^($elsewhere)")
status=$?
[ "$status" -eq 1 ] && exit 0
printf '%s\n' "$found"
echo "Use Mutex and Lock of stp/base/mutex.h, and mark what the lock guards with STP_GUARDED_BY."
exit 1
