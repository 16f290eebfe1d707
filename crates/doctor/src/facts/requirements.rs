//! Causes that this host cannot have, because they need another system, processor, release,
//! parameter, feature or counter.
//!
//! Only shown facts rule out. Releases are compared by OpenZFS's history in the atlas. On FreeBSD
//! the system's release shows which OpenZFS its base has. illumos and macOS number their ZFS
//! differently, so their numbers prove nothing. A complete list (the module's parameters, a pool's
//! features, a kstat) without a name proves that the name does not exist, in any release.

use serde::{Deserialize, Serialize};

use super::Facts;
use crate::atlas::fixes::versions;
use crate::atlas::version::range_lacks;
use crate::atlas::{self, Version, parse_versions};

/// Systems with ZFS.
pub const SYSTEMS: [&str; 4] = ["linux", "freebsd", "illumos", "macos"];
/// Kinds of processors.
pub const PROCESSORS: [&str; 3] = ["x86", "arm", "power"];

/// FreeBSD's release and the branch of OpenZFS in its base system, by their release notes. Before
/// 13.0 the base had illumos's ZFS, without the additions of OpenZFS 0.8 and later.
const FREEBSD: [(u32, &str, &str); 4] =
    [(0, "0.6.1", "0.7.x"), (13, "2.0.0", "2.1.x"), (14, "2.2.0", "2.2.x"), (15, "2.4.0", "2.4.x")];

/// A list with this many names is complete; a paste is an excerpt of a few.
const WHOLE_LIST: usize = 40;
/// The same for a pool's features; the oldest releases have fewer.
const WHOLE_FEATURES: usize = 12;

/// Words in the model or flags of a CPU, and in the name of a kernel, that show its kind.
const MARKS: [(&str, &[&str]); 3] = [
    ("x86", &["intel", "amd", "xeon", "epyc", "x86", "i686", "sse2"]),
    ("arm", &["arm", "aarch64", "neoverse", "cortex", "ampere", "graviton", "apple m", "asimd"]),
    ("power", &["power8", "power9", "power10", "ppc64", "altivec"]),
];

/// The needs of a cause. If one is shown to be missing, the cause is out and is named nowhere. An
/// unknown fact rules nothing out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Requires {
    /// Systems that can have it: `linux`, `freebsd`, `illumos`, `macos`; an empty list means all.
    #[serde(default)]
    pub systems: Vec<String>,
    /// Kinds of processors that can have it: `x86`, `arm`, `power`; an empty list means all.
    #[serde(default)]
    pub processors: Vec<String>,
    /// The first release that can have it.
    #[serde(default)]
    pub from: Option<String>,
    /// The first releases that no longer have it, one a branch (`2.1.3, 2.2.0`), or the commit that
    /// ended it.
    #[serde(default)]
    pub before: Option<String>,
    /// A property or pool feature that it needs.
    #[serde(default)]
    pub feature: Option<String>,
    /// A row of a kstat that it needs (`arcstats.arc_meta_limit`).
    #[serde(default)]
    pub counter: Option<String>,
    /// A tunable that it needs.
    #[serde(default)]
    pub tunable: Option<String>,
    /// A function of OpenZFS that it needs.
    #[serde(default)]
    pub code: Option<String>,
}

impl Facts {
    /// The reason why a cause with these requirements is impossible; `None` if it is possible.
    pub fn cannot_have(&self, requires: &Requires) -> Option<String> {
        if !requires.systems.is_empty()
            && let Ok(os) = self.os()
            && !requires.systems.contains(&os)
        {
            return Some(format!("{os} cannot have it"));
        }
        if !requires.processors.is_empty()
            && let Some(kind) = self.processor()
            && !requires.processors.iter().any(|known| known == kind)
        {
            return Some(format!("a processor of kind {kind} cannot have it"));
        }
        self.shown_to_lack(requires).or_else(|| self.release_lacks(requires))
    }

