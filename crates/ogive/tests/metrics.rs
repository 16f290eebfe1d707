//! A mount's counters in the programs that read them: promtool and Prometheus.
//!
//! The rules and the dashboard in `dist/` are checked against the counters of a real mount.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::skipped::only_nightly;
use common::{Place, assert_code, can_mount, eventually, ogive, skipped, stderr};

fn dist(name: &str) -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist")).unwrap().join(name)
}

/// The time limit of each wait; no working program needs it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A port that was free a moment ago. Its user has to try another one if another program took it.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A mount that serves its counters, with its port. Another program may take a port between its
/// choice and its use, so several are tried.
fn mount() -> (Place, u16) {
    mount_with(&[])
}

fn mount_with(further: &[&str]) -> (Place, u16) {
    let place = Place::new();
    fs::write(place.source().join("file"), vec![7_u8; 3 << 20]).unwrap();
    for _ in 0..20 {
        let port = free_port();
        let mut line: Vec<PathBuf> = vec!["mount".into(), "--direct-io".into()];
        line.push(format!("--metrics=127.0.0.1:{port}").into());
        line.extend(further.iter().map(PathBuf::from));
        line.extend([place.source(), place.mount_point()]);
        let output = ogive(line);
        if output.status.success() {
            assert_eq!(fs::read(place.mount_point().join("file")).unwrap().len(), 3 << 20);
            return (place, port);
        }
        assert!(stderr(&output).contains("cannot serve metrics"), "{}", stderr(&output));
    }
    panic!("twenty ports that were free were not");
}

