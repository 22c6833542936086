# SPDX-License-Identifier: BSD-3-Clause
# Completion for all programs. Options and subcommands are read from --help, which alone knows what
# a program can do.
function __stp_help
    set -l words (commandline -opc)
    set -l subcommands ($words[1] --help 2>/dev/null | sed -nE '/^Subcommands:/,/^$/s/^  ([a-z][a-z-]*).*/\1/p')
    for word in $words[2..-1]
        if contains -- $word $subcommands
            $words[1] $word --help 2>/dev/null
            return
        end
    end
    $words[1] --help 2>/dev/null
end

# The values of the option in front of the cursor, where the help lists them: "--poll busy|adaptive".
function __stp_values
    set -l option (commandline -opc)[-1]
    # What somebody has typed becomes no part of a program of sed unless it is a name.
    string match -qr -- '^--[a-z0-9-]+$' "$option"
    and __stp_help | sed -nE "s/^ +(-[a-zA-Z0-9],)?$option ([a-z0-9]+(\|[a-z0-9]+)+)( .*)?\$/\2/p" | string split '|'
end

function __stp_candidates
    if __stp_values
        return
    else if string match -q -- '-*' (commandline -ct)
        __stp_help | sed -nE 's/^ +(-[a-zA-Z0-9],)?(--[a-z0-9-]+).*/\2/p'
    else
        set -l help (__stp_help)
        printf '%s\n' $help | sed -nE '/^Subcommands:/,/^$/s/^  ([a-z][a-z-]*).*/\1/p'
        if string match -q '*Usage:*COUNTER*' -- "$help"
            set -l words (commandline -opc)
            $words[1] stats --list 2>/dev/null | sed -nE 's/^([a-z][a-z_0-9]*) .*/\1/p'
        end
        # The names of this host's list, where a peer is among the words.
        if string match -q '*Usage:*HOST:PORT*' -- "$help"
            sed -E 's/#.*//; s/^[^[:space:]]+//' /etc/hosts 2>/dev/null | string match -ra '\S+' | string replace -r '$' ':'
        end
    end
end

# The command has the option, or the program, in front of its commands.
function __stp_takes_link
    set -l words (commandline -opc)
    begin
        $words[1] --help
        __stp_help
    end 2>/dev/null | string match -qr -- '^ +--link '
end

# Links, and what may follow.
function __stp_links
    set -l current (string replace -r '^--link=' '' -- (commandline -ct))
    set -l before (string replace -r ',[^,]*$' ',' -- $current)
    switch $current
        case 'udp:*,*'
            printf '%s\n' $before{port=,mtu=,queues=,congestion=auto,congestion=on,congestion=off}
        case 'ip:*,*'
            printf '%s\n' $before{mtu=,congestion=auto,congestion=on,congestion=off}
        case 'iface:*' 'udp:*' 'ip:*'
            set -l kind (string replace -r ':.*' ':' -- $current)
            printf '%s\n' $kind(sed -n 's/^ *\([^ :|]*\):.*/\1/p' /proc/net/dev)
        case '*'
            printf '%s\n' loop stpd: iface: udp: ip: memif: vdev: pci:
    end
end

for program in stpd stpctl stp-perf stp-recv stp-replay stp-send stp-sim
    complete -c $program -a '(__stp_candidates)'
    complete -c $program -n __stp_takes_link -l link -x -a '(__stp_links)'
end
