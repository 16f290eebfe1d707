//! Frames of example views: the tests check the words of a screen, not their positions.

use std::time::Duration;

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::super::view::View;
use super::draw;

fn host() -> Value {
    json!({"id": "host", "kind": "host", "name": "examplehost", "state": "answers", "cpus": 2})
}

fn mount(id: &str, name: &str, state: &str) -> Value {
    json!({"id": id, "kind": "mount", "name": name, "state": state})
}

/// Series of a host of two CPUs.
const HOST: [(&str, f64); 23] = [
    ("cpu_usr", 23.4),
    ("cpu_sys", 12.1),
    ("cpu_irq", 0.5),
    ("cpu_steal", 1.5),
    ("cpu_iowait", 7.7),
    ("cpu_idle", 54.8),
    ("core_usr.0", 40.0),
    ("core_sys.0", 10.0),
    ("core_usr.1", 7.0),
    ("core_sys.1", 14.0),
    ("memory_total", 17_179_869_184.0),
    ("memory_available", 9_663_676_416.0),
    ("memory_programs", 4_294_967_296.0),
    ("memory_cache", 3_221_225_472.0),
    ("memory_slab", 1_073_741_824.0),
    ("memory_kernel", 536_870_912.0),
    ("memory_shared", 1_048_576.0),
    ("pressure_cpu_some", 12.5),
    ("pressure_io_some", 33.3),
    ("pressure_memory_some", 0.0),
    ("role.zfs write", 44.4),
    ("role.other", 5.5),
    ("own_cpu", 0.3),
];

/// Series of a mount.
const MOUNT: [(&str, f64); 33] = [
    ("demand_data_hits", 12_300.0),
    ("demand_data_misses", 123.0),
    ("demand_metadata_hits", 400.0),
    ("demand_metadata_misses", 0.0),
    ("prefetch_hits", 0.0),
    ("prefetch_misses", 77.0),
    ("l2_hits", 9.0),
    ("l2_misses", 1.0),
    ("demand_hit_percent", 99.1),
    ("size", 3_221_225_472.0),
    ("target", 4_294_967_296.0),
    ("mru_target", 1_073_741_824.0),
    ("mru_bytes", 838_860_800.0),
    ("mfu_bytes", 2_147_483_648.0),
    ("window_bytes", 33_554_432.0),
    ("mru_ghost_bytes", 268_435_456.0),
    ("mfu_ghost_bytes", 134_217_728.0),
    ("l2_bytes", 10_737_418_240.0),
    ("l2_uncompressed_bytes", 21_474_836_480.0),
    ("l2_read_bytes", 5_242_880.0),
    ("l2_write_bytes", 1_048_576.0),
    ("evict_bytes", 7_340_032.0),
    ("reclaim_bytes", 2_097_152.0),
    ("prunes", 3.0),
    ("prune_examined", 1234.0),
    ("prune_freed", 56.0),
    ("load_ms", 0.42),
    ("origin_read_p50_ms", 0.25),
    ("origin_read_p99_ms", 4.2),
    ("origin_reads", 88.0),
    ("origin_bytes", 11_534_336.0),
    ("read_bytes", 1_288_490_188.8),
    ("daemon_cpu", 66.6),
];

fn values(id: &str) -> Vec<(String, f64)> {
    let host = HOST.iter().map(|(series, value)| (format!("host.{series}"), *value));
    let place = MOUNT.iter().map(|(series, value)| (format!("{id}.{series}"), *value));
    let stage = [(format!("{id}.stage.origin"), 60.1), (format!("{id}.stage.requests"), 6.5)];
    host.chain(place).chain(stage).collect()
}

/// A view of a minute.
fn minute(sources: Vec<Value>, id: &str) -> View {
    let mut view = View::new(Duration::from_secs(1), true);
    view.describe(&Value::Array(sources));
    for second in 0..60 {
        view.measured(second * 1000, &values(id));
    }
    view
}

fn drawn(view: &View, columns: u16, rows: u16) -> TestBackend {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal.draw(|frame| draw(view, frame)).unwrap();
    terminal.backend().clone()
}

fn screen(view: &View, columns: u16, rows: u16) -> String {
    drawn(view, columns, rows).to_string()
}

fn assert_shows(screen: &str, words: &[&str]) {
    for words in words {
        assert!(screen.contains(words), "no {words:?} in\n{screen}");
    }
}

#[test]
fn a_source_without_requests_has_no_latency() {
    let mut view = minute(vec![host(), mount("m1", "/mnt/fast", "answers")], "m1");
    let without = |reads| {
        let values_left =
            values("m1").into_iter().filter(|(name, _)| !name.starts_with("m1.origin_read"));
        values_left.chain(Some(("m1.origin_reads".to_owned(), reads))).collect::<Vec<_>>()
    };
    view.measured(60_000, &without(0.0));
    assert_shows(&screen(&view, 80, 24), &["no requests  0 reads/s"]);
    view.measured(61_000, &without(7.0));
    assert_shows(&screen(&view, 80, 24), &["mean load 420 us  7 reads/s"]);
}

