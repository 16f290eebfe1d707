//! Functions: their subsystems, and the releases that have them.
//!
//! A name that no release has (a newer one, a vendor's patch) is placed by its beginning, if the
//! known names with that beginning agree. If they agree only on a parent subsystem, the answer is
//! that parent. In a trial, each known name was removed in turn: one percent were placed wrongly,
//! two thirds rightly, and the rest not at all. Names of user space are ignored, because a library
//! may have functions of the same name.

use super::{does, numbered, section};

/// A function of OpenZFS or of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its subsystem.
    pub subsystem: &'static str,
    /// Source file, for functions of OpenZFS.
    pub file: Option<&'static str>,
    /// Module before 2.2.0, for functions of OpenZFS.
    pub module: Option<&'static str>,
    /// The only system that has it, if there is one.
    pub system: Option<&'static str>,
    /// Releases that have it, as ranges; empty means all.
    pub releases: &'static str,
}

/// An unknown name is placed by at least this many known names with its beginning, of which this
/// percentage must agree.
const FEWEST_KIN: usize = 3;
const AGREEING_PERCENT: usize = 90;
/// A shorter name without an underscore is too common to place without its module.
const SHORT_NAME: usize = 10;

fn name_of(line: &str) -> &str {
    line.split('\t').next().unwrap_or(line)
}

fn parse(line: &'static str) -> Option<Function> {
    let mut parts = line.split('\t').skip(1);
    let subsystem = numbered(parts.next()?)?.0;
    let file = parts.next().and_then(|number| section("files").get(number.parse::<usize>().ok()?));
    let mut words = file.map(|line| line.split(' ')).into_iter().flatten();
    let (file, module, system) = (words.next(), words.next(), words.next());
    Some(Function {
        subsystem,
        file,
        module,
        system: system.filter(|system| *system != "any"),
        releases: parts.next().unwrap_or(""),
    })
}

/// All functions with this name.
pub fn functions(name: &str) -> impl Iterator<Item = Function> {
    let all = section("functions");
    let start = all.partition_point(|line| name_of(line) < name);
    let name = name.to_owned();
    all[start..].iter().take_while(move |line| name_of(line) == name).filter_map(|line| parse(line))
}

/// Modules of OpenZFS, on any system.
const ZFS_MODULES: &str =
    "zfs spl icp zcommon zavl znvpair zlua zunicode zzstd opensolaris openzfs";

/// Whether a module is one of OpenZFS.
pub(crate) fn is_zfs_module(module: &str) -> bool {
    ZFS_MODULES.split(' ').any(|known| known == module)
}

/// The subsystem of a function. Its module, and whether it is kernel code, are used if known.
pub fn subsystem_of(
    name: &str,
    module: Option<&str>,
    kernel: Option<bool>,
) -> Option<&'static str> {
    if kernel == Some(false) && !module.is_some_and(is_zfs_module) {
        return None;
    }
    let of_zfs = module.map(is_zfs_module);
    // Without a module, a name is the kernel's or ZFS's only if it looks like one.
    if module.is_none() && kernel.is_none() && name.len() < SHORT_NAME && !name.contains('_') {
        return None;
    }
    let mut known: Vec<Function> = functions(name).collect();
    // Since release 2.1, libraries bundled with OpenZFS have this prefix.
    if let Some(own) = name.strip_prefix("zfs_").filter(|_| known.is_empty()) {
        known.extend(functions(own).filter(|function| function.module.is_some()));
    }
    // Functions of the given module come first. No module excludes a name, because some parts of
    // ZFS are the system's own in one release and ZFS's in another.
    known.sort_by_key(|function| match (of_zfs, function.module) {
        (Some(true), Some(own)) => usize::from(Some(own) != module),
        (Some(true), None) | (Some(false), Some(_)) => 3,
        (Some(false), None) => 0,
        (None, own) => usize::from(own.is_none()),
    });
    known.first().map(|function| function.subsystem).or_else(|| by_beginning(name, of_zfs))
}

fn by_beginning(name: &str, of_zfs: Option<bool>) -> Option<&'static str> {
    let mut cuts = name.match_indices('_').map(|(at, _)| &name[..=at]).collect::<Vec<_>>();
    cuts.retain(|start| start.trim_matches('_').len() >= 3);
    let (mut ours, mut linux) = (None, None);
    for start in cuts.iter().rev() {
        linux = linux.or_else(|| linux_beginning(start));
        ours = ours.or_else(|| kin(start));
    }
    match of_zfs {
        Some(true) => ours,
        Some(false) => linux.or(ours),
        None => ours.or(linux),
    }
}

fn linux_beginning(start: &str) -> Option<&'static str> {
    let all = section("beginnings");
    let at = all.binary_search_by(|line| name_of(line).cmp(start)).ok()?;
    Some(numbered(all[at].split('\t').nth(1)?)?.0)
}

