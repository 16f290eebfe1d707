#!/usr/bin/env bash
# Common programs on a writable bucket of the demo store: git, SQLite with one writer, tar, rsync,
# and a build.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
bucket_suite programs 'git, SQLite, tar, rsync and a build on a bucket'

serve_demo

if command -v git >/dev/null; then
    say 'a git clone, repacked and checked'
    mount_at one --metadata-ttl 1 --negative-ttl 1
    git init --quiet "$WORK/source"
    (
        cd "$WORK/source"
        for number in $(seq 5); do
            echo "$number" >>file
            git add file
            git -c user.name=a -c user.email=a@b commit --quiet -m "$number"
        done
    )
    # A local clone would copy times, which this mount does not store.
    git clone --quiet --no-local --template= "$WORK/source" "$WORK/one/clone" ||
        fail 'a clone fails'
    git -C "$WORK/one/clone" -c gc.pruneExpire=now gc --quiet || fail 'packing fails'
    git -C "$WORK/one/clone" fsck --strict >/dev/null || fail 'the clone is damaged'
    mount_at two --metadata-ttl 1 --negative-ttl 1
    git -c safe.directory='*' -C "$WORK/two/clone" fsck --strict >/dev/null ||
        fail 'another mount sees a damaged clone'
    unmount_view "$WORK/two"
    unmount_view "$WORK/one"
fi
if command -v sqlite3 >/dev/null || python3 -c 'import sqlite3' 2>/dev/null; then
    say 'SQLite, with one writer'
    mount_at one --metadata-ttl 1 --negative-ttl 1
    python3 "$HERE_BUCKET/database.py" "$WORK/one/database" || fail 'the database is damaged'
    unmount_view "$WORK/one"
fi
if command -v tar >/dev/null; then
    say 'tar, unpacked and compared'
    mount_at one --metadata-ttl 1 --negative-ttl 1
    tar -C "$HERE_BUCKET" --no-same-owner -cf "$WORK/tests.tar" .
    mkdir "$WORK/one/tests"
    # This mount stores no modes, owners and times, so tar must not set them.
    tar -C "$WORK/one/tests" --no-same-owner --no-same-permissions --touch --no-overwrite-dir \
        -xf "$WORK/tests.tar" || fail 'tar cannot write'
    diff -r "$HERE_BUCKET" "$WORK/one/tests" || fail 'wrong bytes'
    unmount_view "$WORK/one"
fi
if command -v rsync >/dev/null; then
    say 'rsync, which must find no difference the second time'
    mount_at one --metadata s3fs --metadata-ttl 1 --negative-ttl 1
    mkdir "$WORK/tree"
    cp -r "$HERE_BUCKET" "$WORK/tree/tests"
    ln -s tests/lib.sh "$WORK/tree/link"
    # Directories in a bucket have neither modes nor times.
    options=(--recursive --links --perms --times --omit-dir-times --chmod=D755)
    rsync "${options[@]}" "$WORK/tree/" "$WORK/one/tree/" || fail 'rsync fails'
    rsync --checksum --dry-run --itemize-changes "${options[@]}" "$WORK/tree/" \
        "$WORK/one/tree/" >"$WORK/changes"
    ! grep '^[<>c]' "$WORK/changes" || fail 'rsync finds a difference'
    unmount_view "$WORK/one"
fi
if command -v cc >/dev/null && command -v make >/dev/null; then
    say 'a small program, built, changed and built again'
    mount_at one --metadata-ttl 1 --negative-ttl 1
    at="$WORK/one/build"
    mkdir "$at"
    printf 'int answer(void);\nint main(void) { return answer(); }\n' >"$at/main.c"
    printf 'int answer(void) { return 3; }\n' >"$at/answer.c"
    # shellcheck disable=SC2016 # make expands it
    printf 'all: main.o answer.o\n\tcc -o "$$TO" main.o answer.o\n' >"$at/Makefile"
    export TO="$WORK/program"
    make --silent -C "$at" || fail 'a build fails'
    code=0
    "$WORK/program" || code=$?
    [ "$code" -eq 3 ] || fail "the program returns $code"
    # Times in a bucket are whole seconds.
    sleep 1.1
    printf 'int answer(void) { return 4; }\n' >"$at/answer.c"
    make --silent -C "$at" || fail 'a second build fails'
    code=0
    "$WORK/program" || code=$?
    [ "$code" -eq 4 ] || fail "the program is not built again, and returns $code"
    # A program in the bucket itself can run.
    cp "$WORK/program" "$at/program"
    unmount_view "$WORK/one"
    mount_at one --file-mode 755
    code=0
    "$at/program" || code=$?
    [ "$code" -eq 4 ] || fail "the program in the bucket returns $code"
    unmount_view "$WORK/one"
fi
unmount_view "$WORK/server"
passed
