"""Maps functions of Linux to subsystems, by as few prefixes of names as possible.

`reclaim/lru isolate_lru_*` stands for all functions with that prefix. Prefixes of one release also
hold for most names of other releases.
"""

import os
import re
import subprocess

import functions

DIRECTORIES = ["mm", "kernel", "fs", "block", "crypto", "lib", "io_uring", "init", "ipc", "virt",
               "security", "arch/x86", "arch/arm64", "net/core", "net/ipv4", "net/ipv6",
               "net/sunrpc", "net/unix", "net/netfilter", "net/bridge", "net/sched", "net/socket.c",
               "drivers/char", "drivers/nvme", "drivers/scsi/scsi.*", "drivers/ata/libata.*",
               "drivers/md", "drivers/block", "drivers/idle", "drivers/cpuidle",
               "drivers/acpi/processor_.*", "drivers/base", "drivers/tty", "drivers/xen",
               "drivers/virtio", "drivers/net/virtio_net.c"]
# Files of tests, and of hardware that does not occur with ZFS.
LEFT_OUT = re.compile(
    r"test|selftest|kunit|/tools/|math-emu|drivers/char/(agp|ipmi|pcmcia|mwave|tpm|xilly)"
    r"|arch/x86/(platform|um|realmode|boot|purgatory|pci)|drivers/block/(aoe|drbd|paride)"
    r"|drivers/base/(regmap|firmware)|drivers/tty/(serial|hvc|ipwireless)|net/netfilter/ipset")
# A prefix stands for at least LEAST names, of which the part PURE has the same subsystem.
LEAST, PURE = 3, 0.97
# For these subsystems, only prefixes get a line, and single names do not.
COARSE = {"other-file-system", "network", "bpf", "hypervisor", "md", "block", "devices", "terminal",
          "power", "audit", "nfs/client", "btrfs", "xfs", "ext4", "interrupt", "proc", "cgroup",
          "overlay", "modules", "io-uring"}
# The subsystem of functions that only their module describes.
REST = "kernel/other"


def present(root):
    """Returns name -> paths, for the functions of a source tree."""
    included = re.compile("^(" + "|".join(DIRECTORIES) + ")(/|$)")
    paths, found = [], {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            short = os.path.relpath(path, root)
            if not included.match(short) or LEFT_OUT.search(short):
                continue
            if name.endswith(".c"):
                paths.append(path)
            elif name.endswith(".S"):
                text = open(path, errors="replace").read()
                for label in re.findall(r"^\s*SYM_(?:FUNC|INNER_LABEL)_?\w*\((\w+)", text, re.M):
                    found.setdefault(label, set()).add(short)
    import tempfile
    with tempfile.TemporaryDirectory() as scratch:
        for path, name in functions.tags(scratch, paths):
            found.setdefault(name, set()).add(os.path.relpath(path, root))
    return found


def subsystems(found, atlas):
    """Returns name -> subsystem; for a name in several files, the first subsystem of the map."""
    rank = {name: at for at, name in enumerate(atlas.does)}
    known = {}
    for name, paths in found.items():
        if not re.fullmatch(r"[A-Za-z_]\w{3,}", name) or name.isupper() or "_" not in name[1:]:
            continue
        if re.match(r"(__(do|se)_)?(sys|compat_sys|trace|perf_trace)_|.*_(init|exit|setup)$", name):
            continue
        candidates = {atlas.subsystem(path, name) for path in paths} - {None}
        if candidates - {REST}:
            known[name] = min(candidates, key=rank.__getitem__)
    return known


def beginnings(known):
    """Returns prefixes whose names nearly all have one subsystem, and the remaining single names."""
    tree = {}
    for name in known:
        parts = name.split("_")
        for at in range(1, len(parts)):
            start = "_".join(parts[:at]) + "_"
            if len(start.strip("_")) >= 3:
                tree.setdefault(start, []).append(name)
    lines, covered = {}, set()
    for start in sorted(tree, key=len):
        names = tree[start]
        if len(names) < LEAST:
            continue
        counts = {}
        for name in names:
            counts[known[name]] = counts.get(known[name], 0) + 1
        best = max(sorted(counts), key=counts.get)
        if counts[best] < PURE * len(names):
            continue
        above = next((lines[start[:at]] for at in range(len(start) - 1, 0, -1)
                      if start[:at] in lines), None)
        if above != best:
            lines[start] = best
    for name in known:
        above = next((lines[name[:at]] for at in range(len(name), 0, -1) if name[:at] in lines), None)
        if above != known[name] and known[name].removeprefix("kernel/") not in COARSE:
            covered.add(name)
    return lines, covered


def lines(root, atlas):
    """Returns the file's lines: subsystems, and below each its prefixes and names."""
    known = subsystems(present(root), atlas)
    starts, single = beginnings(known)
    groups = {}
    for start, subsystem in starts.items():
        groups.setdefault(subsystem, []).append(start + "*")
    for name in single:
        groups.setdefault(known[name], []).append(name)
    for name, subsystem in atlas.named.items():
        if name not in groups.setdefault(subsystem, []):
            groups[subsystem].append(name)
    out = []
    for subsystem in sorted(groups):
        out.append("= " + subsystem)
        line = ""
        for name in sorted(groups[subsystem]):
            if len(line) + len(name) + 1 > 98:
                out.append(line)
                line = ""
            line = f"{line} {name}".strip()
        if line:
            out.append(line)
    return out
