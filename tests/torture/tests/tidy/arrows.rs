//! Arrows between crates: every crate has a floor and uses only crates of lower floors.

use std::collections::BTreeMap;

/// The floors, as in ARCHITECTURE.md. A crate that is missing here is a fault.
const FLOORS: &[(&str, u32)] = &[
    ("ogive", 4),
    ("ogive-watch", 3),
    ("ogive-capture", 3),
    ("ogive-fs", 2),
    ("ogive-bucket", 2),
    ("ogive-doctor", 2),
    ("ogive-metrics", 2),
    ("ogive-sim", 2),
    ("ogive-arc", 1),
    ("ogive-l2", 1),
    ("ogive-origin", 1),
    ("ogive-profile", 1),
    ("ogive-kstat", 1),
    ("ogive-pressure", 1),
    ("ogive-private", 0),
    ("ogive-proc", 0),
    ("ogive-stats", 0),
    ("ogive-text", 0),
    ("ogive-threads", 0),
    // A store that tests of buckets start: it knows nothing of mounts and buckets.
    ("ogive-demo-store", 1),
    // Tests the mount from outside and must know nothing of it.
    ("ogive-torture", 1),
];

fn floor(name: &str) -> Option<u32> {
    FLOORS.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, floor)| *floor)
}

/// The name of the package that a manifest describes.
pub(crate) fn name(manifest: &str) -> Option<String> {
    let line = manifest.lines().find(|line| line.starts_with("name = "))?;
    Some(line.split('"').nth(1)?.to_owned())
}

/// The crates of this workspace that a manifest names as dependencies of any kind.
fn uses(manifest: &str) -> Vec<String> {
    let mut in_dependencies = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            in_dependencies = section.ends_with("dependencies");
            if let Some((kind, dependency)) = section.rsplit_once('.')
                && kind.ends_with("dependencies")
            {
                found.push(dependency.to_owned());
            }
        } else if in_dependencies {
            let key = line.split(['=', '.', ' ']).next().unwrap_or_default();
            found.push(key.to_owned());
        }
    }
    found.retain(|dependency| dependency == "ogive" || dependency.starts_with("ogive-"));
    found
}

/// Every arrow that does not run down, and every crate without a floor.
pub(crate) fn faults(manifests: &BTreeMap<String, String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, manifest) in manifests {
        let Some(own) = floor(name) else {
            faults.push(format!("{name} stands on no floor; add it to FLOORS"));
            continue;
        };
        for used in uses(manifest) {
            match floor(&used) {
                Some(other) if other < own => {}
                Some(other) => faults.push(format!(
                    "{name} (floor {own}) uses {used} (floor {other}): arrows run down only"
                )),
                None => faults.push(format!("{name} uses {used}, which stands on no floor")),
            }
        }
    }
    faults
}

#[test]
fn an_arrow_up_is_a_fault() {
    let manifests = |text: &str| BTreeMap::from([("ogive-arc".to_owned(), text.to_owned())]);
    assert_eq!(faults(&manifests("[dependencies]\nlibc = \"1\"\n")), Vec::<String>::new());
    for text in [
        "[dependencies]\nogive-fs.workspace = true\n",
        "[dependencies]\nogive-fs = { path = \"../fs\" }\n",
        "[dependencies.ogive-fs]\npath = \"../fs\"\n",
        "[target.'cfg(unix)'.dev-dependencies]\nogive-kstat.workspace = true\n",
    ] {
        assert_eq!(faults(&manifests(text)).len(), 1, "{text}");
    }
    let unknown = BTreeMap::from([("ogive-new".to_owned(), String::new())]);
    assert_eq!(faults(&unknown).len(), 1);
    assert_eq!(name("[package]\nname = \"ogive-fs\"\n").as_deref(), Some("ogive-fs"));
}
