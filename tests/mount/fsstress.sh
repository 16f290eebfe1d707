#!/usr/bin/env bash
# fsstress of the Linux Test Project and xfstests. Concurrent programs make, rename, link, write,
# map, punch, copy and remove files at random, while another sets access control lists.
#
# Then the suite compares the mount with the source: names, all attributes, lists and bytes. It does
# so at once, with warm caches, and again after a new mount, with empty ones. It compares numbers of
# blocks only then, because file systems allocate blocks seconds after a write.
#
# Environment:
#   FSSTRESS          the program (default: fsstress in $PATH, or that of XFSTESTS_DIR)
#   XFSTESTS_DIR      a tree of xfstests that has been built
#   OGIVE_ALL         1: ten times as many operations
# shellcheck source=tests/mount/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite fsstress 'fsstress, and then the mount compared with its source'
program="${FSSTRESS:-${XFSTESTS_DIR:+$XFSTESTS_DIR/ltp/fsstress}}"
program="${program:-fsstress}"
need "$program" getfattr getfacl setfacl

operations=600
[ "${OGIVE_ALL:-}" != 1 ] || operations=6000
readonly PROGRAMS=4

# describe DIRECTORY FILE BLOCKS: writes everything about a tree except access times into FILE. If
# BLOCKS is %b, this includes numbers of blocks.
describe() {
    (
        cd "$1"
        find . -printf '%p|%y|%m|%U:%G|%n links|%s bytes|'"$3"'|%T@|%C@|%i|%l\n' | sort
        find . -type f -print0 | sort -z | xargs -0 -r sha256sum
        find . -print0 | sort -z | xargs -0 -r getfattr -h -d -m - -e hex --
        # getfacl would follow symbolic links out of the tree.
        find . ! -type l -print0 | sort -z | xargs -0 -r getfacl -n -E --
    ) >"$2" 2>"$2.errors"
    [ ! -s "$2.errors" ] || fail "$1: $(wc -l <"$2.errors") errors: $(head -n 3 "$2.errors")"
}

# compare NAME WHEN BLOCKS
compare() {
    describe "$WORK/$1/tree" "$WORK/seen" "$3"
    describe "$WORK/$1-source/tree" "$WORK/below" "$3"
    # A comparison of an empty tree proves nothing.
    [ "$(grep -c '|f|' "$WORK/below")" -ge 20 ] || fail "$1: fewer than 20 files to compare"
    [ "$(grep -c '^user\.' "$WORK/below")" -ge 1 ] || fail "$1: no extended attributes to compare"
    [ "$(grep -c '^user:1:' "$WORK/below")" -ge 1 ] || fail "$1: no access control lists to compare"
    if ! diff "$WORK/below" "$WORK/seen" >"$WORK/difference"; then
        head -n 20 "$WORK/difference"
        fail "$1, seed $seed, $2: $(grep -c '^[<>]' "$WORK/difference") lines differ" \
            '(< below, > seen)'
    fi
}

# run_mode NAME [OPTION...]
run_mode() {
    local name="$1" code=0
    shift
    mount_view "$WORK/$name-source" "$WORK/$name" --allow-other "$@"
    for seed in "$(seed_of 1)" "$(seed_of 2)"; do
        mkdir "$WORK/$name/tree"
        "$program" -d "$WORK/$name/tree" -n "$operations" -p "$PROGRAMS" -s "$seed" \
            -f setfattr=8 -f removefattr=2 -f setattr=0 -f chown=8 -f sync=0 \
            -x "setfacl -R -P -m u:1:rwx,d:u:1:rx '$WORK/$name/tree' 2>/dev/null || true" -X 3 \
            >"$WORK/fsstress.log" 2>&1 || code=$?
        [ "$code" -eq 0 ] || {
            tail -n 20 "$WORK/fsstress.log"
            fail "fsstress $name, seed $seed, ended with $code"
        }
        compare "$name" 'at once' -
        sync -f "$WORK/$name-source"
        unmount_view "$WORK/$name"
        mount_view "$WORK/$name-source" "$WORK/$name" --allow-other "$@"
        compare "$name" 'after a new mount' %b
        say "$name, seed $seed: $(grep -c '|f|' "$WORK/below") files," \
            "$(find "$WORK/$name-source/tree" | wc -l) names," \
            "$(grep -c '^user\.' "$WORK/below") extended attributes"
        rm -rf "$WORK/$name/tree"
        [ -z "$(find "$WORK/$name-source" -mindepth 1)" ] ||
            fail "$name: rm did not remove everything"
    done
    unmount_view "$WORK/$name"
}

seed=''
run_mode default
run_mode direct --direct-io
# With 1 MiB and small records, almost every load evicts another record.
[ -n "${OGIVE_MOUNT_COMMAND:-}" ] || run_mode starved --arc-max 1M --recordsize 4K
passed
