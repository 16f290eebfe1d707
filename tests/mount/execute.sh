#!/usr/bin/env bash
# A program that was written and closed through the mount can run from the source at once, without
# ETXTBSY. This works because close(2) returns when the daemon has no writable descriptor left.
# Writes through a duplicated descriptor still arrive after the first one is closed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite execute 'programs run from the source right after they were written'
needs_ogive
need perl

rounds="${OGIVE_EXECUTE_ROUNDS:-100}"
program="$(type -P true)"

# write_by WAY PATH: writes the program, and makes it executable.
write_by() {
    case "$1" in
        cp) cp "$program" "$2" ;;
        # The shell opens the file, duplicates the descriptor and closes the first.
        cat) cat "$program" >"$2" && chmod 755 "$2" ;;
        install) install -m 555 "$program" "$2" ;;
        dd) dd if="$program" of="$2" conv=fsync status=none && chmod 755 "$2" ;;
        append) : >"$2" && chmod 755 "$2" && cat "$program" >>"$2" ;;
        rename) cp "$program" "$2.new" && mv "$2.new" "$2" ;;
        again) cp "$program" "$2" && dd if="$program" of="$2" conv=notrunc status=none ;;
        read-and-write) cp "$program" "$2" && : 3<>"$2" ;;
        # The parent closes its descriptor while the child still writes through its own.
        child) perl -e '
            open my $file, ">", $ARGV[1] or die "$!\n"; chmod 0755, $ARGV[1];
            my $child = fork // die "$!\n";
            if (!$child) {
                open my $program, "<:raw", $ARGV[0] or die "$!\n";
                select(undef, undef, undef, 0.01);
                syswrite $file, join("", <$program>) or die "$!\n";
                exit 0;
            }
            close $file; waitpid $child, 0; exit $? >> 8' "$program" "$2" ;;
    esac
}

# run_all NAME MOUNT_OPTION...
run_all() {
    local name="$1" way number busy
    shift
    mount_view "$WORK/$name-source" "$WORK/$name" "$@"
    for way in cp cat install dd append rename again read-and-write child; do
        busy=0
        for ((number = 0; number < rounds; number++)); do
            write_by "$way" "$WORK/$name/$way-$number" || fail "$way: not written"
            "$WORK/$name-source/$way-$number" 2>>"$WORK/errors" || busy=$((busy + 1))
            cmp -s "$program" "$WORK/$name-source/$way-$number" || fail "$way: other bytes"
        done
        [ "$busy" -eq 0 ] ||
            fail "$name, $way: $busy of $rounds failed: $(tail -n 1 "$WORK/errors")"
    done
    unmount_view "$WORK/$name"
    say "$name: programs written in nine ways ran at once"
}

run_all default
run_all direct --direct-io
passed
