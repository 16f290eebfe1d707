//! Real recordings of OpenZFS with known results: sums, shares and names must match.
//!
//! They are too large to be bundled. OGIVE_CAPTURES names their directory; the default is next to
//! the tree. Without them these tests report that they are skipped.

#![allow(clippy::unwrap_used, reason = "a capture that is there must be readable")]

#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ogive_profile::read::{self, Options};
use ogive_profile::symbols::SymbolOptions;
use ogive_profile::{Profile, Reason};

fn captures() -> Vec<PathBuf> {
    let place = std::env::var_os("OGIVE_CAPTURES").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures"),
        PathBuf::from,
    );
    let mut found: Vec<PathBuf> = std::fs::read_dir(&place)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("truth.json").is_file() && path.join("perf.data.xz").is_file())
        .collect();
    found.sort();
    if found.is_empty() {
        skipped::skipped(format_args!("there are no captures at {}", place.display()));
    }
    found
}

fn truth(capture: &Path) -> serde_json::Value {
    let text = std::fs::read(capture.join("truth.json")).unwrap();
    serde_json::from_slice::<serde_json::Value>(&text).unwrap()["measured"].clone()
}

fn unpacked(path: &Path) -> Option<Vec<u8>> {
    let file = std::fs::File::open(path).ok()?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut xz2::read::XzDecoder::new(file), &mut bytes).unwrap();
    Some(bytes)
}

fn perf_data(capture: &Path) -> Profile {
    let kallsyms = unpacked(&capture.join("kallsyms-zfs.xz"));
    let options = Options { symbols: SymbolOptions { kallsyms, ..SymbolOptions::default() } };
    read::open(&capture.join("perf.data.xz"), &options, &mut |_| {}).unwrap()
}

fn perf_script(capture: &Path) -> Profile {
    read::open(&capture.join("perf.script.xz"), &Options::default(), &mut |_| {}).unwrap()
}

#[test]
fn both_readers_find_the_samples_and_the_busy_ones() {
    for capture in captures() {
        let truth = truth(&capture);
        for (profile, what) in
            [(perf_data(&capture), "perf.data"), (perf_script(&capture), "perf.script")]
        {
            let name = format!("{} {what}", capture.display());
            let all = truth["perf_samples"]["all"].as_u64().unwrap();
            let busy = truth["perf_samples"]["busy"].as_u64().unwrap();
            assert_eq!(profile.view().count(), all, "{name}");
            // The truth is from the text, which shows one idle thread less by name.
            assert!(profile.busy().count().abs_diff(busy) <= 2, "{name}");
            assert_eq!(profile.meta.event.split(':').next(), Some("cpu-clock"), "{name}");
            assert_eq!(profile.meta.lost_samples, 0, "{name}");
        }
    }
}

#[test]
fn threads_have_their_shares() {
    for capture in captures() {
        let truth = truth(&capture);
        let profile = perf_data(&capture);
        let busy = profile.busy();
        let shares: BTreeMap<String, f64> = busy
            .by_thread_name()
            .into_iter()
            .map(|share| (share.name, share.share * 100.0))
            .collect();
        for (name, percent) in truth["comm_percent_of_busy_samples"].as_object().unwrap() {
            let percent = percent.as_f64().unwrap();
            let found = shares.get(name).copied().unwrap_or(0.0);
            assert!(
                (found - percent).abs() < 0.2,
                "{}: {name}: {found} {percent}",
                capture.display()
            );
        }
    }
}

#[test]
fn zfs_functions_have_their_shares_by_the_saved_kallsyms() {
    for capture in captures() {
        let truth = truth(&capture);
        if !capture.join("kallsyms-zfs.xz").is_file() {
            continue;
        }
        for (profile, script) in [(perf_data(&capture), false), (perf_script(&capture), true)] {
            let busy = profile.busy();
            let shares = busy.self_by_symbol();
            let percent_of = |symbol: &str| {
                let of = shares.iter().filter(|share| share.symbol == symbol);
                of.map(|share| share.share * 100.0).sum::<f64>()
            };
            for row in truth["top_self_percent_of_busy"].as_array().unwrap() {
                let (symbol, module) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
                // The saved copy has ZFS's modules only; the text has all names.
                let saved = ["[zfs]", "[spl]", "[icp]", "[zavl]", "[zunicode]", "[zzstd]"];
                if (!script && !saved.contains(&module)) || symbol == "[unknown]" {
                    continue;
                }
                let (found, expected) = (percent_of(symbol), row[2].as_f64().unwrap());
                let name = capture.display();
                assert!((found - expected).abs() < 0.5, "{name}: {symbol}: {found} {expected}");
            }
        }
    }
}

#[test]
fn stripped_modules_are_reported_missing_instead_of_misnamed() {
    for capture in captures() {
        if !capture.to_string_lossy().contains("stripped") {
            continue;
        }
        let profile = perf_data(&capture);
        let icp = profile.meta.unresolved.iter().find(|entry| entry.module == "[icp]").unwrap();
        assert!(icp.kernel && icp.addresses > 10);
        assert!(matches!(icp.reason, Reason::OtherKernel | Reason::ModuleUnknown), "{icp:?}");
        let share = icp.self_weight as f64 / profile.busy().weight() as f64;
        assert!((share - 0.755).abs() < 0.01, "{share}");
    }
}

#[test]
fn a_recording_truncated_anywhere_gives_its_beginning() {
    let Some(capture) = captures().into_iter().next() else { return };
    let whole = unpacked(&capture.join("perf.data.xz")).unwrap();
    let mut last = 0;
    for part in 1..=20 {
        let cut = &whole[..whole.len() * part / 20];
        let Ok(profile) = read::bytes("cut", cut, &Options::default()) else { continue };
        let count = profile.view().count();
        assert!(count >= last);
        assert!(part == 20 || !profile.meta.notes.is_empty());
        last = count;
    }
    assert_eq!(last, truth(&capture)["perf_samples"]["all"].as_u64().unwrap());
}
