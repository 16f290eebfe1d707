#!/usr/bin/env python3
"""Render cases as the files that a user would have saved.

    render.py CASES.jsonl OUTDIR [--id ID ...]   write OUTDIR/<id>/<files>
    render.py --truth CASES.jsonl                print id, class, accept, family, use (tab separated)

Only `platform`, `symptom` and `facts` are read for the files; `truth` and
`notes` never reach OUTDIR.  Python 3 standard library only.
"""
import argparse
import json
import os
import re
import sys

NS = 1000000000


# ---------------------------------------------------------------- helpers

def lines(*parts):
    return "\n".join(parts) + "\n"


def columns(rows, right=(), sep="  ", least=0):
    """Pad a list of rows of cells to columns; `right` holds right-aligned indexes."""
    rows = [[str(c) for c in r] for r in rows]
    width = [max([least] + [len(r[i]) for r in rows]) for i in range(len(rows[0]))]
    out = []
    for r in rows:
        cells = [c.rjust(width[i]) if i in right else c.ljust(width[i]) for i, c in enumerate(r)]
        out.append(sep.join(cells).rstrip())
    return out


def dash(value):
    return "-" if value is None else str(value)


def gib(nbytes):
    return f"{nbytes / (1 << 30):.1f} GiB"


# ---------------------------------------------------------------- top, ps, load

CPU_KEYS = ("us", "sy", "ni", "id", "wa", "hi", "si", "st")


def load_text(cpu):
    return ", ".join(f"{cpu[k]:.2f}" for k in ("load1", "load5", "load15") if k in cpu)


def top_memory(label, d):
    unit, cells = d["unit"], []
    for key in d["order"]:
        value, word = str(d[key]), key.replace("buff_cache", "buff/cache")
        if key == "avail":
            continue
        if unit == "k":
            cells.append(f"{value:>8}k {word}")
        else:
            cells.append(f"{value:>8}{'' if value.endswith('+') else ' '}{word}")
    text = ", ".join(cells)
    if "avail" in d:
        text += f". {d['avail']:>8} avail Mem "
    head = label if unit == "k" else f"{unit} {label}"
    if label == "Mem":                                # procps-ng 3.3.10+ pads before the colon, older ones after it
        head += " :" if "buff_cache" in d["order"] else ": "
    else:
        head += ":"
    return f"{head} {text}"


def top_txt(facts, _platform):
    if "threads" not in facts and "top" not in facts:
        return None
    if facts.get("top", {}).get("fmt") == "freebsd":
        return freebsd_top(facts)
    top, cpu, out = facts.get("top", {}), facts.get("cpu", {}), []
    if "up" in top:
        users = top["users"]
        out.append(f"top - {top['time']} up {top['up']},  {users} user{'' if users == 1 else 's'},"
                   f"  load average: {load_text(cpu)}")
    if "tasks" in top:
        out.append("Tasks: " + ", ".join(f"{v:>3} {k}" for k, v in top["tasks"].items()))
    if "sy" in cpu:
        if top.get("fmt") == "old":
            out.append("Cpu(s):" + ",".join(f"{cpu[k]:>5.1f}%{k}" for k in CPU_KEYS))
        else:
            out.append("%Cpu(s):" + ",".join(f"{cpu[k]:>5.1f} {k}" for k in CPU_KEYS))
    for key, label in (("mem", "Mem"), ("swap", "Swap")):
        if key in top:
            out.append(top_memory(label, top[key]))
    if facts.get("threads"):
        out += [""] if out else []
        out.append("    PID USER      PR  NI    VIRT    RES    SHR S  %CPU %MEM     TIME+ COMMAND")
        for t in facts["threads"]:
            out.append(f"{t['pid']:>7} {t['user']:<8} {t['pr']:>3} {t['ni']:>3} {t['virt']:>7} {t['res']:>6} "
                       f"{t['shr']:>6} {t['state']} {t['cpu_pct']:>5.1f} {t['mem_pct']:>4.1f} {t['time']:>9} {t['comm']}")
    return lines(*out)


def freebsd_top(facts):
    """FreeBSD's top: other header lines, and WCPU with a percent sign."""
    top, cpu, out = facts["top"], facts.get("cpu", {}), []
    if "load1" in cpu:
        up = f"  up {top['up']}  {top['time']}" if "up" in top else ""
        out.append(f"last pid: {top.get('last_pid', 1000):>5};  load averages: {load_text(cpu).replace(', ', ',  ')}{up}")
    if "id" in cpu:
        names = (("us", "user"), ("ni", "nice"), ("sy", "system"), ("hi", "interrupt"), ("id", "idle"))
        out.append("CPU: " + ", ".join(f"{cpu[k]:>4.1f}% {word}" for k, word in names if k in cpu))
    for key in ("Mem", "ARC", "Swap"):
        if key in top:
            out.append(f"{key}: " + ", ".join(f"{size} {word}" for word, size in top[key].items()))
    if facts.get("threads"):
        out += ["", "  PID USERNAME    PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND"]
        for t in facts["threads"]:
            out.append(f"{t['pid']:>5} {t['user']:<10} {t['pr']:>4} {t['ni']:>4} {t['size']:>6} {t['res']:>6} {t['state']:<7} {t['c']:>2}"
                       f" {t['time']:>6} {t['cpu_pct']:>6.2f}% {t['comm']}")
    return lines(*out)


