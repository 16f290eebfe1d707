//! The causes of uninterruptible sleep, from the functions on kernel stacks.
//!
//! A capture has the stack of each such thread, or the one function in which it sleeps. [`finish`]
//! counts the threads by cause, in the table `waits` with one scope per cause.

use std::collections::BTreeMap;

use super::{Moment, reading_of};
use crate::evidence::{Evidence, KernelStack, Source, Table};
use crate::read::text::word_lists;

/// The file of a capture with these stacks.
const FILE: &str = "waits.txt";
/// Names of threads that are given, at most.
const MOST_NAMES: usize = 3;

/// Causes, with the beginnings of functions on their stacks; the first one that matches counts. A
/// thread that waits for a server is also in functions of locks and pages.
const KINDS: [(&str, &str); 6] = [
    ("fuse", "request_wait_answer|fuse_"),
    ("nfs", "rpc_wait_bit|rpc_execute|nfs_|nfs3_|nfs4_|nfs41_"),
    ("cifs", "cifs_|smb2_|wait_for_response"),
    ("memory", "shrink_|try_to_free|mem_cgroup_handle_over_high|do_swap_page"),
    (
        "disk",
        "io_schedule|blk_|bio_|submit_bio|wait_on_page|folio_wait|jbd2_|xlog_|balance_dirty_pages\
         |zio_wait|txg_wait|wait_on_buffer",
    ),
    ("lock", "mutex_|__mutex|rwsem_|down_|rw_enter|rrw_enter"),
];

/// The cause that a stack shows.
fn kind(stack: &KernelStack) -> Option<&'static str> {
    let symbols = || stack.frames.iter().filter_map(|frame| frame.symbol.as_deref());
    let has = |starts: &str| symbols().any(|symbol| word_lists::begins(starts, symbol));
    KINDS.iter().find(|(_, starts)| has(starts)).map(|(kind, _)| *kind)
}

/// Counts the waiting threads of the second reading, or of the first if the second has none.
pub(crate) fn finish(evidence: &mut Evidence) {
    let of_moment = |moment| {
        let stacks = evidence.kernel_stacks.iter();
        let here = stacks.filter(move |stack| reading_of(&stack.source.input) == (moment, FILE));
        here.collect::<Vec<&KernelStack>>()
    };
    let end = of_moment(Some(Moment::End));
    let stacks = if end.is_empty() { of_moment(Some(Moment::Start)) } else { end };
    let mut kinds: BTreeMap<&str, (u64, Vec<&str>, &Source)> = BTreeMap::new();
    for stack in stacks {
        let Some(kind) = kind(stack) else { continue };
        let (count, names, _) = kinds.entry(kind).or_insert((0, Vec::new(), &stack.source));
        *count += stack.count;
        names.extend(stack.thread.as_deref());
    }
    #[expect(clippy::cast_precision_loss, reason = "threads are countable")]
    let tables = kinds.into_iter().map(|(kind, (count, mut names, source))| {
        names.sort_unstable();
        names.dedup();
        names.truncate(MOST_NAMES);
        let mut table = Table { scope: Some(kind.to_owned()), ..Table::named("waits") };
        table.add("threads", Some(count as f64), source);
        table.add("names", Some(names.join(", ").as_str()), source);
        table
    });
    let tables: Vec<Table> = tables.collect();
    evidence.tables.extend(tables);
}
