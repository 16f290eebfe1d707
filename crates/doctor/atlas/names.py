"""Collects properties, pool features and tunables of OpenZFS, with their releases."""

import re

import history

SOURCES = r"^(module/.*\.c|include/sys/[^/]*\.h)$"
FEATURE = re.compile(r'\bzfeature_register\(SPA_FEATURE_\w+,\s*"[\w.:-]+",\s*"(\w+)"')
PROPERTY = re.compile(r'\b(zprop_register\w*)\((ZFS|ZPOOL|VDEV)_PROP_\w+,\s*"([\w:]+)"')
KINDS = {"ZFS": "property", "ZPOOL": "pool-property", "VDEV": "device-property"}
OLD = re.compile(r"\bmodule_param\((\w+),\s*(\w+),\s*(\w+)\)")
OLD_CALL = re.compile(r"\bmodule_param_call\((\w+),\s*\w+,\s*\w+,\s*[&\w]+,\s*(\w+)\)")
NEW = re.compile(r"\bZFS_MODULE_PARAM\((\w+),\s*(\w*),\s*(\w+),\s*(\w+),\s*(\w+)")
NEW_CALL = re.compile(
    r"\bZFS_MODULE_(?:VIRTUAL_)?PARAM_CALL\((\w+),\s*(\w*),\s*(\w+),\s*\w+,\s*\w+,\s*(\w+)")
SYSCTL = re.compile(r"\bSYSCTL_(\w+)\(_(vfs_zfs\w*),\s*OID_AUTO,\s*(\w+),\s*([\w| \t\n]+),")
VALUE = re.compile(
    r"^(?:static\s+)?(?:const\s+)?(?:volatile\s+)?(?:unsigned\s+)?\w+\s+(\w+)\s*=\s*"
    r"([^;{}\"]{1,60});", re.M)
TYPES = {"ulong": "u64", "uint": "u32", "int": "i32", "long": "i64", "charp": "text",
         "UINT": "u32", "INT": "i32", "ULONG": "u64", "LONG": "i64", "U64": "u64", "S64": "i64",
         "STRING": "text", "UQUAD": "u64", "PROC": "any", "QUAD": "i64"}


def bare(text):
    """Returns code without comments."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def path(scope):
    """Returns the node of a FreeBSD sysctl: only few nodes have nodes below them."""
    scope = scope.replace("_", ".", 1)
    for above in ("zfs.vdev", "zfs.livelist"):
        scope = scope.replace(above + "_", above + ".")
    return scope


def product(text):
    """Evaluates a default: sums, products and shifts of literals."""
    text = re.sub(r"\b(\d+|0x[0-9a-fA-F]+)(?:U|UL|ULL|L|LL)\b", r"\1", " ".join(text.split()))
    text = {"B_TRUE": "1", "B_FALSE": "0", "TRUE": "1", "FALSE": "0"}.get(text, text)
    if re.fullmatch(r"[\dxa-fA-F\s*+<()-]+", text) and re.search(r"\d", text):
        try:
            return str(eval(text, {"__builtins__": {}}))
        except (SyntaxError, TypeError, NameError):
            return ""
    return ""


def of_file(text):
    """Returns what one file registers: features, properties, tunables and FreeBSD's sysctls."""
    text = bare(text)
    found = {("feature", name) for name in FEATURE.findall(text)}
    found.update((KINDS[kind], name) for _, kind, name in PROPERTY.findall(text))
    values = dict(VALUE.findall(text))
    tunables = set()
    for name, kind, mode in OLD.findall(text):
        tunables.add((name, TYPES.get(kind, kind), "ro" if mode in ("0444", "0400") else "rw",
                      product(values.get(name, "")), ""))
    for name, mode in OLD_CALL.findall(text):
        tunables.add((name, "any", "ro" if mode == "0444" else "rw", product(values.get(name, "")), ""))
    for calls, pattern in ((False, NEW), (True, NEW_CALL)):
        for scope, prefix, name, *kind, mode in pattern.findall(text):
            whole = prefix + name
            node = "vfs." + path(scope)
            tunables.add((whole, "any" if calls else TYPES.get(kind[0], kind[0].lower()),
                          "ro" if mode == "ZMOD_RD" else "rw", product(values.get(whole, "")),
                          f"{node}.{name}"))
    for kind, node, name, flags in SYSCTL.findall(text):
        if kind in ("NODE", "DECL"):
            continue
        own = "vfs." + path(node.removeprefix("vfs_")) + "." + name
        tunables.add(("-", TYPES.get(kind, kind.lower()),
                      "rw" if re.search("RW|WR", flags) else "ro", "", own))
    return found, tunables


def collect(repositories):
    """Returns names -> releases, and tunables -> releases."""
    names, tunables = {}, {}
    for repository, released in repositories:
        trees = {version: history.files(repository, tag, SOURCES) for version, tag in released}
        blobs = {blob for tree in trees.values() for blob in tree.values()}
        found = {blob: of_file(text) for blob, text in history.contents(repository, blobs)}
        for version, tree in trees.items():
            for blob in tree.values():
                for fact in found[blob][0]:
                    names.setdefault(fact, set()).add(version)
                for fact in found[blob][1]:
                    tunables.setdefault(fact, set()).add(version)
    return names, tunables


def name_lines(names, order):
    """Returns lines of features and properties below their kinds, with releases."""
    out = []
    for kind in sorted({kind for kind, _ in names}):
        out.append("= " + kind)
        own = sorted(name for known, name in names if known == kind)
        out += [f"{name} {history.runs(names[kind, name], order)}".rstrip() for name in own]
    return out


def tunable_lines(tunables, order):
    """Returns a line for each form of a tunable, oldest first: two if it changed.

    A fixed value other than zero takes precedence over a percentage of the same name.
    """
    known = {fact[0] for fact in tunables}
    out = []
    first = lambda fact: min(history.number(release) for release in tunables[fact])
    for fact in sorted(tunables, key=lambda fact: (fact[0], first(fact), fact)):
        name, kind, mode, value, sysctl = fact
        wins = f"{name}_percent" if f"{name}_percent" in known else "-"
        out.append(" ".join([name, kind, mode, value or "?", sysctl or "-", wins,
                             history.runs(tunables[fact], order) or "all"]))
    return out