def uptime_txt(facts, _platform):
    if "uptime" not in facts:
        return None
    u = facts["uptime"]
    return f" {u['time']} up {u['up']},  {u['users']} users,  load average: {load_text(facts['cpu'])}\n"


def ps_txt(facts, _platform):
    ps = facts.get("ps")
    if not ps:
        return None
    if ps["style"] == "aux":
        out = ["USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND"]
        for r in ps["rows"]:
            out.append(f"{r['user']:<8} {r['pid']:>7} {r['cpu_pct']:>4.1f} {r['mem_pct']:>4.1f} {r['vsz']:>6} {r['rss']:>5} "
                       f"{r['tty']:<8} {r['stat']:<4} {r['start']:<5} {r['time']:>6} {r['cmd']}")
    elif ps["style"] == "ef":
        out = ["UID          PID    PPID  C STIME TTY          TIME CMD"]
        for r in ps["rows"]:
            out.append(f"{r['user']:<8} {r['pid']:>7} {r['ppid']:>7} {r['c']:>2} {r['stime']:<5} {r['tty']:<8} {r['time']} {r['cmd']}")
    else:
        out = ["    PID TTY      STAT   TIME COMMAND"]
        for r in ps["rows"]:
            out.append(f"{r['pid']:>7} {r['tty']:<8} {r['stat']:<4} {r['time']:>6} {r['cmd']}")
    return lines(*out)


# ---------------------------------------------------------------- perf

def percent(value, comma=False):
    text = f"{value:.2f}%"
    return text.replace(".", ",") if comma else text


def chain_symbol(perf, symbol):
    module = perf.get("modules", {}).get(symbol)
    return f"{symbol}  [{module}]" if module else symbol


def graph_stdio(perf, stack):
    """Call graph below a row, as `perf report --stdio` draws it."""
    margin, out = " " * 12, []

    def kids(node, left, open_bars):
        children = node.get("kids", [])
        for i, kid in enumerate(children):
            last = i == len(children) - 1
            bars = "".join(("|" if b else " ") + " " * 10 for b in open_bars)
            out.append((left + bars + "|").rstrip())
            first = "--" + percent(kid["pct"]) + "--"
            mark = " " if last else "|"
            for n, symbol in enumerate(kid["chain"]):
                if n == 0:
                    out.append(left + bars + mark + first + chain_symbol(perf, symbol))
                else:
                    out.append((left + bars + mark + " " * 10 + chain_symbol(perf, symbol)).rstrip())
            kids(kid, left, open_bars + [not last])

    left = margin
    if stack["chain"]:
        out.append(margin + "|")
        out.append(margin + "---" + chain_symbol(perf, stack["chain"][0]))
        left = margin + "   "
        for symbol in stack["chain"][1:]:
            out.append(left + chain_symbol(perf, symbol))
    kids(stack, left, [])
    return out


def graph_tui(perf, stack):
    """Call graph below a row, as the text print of the perf browser draws it."""
    out = []

    def node(item, depth):
        for n, symbol in enumerate(item["chain"]):
            pct = percent(item["pct"]) + " " if n == 0 and "pct" in item else ""
            sign = "+ " if item.get("folded") else "- " if n == 0 and (item.get("kids") or len(item["chain"]) > 1) else "  "
            out.append("   " + "   " * depth + sign + pct + chain_symbol(perf, symbol))
        for kid in item.get("kids", []):
            node(kid, depth + (1 if item["chain"] else 0))

    node(stack, 0)
    return out


def perf_rows(perf):
    """Column header and row lines of a perf table."""
    rows, comma = perf["rows"], perf.get("fmt", {}).get("decimal_comma", False)
    has = {key: any(key in r for r in rows) for key in ("children_pct", "comm", "symbol")}
    head = (["Children", "Self"] if has["children_pct"] else ["Overhead"])
    head += (["Command"] if has["comm"] else []) + ["Shared Object"] + (["Symbol"] if has["symbol"] else [])
    cells = [head]
    for r in rows:
        c = [percent(r["children_pct"], comma), percent(r["self_pct"], comma)] if has["children_pct"] else [percent(r["self_pct"], comma)]
        c += [r["comm"]] if has["comm"] else []
        c += [r["dso"]]
        c += [("[k] " if r["kernel"] else "[.] ") + r["symbol"]] if has["symbol"] else []
        cells.append(c)
    right = {0, 1} if has["children_pct"] else {0}
    padded = columns(cells, right, least=8)
    width = [max([8] + [len(str(c[i])) for c in cells]) for i in range(len(head))]
    return padded[0], "  ".join("." * w for w in width), padded[1:]


def perf_report(facts, _platform):
    perf = facts.get("perf", {})
    if perf.get("tool") != "report":
        return None
    head, dots, rows = perf_rows(perf)
    out = ["# To display the perf.data header info, please use --header/--header-only options.", "#", "#",
           "# Total Lost Samples: 0", "#"]
    if "event" in perf:
        out += [f"# Samples: {perf['samples']} of event '{perf['event']}'", f"# Event count (approx.): {perf['event_count']}", "#"]
    out += ["# " + head, "# " + dots, "#"]
    graphs = {s["row"]: s for s in perf.get("stacks", []) if "row" in s}
    for i, row in enumerate(rows):
        out.append("  " + row)
        if i in graphs:
            out += graph_stdio(perf, graphs[i]) + [""]
    return lines(*out)


