//! Tracks processes and threads through the records: names, address spaces, forks and execs.
//!
//! Processes share an address space until one of them changes it. Each change gives it a new
//! number, which is a key of the cache of names.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::Map;
use crate::model::{Profile, StringId, ThreadId};

/// Threads and processes at most; further ones have no name and no mappings.
const TASKS_MAX: usize = 2_000_000;
/// Mappings of all address spaces at most; further ones are dropped.
const MAPPINGS_MAX: usize = 4_000_000;

/// A part of a file in an address space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// The offset of the beginning in the file.
    pub(crate) offset: u64,
    pub(crate) path: StringId,
    /// 0 if unknown.
    pub(crate) inode: u64,
}

#[derive(Debug, Clone, Default)]
struct Space {
    number: u32,
    maps: Rc<BTreeMap<u64, Mapping>>,
}

#[derive(Debug, Clone, Copy)]
struct Task {
    name: StringId,
    pid: i32,
    thread: Option<ThreadId>,
}

/// All known processes and threads.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    threads: Map<i32, Task>,
    spaces: Map<i32, Space>,
    numbers: u32,
    mappings: usize,
}

impl Tasks {
    pub(super) fn name(
        &mut self,
        pid: i32,
        tid: i32,
        name: &str,
        exec: bool,
        profile: &mut Profile,
    ) {
        let name = profile.intern(name);
        if self.threads.len() < TASKS_MAX || self.threads.contains_key(&tid) {
            self.threads.insert(tid, Task { name, pid, thread: None });
        }
        if exec {
            let number = self.next_number();
            self.put_space(pid, Space { number, maps: Rc::default() });
        }
    }

    pub(super) fn fork(&mut self, pid: i32, parent_pid: i32, tid: i32, parent_tid: i32) {
        let parent = self.threads.get(&parent_tid).or_else(|| self.threads.get(&parent_pid));
        if let Some(parent) = parent.copied()
            && self.threads.len() < TASKS_MAX
        {
            self.threads.insert(tid, Task { name: parent.name, pid, thread: None });
        } else if parent.is_none() && tid == pid {
            // A reused number belongs to a new thread.
            self.threads.remove(&tid);
        }
        if pid != parent_pid
            && let Some(space) = self.spaces.get(&parent_pid).cloned()
        {
            self.put_space(pid, space);
        }
    }

    pub(super) fn exit(&mut self, pid: i32, tid: i32) {
        // Samples of an exiting thread may still arrive, so its name stays until its number is
        // reused. The address space stays only as long as its process.
        if pid == tid
            && let Some(space) = self.spaces.get(&pid)
            && self.spaces.len() > TASKS_MAX / 2
        {
            self.mappings = self.mappings.saturating_sub(if Rc::strong_count(&space.maps) == 1 {
                space.maps.len()
            } else {
                0
            });
            self.spaces.remove(&pid);
        }
    }

    pub(super) fn map(&mut self, pid: i32, mapping: Mapping) {
        if mapping.len == 0 || self.mappings >= MAPPINGS_MAX {
            return;
        }
        if !self.spaces.contains_key(&pid) && self.spaces.len() >= TASKS_MAX {
            return;
        }
        let number = self.next_number();
        let space = self.spaces.entry(pid).or_default();
        space.number = number;
        if Rc::strong_count(&space.maps) > 1 {
            self.mappings += space.maps.len();
        }
        let maps = Rc::make_mut(&mut space.maps);
        let end = mapping.start.saturating_add(mapping.len);
        // Mappings that the new one covers are removed; of one covered in part, the rest stays.
        let covered: Vec<u64> = maps.range(mapping.start..end).map(|(start, _)| *start).collect();
        for start in covered {
            if let Some(old) = maps.remove(&start) {
                keep_after(maps, &old, end);
            }
        }
        if let Some((_, before)) = maps.range_mut(..mapping.start).next_back() {
            let old = *before;
            if old.start.saturating_add(old.len) > mapping.start {
                before.len = mapping.start - old.start;
                keep_after(maps, &old, end);
            }
        }
        maps.insert(mapping.start, mapping);
        self.mappings += 1;
    }

