//! OpenZFS's own tools and Prometheus's node_exporter, unchanged, on the counters of a mount.
//!
//! `OGIVE_OPENZFS` names directories of OpenZFS's tools, separated by colons. Each has an `arcstat`
//! (or `zarcstat`) and an `arc_summary` (or `zarcsummary`), as installed, or is a checkout of
//! OpenZFS (0.8 or later). Without it the system's tools run. node_exporter is Debian's
//! `prometheus-node-exporter`, or `node_exporter` on the path. A missing tool is skipped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use common::{OGIVE, Place, assert_code, can_mount, eventually, ogive, skipped, stdout};
use rustix::process::{Pid, Signal, kill_process};

/// The file of a program on the path.
fn on_path(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).flat_map(|d| names.iter().map(move |n| d.join(n)));
    found.into_iter().find(|file| file.is_file())
}

/// The tools to try: an `arcstat` and an `arc_summary` each.
fn tools() -> Vec<(PathBuf, PathBuf)> {
    let first = |directory: &Path, names: &[&str]| {
        names.iter().map(|name| directory.join(name)).find(|file| file.is_file())
    };
    let arcstat =
        ["arcstat", "zarcstat", "cmd/zarcstat.in", "cmd/arcstat.in", "cmd/arcstat/arcstat"];
    let summary = [
        "arc_summary",
        "zarcsummary",
        "cmd/zarcsummary",
        "cmd/arc_summary",
        "cmd/arc_summary/arc_summary3",
    ];
    match std::env::var_os("OGIVE_OPENZFS") {
        Some(directories) => std::env::split_paths(&directories)
            .map(|directory| {
                let missing = || panic!("no tools of OpenZFS in {}", directory.display());
                let arcstat = first(&directory, &arcstat).unwrap_or_else(missing);
                (arcstat, first(&directory, &summary).unwrap_or_else(missing))
            })
            .collect(),
        None => on_path(&["zarcstat", "arcstat"])
            .zip(on_path(&["zarcsummary", "arc_summary"]))
            .into_iter()
            .collect(),
    }
}

/// Runs one of OpenZFS's Python programs with `proc` and `sys` in place of the system's, in a
/// mount namespace of its own, which other processes do not see.
fn under(proc: &Path, sys: &Path, tool: &Path, arguments: &[&str]) -> Output {
    Command::new("unshare")
        .args(["--mount", "sh", "-euc"])
        .arg(
            "mount --bind \"$1\" /proc; mount --bind \"$2\" /sys; shift 2; \
             exec env COLUMNS=200 python3 \"$@\"",
        )
        .arg("sh")
        .args([proc, sys, tool])
        .args(arguments)
        .output()
        .unwrap()
}

/// A mount of which 3 MB are read twice.
fn used_mount() -> Place {
    let place = Place::new();
    fs::write(place.source().join("file"), vec![7_u8; 3 << 20]).unwrap();
    place.mount(&["--direct-io"]);
    for _ in 0..2 {
        assert_eq!(fs::read(place.mount_point().join("file")).unwrap().len(), 3 << 20);
    }
    place
}

#[test]
fn openzfs_tools_of_any_release_read_a_mount() {
    if !can_mount() {
        return;
    }
    let tools = tools();
    if tools.is_empty() {
        skipped("no arcstat and arc_summary; OGIVE_OPENZFS can name directories that have them");
        return;
    }
    let place = used_mount();
    let (proc, sys) =
        (place.mount_point().join(".ogive/proc"), place.mount_point().join(".ogive/sys"));
    let point = place.mount_point();
    let target = |form: &str| {
        let own = ogive(["stat".as_ref(), form.as_ref(), "--fields=c".as_ref(), point.as_os_str()]);
        stdout(&own).lines().last().unwrap().trim().to_owned()
    };
    let (raw, scaled) = (target("--raw"), target("--separator= "));
    assert!(raw.parse::<u64>().unwrap() > 0, "{raw}");
    for (arcstat, summary) in tools {
        let columns = ["-f", "c,read,miss", "1", "1"];
        let raw_columns = [&["-p"], &columns[..]].concat();
        // Before 2.0 it has no -p for plain numbers, and prints its usage.
        let (output, expected) = match under(&proc, &sys, &arcstat, &raw_columns) {
            output if output.status.success() => (output, &raw),
            _ => (under(&proc, &sys, &arcstat, &columns), &scaled),
        };
        assert_code(&output, 0);
        let text = stdout(&output);
        let row: Vec<_> = text.lines().last().unwrap_or_default().split_whitespace().collect();
        assert!(row.len() == 3 && row[0] == expected, "{}: {text}", arcstat.display());

        for arguments in [&["-s", "arc"][..], &["-s", "archits"], &["-s", "l2arc"], &[]] {
            let output = under(&proc, &sys, &summary, arguments);
            assert_code(&output, 0);
        }
        let text = stdout(&under(&proc, &sys, &summary, &[]));
        for word in ["ogive", "zfs_arc_max"] {
            assert!(text.contains(word), "{}: no {word}: {text}", summary.display());
        }
    }
}