def perf_top(facts, _platform):
    perf = facts.get("perf", {})
    if perf.get("tool") != "top":
        return None
    head, _dots, rows = perf_rows(perf)
    out = []
    if "event" in perf:
        text = f"Samples: {perf['samples']} of event '{perf['event']}', "
        text += f"{perf['freq_hz']} Hz, " if "freq_hz" in perf else ""
        text += f"Event count (approx.): {perf['event_count']}"
        text += f" lost: {perf['lost']} drop: {perf['drop']}" if "lost" in perf else ""
        out.append(text)
    graphs = {s["row"]: s for s in perf.get("stacks", []) if "row" in s}
    mark = {True: "- ", False: "  "} if graphs else {False: ""}
    out.append(mark[False] + head)
    for i, row in enumerate(rows):
        out.append(mark[i in graphs] + row)
        if i in graphs:
            out += graph_tui(perf, graphs[i])
    return lines(*out)


def folded(facts, _platform):
    out = []
    for s in facts.get("perf", {}).get("stacks", []):
        if "row" in s:
            continue
        if "kernel_frames" in s:                      # bcc `profile -f -d`, stored leaf first
            frames = s["user_frames"][::-1] + ["-"] + s["kernel_frames"][::-1]
        else:
            frames = s["frames"][::-1] if s["order"] == "leaf-first" else s["frames"]
        out.append(";".join(([s["comm"]] if "comm" in s else []) + frames) + f" {s.get('count', 1)}")
    return lines(*out) if out else None


def perf_stat(facts, _platform):
    s = facts.get("perf_stat")
    if not s:
        return None
    return lines(" Performance counter stats:", "",
                 f"{s['task_clock_msec']:>18,.2f} msec task-clock                #{s['cpus_utilized']:>9.3f} CPUs utilized"
                 f"            ( +-{s['plusminus_pct']:>6.2f}% )")


# ---------------------------------------------------------------- kstats

SIGNED = {"memory_available_bytes"}


def kstat_named(values, snap=None, order=None):
    crtime = 5 * NS if snap else 0
    out = [f"13 1 0x01 {len(values)} {len(values) * 272} {crtime} {snap * NS + crtime if snap else 0}",
           f"{'name':<31} {'type':<4} data"]
    for k, v in values.items():
        out.append(f"{v}\t{k}" if order == "value-name" else f"{k:<31} {'3' if k in SIGNED else '4':<4} {v}")
    return lines(*(out[2:] if order == "value-name" else out))


def kstat_table(table):
    out = ["0 0 0x01 -1 0 0 0"]
    for row in [table["cols"]] + table["rows"]:
        out.append(f"{row[0]!s:<17}" + "".join(f"{c!s:<16}" for c in row[1:]))
    return lines(*out)


def kstat_files(facts, _platform):
    meta, files = facts.get("arcstats_meta", {}), {}
    up = meta.get("uptime_s")
    if "arcstats" in facts:
        step = meta.get("interval_s")
        base = up or (86400 if step else None)        # two samples: only their distance counts
        files["arcstats"] = kstat_named(facts["arcstats"], base + (step or 0) if base else None, facts.get("fmt", {}).get("arcstats"))
        if "arcstats_prev" in facts:
            files["arcstats.prev"] = kstat_named(facts["arcstats_prev"], base)
    for run, values in facts.get("arcstats_runs", {}).items():
        files["arcstats." + run] = kstat_named(values)
    for name, data in facts.get("kstats", {}).items():
        files[name] = kstat_table(data) if "rows" in data else kstat_named(data)
    for name, values in facts.get("kstat_illumos", {}).items():
        out = ["module: zfs                             instance: 0     ", f"name:   {name:<32}class:    misc"]
        files[f"kstat-{name}.txt"] = lines(*out, *(f"        {k:<31} {v}" for k, v in values.items()))
    return files


def txgs(facts, _platform):
    if "txgs" not in facts:
        return None
    fmt = "{:<8} {:<16} {:<5} {:<12} {:<12} {:<12} {:<8} {:<8} {:<12} {:<12} {:<12} {:<12}"
    keys = list(facts["txgs"][0])
    out = [f"27 0 0x01 {len(facts['txgs'])} {len(facts['txgs']) * 112} 0 0", fmt.format(*keys)]
    return lines(*out, *(fmt.format(*(t[k] for k in keys)) for t in facts["txgs"]))


def dbgmsg(facts, _platform):
    if "dbgmsg" not in facts:
        return None
    out = ["timestamp    message "]
    for d in facts["dbgmsg"]:
        if "blocks" in d:
            text = f"freed {d['blocks']} blocks in {d['ms']}ms from {d['src']} txg {d['txg']}; err={d['err']}"
        else:
            text = f"bptree index {d['index']}: traversing from min_txg={d['min_txg']} bookmark {d['bookmark']}"
        out.append(f"{d['ts']:<12} {d['file']}:{d['line']}:{d['func']}(): {text}")
    return lines(*out)


def arcstat(facts, _platform):
    t = facts.get("arcstat")
    return lines(*columns([t["cols"]] + t["rows"], right=range(len(t["cols"])))) if t else None


