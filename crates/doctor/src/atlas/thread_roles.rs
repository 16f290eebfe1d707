//! Threads and task queues: the role of each by its name.
//!
//! Linux cuts names at 15 characters. A name may end in the number of a queue or thread
//! (`z_wr_iss_3`, `z_rd_int/0`, `ksoftirqd/7`), and older releases use other names.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::section;

/// Characters of a thread's name that Linux keeps.
const NAME_CHARS: usize = 15;

/// Roles by whole name, and by the beginning of names that the atlas lists with a star. Maps,
/// because lists of threads are long and many rules ask for each name.
struct Roles {
    whole: HashMap<&'static str, &'static str>,
    beginnings: HashMap<&'static str, &'static str>,
}

static ROLES: LazyLock<Roles> = LazyLock::new(|| {
    let lines = section("threads").iter().map(|line| split(line));
    let (beginnings, whole): (Vec<_>, Vec<_>) = lines.partition(|(name, _)| name.ends_with('*'));
    let beginnings = beginnings.into_iter().map(|(name, role)| (&name[..name.len() - 1], role));
    Roles { whole: whole.into_iter().collect(), beginnings: beginnings.collect() }
});

/// The role of a thread; names of programs have none.
pub fn role_of(name: &str) -> Option<&'static str> {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    // The name of a kernel worker shows its work queue after a sign: `kworker/0:1+kacpi_notify`.
    let behalf = name.strip_prefix("kworker/").and_then(|rest| rest.split_once(['+', '-']));
    if let Some(role) = behalf.and_then(|(_, queue)| exact(queue).or_else(|| by_beginning(queue))) {
        return Some(role);
    }
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let bare =
        if bare.len() < name.len() { bare.trim_end_matches(['_', '-', '/', ':']) } else { name };
    exact(name).or_else(|| exact(bare)).or_else(|| cut(name)).or_else(|| by_beginning(name))
}

fn split(line: &'static str) -> (&'static str, &'static str) {
    line.split_once('\t').unwrap_or((line, ""))
}

fn exact(name: &str) -> Option<&'static str> {
    ROLES.whole.get(name).copied()
}

/// The role of a name that Linux cut.
fn cut(name: &str) -> Option<&'static str> {
    let name = name.trim_end_matches(['/', '_', '-']);
    if name.len() + 1 < NAME_CHARS || name.len() > NAME_CHARS {
        return None;
    }
    let all = section("threads");
    let at = all.partition_point(|line| split(line).0 < name);
    let (whole, role) = split(all.get(at)?);
    (whole.starts_with(name) && !whole.ends_with('*')).then_some(role)
}

/// The role of the longest beginning that is listed with a star.
fn by_beginning(name: &str) -> Option<&'static str> {
    let ends = name.char_indices().map(|(at, c)| at + c.len_utf8()).rev();
    ends.filter_map(|end| name.get(..end)).find_map(|start| ROLES.beginnings.get(start).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_their_role_in_any_form() {
        for (name, role) in [
            ("z_rd_int_7", "read/done"),
            ("[z_rd_int/0]", "read/done"),
            ("z_wr_iss_h", "write/issue"),
            ("z_fr_iss_3", "free"),
            ("z_null_int", "null"),
            ("txg_sync", "sync"),
            ("arc_prune", "arc/prune"),
            ("arc_reclaim", "arc/evict"),
            ("arc_adapt", "arc/reap"),
            ("dbuf_evict", "dbuf/evict"),
            ("dbu_evict", "dbuf/evict"),
            ("z_unlinked_drai", "drop"),
            ("dp_sync_taskq", "sync"),
            ("spl_kmem_cache/", "spl"),
            ("spl_dynamic_tas", "spl"),
            ("l2arc_feed", "l2arc"),
            ("zvol", "zvol"),
            ("zvol_tq-0", "zvol"),
            ("kswapd0", "kernel/reclaim"),
            ("ksmd", "kernel/ksm"),
            ("kworker/0:1H", "kernel/work"),
            ("kworker/0:10+kacpi_notify", "kernel/firmware"),
            ("kworker/u8:2-btrfs-endio", "kernel/files"),
            ("kworker/0:1-events", "kernel/work"),
        ] {
            assert_eq!(role_of(name), Some(role), "{name}");
        }
        for name in ["zed", "zfs", "postgres", "python3", "java", "", "z", "irqbalance"] {
            assert_eq!(role_of(name), None, "{name}");
        }
    }
}