/// The subsystem on which OpenZFS's functions with this beginning agree, or else the parent on
/// which they agree.
fn kin(start: &str) -> Option<&'static str> {
    let all = section("functions");
    let from = all.partition_point(|line| name_of(line) < start);
    let theirs = all[from..].iter().take_while(|line| line.starts_with(start));
    let theirs = theirs.filter_map(|line| parse(line)).filter(|function| function.file.is_some());
    let theirs: Vec<&'static str> = theirs.map(|function| function.subsystem).collect();
    if theirs.len() < FEWEST_KIN {
        return None;
    }
    let whole = |name: &&'static str| name.split_once('/').map_or(*name, |(whole, _)| whole);
    agreed(theirs.iter().copied(), theirs.len()).or_else(|| {
        agreed(theirs.iter().map(whole), theirs.len()).filter(|name| does(name).is_some())
    })
}

/// The name that enough of them have.
fn agreed(names: impl Iterator<Item = &'static str>, all: usize) -> Option<&'static str> {
    let mut counts: Vec<(&'static str, usize)> = Vec::new();
    for name in names {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let (name, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (count * 100 >= all * AGREEING_PERCENT).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> &'static str {
        subsystem_of(name, None, None).unwrap_or("?")
    }

    #[test]
    fn functions_of_all_releases_have_their_subsystem() {
        for (name, subsystem) in [
            ("arc_adjust_impl", "arc/evict"),
            ("arc_evict_state", "arc/evict"),
            ("arc_prune_task", "arc/prune"),
            ("zpl_prune_sbs", "arc/prune"),
            ("dbuf_evict_one", "dbuf/evict"),
            ("dbuf_find", "dbuf/hash"),
            ("aes_generic_encrypt", "cipher/aes/plain"),
            ("gcm_generic_mul", "cipher/gcm/plain"),
            ("gcm_pclmulqdq_mul", "cipher/gcm/accelerated"),
            ("aesni_gcm_encrypt", "cipher/gcm/accelerated"),
            ("ccm_mode_encrypt_contiguous_blocks", "cipher/ccm"),
            ("vdev_raidz_generate_parity", "raidz/parity/plain"),
            ("avx2_gen_pqr", "raidz/parity/simd"),
            ("fletcher_4_avx2_native", "checksum/fletcher/simd"),
            ("SHA256Transform", "checksum/strong/sha256"),
            ("vdev_queue_io_to_issue", "vdev/queue"),
            ("metaslab_block_picker", "metaslab"),
            ("ddt_lookup", "ddt"),
            ("brt_entry_lookup", "brt"),
            ("ZSTD_DUBT_findBestMatch", "compress/zstd"),
            ("zfs_ZSTD_compressBlock_btlazy2", "compress/zstd"),
            ("zfs_ZSTD_decompressBlock_internal", "decompress/zstd"),
            ("txg_wait_synced", "txg/wait"),
            ("taskq_thread", "taskq"),
            ("lz4_decompress_zfs", "decompress/lz4"),
            ("longest_match", "compress/gzip"),
            ("shrink_inactive_list", "kernel/reclaim/lru"),
            ("__spl_kmem_cache_generic_shrinker", "spl/shrinker"),
            ("super_cache_count", "kernel/reclaim/shrinkers"),
            ("isolate_migratepages_block", "kernel/compaction"),
            ("clear_page_erms", "kernel/page-zeroing"),
            ("osq_lock", "kernel/lock/spin"),
            ("exportfs_get_name", "kernel/nfs/server"),
            ("ksm_scan_thread", "kernel/ksm"),
            ("extract_buf", "random"),
        ] {
            assert_eq!(of(name), subsystem, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_placed_by_its_beginning() {
        assert_eq!(of("metaslab_vendor_trick"), "metaslab");
        assert_eq!(of("shrink_folio_batch_for_tests"), "?");
        assert_eq!(of("completely_unknown_name"), "?");
    }

    #[test]
    fn names_are_seldom_placed_wrongly_by_their_beginning() {
        let all = section("functions");
        let ours = all.iter().filter_map(|line| Some((name_of(line), parse(line)?)));
        let (mut placed, mut wrong) = (0_usize, Vec::new());
        for (name, function) in ours.filter(|(_, function)| function.file.is_some()).step_by(7) {
            // Tests a new name with the same beginning.
            let Some(cut) = name.rfind('_') else { continue };
            let Some(found) = by_beginning(&format!("{}unknown_name", &name[..=cut]), Some(true))
            else {
                continue;
            };
            placed += 1;
            let (own, found) = (function.subsystem, found);
            let apart =
                !super::super::is_within(own, found) && !super::super::is_within(found, own);
            if apart {
                wrong.push(name);
            }
        }
        assert!(placed > 700, "{placed}");
        assert!(wrong.len() * 25 < placed, "{} of {placed}: {wrong:?}", wrong.len());
    }

    #[test]
    fn names_of_user_space_have_no_subsystem() {
        assert_eq!(subsystem_of("inflate", Some("libz.so.1"), Some(false)), None);
        assert_eq!(subsystem_of("inflate", None, None), None);
        assert_eq!(subsystem_of("inflate", Some("kernel"), Some(true)), Some("decompress/gzip"));
    }

    #[test]
    fn functions_have_their_releases_and_systems() {
        let adjust = functions("arc_adjust").next().expect("0.7 has it");
        assert_eq!((adjust.file, adjust.module), (Some("arc.c"), Some("zfs")));
        assert_eq!(adjust.releases, "0.6.1-0.8.6");
        assert!(functions("vdev_geom_io_start").all(|f| f.system == Some("freebsd")));
    }
}
