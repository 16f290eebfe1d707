#!/usr/bin/env bash
# A recently used tree can be removed at once and completely. An NFS client renames a removed file
# that is still open ("silly rename"), and then its directory is not empty.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
guest_suite removed-trees 'recently used trees are removed completely'

# repositories: makes two repositories with two commits each, checks and removes them.
repositories() {
    local number commit
    for number in 1 2; do
        mkdir "r$number"
        cd "r$number"
        git init -q .
        git config user.email a@b
        git config user.name n
        for commit in 1 2; do
            echo "$commit" >"f$commit"
            git add .
            git commit -qm "$commit"
        done
        [ "$number" = 1 ] || sleep 3
        git fsck 2>&1
        cd ..
        rm -r "r$number"
    done
}

# tree DIRECTORY: makes five directories with eight files each.
tree() {
    local directory name
    for directory in "$1"/d{1,2,3,4,5}; do
        mkdir -p "$directory"
        for name in 1 2 3 4 5 6 7 8; do
            echo "$name" >"$directory/f$name"
        done
    done
}

# trees: removes trees that are new, that were read, that are four seconds old, and that were
# unpacked.
trees() {
    tree made
    rm -r made
    tree read
    cat read/*/* >/dev/null
    rm -r read
    tree old
    sleep 4
    ls -lR old >/dev/null
    rm -r old
    mkdir unpacked
    tar -C /usr/include -c linux/usb | tar -C unpacked -x
    rm -r unpacked
}

# replaced: removes a file that replaced another, and then its directory.
replaced() {
    local round
    for round in 1 2 3; do
        mkdir "m$round"
        echo old >"m$round/to"
        echo new >"m$round/from"
        mv "m$round/from" "m$round/to"
        cat "m$round/to"
        rm "m$round/to"
        rmdir "m$round"
    done
}

# temporary: makes and removes temporary directories; a failed removal is not repeated.
temporary() {
    python3 - <<'PYTHON'
import os
import tempfile

for _ in range(15):
    with tempfile.TemporaryDirectory(dir='.') as directory:
        for name in 'ab':
            with open(f'{directory}/{name}', 'w+') as file:
                file.write('x')
                file.seek(0)
                file.read()
    os.mkdir('closed')
    with open('closed/f', 'w') as file:
        os.unlink('closed/f')
    os.rmdir('closed')
PYTHON
}

# in_view COMMAND: runs a command in the view, which must be empty afterwards.
in_view() {
    cd "$VIEW"
    "$1"
    [ -z "$(ls -A "$VIEW")" ] || fail "left in the view: $(ls -A "$VIEW")"
    eventually 30 "the server's folder is empty" is_empty "$SERVER"
}

while read -r kind mode; do
    open_source "$kind"
    view_of "$mode"
    for what in repositories trees replaced temporary; do
        row "$kind $mode: $what" in_view "$what"
        cd /
        # The next check begins with an empty folder.
        rm -rf "${VIEW:?}"/* 2>/dev/null || { sleep 5 && rm -rf "${VIEW:?}"/*; } || true
    done
    close_source
done <<'ROWS'
nfs4.2 default
nfs4.2 --direct-io
nfs4.2 --metadata-ttl 0 --negative-ttl 0
nfs4.1 default
nfs4.0 default
nfs3 default
nfs3 --direct-io
smb default
smb --direct-io
ROWS
verdict
