#!/usr/bin/env bash
# The work of developers: clone, fsck, branch, rebase, build with make and cargo, build again.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite git 'git clone, fsck, branches, and builds by make and cargo inside the mount'
need git make cc

export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org

# Makes a repository with some history, outside the mount.
make_origin() {
    local number
    git init -q -b main "$WORK/origin"
    mkdir "$WORK/origin/src"
    for number in $(seq 60); do
        echo "int value_$number(void) { return $number; }" >"$WORK/origin/src/value_$number.c"
        head -c 20000 /dev/urandom | base64 >"$WORK/origin/data_$number"
        git -C "$WORK/origin" add -A
        git -C "$WORK/origin" commit -q -m "value $number"
    done
    {
        echo '#include <stdio.h>'
        for number in $(seq 60); do echo "int value_$number(void);"; done
        echo 'int main(void) { int sum = 0;'
        for number in $(seq 60); do echo "sum += value_$number();"; done
        printf '%s\n' 'printf("%d\n", sum); return 0; }'
    } >"$WORK/origin/src/main.c"
    cat >"$WORK/origin/Makefile" <<'EOF'
objects := $(patsubst %.c,%.o,$(wildcard src/*.c))
sum: $(objects)
	$(CC) -o $@ $^
EOF
    git -C "$WORK/origin" add -A
    git -C "$WORK/origin" commit -q -m build
}

# work MODE: clones, builds, commits and rebases in the mount.
work() {
    local mode="$1" clone="$WORK/$1/clone"
    git clone -q --no-hardlinks "$WORK/origin" "$clone"
    git -C "$clone" fsck --full --strict >"$WORK/fsck" 2>&1 || fail "$mode: $(cat "$WORK/fsck")"
    [ -z "$(git -C "$clone" status --porcelain)" ] || fail "$mode: a fresh clone is not clean"
    make -s -j2 -C "$clone" sum
    [ "$("$clone/sum")" = 1830 ] || fail "$mode: the program gives $("$clone/sum")"
    # Without a change, make must not build again: the mount must keep times.
    make -q -C "$clone" sum || fail "$mode: make would build again although nothing changed"
    git -C "$clone" checkout -q -b side HEAD~5
    echo more >>"$clone/data_1"
    git -C "$clone" commit -q -a -m side
    git -C "$clone" rebase -q main
    git -C "$clone" gc -q --prune=now
    git -C "$clone" fsck --full --strict >"$WORK/fsck" 2>&1 || fail "$mode: $(cat "$WORK/fsck")"
    # The same repository, read from the source.
    [ -z "$(git -C "$WORK/$mode-source/clone" status --porcelain --untracked-files=no)" ] ||
        fail "$mode: the source is not clean"
    git -C "$WORK/$mode-source/clone" fsck --full --strict >"$WORK/fsck" 2>&1 ||
        fail "$mode: in the source: $(cat "$WORK/fsck")"
}

# cargo_build MODE: builds a crate. The linker writes and rustc reads through mmap.
cargo_build() {
    command -v cargo >/dev/null || { say 'no cargo: builds with cargo were not tested'; return; }
    local crate="$WORK/$1/crate"
    CARGO_TARGET_DIR="$crate/target" cargo init -q --vcs none --name small "$crate"
    (
        cd "$crate"
        CARGO_TARGET_DIR="$crate/target" cargo build -q --offline
        [ "$("$crate/target/debug/small")" = 'Hello, world!' ]
        echo 'fn main() { println!("changed"); }' >src/main.rs
        CARGO_TARGET_DIR="$crate/target" cargo build -q --offline
        [ "$("$crate/target/debug/small")" = changed ]
    ) || fail "$1: cargo build"
}

make_origin
for mode in default direct; do
    options=()
    [ "$mode" = default ] || options=(--direct-io)
    mount_view "$WORK/$mode-source" "$WORK/$mode" "${options[@]}"
    work "$mode"
    cargo_build "$mode"
    unmount_view "$WORK/$mode"
    say "$mode"
done
passed
