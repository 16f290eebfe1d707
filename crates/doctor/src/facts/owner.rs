//! The owner of a thread: a program, the kernel or ZFS.
//!
//! A program may choose its own name, so a name decides only if nothing else does. A row that
//! belongs to a program, and samples with functions of user space, prove more than a name.

use std::collections::HashMap;

use super::{Facts, is_zfs_thread};
use crate::evidence::{Evidence, Frame, Thread};

/// The owner of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A program.
    Program,
    /// The kernel, but not ZFS.
    Kernel,
    /// ZFS.
    Zfs,
}

impl Owner {
    fn of_kernel(name: &str) -> Self {
        if is_zfs_thread(name) { Self::Zfs } else { Self::Kernel }
    }
}

/// Whether threads belong to the kernel, by name, where there is more evidence than the name.
///
/// A name that a program shares with a kernel thread counts as the program's: a name alone accuses
/// no program.
#[derive(Debug, Default)]
pub(super) struct Owners {
    is_kernel: HashMap<String, bool>,
}

impl Owners {
    pub(super) fn new(evidence: &Evidence) -> Self {
        let mut owners = Self::default();
        for thread in &evidence.threads {
            if let Some(is_kernel) = thread.kernel {
                owners.note(&thread.name, is_kernel);
            }
        }
        for profile in &evidence.profiles {
            let stacks = profile.stacks.iter();
            let stacks = stacks.map(|one| (&one.thread, one.frames.iter().any(is_of_user_space)));
            let rows = profile.rows.iter();
            let rows = rows.map(|one| (&one.thread, is_of_user_space(&one.frame)));
            for (thread, _) in stacks.chain(rows).filter(|(_, is_program)| *is_program) {
                thread.iter().for_each(|name| owners.note(name, false));
            }
        }
        owners
    }

    fn note(&mut self, name: &str, is_kernel: bool) {
        match self.is_kernel.get_mut(name) {
            Some(known) => *known &= is_kernel,
            None => {
                self.is_kernel.insert(name.to_owned(), is_kernel);
            }
        }
    }

    /// The owner of the threads with a name.
    pub(super) fn of(&self, name: &str) -> Owner {
        match self.is_kernel.get(name) {
            Some(true) => Owner::of_kernel(name),
            None if looks_like_kernel(name) => Owner::of_kernel(name),
            Some(false) | None => Owner::Program,
        }
    }

    /// Whether the threads of a name belong to a program but have a name of the kernel's.
    pub(super) fn is_disguised(&self, name: &str) -> bool {
        self.is_kernel.get(name) == Some(&false) && looks_like_kernel(name)
    }
}

/// Whether a function runs in user space. A function without name and module may be anything.
fn is_of_user_space(frame: &Frame) -> bool {
    let named = frame.module.as_deref().is_some_and(|module| !module.contains("unknown"));
    frame.kernel == Some(false) && named
}

impl Facts {
    /// The owner of the threads with this name.
    pub fn owner(&self, name: &str) -> Owner {
        self.owners.of(name)
    }

    /// The owner of one thread of a list.
    pub fn owner_of(&self, thread: &Thread) -> Owner {
        match thread.kernel {
            Some(false) => Owner::Program,
            Some(true) => Owner::of_kernel(&thread.name),
            None => self.owner(&thread.name),
        }
    }
}

/// Whether the kernel, or ZFS in it, gives this name to its threads.
pub(crate) fn looks_like_kernel(name: &str) -> bool {
    const PREFIXES: [&str; 18] = [
        "kworker",
        "kswapd",
        "ksoftirqd",
        "kcompactd",
        "khugepaged",
        "kacpi",
        "rcu_",
        "migration/",
        "kthreadd",
        "watchdog/",
        "jbd2/",
        "btrfs-",
        "nfsd",
        "ksmd",
        "irq/",
        "spl_",
        "pagedaemon",
        "kernel_task",
    ];
    is_zfs_thread(name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{Profile, Source, Stack};

    fn row(name: &str, kernel: Option<bool>) -> Thread {
        let source = Source { input: "ps".into(), line: Some(1) };
        let cpu_percent = Some(90.0);
        Thread { kernel, cpu_percent, ..Thread::named(name.to_owned(), 0, source) }
    }

    #[test]
    fn a_program_with_the_name_of_a_kernel_thread_stays_a_program() {
        let threads = vec![row("arc_prune", Some(false)), row("txg_sync", Some(true))];
        let facts = Facts::new(Evidence { threads, ..Evidence::default() });
        assert_eq!(facts.owner("arc_prune"), Owner::Program);
        assert_eq!(facts.owner("txg_sync"), Owner::Zfs);
        assert_eq!(facts.owner("dbuf_evict"), Owner::Zfs);
        assert_eq!(facts.owner("java"), Owner::Program);
        // Signs about kernel threads do not match it, but signs that match every thread do.
        assert_eq!(facts.thread_max("^(arc_|txg_sync)"), Ok(90.0));
        assert_eq!(facts.thread_cpu("^(arc_|txg_sync)"), Ok(90.0));
        assert_eq!(facts.thread_cpu("."), Ok(180.0));
    }

    #[test]
    fn samples_in_user_space_show_a_program() {
        let frame = |kernel, module: &str| Frame {
            symbol: Some("loop".to_owned()),
            module: Some(module.to_owned()),
            kernel: Some(kernel),
        };
        let stack = |thread: &str, frame| Stack {
            thread: Some(thread.to_owned()),
            process: None,
            frames: vec![frame],
            weight: 100.0,
            source: Source { input: "perf.data".into(), line: None },
        };
        let stacks = vec![
            stack("arc_prune", frame(false, "python3.11")),
            stack("dbuf_evict", frame(false, "[unknown]")),
            stack("txg_sync", frame(true, "kernel")),
        ];
        let profile = Profile { stacks, weighted: true, ..Profile::default() };
        let facts = Facts::new(Evidence { profiles: vec![profile], ..Evidence::default() });
        assert_eq!(facts.owner("arc_prune"), Owner::Program);
        assert_eq!(facts.owner("dbuf_evict"), Owner::Zfs);
        assert_eq!(facts.zfs_share().map(f64::round), Ok(67.0));
        assert_eq!(facts.in_thread("^arc_", "loop"), Ok(0.0));
    }
}