    /// The requirement that a complete list lacks.
    fn shown_to_lack(&self, requires: &Requires) -> Option<String> {
        let evidence = self.evidence();
        let lacks = |name: &str, names: Vec<&str>, whole: usize| {
            names.len() >= whole && !names.contains(&name)
        };
        if let Some(name) = requires.tunable.as_deref() {
            let all = evidence.parameters.iter().map(|parameter| parameter.name.as_str());
            let zfs = |parameter: &&str| parameter.starts_with("zfs_");
            if lacks(name, all.filter(zfs).collect(), WHOLE_LIST) {
                return Some(format!("this host has no parameter {name}"));
            }
        }
        if let Some(name) = requires.feature.as_deref() {
            let all = evidence.properties.iter().filter_map(|property| {
                let feature = property.name.strip_prefix("feature@")?;
                (property.value != "disabled").then_some(feature)
            });
            let known = evidence.properties.iter().any(|one| one.name == name && !one.of_pool);
            if !known && lacks(name, all.collect(), WHOLE_FEATURES) {
                return Some(format!("no pool here has the feature {name}"));
            }
        }
        let (table, row) = requires.counter.as_deref()?.split_once('.')?;
        let mut tables = evidence.tables.iter().filter(|known| known.name == table);
        let is_without = tables.any(|known| {
            lacks(row, known.figures.iter().map(|one| one.name.as_str()).collect(), WHOLE_LIST)
        });
        is_without.then(|| format!("{table} of this host has no {row}"))
    }

