#!/usr/bin/env bash
# Opens of files without a path lookup, also through a bind mount. Three kinds are tested: by
# fanotify, which opens a descriptor for each event, by file handle, and through /proc/self/fd. No
# open fails and no event is lost if a file has several names, is new, or was just renamed.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
suite watchers 'opens without a path'
need python3

source="$WORK/source"
view="$WORK/view"
bound="$WORK/bound"
mkdir "$source" "$bound"

cat >"$WORK/watch.py" <<'PYTHON'
"""Opens files in DIRECTORY while fanotify watches them, and prints faults. If argument two is
"asks", each open waits for a permission."""
import ctypes, errno, os, select, struct, subprocess, sys, threading, time

directory, asks = sys.argv[1], sys.argv[2] == "asks"
CLASS_CONTENT, ADD_MOUNT, OPEN, OPEN_PERM = 4, 0x11, 0x20, 0x10000
libc = ctypes.CDLL(None, use_errno=True)
libc.fanotify_mark.argtypes = [
    ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p]
watch = libc.fanotify_init(CLASS_CONTENT if asks else 0, os.O_RDONLY)
mask = OPEN_PERM if asks else OPEN
if watch < 0 or libc.fanotify_mark(watch, ADD_MOUNT, mask, -100, directory.encode()) < 0:
    sys.exit(77)
seen, faults, stop, end = set(), [], *os.pipe()


def watch_opens():
    while True:
        ready, _, _ = select.select([watch, stop], [], [])
        if watch not in ready:
            return
        try:
            events = os.read(watch, 4096)
        except OSError as error:
            faults.append(f"reading events: {errno.errorcode[error.errno]}")
            continue
        while events:
            length, _, _, _, _, opened, _ = struct.unpack_from("=IBBHQii", events)
            if opened >= 0:
                seen.add(os.fstat(opened).st_ino)
                if asks:
                    os.write(watch, struct.pack("=iI", opened, 1))
                os.close(opened)
            events = events[length:]


thread = threading.Thread(target=watch_opens)
thread.start()
expected = {}
for name in sorted(os.listdir(directory)):
    path = os.path.join(directory, name)
    done = subprocess.run(["cat", path], capture_output=True, text=True, timeout=60)
    if done.stdout != "x\n":
        faults.append(f"{name}: {done.stderr.strip() or done.stdout}")
    expected[os.stat(path).st_ino] = name
    new = os.path.join(directory, "renamed-" + name)
    os.rename(path, new)
    done = subprocess.run(["cat", new], capture_output=True, text=True, timeout=60)
    if done.stdout != "x\n":
        faults.append(f"{name} after its renaming: {done.stderr.strip() or done.stdout}")
    fd = os.open(new, os.O_RDONLY)
    os.rename(new, path)
    again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
    os.close(again)
    os.close(fd)
# All events are in the queue by now, and the thread still reads them.
deadline = time.monotonic() + 60
while not set(expected) <= seen and not faults:
    if time.monotonic() > deadline:
        faults.append(f"no event of {[expected[number] for number in set(expected) - seen]}")
    time.sleep(0.01)
os.write(end, b".")
thread.join()
print("\n".join(faults), end="")
sys.exit(1 if faults else 0)
PYTHON

cat >"$WORK/handles.py" <<'PYTHON'
"""Opens every file below DIRECTORY by its handle, before and after it is renamed and linked."""
import ctypes, os, sys

directory = sys.argv[1]
libc = ctypes.CDLL(None, use_errno=True)
mount = os.open(directory, os.O_RDONLY)


class Handle(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint), ("type", ctypes.c_int), ("bytes", ctypes.c_ubyte * 128)]


def handle_of(path):
    handle, mount_id = Handle(length=128), ctypes.c_int()
    if libc.name_to_handle_at(-100, path.encode(), ctypes.byref(handle), ctypes.byref(mount_id), 0):
        sys.exit(77)
    return handle


for name in sorted(os.listdir(directory)):
    path = os.path.join(directory, name)
    handle = handle_of(path)
    for step in ("at first", "renamed", "linked"):
        if step == "renamed":
            os.rename(path, path + ".new")
        if step == "linked":
            os.link(path + ".new", path)
        fd = libc.open_by_handle_at(mount, ctypes.byref(handle), os.O_RDONLY)
        if fd < 0:
            sys.exit(f"{name} {step}: {os.strerror(ctypes.get_errno())}")
        if os.read(fd, 10) != b"x\n":
            sys.exit(f"{name} {step}: other bytes")
        os.close(fd)
    os.unlink(path + ".new")
PYTHON

# fill DIRECTORY: makes a file with one name, one with several, and one that replaced another.
fill() {
    mkdir -p "$1"
    local name
    for name in single linked replaced; do echo x >"$1/$name"; done
    ln "$1/linked" "$1/other-name"
    ln "$1/replaced" "$1/kept"
    echo x >"$1/new" && mv "$1/new" "$1/replaced"
}

# try TEXT PROGRAM ARGUMENT...: runs a program. Exit code 77 means that the kernel lacks the
# feature.
try() {
    local what="$1" code=0 output
    shift
    output="$(python3 "$@")" || code=$?
    case "$code" in
        0) say "$options $what: every open succeeded" ;;
        77) say "$options $what: this kernel does not support it" ;;
        *) fail "$options $what: $output" ;;
    esac
}

for options in '' --direct-io '--metadata-ttl 30' '--metadata-ttl 0'; do
    # shellcheck disable=SC2086 # no option, or one with its value
    mount_view "$source" "$view" $options
    mount --bind "$view" "$bound"
    remember_mount "$bound"
    for at in "$view" "$bound"; do
        for asks in asks plain; do
            fill "$view/d"
            try "a watcher, $asks, ${at##*/}" "$WORK/watch.py" "$at/d" "$asks"
            rm -r "$view/d"
        done
        fill "$view/d"
        try "handles, ${at##*/}" "$WORK/handles.py" "$at/d"
        rm -r "$view/d"
    done
    umount "$bound"
    unmount_view "$view"
done
passed