def arc_summary(facts, _platform):
    s = facts.get("arc_summary")
    if not s:
        return None
    out, new = ["-" * 72, "ZFS Subsystem Report", "-" * 72], s["style"] == "0.7"

    def number(v):
        return f"{v:.2f}" if isinstance(v, float) else str(v)

    for title, entries in s["sections"]:
        first = entries[0][0] == title
        if not first:
            out.append(f"{title}:")
        for i, e in enumerate(entries):
            label = e[0] if e[0].endswith(")") and "Adaptive" in e[0] else e[0] + ":"
            head = i == 0 and first
            if len(e) == 2:
                values = [e[1]]
            else:
                values = [number(e[1]) + e[2], number(e[3])] + ([e[4]] if e[4] else [])
            if new:
                out.append(("" if head else " " * 8) + label.ljust(40 if head else 32) + "".join(v.ljust(8) for v in values).rstrip())
            else:
                tabs = "\t" * max(1, 5 - (len(label) + (0 if head else 8)) // 8)
                out.append(("" if head else "\t") + label + tabs + "\t".join(values))
        out.append("")
    return lines(*out[:-1])


# ---------------------------------------------------------------- memory

def meminfo(facts, platform):
    mem = facts.get("mem")
    if not mem and platform["os"] == "Linux" and "ram_bytes" in platform and "free" not in facts and "mem" not in facts.get("top", {}):
        mem = {"MemTotal_kB": platform["ram_bytes"] // 1024}
    if not mem:
        return None
    return lines(*(f"{k[:-3] + ':':<16}{v:>8} kB" for k, v in mem.items()))


def free_txt(facts, _platform):
    f = facts.get("free")
    if not f:
        return None
    out = ["              total        used        free      shared  buff/cache   available"]
    for key in ("Mem", "Swap"):
        if key in f:
            out.append(f"{key + ':':<7}" + " ".join(f"{v:>11}" for v in f[key].values()))
    return lines(*out)


def slabinfo(facts, _platform):
    rows = [s for s in facts.get("slab", []) if "num_objs" in s]
    if not rows:
        return None
    out = ["slabinfo - version: 2.1", "# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab>"
           " : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>"]
    for s in rows:
        out.append(f"{s['name']:<17} {s['active_objs']:>6} {s['num_objs']:>6} {s['objsize']:>6} {s['objperslab']:>4} {s['pagesperslab']:>4}"
                   f" : tunables {s['limit']:>4} {s['batchcount']:>4} {s['sharedfactor']:>4}"
                   f" : slabdata {s['active_slabs']:>6} {s['num_slabs']:>6} {s['sharedavail']:>6}")
    return lines(*out)


def spl_slab(facts, _platform):
    if "spl_slab" not in facts:
        return None
    out = ["--------------------- cache -------------------------------------------------------  ----- slab ------  ---- object -----  --- emergency ---",
           "name                                    flags      size     alloc slabsize  objsize  total alloc   max  total alloc   max  dlock alloc   max"]
    for s in facts["spl_slab"]:
        n = [f"{s[g][k]:>5}" for g in ("slabs", "objects") for k in ("total", "alloc", "max")] + [f"{v:>5}" for v in s["emergency"]]
        out.append(f"{s['name']:<36}  {s['flags']:>7} {s['size']:>9} {s['alloc']:>9} {s['slabsize']:>8} {s['objsize']:>8}  " + " ".join(n))
    return lines(*out)


def buddyinfo_files(facts, _platform):
    files = {}
    for key, name in (("buddyinfo", "buddyinfo"), ("buddyinfo_prev", "buddyinfo.prev")):
        if key in facts:
            files[name] = lines(*(f"Node {b['node']}, zone {b['zone']:>8} " + " ".join(f"{c:>6}" for c in b["counts"]) for b in facts[key]))
    return files


def vmstat_txt(facts, _platform):
    v = facts.get("vmstat")
    if not v:
        return None
    width = dict(r=2, b=2, swpd=6, free=6, buff=6, cache=6, si=4, so=4, bi=5, bo=5, cs=4, us=2, sy=2, id=2, wa=2, st=2)
    width["in"] = 4
    fmt = lambda row: " ".join(f"{c!s:>{width[k]}}" for k, c in zip(v["cols"], row))
    return lines("procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----", fmt(v["cols"]), *(fmt(r) for r in v["rows"]))


def proc_vmstat(facts, _platform):
    v = facts.get("vmstat_file")
    return lines(*(f"{k} {n}" for k, n in v.items())) if v else None


def sar_txt(facts, _platform):
    s = facts.get("sar")
    if not s:
        return None
    row = lambda time, cells: f"{time:<11} " + " ".join(f"{c:>9}" for c in cells)
    return lines(row(s["header_time"], s["cols"]), *(row(r["time"], [f"{x:.2f}" for x in r["v"]]) for r in s["rows"]))


# ---------------------------------------------------------------- I/O and other tools

def iotop_txt(facts, _platform):
    t = facts.get("iotop")
    if not t:
        return None
    out = []
    for key, word in (("total", "Total"), ("actual", "Actual")):
        if key + "_read" in t:
            out.append(f"{word} DISK READ: {t[key + '_read']:>14} | {word} DISK WRITE: {t[key + '_write']:>14}")
    out.append("  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN     IO>    COMMAND")
    for r in t["rows"]:
        out.append(f"{r['tid']:>5} {r['prio']} {r['user']:<8} {r['read']:>11} {r['write']:>11} {r['swapin_pct']:>5.2f} % {r['io_pct']:>5.2f} % {r['comm']}")
    return lines(*out)


def atop_txt(facts, _platform):
    a, out = facts.get("atop"), []
    if a:
        p, c, l, m, s = a["PRC"], a["CPU"], a["CPL"], a["MEM"], a["SWP"]
        out = [f"PRC | sys {p['sys_s']:>7.2f}s | user {p['user_s']:>6.2f}s | #proc {p['proc']:>6} | #zombie {p['zombie']:>4} | #exit {p['exit']:>6} |",
               f"CPU | sys {c['sys']:>7}% | user {c['user']:>6}% | irq {c['irq']:>7}% | idle {c['idle']:>6}% | wait {c['wait']:>6}% |",
               f"CPL | avg1 {l['avg1']:>7.2f} | avg5 {l['avg5']:>7.2f} | avg15 {l['avg15']:>6.2f} | csw {l['csw']:>8} | intr {l['intr']:>7} |",
               f"MEM | tot {m['tot']:>8} | free {m['free']:>7} | cache {m['cache']:>6} | buff {m['buff']:>7} | slab {m['slab']:>7} |",
               f"SWP | tot {s['tot']:>8} | free {s['free']:>7} | {'':>12} | vmcom {s['vmcom']:>6} | vmlim {s['vmlim']:>6} |"]
    if "atop_prc" in facts:
        out.append("    PID  THR  SYSCPU  USRCPU   VGROW   RGROW   RDDSK   WRDSK ST  EXC  S  CPUNR   CPU  CMD")
        for r in facts["atop_prc"]:
            out.append(f"{r['pid']:>7} {r['thr']:>4} {r['sys_s']:>6.2f}s {r['usr_s']:>6.2f}s {r['vgrow']:>7} {r['rgrow']:>7} {r['rddsk']:>7} {r['wrdsk']:>7} "
                       f"{r['st']:<2}  {r['exc']:>3}  {r['s']}  {r['cpunr']:>5} {r['cpu_pct']:>4}%  {r['comm']}")
    return lines(*out) if out else None


def atopsar_txt(facts, _platform):
    t = facts.get("atopsar_disk")
    if not t:
        return None
    out = [f"{t['start']}  {'disk':<15}busy read/s KB/read  writ/s KB/writ avque avserv _dsk_"]
    for r in t["rows"]:
        out.append(f"{r['time']:<8}  {r['disk']:<15}{r['busy_pct']:>3}% {r['reads_s']:>6.1f} {r['kb_read']:>7.1f} {r['writes_s']:>7.1f} "
                   f"{r['kb_write']:>7.1f} {r['avque']:>5.1f} {r['avserv_ms']:>6.2f} ms")
    return lines(*out)


def time_txt(facts, _platform):
    out = []
    for t in facts.get("time", []):
        if t["style"] == "zsh":
            cmd = t["cmd"] + (f" ({t['n_snapshots']} snapshots)" if "n_snapshots" in t else "")
            out.append(f"{cmd}  {t['user_s']:.2f}s user {t['sys_s']:.2f}s system {t['cpu_pct']}% cpu {t['real_s']:.3f} total")
        else:
            out.append(f"$ time {t['cmd']}")
            out += [str(t["output"])] if "output" in t else []
            out.append("")
            out += [f"{k:<7} {int(t[k + '_s'] // 60)}m{t[k + '_s'] % 60:.3f}s" for k in ("real", "user", "sys")]
    return lines(*out) if out else None


def zpool_iostat(facts, _platform):
    rows = facts.get("zpool_iostat")
    if not rows:
        return None
    rule = f"{'-' * 10}  " + "  ".join(["-----"] * 6)
    out = ["              capacity     operations     bandwidth ", "pool        alloc   free   read  write   read  write", rule]
    for name, *cells in rows:
        out.append(f"{name:<10}  " + "  ".join(f"{dash(c):>5}" for c in cells))
    return lines(*out, rule)


TABLES = {"iostat.txt", "pidstat.txt", "mpstat.txt", "gstat.txt", "prstat.txt", "vmstat-freebsd.txt", "procstat-kk.txt", "ps-eL.txt",
          "vmstat-m.txt", "mdb-memstat.txt", "smartctl.txt", "perf-lock.txt", "taskq-all", "fio.txt", "nfsstat.txt", "pgbench.txt",
          "strace-c.txt"}


def table_files(facts, _platform):
    """Plain tables of further tools: optional title lines, column heads, rows as the tool prints them."""
    files = {}
    for name, t in facts.get("tables", {}).items():
        if name not in TABLES:
            raise ValueError(f"no table: {name}")
        left = set(t.get("left", []))
        cells = [[dash(c) for c in r] for r in [t["cols"]] + t["rows"]]
        files[name] = lines(*t.get("title", []), *columns(cells, right=[i for i, c in enumerate(t["cols"]) if c not in left], sep=" "))
    return files


def strace_txt(facts, _platform):
    out = []
    for s in facts.get("strace", []):
        out += [f"{s['call']}({s['fd']}, {s['req']}, {s['arg']}) = {s['ret']} {s['errno']} ({s['errtext']})"] * s["repeat"]
    return lines(*out) if out else None


def udevadm_txt(facts, _platform):
    rows = facts.get("udevadm")
    return lines(*(f"{r['src']:<6}[{r['t']:.6f}] {r['action']:<8} {r['devpath']} ({r['subsystem']})" for r in rows)) if rows else None


def bpftrace_txt(facts, _platform):
    out = []
    for h in facts.get("bpftrace", []):
        biggest = max(n for _label, n in h["buckets"])
        out.append(h["map"] + ":")
        out += [f"{label:<16} {n:>8} |{'@' * (n * 52 // biggest):<52}|" for label, n in h["buckets"]]
    return lines(*out) if out else None


def dtrace_txt(facts, _platform):
    out = []
    if "dtrace_counts" in facts:
        d = facts["dtrace_counts"]
        out += [d["time"]] + [f"  {name:<62} {n:>4}" for name, n in d["counts"].items()]
    if "dtrace_probe" in facts:
        out.append("CPU     ID                    FUNCTION:NAME")
        out += [f"{p['cpu']:>3} {p['id']:>6} {p['func'] + ':' + p['name']:>32} {p['used_MB']}MB of {p['max_MB']}MB used" for p in facts["dtrace_probe"]]
    return lines(*out) if out else None


def lockstat_txt(facts, _platform):
    if "lockstat" not in facts:
        return None
    s, out = facts.get("lockstat_summary"), []
    if s:
        out += [f"{s['event']}: {s['events']} events in {s['seconds']:.3f} seconds ({s['rate']} events/sec)", ""]
    out += ["Count indv cuml rcnt     nsec Hottest Lock           Caller                  ", "-" * 79]
    for r in facts["lockstat"]:
        out.append(f"{r['count']:>5} {r['indv']:>3}% {r['cuml']:>3}% {r['rcnt']:.2f} {r['nsec']:>8} {r['lock']:<22} {r['caller']}")
    return lines(*out)


def sample_txt(facts, _platform):
    s = facts.get("sample")
    if not s:
        return None
    out = ["Call graph:", f"    {s['count']} {s['thread']}   {s['queue']}"]
    for depth, f in enumerate(s["chain"]):
        bars = "".join("+ ! : | "[2 * i:2 * i + 2] for i in range(depth))
        out.append(f"      {bars}{f['count']} {f['sym']}  (in {f['lib']}) + {f['off']}  [{f['addr']}]")
    return lines(*out)


def zdb_txt(facts, _platform):
    rows = facts.get("zdb_metaslabs")
    return lines(*(f"\tmetaslab {r['id']:>6}   offset {r['offset']:>12}   spacemap {r['spacemap']:>6}   free {r['free']:>8}" for r in rows)) if rows else None


# ---------------------------------------------------------------- kernel stacks and messages

def frame(f):
    address = f"[<{f['addr']}>] " if "addr" in f else ""
    return address + ("? " if f.get("maybe") else "") + f"{f['sym']}+{f['off']}/{f['len']}" + (f" [{f['mod']}]" if "mod" in f else "")


def stack_files(facts, _platform):
    files = {}
    for k in facts.get("kernel_stacks", []):
        if k.get("style") != "dmesg":
            name = f"stack-{k['comm']}.txt" if "comm" in k else "stack.txt"
            files[name] = lines(*((frame(f) if "addr" in f else "[<0>] " + frame(f)) for f in k["frames"]))
    if "stack_counts" in facts:
        files["stack-counts.txt"] = lines(*(f"{c['count']:>7} {frame(c)}" for c in facts["stack_counts"]))
    return files


def dmesg_line(d):
    kind = d["type"]
    if kind == "rcu_stall":
        text = "INFO: rcu_sched self-detected stall on CPU"
        if "cpu" in d:
            text += f" {{ {d['cpu']}}}  (t={d['t']} jiffies" + (f" g={d['g']} c={d['c']} q={d['q']}" if "g" in d else "") + ")"
    elif kind == "hung_task":
        text = f"INFO: task {d['comm']}:{d['pid']} blocked for more than {d.get('seconds', 120)} seconds."
    elif kind == "soft_lockup":
        text = f"{'watchdog: ' if d.get('watchdog') else ''}BUG: soft lockup - CPU#{d['cpu']} stuck for {d['seconds']}s! [{d['comm']}:{d['pid']}]"
    elif kind == "ata_failed":
        text = f"{d['port']}: failed command: {d['command']}"
    elif kind == "ata_reset":
        text = f"{d['port']}: hard resetting link"
    elif kind == "nmi":
        text = "sending NMI to all CPUs:"
    elif kind == "io_error":
        text = f"blk_update_request: I/O error, dev {d['dev']}, sector {d['sector']}"
    elif kind == "oom":
        text = f"{d['comm']} invoked oom-killer: gfp_mask={d['gfp_mask']}, order={d['order']}, oom_score_adj={d['oom_score_adj']}"
    elif kind == "page_alloc_failure":
        text = f"{d['comm']}: page allocation failure: order:{d['order']}, mode:{d['mode']}"
    elif kind == "task_dump":
        text = f"Task dump for CPU {d['cpu']}:"
    elif kind == "task":
        text = f"{d['comm']:<15} {d['state']}  running task    {d['stack']:>8} {d['pid']:>5} {d['ppid']:>6} {d['flags']}"
    elif kind == "pid":
        text = f"Pid: {d['pid']}, comm: {d['comm']} Tainted: {d['tainted']} {d['kernel']} {d['board']}"
    else:
        raise ValueError(kind)
    return (f"[{d['ts']:>12.6f}] " if "ts" in d else "") + text


def dmesg_txt(facts, _platform):
    out = [dmesg_line(d) for d in facts.get("dmesg_facts", [])]
    for k in facts.get("kernel_stacks", []):
        if k.get("style") == "dmesg":
            out.append("Call Trace:")
            out += [(f"[{f['ts']:>12.6f}] " if "ts" in f else "") + " " + frame(f) for f in k["frames"]]
    c = facts.get("crash")
    if c:
        out += [f"current process         = {c['pid']} ({c['process']})", f"trap number             = {c['trap']}", f"panic: {c['text']}"]
        out += [f"#{f['n']} {f['addr']} at {f['sym']}+{f['off']}" for f in c["frames"]]
    return lines(*out) if out else None


# ---------------------------------------------------------------- configuration

def zfs_get(facts, _platform):
    rows = [["NAME", "PROPERTY", "VALUE", "SOURCE"]]
    for dataset, props in facts.get("zfs_props", {}).items():
        rows += [[dataset, prop, value, dash(source)] for prop, (value, source) in props.items()]
    return lines(*columns(rows)) if len(rows) > 1 else None


def zpool_list(facts, _platform):
    pools = facts.get("zpool", {}).get("list")
    if pools is None:
        return None
    if not pools:
        return "no pools available\n"
    rows = [["NAME", "SIZE", "ALLOC", "FREE", "CKPOINT", "EXPANDSZ", "FRAG", "CAP", "DEDUP", "HEALTH", "ALTROOT"]]
    for p in pools:
        pct = lambda key: f"{p[key]}%" if key in p else "-"
        rows.append([p["name"], p.get("size", "-"), "-", "-", "-", "-", pct("frag_pct"), pct("cap_pct"), "-", p.get("health", "ONLINE"), "-"])
    return lines(*columns(rows, right=range(1, 9)))


def zpool_status(facts, _platform):
    z = facts.get("zpool", {})
    s = z.get("status")
    if s:
        out = [f"  pool: {s['pool']}", f" state: {s['state']}"]
        if "scan" in s:
            c = s["scan"]
            out.append(f"  scan: {c['type']} repaired {c['repaired']} in {c['duration']} with {c['errors']} errors on {c['date']}")
        if "config" in s:
            out += ["config:", "", "\tNAME                        STATE     READ WRITE CKSUM"]
            out += [f"\t{'  ' * min(i, 1) + n:<27} {st:<8} {r:>5} {w:>5} {c:>5}" for i, (n, st, r, w, c) in enumerate(s["config"])]
        return lines(*out)
    return lines("  pool: pool", " state: ONLINE", f"  scan: {z['scan']}") if "scan" in z else None


def zpool_get(facts, _platform):
    props = facts.get("zpool", {}).get("props")
    return lines(*columns([["NAME", "PROPERTY", "VALUE", "SOURCE"]] + [["pool", k, v, "-"] for k, v in props.items()])) if props else None


def module_params(facts, _platform):
    out = []
    for name, value in facts.get("module_params", {}).items():
        module, param = name.split("/") if "/" in name else ("zfs", name)
        out.append(f"/sys/module/{module}/parameters/{param}:{value}")
    return lines(*out) if out else None


def sysctl_txt(facts, platform):
    if "sysctl" not in facts:
        return None
    colon = platform["os"] in ("FreeBSD", "macOS")
    return lines(*(f"{k}: {v}" if colon or k.startswith("vfs.") else f"{k} = {v}" for k, v in facts["sysctl"].items()))


def sysfs_txt(facts, _platform):
    return lines(*(f"{k}:{v}" for k, v in facts["sysfs"].items())) if "sysfs" in facts else None


def cmdline(facts, _platform):
    return facts["cmdline"] + "\n" if "cmdline" in facts else None


def config_files(facts, _platform):
    return {f"{name}-config.txt": lines(*(f'{k}="{v}"' for k, v in values.items())) for name, values in facts.get("config_files", {}).items()}


def series(low, high):
    """Common leading version parts of a range: 0.8.0 .. 0.8.3 -> 0.8.x."""
    common = []
    for a, b in zip(low.split("-")[0].split("."), high.split("-")[0].split(".")):
        if a != b:
            break
        common.append(a)
    return ".".join(common) + ".x" if len(common) >= 2 else None


def version_txt(_facts, platform):
    out, v = [], platform.get("zfs_version")
    if not v and "zfs_version_range" in platform:
        v = series(*platform["zfs_version_range"])
    if v and re.match(r"\d+\.\d+", v) and "port" not in platform:
        out += [f"zfs-{v}", f"zfs-kmod-{v}"]
    os_name, kernel = platform["os"], platform.get("kernel")
    if os_name == "Linux":
        out.append(f"Linux host {kernel} #1 SMP {platform.get('arch', 'x86_64')} GNU/Linux" if kernel else "Linux")
    elif os_name == "FreeBSD":
        release = platform.get("release", "")
        release += "-RELEASE" if re.fullmatch(r"\d+\.\d+", release) else ""
        out.append(" ".join(x for x in ("FreeBSD host", release, kernel) if x))
    elif os_name == "illumos":
        out.append("SunOS host 5.11 illumos")
    elif os_name == "macOS":
        out.append("Darwin host")
    return lines(*out) if out else None


def os_release(_facts, platform):
    return f'PRETTY_NAME="{platform["distro"]}"\n' if "distro" in platform else None


def lscpu_txt(_facts, platform):
    if platform["os"] != "Linux":
        return None
    out, cpu = [], platform.get("cpu")
    if "ncpu" in platform or "threads_hw" in platform:
        out.append(f"CPU(s):              {platform.get('ncpu', platform.get('threads_hw'))}")
    if cpu:
        m = re.match(r"(\d+) x (.*)", cpu)
        if m:
            out.append(f"Socket(s):           {m[1]}")
        out.append(f"Model name:          {m[2] if m else cpu}")
    if "cpu_flags" in platform:
        out.append(f"Flags:               {' '.join(platform['cpu_flags'])}")
    return lines(*out) if out else None


def notes_txt(facts, platform):
    """Configuration facts that none of the tool outputs above carries."""
    out = []
    v = platform.get("zfs_version")
    if v and ("port" in platform or not re.match(r"\d+\.\d+", v)):
        out.append(f"zfs version: {platform.get('port', '')} {v}".replace(":  ", ": "))
    if "zfs_version_range" in platform:
        low, high = platform["zfs_version_range"]
        out.append(f"zfs version: {low} to {high}" if low else f"zfs version: below {high.rstrip(')')}")
    for other in platform.get("also", []):
        out.append("also seen with: " + ", ".join(f"{k.replace('zfs_version', 'zfs')} {v}" for k, v in other.items()))
    if platform.get("zfs_loaded") is False:
        out.append("zfs module: not loaded")
    for key in ("filesystem", "role", "storage", "virtual", "board", "git", "udev"):
        if key in platform:
            out.append(f"{key}: {platform[key]}")
    for key in ("tools", "patches"):
        if key in platform:
            out.append(f"{key}: {', '.join(platform[key])}")
    if "distro_like" in platform:
        out.append(f"distribution: like {platform['distro_like']}")
    if "cpu_note" in platform or "cpu" in platform and platform["os"] != "Linux":
        out.append(f"cpu: {platform.get('cpu_note', platform.get('cpu'))}")
    if "cores" in platform:
        out.append(f"cpu cores: {platform['cores']}")
    for key, label in (("ncpu_min", "cpus, at least"), ("mounts", "mounted datasets")):
        if key in platform:
            out.append(f"{label}: {platform[key]}")
    if "ram_bytes" in platform and platform["os"] != "Linux":
        out.append(f"memory: {gib(platform['ram_bytes'])}")
    if platform.get("swap_bytes") == 0:
        out.append("swap: none")
    for key, text in (("numa", "numa nodes: more than one"), ("mglru", "multi-generational LRU: on"), ("kernel_or_newer", "kernel: this release or newer")):
        if platform.get(key):
            out.append(text)
    if platform.get("kernel_preempt") is False:
        out.append("kernel preemption: off")
    for text in facts.get("zpool", {}).get("config", []):
        out.append(f"pool layout: {text}")
    return lines(*out) if out else None


def report_txt(facts, _platform, symptom):
    return lines(symptom, *facts.get("report", []))


SINGLE = {
    "top.txt": top_txt, "uptime.txt": uptime_txt, "ps.txt": ps_txt,
    "perf-report.txt": perf_report, "perf-top.txt": perf_top, "stacks.folded": folded, "perf-stat.txt": perf_stat,
    "txgs": txgs, "dbgmsg": dbgmsg, "arcstat.txt": arcstat, "arc_summary.txt": arc_summary,
    "meminfo": meminfo, "free.txt": free_txt, "slabinfo": slabinfo, "spl-slab.txt": spl_slab,
    "vmstat.txt": vmstat_txt, "proc-vmstat": proc_vmstat, "sar.txt": sar_txt,
    "iotop.txt": iotop_txt, "atop.txt": atop_txt, "atopsar.txt": atopsar_txt, "time.txt": time_txt,
    "strace.txt": strace_txt, "udevadm.txt": udevadm_txt, "bpftrace.txt": bpftrace_txt, "dtrace.txt": dtrace_txt,
    "lockstat.txt": lockstat_txt, "sample.txt": sample_txt, "zdb.txt": zdb_txt, "zpool-iostat.txt": zpool_iostat, "dmesg.txt": dmesg_txt,
    "zfs-get.txt": zfs_get, "zpool-list.txt": zpool_list, "zpool-status.txt": zpool_status, "zpool-get.txt": zpool_get,
    "module-params.txt": module_params, "sysctl.txt": sysctl_txt, "sysfs.txt": sysfs_txt, "cmdline": cmdline,
    "version.txt": version_txt, "os-release": os_release, "lscpu.txt": lscpu_txt, "notes.txt": notes_txt,
}
MULTI = (kstat_files, table_files, buddyinfo_files, stack_files, config_files)


def render(case):
    """Return {file name: text} for one case."""
    facts, platform, files = case["facts"], case["platform"], {}
    for name, make in SINGLE.items():
        text = make(facts, platform)
        if text:
            files[name] = text
    for make in MULTI:
        files.update(make(facts, platform))
    files["report.txt"] = report_txt(facts, platform, case["symptom"])
    return files


def load(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def main(argv):
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--truth", action="store_true", help="print the truth table and write nothing")
    ap.add_argument("--id", action="append", help="only this case (may be repeated)")
    ap.add_argument("facts")
    ap.add_argument("outdir", nargs="?")
    args = ap.parse_args(argv)
    cases = load(args.facts)
    if args.id:
        unknown = set(args.id) - {c["id"] for c in cases}
        if unknown:
            ap.error("no such case: " + ", ".join(sorted(unknown)))
        cases = [c for c in cases if c["id"] in args.id]
    if args.truth:
        for c in cases:
            t = c["truth"]
            print(c["id"], t["class"], ",".join(t["accept"]), t["family"], c["use"], sep="\t")
        return 0
    if not args.outdir:
        ap.error("OUTDIR is missing")
    for c in cases:
        folder = os.path.join(args.outdir, c["id"])
        os.makedirs(folder, exist_ok=True)
        for name, text in render(c).items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