    /// The mapping at an address of a process.
    pub(super) fn find(&self, pid: i32, address: u64) -> Option<Mapping> {
        let maps = &self.spaces.get(&pid)?.maps;
        let (_, mapping) = maps.range(..=address).next_back()?;
        (address - mapping.start < mapping.len).then_some(*mapping)
    }

    /// The number of a process's address space; 0 when it has none.
    pub(super) fn space(&self, pid: i32) -> u32 {
        self.spaces.get(&pid).map_or(0, |space| space.number)
    }

    /// The thread of a sample. Without a name it is called by its number, as perf does.
    pub(super) fn thread(&mut self, pid: i32, tid: i32, profile: &mut Profile) -> ThreadId {
        if let Some(task) = self.threads.get_mut(&tid) {
            if let Some(thread) = task.thread
                && task.pid == pid
            {
                return thread;
            }
            let name = profile.string(task.name).to_owned();
            let thread = profile.add_thread(pid, tid, &name);
            (task.pid, task.thread) = (pid, Some(thread));
            return thread;
        }
        // The idle task, even if the sample names the task that ran before.
        if tid == 0 {
            return profile.add_thread(pid, 0, "swapper");
        }
        profile.add_thread(pid, tid, &format!(":{tid}"))
    }

    fn next_number(&mut self) -> u32 {
        self.numbers = self.numbers.wrapping_add(1).max(1);
        self.numbers
    }

    fn put_space(&mut self, pid: i32, space: Space) {
        if self.spaces.len() < TASKS_MAX || self.spaces.contains_key(&pid) {
            self.spaces.insert(pid, space);
        }
    }
}

/// Keeps the part of a mapping that lies after an address.
fn keep_after(maps: &mut BTreeMap<u64, Mapping>, old: &Mapping, end: u64) {
    let old_end = old.start.saturating_add(old.len);
    if old_end > end && end > old.start {
        let moved = end - old.start;
        let rest = Mapping {
            start: end,
            len: old_end - end,
            offset: old.offset.saturating_add(moved),
            path: old.path,
            inode: old.inode,
        };
        maps.insert(end, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, len: u64, path: u32) -> Mapping {
        Mapping { start, len, offset: 0, path: crate::model::test_string(path), inode: 0 }
    }

    #[test]
    fn a_new_mapping_replaces_the_old_and_a_child_inherits_mappings() {
        let mut profile = Profile::default();
        let mut tasks = Tasks::default();
        tasks.map(1, mapping(100, 100, 1));
        tasks.map(1, mapping(140, 20, 2));
        let at = |tasks: &Tasks, pid, address| {
            tasks.find(pid, address).map(|m| (m.path.index(), address - m.start + m.offset))
        };
        assert_eq!(at(&tasks, 1, 120), Some((1, 20)));
        assert_eq!(at(&tasks, 1, 150), Some((2, 10)));
        assert_eq!(at(&tasks, 1, 170), Some((1, 70)));
        assert_eq!(at(&tasks, 1, 200), None);
        tasks.name(1, 1, "parent", false, &mut profile);
        tasks.fork(2, 1, 2, 1);
        assert_eq!(tasks.space(1), tasks.space(2));
        assert_eq!(at(&tasks, 2, 150), Some((2, 10)));
        tasks.map(2, mapping(0, 1000, 3));
        assert_eq!(at(&tasks, 2, 150), Some((3, 150)));
        assert_eq!(at(&tasks, 1, 150), Some((2, 10)));
        let child = tasks.thread(2, 2, &mut profile);
        assert_eq!(profile.thread(child).name, "parent");
        tasks.name(2, 2, "child", true, &mut profile);
        assert_eq!(at(&tasks, 2, 150), None);
        let child = tasks.thread(2, 2, &mut profile);
        assert_eq!(profile.thread(child).name, "child");
        let unknown = tasks.thread(-1, -1, &mut profile);
        assert_eq!(profile.thread(unknown).name, ":-1");
    }
}