#[test]
fn an_ordinary_screen_has_everything_that_matters() {
    let view = minute(vec![host(), mount("m1", "/mnt/fast", "answers")], "m1");
    let screen = screen(&view, 80, 24);
    assert_shows(
        &screen,
        &[
            "examplehost",
            "usr 23.4%",
            "sys 12.1%",
            "iowait  7.7%",
            "steal  1.5%",
            "idle 54.8%",
            "9.0 GiB of 16.0 GiB available",
            "CPU 12.5%",
            "I/O 33.3%",
            "zfs write 44.4%",
            "/mnt/fast",
            "metadata",
            "prefetch",
            "second level",
            "12.3k",
            "99.0%",
            "99.1%",
            "58 s",
            "▄▄▄",
        ],
    );
    assert_shows(
        &screen,
        &[
            "3.0 GiB / 4.0 GiB",
            "800 MiB / 1.0 GiB",
            "2.0 GiB / 3.0 GiB",
            "window",
            "32.0 MiB",
            "MRU ghost",
            "256 MiB",
            "10.0 GiB held",
            "7.0 MiB/s",
            "reclaimed 2.0 MiB/s",
            "prunes 3/s: 1.2k inodes, 56 freed",
            "p50 250 us p99 4.2 ms",
            "66.6% of a CPU: origin 60.1%  requests 6.5%",
            "to programs 1.2 GiB/s",
            "q quit",
        ],
    );
}

#[test]
fn a_wide_screen_has_cores_and_lines_of_the_source() {
    let view = minute(vec![host(), mount("m1", "/mnt/fast", "answers")], "m1");
    let screen = screen(&view, 200, 50);
    assert_shows(&screen, &["  0 uuuus", "50%", "21%", "60 s, top 420 us", "10.0 GiB held"]);
    let both = screen.lines().find(|line| line.contains("/mnt/fast")).unwrap();
    assert!(both.contains("CPU"), "host and mount are side by side:\n{screen}");
}

#[test]
fn a_narrow_screen_has_whole_figures_and_a_tiny_one_says_so() {
    let view = minute(vec![host(), mount("m1", "/mnt/fast", "answers")], "m1");
    let narrow = screen(&view, 50, 24);
    assert_shows(&narrow, &["usr 23.4%", "/mnt/fast", "12.3k", "9.0 GiB of 16.0 GiB available"]);
    assert!(!narrow.contains("second lev"), "a column is there whole or not at all:\n{narrow}");
    assert_shows(&screen(&view, 47, 24), &["Too small.", "47x24", "48x12"]);
    assert_shows(&screen(&view, 80, 5), &["Too small.", "80x5"]);
}

#[test]
fn without_a_mount_it_says_what_to_do() {
    let mut view = View::new(Duration::from_secs(1), true);
    assert_shows(&screen(&view, 80, 24), &["Measuring"]);
    view.describe(&Value::Array(vec![host()]));
    view.measured(0, &values("none"));
    let screen = screen(&view, 80, 24);
    assert_shows(&screen, &["No mount of ogive", "ogive mount SRC MNT", "usr 23.4%"]);
}

#[test]
fn a_mount_that_goes_away_is_reported_and_the_screen_goes_on() {
    let sources = vec![
        host(),
        mount("m1", "/mnt/fast", "answers"),
        mount("m2", "/mnt/other", "does not answer"),
    ];
    let mut view = minute(sources, "m1");
    view.describe(&Value::Array(vec![host(), mount("m2", "/mnt/other", "does not answer")]));
    let host_only: Vec<_> =
        values("m1").into_iter().filter(|(name, _)| name.starts_with("host.")).collect();
    view.measured(61_000, &host_only);
    let gone = screen(&view, 80, 24);
    assert_shows(&gone, &["/mnt/fast", "1 of 2", "is no longer mounted", "usr 23.4%"]);
    view.next();
    let hangs = screen(&view, 80, 24);
    assert_shows(&hangs, &["/mnt/other", "2 of 2", "! does not answer"]);
    assert!(!hangs.contains("Lookups"), "without figures there is no table:\n{hangs}");
}

#[test]
fn a_missing_figure_is_not_shown_as_zero() {
    let mut view = minute(vec![host(), mount("m1", "/mnt/fast", "answers")], "m1");
    view.measured(61_000, &[]);
    let screen = screen(&view, 80, 24);
    assert_shows(&screen, &["idle     -"]);
    assert!(!screen.contains("0.0%") && !screen.contains(" 0 B"), "{screen}");
}

#[test]
fn a_pause_and_the_help_are_shown() {
    let mut view = minute(vec![host(), mount("m1", "/mnt/fast", "answers")], "m1");
    view.pause();
    assert_shows(&screen(&view, 80, 24), &["PAUSED", "p go on"]);
    view.shows_help = true;
    assert_shows(&screen(&view, 80, 24), &["Ctrl-C", "usr: programs", "where the CPU goes"]);
}