    /// The requirement that the release lacks, according to the atlas.
    fn release_lacks(&self, requires: &Requires) -> Option<String> {
        let range = self.openzfs_range()?;
        if let Some(from) = requires.from.as_deref().and_then(parse_versions)
            && range.1 < from.0
        {
            return Some(format!("ZFS {} is older than {}", range.1, from.0));
        }
        if let Some(ended) = requires.before.as_deref().and_then(versions)
            && range_lacks(range, &ended) == Some(false)
        {
            return Some(format!("ZFS {} has what ended it", range.0));
        }
        let lacking = |name: &Option<String>, runs: fn(&str) -> Vec<&'static str>| {
            let name = name.as_deref()?;
            let runs = runs(name);
            let can = runs.is_empty() || runs.iter().any(|runs| atlas::may_include(runs, range));
            (!can).then(|| format!("ZFS {} has no {name}", range.1))
        };
        lacking(&requires.feature, |name| atlas::brought(name).into_iter().collect())
            .or_else(|| {
                lacking(&requires.tunable, |name| {
                    atlas::tunables(name).map(|tunable| tunable.releases).collect()
                })
            })
            .or_else(|| {
                lacking(&requires.code, |name| {
                    atlas::functions(name).map(|function| function.releases).collect()
                })
            })
    }

    /// The lowest and highest possible release of OpenZFS, where the atlas knows any.
    pub(crate) fn openzfs_range(&self) -> Option<(Version, Version)> {
        let os = self.os().unwrap_or_default();
        if os == "illumos" || os == "macos" {
            return None;
        }
        if let Ok(range) = self.zfs_range() {
            return Some(range);
        }
        if os != "freebsd" {
            return None;
        }
        let major = parse_versions(&self.kernel().ok()?)?.0.0[0];
        let (_, low, high) = FREEBSD.iter().rev().find(|(release, _, _)| major >= *release)?;
        Some((parse_versions(low)?.0, parse_versions(high)?.1))
    }

    /// The kind of processor, where the evidence shows it.
    fn processor(&self) -> Option<&'static str> {
        let uname =
            self.evidence().host.architecture.as_ref().map(|statement| statement.value.clone());
        let texts = [uname, self.cpu_flags(), self.cpu_model().ok(), self.kernel().ok()];
        texts.into_iter().flatten().find_map(|text| {
            let text = text.to_lowercase();
            let hit = |marks: &[&str]| marks.iter().any(|mark| text.contains(mark));
            MARKS.iter().find(|(_, marks)| hit(marks)).map(|(kind, _)| *kind)
        })
    }

    fn cpu_flags(&self) -> Option<String> {
        self.evidence().host.cpu_flags.as_ref().map(|statement| statement.value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Evidence, Host, Source, Statement};

    fn stated(text: &str) -> Option<Statement<String>> {
        let source = Source { input: "a".into(), line: Some(1) };
        (!text.is_empty()).then(|| Statement { value: text.to_owned(), source })
    }

    fn facts(os: &str, kernel: &str, zfs: &str, cpu: &str) -> Facts {
        let (os, kernel, cpu_model, zfs_version) =
            (stated(os), stated(kernel), stated(cpu), stated(zfs));
        let host = Host { os, kernel, cpu_model, zfs_version, ..Host::default() };
        Facts::new(Evidence { host, ..Evidence::default() })
    }

    fn needs(field: &str, value: &str) -> Requires {
        let mut requires = Requires::default();
        match field {
            "system" => requires.systems.push(value.to_owned()),
            "processor" => requires.processors.push(value.to_owned()),
            "feature" => requires.feature = Some(value.to_owned()),
            "tunable" => requires.tunable = Some(value.to_owned()),
            _ => requires.code = Some(value.to_owned()),
        }
        requires
    }

    #[test]
    fn only_shown_facts_rule_out() {
        let encryption = needs("feature", "encryption");
        assert!(facts("", "", "", "").cannot_have(&encryption).is_none());
        assert!(facts("linux", "", "0.6.2", "").cannot_have(&encryption).is_some());
        assert!(facts("linux", "", "0.8.x", "").cannot_have(&encryption).is_none());
        assert!(facts("", "", "0.7.13", "").cannot_have(&encryption).is_some());
        let dnodes = needs("tunable", "zfs_arc_dnode_limit");
        assert!(facts("linux", "", "0.6.5.11", "").cannot_have(&dnodes).is_some());
        assert!(facts("linux", "", "0.7.0", "").cannot_have(&dnodes).is_none());
        let thread = needs("code", "arc_reclaim_thread");
        assert!(facts("linux", "", "2.1.5", "").cannot_have(&thread).is_some());
    }

    #[test]
    fn a_release_outside_of_its_range_rules_a_cause_out() {
        let range = Requires {
            from: Some("0.7.0".to_owned()),
            before: Some("2.1.3, 2.2.0".to_owned()),
            ..Requires::default()
        };
        for (zfs, can) in [
            ("", true),
            ("0.6.5.11", false),
            ("0.7.0", true),
            ("2.1.2", true),
            ("2.1.3-1~bpo", false),
            ("2.1.x", true),
            ("2.3.9-0+deb13u1", false),
        ] {
            assert_eq!(facts("linux", "", zfs, "").cannot_have(&range).is_none(), can, "{zfs}");
        }
    }

    #[test]
    fn a_complete_list_proves_what_is_absent() {
        let read = |name: &str, text: &str| {
            let mut evidence = Evidence::default();
            crate::read::read_bytes(&mut evidence, name, text.as_bytes());
            crate::read::finish(&mut evidence);
            Facts::new(evidence)
        };
        let limit = needs("tunable", "zfs_arc_meta_limit_percent");
        let mut list: String = (0..60).map(|at| format!("zfs/zfs_parameter_{at} 1\n")).collect();
        assert!(read("module-parameters.txt", &list).cannot_have(&limit).is_some());
        assert!(read("module-parameters.txt", &list[..90]).cannot_have(&limit).is_none());
        list.push_str("zfs/zfs_arc_meta_limit_percent 75\n");
        assert!(read("module-parameters.txt", &list).cannot_have(&limit).is_none());

        let row =
            Requires { counter: Some("arcstats.arc_meta_limit".to_owned()), ..Requires::default() };
        let header = "9 1 0x01 60 100 1 2\nname type data\nhits 4 7\narc_meta_used 4 5\n";
        let mut rows: String = (0..50).map(|at| format!("counter_{at} 4 {at}\n")).collect();
        rows.insert_str(0, header);
        assert!(read("arcstats", &rows).cannot_have(&row).is_some());
        assert!(read("arcstats", header).cannot_have(&row).is_none());
        rows.push_str("arc_meta_limit 4 9\n");
        assert!(read("arcstats", &rows).cannot_have(&row).is_none());
    }

    #[test]
    fn the_base_system_of_freebsd_says_which_zfs_it_has() {
        let encryption = needs("feature", "encryption");
        let brt = needs("feature", "block_cloning");
        assert!(facts("freebsd", "12.2-RELEASE", "", "").cannot_have(&encryption).is_some());
        assert!(facts("freebsd", "13.1-RELEASE", "", "").cannot_have(&encryption).is_none());
        assert!(facts("freebsd", "13.1-RELEASE", "", "").cannot_have(&brt).is_some());
        assert!(facts("freebsd", "14.0-RELEASE-p3", "", "").cannot_have(&brt).is_none());
        // illumos has encryption, and its version numbers prove nothing.
        assert!(facts("illumos", "5.11", "", "").cannot_have(&encryption).is_none());
    }

    #[test]
    fn systems_and_processors_rule_out() {
        assert!(facts("freebsd", "", "", "").cannot_have(&needs("system", "linux")).is_some());
        assert!(facts("", "", "", "").cannot_have(&needs("system", "linux")).is_none());
        let vectors = needs("processor", "x86");
        assert!(facts("linux", "", "", "Neoverse-N1").cannot_have(&vectors).is_some());
        assert!(facts("linux", "6.1.0-18-arm64", "", "").cannot_have(&vectors).is_some());
        assert!(facts("linux", "", "", "AMD EPYC 7302").cannot_have(&vectors).is_none());
        assert!(facts("linux", "6.1.0", "", "").cannot_have(&vectors).is_none());
    }
}