/// A node_exporter that reads a tree, on a port of its own; ended when dropped.
struct Exporter(Child, u16);

impl Exporter {
    /// If its port was taken meanwhile, it ends, and another port is tried.
    fn start(program: &Path, proc: &Path) -> Self {
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let child = Command::new(program)
                .arg(format!("--path.procfs={}", proc.display()))
                .args(["--collector.disable-defaults", "--collector.zfs"])
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut exporter = Self(child, port);
            let mut has_ended = false;
            eventually("node_exporter", || {
                has_ended = exporter.0.try_wait().unwrap().is_some();
                // Another program at the port answers differently.
                let answers = TcpStream::connect(("127.0.0.1", port)).is_ok();
                has_ended || (answers && exporter.metrics().contains("node_scrape_collector"))
            });
            if !has_ended {
                return exporter;
            }
        }
        panic!("twenty ports that were free were not, or it does not run");
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.1)).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The value of the first sample that begins so.
fn sample(text: &str, begin: &str) -> Option<f64> {
    text.lines().find(|line| line.starts_with(begin))?.rsplit(' ').next()?.parse().ok()
}

fn node_exporter() -> Option<PathBuf> {
    let found = on_path(&["prometheus-node-exporter", "node_exporter"]);
    if found.is_none() {
        skipped("no node_exporter (Debian: prometheus-node-exporter)");
    }
    found
}

#[test]
fn node_exporter_reads_a_mount_as_a_host_with_openzfs() {
    if !can_mount() {
        return;
    }
    let Some(program) = node_exporter() else { return };
    let place = used_mount();
    let exporter = Exporter::start(&program, &place.mount_point().join(".ogive/proc"));
    let text = exporter.metrics();
    assert!(text.contains("node_scrape_collector_success{collector=\"zfs\"} 1"), "{text}");
    // Those of OpenZFS 2.4 and the four removed ones; the signed one is left out by old exporters.
    assert!(text.lines().filter(|line| line.starts_with("node_zfs_arc_")).count() >= 151, "{text}");
    assert!(sample(&text, "node_zfs_arc_size ").unwrap() > f64::from(3 << 20));
    let source = fs::canonicalize(place.source()).unwrap();
    let read = format!(
        "node_zfs_zpool_dataset_nread{{dataset=\"{}\",zpool=\"ogive\"}} ",
        source.display()
    );
    assert_eq!(sample(&text, &read), Some(f64::from(6 << 20)), "{text}");
    let online = "node_zfs_zpool_state{state=\"online\",zpool=\"ogive\"} ";
    assert_eq!(sample(&text, online), Some(1.0), "{text}");
}

#[test]
fn one_directory_has_all_mounts_until_it_is_interrupted() {
    if !can_mount() {
        return;
    }
    let Some(program) = node_exporter() else { return };
    let (one, two) = (used_mount(), used_mount());
    let proc = one.path("proc");
    let mut keeper = Command::new(OGIVE)
        .args(["kstat", "--every", "0.2", "--dir"])
        .args([&proc, &one.mount_point(), &two.mount_point()])
        .spawn()
        .unwrap();
    eventually("the directory", || proc.join("spl/kstat/zfs/xuio_stats").exists());
    let exporter = Exporter::start(&program, &proc);
    let text = exporter.metrics();
    assert!(text.contains("node_scrape_collector_success{collector=\"zfs\"} 1"), "{text}");
    assert!(sample(&text, "node_zfs_arc_size ").unwrap() > f64::from(6 << 20));
    assert_eq!(text.matches("node_zfs_zpool_state{state=\"online\"").count(), 2, "{text}");

    kill_process(Pid::from_child(&keeper), Signal::TERM).unwrap();
    assert!(keeper.wait().unwrap().success());
    assert!(!proc.join("spl").exists(), "old figures are not taken for present ones");
}

#[test]
fn files_outside_the_tree_do_not_exist() {
    let Some(place) = Place::mountable() else { return };
    place.mount(&[]);
    for path in ["nothing", "proc/nothing", "proc/spl/kstat/zfs/abdstats", "sys/nothing/x"] {
        let error = fs::metadata(place.mount_point().join(".ogive").join(path)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{path}: {error}");
    }
    let control = place.mount_point().join(".ogive");
    let error = fs::write(control.join("proc/new"), "").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
    assert!(fs::create_dir(control.join("proc/spl/new")).is_err());
    assert!(fs::remove_file(control.join("proc/spl/kstat/zfs/arcstats")).is_err());
}