#[test]
fn without_colour_the_screen_has_the_same_text() {
    let mut view = minute(vec![host(), mount("m1", "/mnt/fast", "! its source is gone")], "m1");
    let coloured = screen(&view, 80, 24);
    view.has_colour = false;
    let backend = drawn(&view, 80, 24);
    assert_eq!(backend.to_string(), coloured);
    let plain = ratatui::style::Color::Reset;
    let cells = &backend.buffer().content;
    assert!(cells.iter().all(|cell| cell.fg == plain && cell.bg == plain));
}

#[test]
fn hostile_names_are_shown_harmless() {
    let hostile = "/mnt/\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}\u{200b}\r\n<b>";
    let mut view = minute(vec![host(), mount("m1", hostile, hostile)], "m1");
    view.measured(61_000, &[(format!("host.role.{hostile}"), 99.0)]);
    let screen = screen(&view, 120, 30);
    assert_shows(&screen, &["/mnt/\u{fffd}]0;owned"]);
    let lines: String = screen.lines().collect();
    let harmful = |c: char| c.is_control() || matches!(c, '\u{200b}' | '\u{202e}');
    assert!(!lines.contains(harmful), "{screen}");
}

/// A value as a kernel, a daemon or an attacker may report it.
fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        0.0..200.0,
        0.0..1e19,
        Just(f64::MAX),
        Just(-1.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MIN_POSITIVE),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_view_is_drawn_at_any_size(
        columns in 0_u16..260,
        rows in 0_u16..80,
        steps in prop::collection::vec(prop::collection::vec((any::<prop::sample::Index>(), any_value()), 0..60), 0..70),
        name in any::<String>(),
        state in any::<String>(),
        role in any::<String>(),
        moves in 0_usize..4,
        flags in any::<[bool; 4]>(),
        interval in 0_u64..u64::MAX,
    ) {
        let mut view = View::new(Duration::from_secs(interval), flags[0]);
        if flags[1] {
            let zfs = json!({"id": "zfs", "kind": "zfs", "name": name, "state": "answers"});
            view.describe(&Value::Array(vec![host(), mount("m1", &name, &state), zfs]));
        }
        let mut names: Vec<String> = values("m1").into_iter().map(|(name, _)| name).collect();
        names.push(format!("host.role.{role}"));
        names.push("zfs.size".to_owned());
        for (second, step) in (0_u64..).zip(&steps) {
            let step: Vec<_> =
                step.iter().map(|(at, value)| (at.get(&names).clone(), *value)).collect();
            view.measured(second, &step);
        }
        for _ in 0..moves {
            view.next();
        }
        view.shows_help = flags[2];
        view.is_paused = flags[3];
        drawn(&view, columns, rows);
    }
}

fn objects(rows: &Value) -> Value {
    json!({"files": rows, "directories": [], "sampled_seconds": 12.3, "sampled_one_in": 1})
}

#[test]
fn files_are_shown_in_the_chosen_order_with_harmless_names() {
    let mut view = minute(vec![host(), mount("m1", "/mnt/fast", "answers")], "m1");
    view.show_next();
    assert!(screen(&view, 80, 24).contains("Reading the files in this cache"));
    let row = |path: &str, bytes: u64, misses: u64| {
        json!({"path": path, "bytes": bytes, "reads": 200, "hits": 150, "misses": misses,
            "origin_bytes": 1 << 20})
    };
    let rows = json!([row("/large", 64 << 20, 1), row("/missed\u{1b}[2J\u{202e}", 1 << 10, 50)]);
    view.take_objects("/mnt/fast".into(), Ok(objects(&rows)));
    let text = screen(&view, 80, 40);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words} in {text}"));
    assert!(at("/large") < at("/missed"), "by bytes");
    assert!(text.contains("75.0%") && text.contains("64.0 MiB"), "{text}");
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
    assert!(text.contains("all of them"), "{text}");
    view.order_next();
    view.order_next();
    let text = screen(&view, 80, 40);
    assert!(text.find("/missed") < text.find("/large"), "by misses: {text}");
    assert!(text.contains("misses\u{2193}"), "{text}");
    view.show_next();
    assert!(screen(&view, 80, 40).contains("Nothing of a file is in this cache"));
    view.take_objects("/mnt/fast".into(), Err("cannot read it".to_owned()));
    assert!(screen(&view, 80, 40).contains("! cannot read it"));
    // The answer of another mount is not shown as this one's.
    view.take_objects("/mnt/other".into(), Ok(objects(&rows)));
    assert!(screen(&view, 80, 40).contains("Reading the files"));
}

#[test]
fn many_files_fit_any_screen() {
    let mut view = minute(vec![host(), mount("m1", "/mnt/fast", "answers")], "m1");
    view.show_next();
    let rows: Vec<Value> =
        (0..500).map(|n| json!({"path": format!("/{n:0>200}"), "bytes": n})).collect();
    view.take_objects("/mnt/fast".into(), Ok(objects(&rows.into())));
    for (columns, rows) in [(48, 12), (80, 24), (149, 60), (150, 12), (300, 200)] {
        let text = screen(&view, columns, rows);
        assert!(text.contains("/mnt/fast"), "{text}");
    }
}