/// The answer: the head, and the body.
fn get(port: u16, path: &str, fields: &str) -> (String, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\n{fields}\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn metrics(port: u16) -> String {
    let (head, body) = get(port, "/metrics", "Host: localhost\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body
}

/// Runs promtool; `None` if it is not installed.
fn promtool(arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let child = Command::new("promtool")
        .args(arguments)
        .current_dir(dist("prometheus"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        skipped("no promtool (Debian: prometheus)");
        return None;
    };
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn promtool_finds_no_fault_in_the_counters_of_a_mount() {
    if !can_mount() {
        return;
    }
    let (place, port) = mount();
    let text = metrics(port);
    let mount = format!("{{mount=\"{}\"", fs::canonicalize(place.mount_point()).unwrap().display());
    let read = format!("ogive_read_bytes_total{mount}}} {}", 3 << 20);
    assert!(text.lines().any(|line| line == read), "no {read}: {text}");
    // A row that a mount does not have would be a family without a sample.
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = line.split(' ').next().unwrap();
        let is_sample = |line: &str| line.starts_with(name) && !line.starts_with('#');
        assert!(text.lines().any(is_sample), "{name} has no sample");
    }
    let Some((clean, output)) = promtool(&["check", "metrics"], &text) else { return };
    assert!(clean && output.is_empty(), "{output}");
}

#[test]
fn scrapers_of_openmetrics_get_it_and_pages_of_other_sites_get_nothing() {
    if !can_mount() {
        return;
    }
    let (_place, port) = mount();
    let accept = "Host: localhost\r\nAccept: application/openmetrics-text;version=1.0.0\r\n";
    let (head, body) = get(port, "/metrics", accept);
    assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(body.ends_with("\n# EOF\n") && body.contains("# TYPE ogive_read_bytes counter\n"));
    for (path, fields, status) in [
        ("/metrics", "Host: rebound.example\r\n", 421),
        ("/metrics", "Host: localhost\r\nOrigin: http://evil.example\r\n", 403),
        ("/metrics/../../etc/passwd", "Host: localhost\r\n", 404),
    ] {
        let (head, _) = get(port, path, fields);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {fields}: {head}");
    }
}

/// A process that ends with its parent.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_live_view_serves_the_counters_of_its_mounts_behind_its_gate() {
    if !can_mount() {
        return;
    }
    let (place, _port) = mount();
    let token = place.path("token");
    fs::write(&token, "0123456789abcdef\n").unwrap();
    fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut watch = Command::new(common::OGIVE)
        .args(["watch", "--listen", "127.0.0.1:0", "--token"])
        .args([token, place.mount_point()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = std::io::BufReader::new(watch.stdout.take().unwrap());
    let _watch = Ended(watch);
    let link = std::io::BufRead::lines(output).next().unwrap().unwrap();
    let address = link.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let port = address.rsplit(':').next().unwrap().parse().unwrap();

    let bearer = "Authorization: Bearer 0123456789abcdef\r\n";
    for (fields, status) in [
        ("Host: localhost\r\n", 401),
        ("Host: rebound.example\r\nAuthorization: Bearer 0123456789abcdef\r\n", 421),
    ] {
        let (head, body) = get(port, "/metrics", fields);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {head}");
        assert!(!body.contains("ogive_read_bytes"), "{body}");
    }
    let real = fs::canonicalize(place.mount_point()).unwrap();
    let answers = format!("ogive_mount_answers{{mount=\"{}\"}} 1", real.display());
    let mut text = String::new();
    // On a busy machine an answer may come too late for its scrape.
    eventually("the mount answers in time", || {
        let (head, body) = get(port, "/metrics", &format!("Host: localhost\r\n{bearer}"));
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        text = body;
        text.lines().any(|line| line == answers)
    });
    let read = format!("ogive_read_bytes_total{{mount=\"{}\"}} {}", real.display(), 3 << 20);
    assert!(text.lines().any(|line| line == read), "no {read}: {text}");
    assert!(text.lines().any(|line| line == "ogive_watch_mounts 1"), "{text}");
    let Some((clean, output)) = promtool(&["check", "metrics"], &text) else { return };
    assert!(clean && output.is_empty(), "{output}");
}

#[test]
fn without_requests_nothing_wakes_up() {
    if !can_mount() {
        return;
    }
    let (place, _port) = mount();
    let threads = format!("/proc/{}/task", place.pid());
    // The number of times the thread went to sleep, and whether it sleeps. The thread sets its name,
    // maybe after the mount answers.
    let looked_at = || -> Option<(u64, bool)> {
        let mut statuses = fs::read_dir(&threads).unwrap().filter_map(|entry| {
            let path = entry.unwrap().path();
            let is_its = fs::read_to_string(path.join("comm")).is_ok_and(|n| n == "metrics\n");
            is_its.then(|| fs::read_to_string(path.join("status")).unwrap())
        });
        let status = statuses.next()?;
        assert_eq!(statuses.next(), None, "there are two");
        let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let waits = value("voluntary_ctxt_switches:").unwrap().trim().parse().unwrap();
        Some((waits, value("State:").unwrap().trim().starts_with('S')))
    };
    let mut before = 0;
    eventually("the thread sleeps", || match looked_at() {
        Some((waits, is_asleep)) => std::mem::replace(&mut before, waits) == waits && is_asleep,
        None => false,
    });
    // It may sleep before it waits for requests, but then reads of the mount never wake it.
    for _ in 0..200 {
        assert_eq!(fs::read(place.mount_point().join("file")).unwrap().len(), 3 << 20);
    }
    let (after, _) = looked_at().unwrap();
    assert!(after <= before + 1, "{before} and then {after}");
}

#[test]
fn addresses_that_other_hosts_reach_are_refused() {
    let place = Place::new();
    for address in ["0.0.0.0:9135", "[::]:0", "192.0.2.1:80"] {
        let output = ogive([
            "mount".as_ref(),
            "--foreground".as_ref(),
            format!("--metrics={address}").as_ref(),
            place.source().as_os_str(),
            place.mount_point().as_os_str(),
        ]);
        // Without FUSE, the missing FUSE is the first error.
        if output.status.code() != Some(5) {
            assert_code(&output, 2);
            assert!(stderr(&output).contains("not an address of this host alone"));
        }
    }
}

/// All names of our metrics in a text.
fn names(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .filter(|word| word.starts_with("ogive_"))
        .map(str::to_owned)
        .collect()
}

/// The expressions of all panels.
fn expressions(dashboard: &serde_json::Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn rules_and_dashboard_query_counters_that_a_mount_has() {
    if !can_mount() {
        return;
    }
    let (_place, port) = mount();
    let metrics_read = metrics(port);
    let dashboard = fs::read_to_string(dist("grafana/ogive.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&dashboard).unwrap();
    let rules = fs::read_to_string(dist("prometheus/ogive.rules.yml")).unwrap();
    let asked = [expressions(&dashboard).join(" "), rules].join(" ");
    // Counters of mounts with a second level are in the table of the crate, which its tests check.
    for name in names(&asked).iter().filter(|name| !name.starts_with("ogive_l2_")) {
        let is_told = metrics_read.lines().any(|line| {
            line.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['{', ' ']))
        });
        assert!(is_told, "no mount tells {name}");
    }
    // With values for Grafana's variables, Prometheus must parse all expressions.
    let mut rules = "groups:\n- name: panels\n  rules:\n".to_owned();
    for (number, expression) in expressions(&dashboard).iter().enumerate() {
        let plain = expression.replace("$__rate_interval", "5m").replace('\'', "''");
        rules += &format!("  - record: panel:{number}\n    expr: '{plain}'\n");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), rules).unwrap();
    let checked = promtool(&["check", "rules", file.path().to_str().unwrap()], "");
    assert!(checked.is_none_or(|(clean, output)| clean || panic!("{output}")));
}

#[test]
fn alerts_name_causes_of_the_doctor_and_pass_their_tests() {
    let rules = fs::read_to_string(dist("prometheus/ogive.rules.yml")).unwrap();
    let causes: Vec<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("cause: ")).collect();
    let alerts = rules.lines().filter(|line| line.trim().starts_with("- alert: ")).count();
    assert!(alerts > 5 && causes.len() == alerts, "each alert names a cause: {causes:?}");
    for cause in causes.into_iter().filter(|cause| *cause != "none") {
        assert_code(&ogive(["doctor", "--explain", cause]), 0);
    }
    for arguments in [
        &["check", "rules", "ogive.rules.yml"][..],
        &["check", "config", "prometheus.yml"],
        &["test", "rules", "ogive.test.yml"],
    ] {
        let Some((clean, output)) = promtool(arguments, "") else { return };
        assert!(clean, "{arguments:?}: {output}");
    }
}

/// A Prometheus that is ended when dropped.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The answer of Prometheus to a query; `None` while it does not answer.
fn queried(port: u16, what: &str) -> Option<serde_json::Value> {
    TcpStream::connect(("127.0.0.1", port)).ok()?;
    let (_, body) = get(port, &format!("/api/v1/query?query={what}"), "Host: localhost\r\n");
    // Long answers come in chunks; the JSON is what is between the first and the last brace.
    let json = &body[body.find('{')?..=body.rfind('}')?];
    serde_json::from_str(json).ok()
}

/// Starts one with the configuration in a directory; `None` if it is not installed. If its port was
/// taken meanwhile, it ends, and another port is tried.
fn prometheus(directory: &Path) -> Option<(Prometheus, u16)> {
    for _ in 0..20 {
        let port = free_port();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", directory.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut started = Prometheus(child);
        let mut has_ended = false;
        eventually("Prometheus", || {
            has_ended = started.0.try_wait().unwrap().is_some();
            has_ended || queried(port, "up").is_some_and(|answer| answer["status"] == "success")
        });
        if !has_ended {
            return Some((started, port));
        }
    }
    panic!("twenty ports that were free were not, or it does not run");
}

#[test]
fn prometheus_records_the_cpu_by_role_with_the_configuration_in_dist() {
    if !can_mount() {
        return;
    }
    let (place, port) = mount();
    let directory = place.path("prometheus");
    fs::create_dir(&directory).unwrap();
    fs::copy(dist("prometheus/ogive.rules.yml"), directory.join("ogive.rules.yml")).unwrap();
    let model = fs::read_to_string(dist("prometheus/prometheus.yml")).unwrap();
    assert!(model.contains("127.0.0.1:9135") && model.contains(": 15s"));
    let config = model.replace("9135", &port.to_string()).replace(": 15s", ": 1s");
    fs::write(directory.join("prometheus.yml"), config).unwrap();
    let Some((_prometheus, own)) = prometheus(&directory) else {
        return skipped("no Prometheus (Debian: prometheus)");
    };
    let query = |what: &str| queried(own, what);
    eventually("a recorded rate", || {
        let _ = fs::read(place.mount_point().join("file"));
        query("role_mode:ogive_thread_cpu_seconds:rate5m").is_some_and(|answer| {
            let results = answer["data"]["result"].as_array().cloned().unwrap_or_default();
            let modes: BTreeSet<_> =
                results.iter().filter_map(|r| r["metric"]["mode"].as_str()).collect();
            modes.len() == 2 && results.iter().any(|r| r["metric"]["role"] == "fuse")
        })
    });
    let up = query("up").unwrap();
    assert_eq!(up["data"]["result"][0]["value"][1], "1", "{up}");
}

/// As `get`, of bytes.
fn get_bytes(port: u16, path: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nConnection: close\r\nHost: localhost\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end + 4..].to_vec())
}

#[test]
fn a_profile_is_one_that_go_tool_pprof_reads() {
    if !can_mount() {
        return;
    }
    let (place, port) = mount_with(&["--pprof"]);
    let path = "/debug/pprof/profile";
    for wrong in ["0", "-1", "61", "NaN", "inf", "x", ""] {
        let (head, _) = get_bytes(port, &format!("{path}?seconds={wrong}"));
        assert!(head.starts_with("HTTP/1.1 400 "), "{wrong}: {head}");
    }
    // In a single second the mount may hardly run, so several profiles are taken.
    for _ in 0..20 {
        let Some(text) = top_of_a_profile(&place, port) else { return };
        assert!(text.contains("Type: cpu") && text.contains("flat%"), "{text}");
        // Without it a store would file the profile under 1970.
        assert!(text.lines().any(|line| line.starts_with("Time: 20")), "{text}");
        if text.lines().count() > 8 {
            return;
        }
    }
    panic!("no function in any of twenty profiles");
}

/// The pprof profile of a second with a reader; `None` if there is none.
fn top_of_a_profile(place: &Place, port: u16) -> Option<String> {
    let file = place.mount_point().join("file");
    let (head, bytes) = std::thread::scope(|scope| {
        let asked = scope.spawn(|| get_bytes(port, "/debug/pprof/profile?seconds=1"));
        while !asked.is_finished() {
            drop(fs::read(&file));
        }
        asked.join().unwrap()
    });
    if head.starts_with("HTTP/1.1 503 ") {
        skipped(String::from_utf8_lossy(&bytes).trim());
        return None;
    }
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}: {}", String::from_utf8_lossy(&bytes));
    // A newly installed toolchain compiles it first, for a minute.
    if only_nightly("go builds its pprof first") {
        return None;
    }
    let profile = place.path("profile.pb.gz");
    fs::write(&profile, &bytes).unwrap();
    let output = Command::new("go")
        .args(["tool", "pprof", "-top"])
        .arg(&profile)
        .env("PPROF_TMPDIR", place.path("pprof"))
        .output();
    let Ok(output) = output else {
        skipped("no go");
        return None;
    };
    assert_code(&output, 0);
    Some(common::stdout(&output))
}

