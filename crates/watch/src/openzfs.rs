//! The kstats of the host's OpenZFS, for `/metrics`.
//!
//! Invariant: at most [`MAX_DATASETS`] data sets are read, in the order of their objects.

use std::path::Path;

use ogive_kstat::Source;
use ogive_metrics::families::openzfs::{OpenZfs, Pool};

/// So many data sets have series of their own at most.
const MAX_DATASETS: usize = 2000;

/// The present counters of OpenZFS; `None` if the host has none. `root` is `/`, except in tests.
pub(crate) fn read(root: &Path) -> Option<OpenZfs> {
    let source = Source::kernel_below(root);
    let kstat = |name| source.kstat(name).ok();
    Some(OpenZfs {
        arcstats: kstat("arcstats")?,
        zfetchstats: kstat("zfetchstats"),
        zil: kstat("zil"),
        dbufstats: kstat("dbufstats"),
        pools: pools(source.path()),
    })
}

fn pools(directory: &Path) -> Vec<Pool> {
    let mut left = MAX_DATASETS;
    let pool = |name: String| {
        let own = directory.join(&name);
        // Each imported pool has this file, and nothing else has.
        let state = std::fs::read_to_string(own.join("state")).ok()?;
        let source = Source::directory(&own);
        let mut objects = names(&own);
        objects.retain(|name| name.starts_with("objset-"));
        objects.truncate(left);
        left -= objects.len();
        let datasets = objects.iter().filter_map(|name| source.kstat(name).ok()).collect();
        Some(Pool { name, state: state.trim().to_owned(), datasets })
    };
    names(directory).into_iter().filter_map(pool).collect()
}

/// Names of a directory's entries, in their order.
fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let name = |entry: std::fs::DirEntry| entry.file_name().into_string().ok();
    let mut names: Vec<String> = entries.filter_map(Result::ok).filter_map(name).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_and_data_sets_are_those_that_have_files() {
        let root = tempfile::tempdir().unwrap();
        let zfs = root.path().join("proc/spl/kstat/zfs");
        std::fs::create_dir_all(zfs.join("tank")).unwrap();
        assert!(read(root.path()).is_none());
        let kstat = |rows: &str| {
            let (count, bytes) = (rows.lines().count(), rows.lines().count() * 272);
            format!("9 1 0x01 {count} {bytes} 1000 2000\nname type data\n{rows}")
        };
        std::fs::write(zfs.join("arcstats"), kstat("size 4 4096\n")).unwrap();
        std::fs::write(zfs.join("tank/state"), "ONLINE\n").unwrap();
        let rows = kstat("dataset_name 7 tank/home\nnread 4 5\n");
        std::fs::write(zfs.join("tank/objset-0x36"), rows).unwrap();
        let found = read(root.path()).unwrap();
        assert_eq!(found.arcstats.integer("size"), Some(4096));
        let pool = &found.pools[0];
        assert_eq!((pool.name.as_str(), pool.state.as_str()), ("tank", "ONLINE"));
        assert_eq!(pool.datasets[0].integer("nread"), Some(5));
        assert!(found.zil.is_none() && found.pools.len() == 1);
    }
}
