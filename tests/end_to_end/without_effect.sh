#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs refuse options that would have no effect, and empty values, as of a script's unset variable: status 2.
. "$(dirname "$0")/setup.sh"
make_work_directory
random_file "$work/file" 1K

# refuses TEXT PROGRAM ARGUMENT...
refuses() {
  timeout 20 "$bin/$2" "${@:3}" >"$work/said.log" 2>&1
  local status=$?
  [ "$status" -eq 2 ] || fail "status $status of: ${*:2}"
  says "$work/said.log" "$2: $1" || fail "another text of: ${*:2}"
}

refuses "--config: the value is empty" stpd --link loop --config ""
refuses "--check: the value is empty" stpd --check ""
for option in --cpus --user --listen --max-slots --max-mapped --poll --pcap; do
  refuses "$option: the value is empty: write one, or leave the option out" stpd --link loop "$option" ""
  refuses "$option: the value is empty: write one, or leave the option out" stpd "$option=" --link loop
done
refuses "--retry: the value is empty" stp-send --retry "" "$work/file" :3000
refuses "--per-peer: the value is empty" stp-recv --out "$work" --listen :3000 --per-peer ""
refuses "--from: 0 is too small: write 1 or more" stp-replay ladder -o x.svg --from 0 "$work/file"
refuses "--seeds: the value is empty" stp-sim --seeds ""
refuses "--seeds: '-1' is no range of seeds: write FIRST..LAST" stp-sim --seeds -1
refuses "--jobs: -1 is too small: write 1 to 256" stp-sim --seeds 1..2 --jobs -1
refuses "--json=x: write --json alone" stpctl links --json=x
refuses "nothing takes 'loop': 'stpd --help'" stpd loop
refuses "--out: the value is empty" stp-recv --out "" --listen :3000
refuses "FILE: the value is empty" stp-send "" :3000
refuses "--exclude: the value is empty" stp-send -r --exclude "" "$work" :3000
refuses "peer: the value is empty" stp-perf --link loop latency ""
refuses "--at: the value is empty" stp-replay check --at "" "$work/file"
refuses "--link: the value is empty" stp-replay play --as 02:00:00:00:00:01 --link "" "$work/file"
refuses "--provider: the value is empty" stpctl dat-conf --provider ""
refuses "--link: the value is empty: write one, or leave the option out" stp-send --link "" "$work/file" :3000
refuses "--link: the value is empty" stp-recv --link "" --listen :3000 --out "$work"
refuses "--link: the value is empty" stp-perf --link "" latency
refuses "--link: the value is empty" stpctl ping --link "" :3000
refuses "--socket: the value is empty" stpctl --socket "" links
refuses "--pcapng: the value is empty" stp-sim --seed 1 --pcapng ""
refuses "--group is for --user" stpd --link loop --group root
refuses "--jobs requires --seeds" stp-sim --seed 1 --jobs 2
for other in --list --overhead "--incast 2" "--soak 1"; do
  # shellcheck disable=SC2086
  refuses "--profile excludes ${other%% *}" stp-sim --profile all $other
done
# There is no help of what is not there.
refuses "there is no command 'send'; there are links" stpctl send --help
refuses "there is no command 'trace list'; there are start stop status" stpctl trace list --help
refuses "there is no command 'reads'; there are" stp-perf reads --help
refuses "HOST:PORT is missing" stpctl ping
refuses "--serve excludes --count" stpctl ping --serve --count 3 :3000
refuses "--for: 0 is too small: write 0.001 to 1000000000" stpctl trace --out "$work/trace" --for 0
refuses "--frames: 0 is too small: write 1 or more" stpctl trace --out "$work/trace" --frames 0
passed
