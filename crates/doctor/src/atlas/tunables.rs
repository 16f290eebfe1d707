//! Properties, pool features and tunables: the releases that have them, and their names on each
//! system.

use super::section;

/// A tunable as it is in some releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Module parameter on Linux, and `zfs:NAME` in illumos's /etc/system; `None` if only FreeBSD
    /// has it.
    pub name: Option<&'static str>,
    /// `u64`, `u32`, `i32`, `text`, or `any` if a function checks it.
    pub kind: &'static str,
    /// Whether it can be changed at run time.
    pub writable: bool,
    /// Default, if it is a literal.
    pub default: Option<&'static str>,
    /// Sysctl of FreeBSD.
    pub sysctl: Option<&'static str>,
    /// The percentage that it overrides unless it is zero.
    pub wins_over: Option<&'static str>,
    /// Releases with this definition, as ranges; empty means all.
    pub releases: &'static str,
}

fn parse(line: &'static str) -> Option<Tunable> {
    let mut words = line.splitn(7, ' ');
    let mut next =
        || words.next().map(|word| Some(word).filter(|word| !matches!(*word, "-" | "?")));
    let (name, kind, mode, default) = (next()?, next()??, next()??, next()?);
    let (sysctl, wins_over, releases) = (next()?, next()?, next()?.unwrap_or(""));
    let releases = if releases == "all" { "" } else { releases };
    let writable = mode == "rw";
    Some(Tunable { name, kind, writable, default, sysctl, wins_over, releases })
}

/// All definitions of a tunable, oldest default first, by its name on any system.
pub fn tunables(name: &str) -> impl Iterator<Item = Tunable> {
    let name = name.strip_prefix("zfs:").unwrap_or(name).to_owned();
    section("tunables").iter().filter_map(|line| parse(line)).filter(move |tunable| {
        tunable.name == Some(name.as_str()) || tunable.sysctl == Some(name.as_str())
    })
}

/// Releases that have a property or a pool feature; `None` if there is none of this name.
pub fn brought(name: &str) -> Option<&'static str> {
    let all = section("names");
    let start = all.partition_point(|line| line.split('\t').next().unwrap_or(line) < name);
    let line = all.get(start).filter(|line| line.split('\t').next() == Some(name))?;
    line.split('\t').nth(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_and_features_have_their_releases() {
        assert_eq!(brought("encryption"), Some("0.8.0-"));
        assert_eq!(brought("block_cloning"), Some("2.2.0-"));
        assert_eq!(brought("large_blocks"), Some("0.6.5-"));
        assert_eq!(brought("compression"), Some(""));
        assert_eq!(brought("no-such-thing"), None);
    }

    #[test]
    fn a_tunable_is_found_by_any_of_its_names() {
        let limit = tunables("zfs_arc_dnode_limit").last().expect("it is one");
        assert_eq!(limit.sysctl, Some("vfs.zfs.arc.dnode_limit"));
        assert_eq!(limit.wins_over, Some("zfs_arc_dnode_limit_percent"));
        assert_eq!(tunables("vfs.zfs.arc.dnode_limit").last(), Some(limit));
        assert_eq!(tunables("zfs:zfs_arc_max").next(), tunables("zfs_arc_max").next());
        let percent = tunables("zfs_arc_dnode_limit_percent").next().expect("it is one");
        assert_eq!((percent.default, percent.writable), (Some("10"), true));
        assert!(tunables("zfs_arc_dnode_limit").all(|one| !one.releases.starts_with("0.6")));
    }
}
