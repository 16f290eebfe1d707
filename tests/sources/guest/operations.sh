#!/usr/bin/env bash
# Counts the NFS operations of the view and of the bare mount, for the same work in the same run.
#
# A row of the table has the work, and the bounds of the view by default and with --direct-io. They
# are percents of the bare mount's operations. The bound `none` allows no READ, and ignores other
# operations. A row may end with a goal that is not reached yet; its bound is today's figure.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite operations 'operations of NFS 4.2, compared with a mount without a view'

# With a shorter TTL, slow machines would request attributes more often than fast ones.
readonly LONG_TTL=acregmin=60,acdirmin=60

# do_work WORK DIRECTORY: does one piece of work.
do_work() {
    local number
    case "$1" in
        random-* | 8k-* | find-* | status-* | make-*)
            case "$1" in
                # A cold start, without caches of the kernel.
                random-* | 8k-* | *-cold) drop_caches ;;
            esac
            python3 "$GUEST/workloads.py" "${1%%-*}" "$2"
            ;;
        made) for number in {1..40}; do echo x >"$2/f$number"; done ;;
        removed) rm "$2"/f* ;;
        replaced)
            for number in {1..40}; do
                echo x >"$2/n"
                mv "$2/n" "$2/t"
            done
            ;;
        read-again) for number in {1..40}; do cat "$2/t" >/dev/null; done ;;
    esac
}

drop_caches() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    sleep 1
}

# count MNT WORK DIRECTORY: does the work, and prints the operations of an NFS mount meanwhile.
count() {
    operations "$1" >"$WORK/before"
    do_work "$2" "$3"
    operations_since "$WORK/before" "$1"
}

WORKS=(random-1 random-2 random-3 8k-1 8k-2 8k-3 find-cold find-again status-cold status-again
    make-cold make-again made removed replaced read-again)

table() {
    cat <<'TABLE'
random-2      none  none
random-3      none  none
8k-2          none  none
8k-3          none  none
find-cold     100   100
find-again    100   100
status-cold   103   103
status-again  110   110
make-cold     125   125   goal 110
make-again    125   125   goal 110
made          140   140   goal 120
removed       110   110
replaced      130   130   goal 120
read-again    100   100
l2-1          105   105
TABLE
}

# reads_of: counts the READs among the operations on standard input.
reads_of() {
    { grep -oE '\bREAD(_PLUS)?=[0-9]+' || true; } | awk -F = '{ all += $2 } END { print all + 0 }'
}

# judge MODE ROWS: checks $WORK/view against $WORK/bare, for the rows of the table that match ROWS.
# The view may have four more operations, for its own folder.
judge() {
    local work default direct goal bound view bare counted allowed
    while read -r work default direct _ goal; do
        bound="$default"
        [ "$1" = default ] || bound="$direct"
        view="$(grep "^$work " "$WORK/view")"
        bare="$(grep "^$work " "$WORK/bare")"
        if [ "$bound" = none ]; then
            [ "$(reads_of <<<"$view")" -eq 0 ] || wrong "$1: records are read a second time: $view"
            continue
        fi
        counted="$(cut -d ' ' -f 2 <<<"$view")" allowed="$(cut -d ' ' -f 2 <<<"$bare")"
        if [ -n "$goal" ] && [ "$counted" -le $((allowed * goal / 100 + 4)) ]; then
            say "$1: $work: the goal of $goal % is reached: lower the bound to it"
        fi
        allowed=$((allowed * bound / 100 + 4))
        [ "$counted" -le "$allowed" ] ||
            wrong "$1: $allowed allowed ($bound % of bare): $view | bare $bare"
    done < <(table | grep "^$2")
}

# count_all MNT DIRECTORY MODE: counts every piece of work, a line each.
count_all() {
    local work directory small="small$3"
    mkdir "$2/$small"
    for work in "${WORKS[@]}"; do
        directory="$2"
        case "$work" in made | removed | replaced | read-again) directory+=/$small ;; esac
        echo "$work $(count "$1" "$work" "$directory")"
    done
}

CLIENT="$WORK/bare-mount"
open_source nfs4.2 "$LONG_TTL"
python3 "$GUEST/workloads.py" prepare "$SERVER"
mount_client nfs4.2 "$CLIENT" "$LONG_TTL"
count_all "$CLIENT" "$CLIENT/$NAME" bare >"$WORK/bare"
sed 's/^/bare: /' "$WORK/bare"
for mode in default --direct-io; do
    view_of "$mode"
    count_all "${SOURCE%/*}" "$VIEW" "$mode" >"$WORK/view"
    sed "s/^/$mode: /" "$WORK/view"
    judge "$mode" '[^l]'
    unmount_view "$VIEW"
done

# The second level holds most of the set, also after a new mount. The first pass is a row of the
# table.
readonly L2="--direct-io --arc-max 16M --l2 $WORK/l2 --l2-size 200M --l2-admit all"
view_of "$L2"
for pass in 1 2 3; do
    echo "l2-$pass $(count "${SOURCE%/*}" "random-$pass" "$VIEW")"
done >"$WORK/view"
sed 's/^/--l2: /' "$WORK/view"
bare="$(sed -n 's/^random-1 /l2-1 /p' "$WORK/bare")"
echo "$bare" >"$WORK/bare"
judge --l2 l2-
[ "$(grep '^l2-3' "$WORK/view" | reads_of)" -eq 0 ] || wrong '--l2: records are read a second time'
unmount_view "$VIEW"
view_of "$L2"
count "${SOURCE%/*}" random-1 "$VIEW" >"$WORK/view"
say "--l2, mounted again: $(cat "$WORK/view")"
[ "$(reads_of <"$WORK/view")" -le 192 ] ||
    wrong '--l2: more than half of 384 records were read again'
unmount_view "$VIEW"
verdict