#[test]
fn profiles_are_served_only_with_their_option() {
    if !can_mount() {
        return;
    }
    let (_place, port) = mount();
    let (head, _) = get(port, "/debug/pprof/profile?seconds=1", "Host: localhost\r\n");
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
}

/// Takes one request of OTLP and answers it; gives the head and the body.
fn received(listener: &TcpListener, status: &str) -> (String, Vec<u8>) {
    listener.set_nonblocking(true).unwrap();
    let mut accepted = None;
    eventually("a receiver gets a request", || {
        accepted = listener.accept().ok();
        accepted.is_some()
    });
    let (mut stream, _) = accepted.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    let head_end = loop {
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "it ends early: {}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&chunk[..read]);
        if let Some(at) = bytes.windows(4).position(|end| end == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>())?.ok()
    });
    let mut body = bytes[head_end..].to_vec();
    let more = length.unwrap().saturating_sub(body.len());
    let mut rest = vec![0; more];
    stream.read_exact(&mut rest).unwrap();
    body.extend(rest);
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
    (head, body)
}

#[test]
fn otlp_and_prometheus_get_the_same_counters() {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use prost::Message as _;

    if !can_mount() {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("--otlp=http://{}", listener.local_addr().unwrap());
    let (place, port) = mount_with(&[&url]);
    let (head, body) = received(&listener, "200 OK");
    assert!(head.starts_with("POST /v1/metrics HTTP/1.1\r\n"), "{head}");
    assert!(
        head.to_ascii_lowercase().contains("content-type: application/x-protobuf\r\n"),
        "{head}"
    );
    let metrics_read = ExportMetricsServiceRequest::decode(body.as_slice()).unwrap();
    let metrics = &metrics_read.resource_metrics[0].scope_metrics[0].metrics;
    let names: BTreeSet<String> = metrics
        .iter()
        .map(|metric| match &metric.data {
            Some(Data::Sum(sum)) if sum.is_monotonic => format!("{}_total", metric.name),
            Some(_) => metric.name.clone(),
            None => panic!("{metric:?}"),
        })
        .collect();
    let (_, text) = get(port, "/metrics", "Host: localhost\r\n");
    let scraped: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next().map(str::to_owned))
        .collect();
    assert_eq!(names, scraped);
    let mount = place.mount_point().to_string_lossy().into_owned();
    let points: Vec<_> = metrics
        .iter()
        .filter_map(|metric| match &metric.data {
            Some(Data::Sum(sum)) if metric.name == "ogive_read_bytes" => Some(&sum.data_points),
            _ => None,
        })
        .flatten()
        .collect();
    assert!(format!("{points:?}").contains(&mount), "{points:?}");
}

#[test]
fn a_missing_receiver_causes_one_line_in_the_log() {
    if !can_mount() {
        return;
    }
    let log = tempfile::tempdir().unwrap();
    let file = log.path().join("log");
    // Our own end of a connection: no program listens there, and none can.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = TcpStream::connect(other.local_addr().unwrap()).unwrap();
    let further = [
        format!("--otlp=http://127.0.0.1:{}", taken.local_addr().unwrap().port()),
        format!("--log-file={}", file.display()),
    ];
    let (place, _port) = mount_with(&[&further[0], &further[1]]);
    let output = || fs::read_to_string(&file).unwrap_or_default();
    eventually("a line in the log", || output().contains("cannot send counters to 127.0.0.1"));
    assert_eq!(fs::read(place.mount_point().join("file")).unwrap().len(), 3 << 20);
    assert_eq!(output().matches("cannot send counters").count(), 1, "{}", output());
}
