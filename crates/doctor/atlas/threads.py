"""Collects names of threads and task queues of OpenZFS and SPL, with their releases."""

import re

import history

SOURCES = r"^module/(?!splat).*\.c$"
NAMED = re.compile(
    r'\b(?:thread_create_named|zthr_create(?:_timer)?|taskq_create(?:_proc|_sysdc|_synced)?'
    r'|taskq_create_impl|spl_kthread_create|kthread_run|kproc_kthread_add)\s*\('
    r'(?:[^;"]{0,120}?)"([a-zA-Z][\w/-]*)(?:%\w+)?"')
# Linux's SPL names a thread after its function, without "_thread".
BY_FUNCTION = re.compile(r"\b(?<!define\s)thread_create\s*\(\s*NULL\s*,\s*[\w ()<]*,\s*(\w+)\s*,")
# Queues of requests are named after the kind of request and of queue.
QUEUES = re.compile(r"zio_taskq_types\[[^]]*\]\s*=\s*\{([^}]*)\}")
KINDS = re.compile(r"zio_type_name\[[^]]*\]\s*=\s*\{([^}]*)\}")
STRING = re.compile(r'"(\w+)"')


def of_file(text):
    """Returns the names in one file, its queues and its kinds of requests."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    names = {name.rstrip("_-") for name in NAMED.findall(text)}
    names.update(re.sub("_thread$", "", name) for name in BY_FUNCTION.findall(text))
    lists = [STRING.findall("".join(pattern.findall(text))) for pattern in (QUEUES, KINDS)]
    return names, lists[0], lists[1]


def collect(sources):
    """Returns name -> releases, and name -> a path with that name."""
    present, paths = {}, {}
    for repository, released in sources:
        trees = {version: history.files(repository, tag, SOURCES) for version, tag in released}
        blobs = {blob for tree in trees.values() for blob in tree.values()}
        found = {blob: of_file(text) for blob, text in history.contents(repository, blobs)}
        for version, tree in trees.items():
            queues, kinds = [], []
            for path, blob in tree.items():
                names, of_queue, of_kind = found[blob]
                queues, kinds = queues or of_queue, kinds or of_kind
                for name in names:
                    present.setdefault(name, set()).add(version)
                    paths[name] = path
            for kind in kinds:
                for queue in queues:
                    name = f"{kind if kind.startswith('z_') else 'z_' + kind}_{queue}"
                    present.setdefault(name, set()).add(version)
                    paths[name] = "module/zfs/spa.c"
    return present, paths


def lines(present, paths, order, atlas):
    """Returns the file's lines: roles, and below each the names with their releases."""
    groups = {}
    for name, releases in present.items():
        role = atlas.subsystem(paths[name], name)
        groups.setdefault(role, []).append(f"{name} {history.runs(releases, order)}".rstrip())
    for name, role in atlas.named.items():
        if name not in present:
            groups.setdefault(role, []).append(name)
    return [line for role in sorted(groups) for line in ["= " + role, *sorted(groups[role])]]
