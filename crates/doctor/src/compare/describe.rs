//! A host and its settings as text that can be compared with another host's.

use std::collections::{BTreeMap, BTreeSet};

use crate::evidence::{Evidence, Source, Statement};

/// Properties that are settings; the others are figures of what is stored.
const SETTINGS: &str = "acltype ashift atime autotrim checksum compression copies dedup direct \
     dnodesize encryption failmode logbias prefetch primarycache quota recordsize \
     redundant_metadata relatime secondarycache snapdir special_small_blocks sync volblocksize \
     volmode volthreading xattr";
/// Flags of processors that decide which code ZFS runs.
const FLAGS: &str = "aes asimd avx avx2 avx512bw avx512f movbe pclmulqdq sha_ni sse2 ssse3 vaes";
/// The most data sets that are named for one value.
const OWNERS: usize = 2;

/// A setting: its values, and their sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Values, with the data sets that have them; a parameter has one value without owners.
    pub(crate) values: BTreeMap<String, BTreeSet<String>>,
    /// The sources of each value.
    pub(crate) sources: BTreeMap<String, Vec<Source>>,
}

impl Setting {
    /// The settings that differ from the other host, or all of them.
    pub(crate) fn words(&self, other: &Self) -> String {
        let own: Vec<&String> =
            self.values.keys().filter(|value| !other.values.contains_key(*value)).collect();
        let shown = if own.is_empty() { self.values.keys().collect() } else { own };
        let words: Vec<String> = shown.into_iter().map(|value| self.described(value)).collect();
        words.join(", ")
    }

    fn described(&self, value: &str) -> String {
        let owners: Vec<&String> = self.values.get(value).into_iter().flatten().collect();
        let named: Vec<&str> = owners.iter().take(OWNERS).map(|owner| owner.as_str()).collect();
        match owners.len() {
            0 => value.to_owned(),
            count if count <= OWNERS => format!("{value} ({})", named.join(", ")),
            count => format!("{value} ({} and {} more)", named.join(", "), count - OWNERS),
        }
    }

    /// The sources of the values that the other host lacks.
    pub(crate) fn own_sources(&self, other: &Self) -> Vec<Source> {
        let own = self.sources.iter().filter(|(value, _)| !other.values.contains_key(*value));
        own.flat_map(|(_, sources)| sources.iter().cloned()).collect()
    }
}

/// A single fact about a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stated {
    pub(crate) value: String,
    pub(crate) source: Source,
}

/// Whether a fact is about a release, not about the machine.
pub(crate) fn is_release(name: &str) -> bool {
    matches!(name, "version of ZFS" | "kernel" | "distribution" | "system")
}

/// Parameters and properties by name.
pub(crate) fn settings(evidence: &Evidence) -> BTreeMap<String, Setting> {
    let mut settings: BTreeMap<String, Setting> = BTreeMap::new();
    let mut add = |name: &str, value: &str, owner: Option<&str>, source: &Source| {
        let setting = settings.entry(name.to_owned()).or_default();
        setting.values.entry(value.to_owned()).or_default().extend(owner.map(str::to_owned));
        setting.sources.entry(value.to_owned()).or_default().push(source.clone());
    };
    for parameter in &evidence.parameters {
        add(&parameter.name, parameter.value.trim(), None, &parameter.source);
    }
    for property in &evidence.properties {
        let name = property.name.as_str();
        let is_setting = SETTINGS.split(' ').any(|setting| setting == name);
        if property.value == "-" || !(is_setting || name.starts_with("feature@")) {
            continue;
        }
        // Whether a feature is active changes by itself and means only that it is on.
        let value = match property.value.as_str() {
            "active" if name.starts_with("feature@") => "enabled",
            value => value,
        };
        add(name, value, Some(&property.owner), &property.source);
    }
    settings
}

/// Releases and the machine.
pub(crate) fn stated(evidence: &Evidence) -> BTreeMap<&'static str, Stated> {
    fn text<T>(statement: &Option<Statement<T>>, words: impl Fn(&T) -> String) -> Option<Stated> {
        let statement = statement.as_ref()?;
        Some(Stated { value: words(&statement.value), source: statement.source.clone() })
    }
    let host = &evidence.host;
    let flags = |flags: &String| -> String {
        let has: BTreeSet<&str> = flags.split_whitespace().collect();
        let shown: Vec<&str> = FLAGS.split(' ').filter(|flag| has.contains(flag)).collect();
        shown.join(" ")
    };
    // Two machines of one size differ by the memory that their firmware keeps.
    #[expect(clippy::cast_precision_loss, reason = "RAM to within a page")]
    let memory = |bytes: &u64| format!("{:.0} GiB", (*bytes as f64 / 1_073_741_824.0).ceil());
    let all = [
        ("version of ZFS", text(&host.zfs_version, String::clone)),
        ("kernel", text(&host.kernel, String::clone)),
        ("distribution", text(&host.distribution, String::clone)),
        ("system", text(&host.os, String::clone)),
        ("processor", text(&host.cpu_model, String::clone)),
        ("CPUs", text(&host.cpus, u32::to_string)),
        ("memory", text(&host.ram_bytes, memory)),
        ("processor flags", text(&host.cpu_flags, flags)),
    ];
    all.into_iter().filter_map(|(name, stated)| Some((name, stated?))).collect()
}
