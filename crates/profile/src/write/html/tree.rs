//! The tree that the page draws: stacks of one or two profiles over shared frames, pruned.

use hashbrown::HashMap;

use crate::model::{Frame, Mode, StackId, View, ZFS_MODULES};

/// A node: a frame under a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) parent: u32,
    pub(super) frame: u32,
}

/// Samples of one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) time_ns: u64,
    pub(super) bucket: u64,
    pub(super) group: u32,
    pub(super) node: u32,
    pub(super) weight: u64,
}

/// Nodes, callers first, and the names of their frames.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) names: Vec<String>,
    pub(super) frame_modules: Vec<u32>,
    /// One letter per frame: kernel, z for ZFS's modules, user, n for no name, x for unknown.
    pub(super) kinds: String,
    pub(super) modules: Vec<String>,
    by_node: HashMap<Node, u32>,
    by_name: HashMap<(String, u32), u32>,
    by_module: HashMap<String, u32>,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            nodes: vec![Node { parent: 0, frame: 0 }],
            names: Vec::new(),
            frame_modules: Vec::new(),
            kinds: String::new(),
            modules: Vec::new(),
            by_node: HashMap::new(),
            by_name: HashMap::new(),
            by_module: HashMap::new(),
        }
    }
}

impl Tree {
    /// Adds a profile's samples. `groups` gives the group of each thread.
    pub(super) fn add(&mut self, view: &View<'_>, groups: &[u32]) -> Vec<Entry> {
        let profile = view.profile();
        let frames: Vec<u32> = profile.frames().map(|(_, frame)| self.frame(&frame)).collect();
        let reached = view.reached();
        let mut nodes = vec![0u32; profile.stacks_len()];
        for stack in 1..nodes.len() {
            if reached[stack]
                && let Some((frame, caller)) = profile.split_stack(StackId(stack as u32))
            {
                let (parent, frame) = (nodes[caller.index()], frames[frame.index()]);
                // Several nameless frames in a row say no more than one.
                let is_folded = self.is_nameless(frame)
                    && parent != 0
                    && self.nodes[parent as usize].frame == frame;
                nodes[stack] = if is_folded { parent } else { self.node(Node { parent, frame }) };
            }
        }
        view.samples()
            .map(|sample| Entry {
                time_ns: sample.time_ns,
                bucket: 0,
                group: groups[sample.thread.index()],
                node: nodes[sample.stack.index()],
                weight: sample.weight,
            })
            .collect()
    }

    fn is_nameless(&self, frame: u32) -> bool {
        self.kinds.as_bytes().get(frame as usize) == Some(&b'n')
    }

    fn node(&mut self, node: Node) -> u32 {
        let next = self.nodes.len() as u32;
        let id = *self.by_node.entry(node).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }

    fn frame(&mut self, frame: &Frame<'_>) -> u32 {
        let name = frame.name().into_owned();
        let module = frame.module_name().to_owned();
        let next = self.modules.len() as u32;
        let module = *self.by_module.entry_ref(module.as_str()).or_insert_with(|| {
            self.modules.push(module.clone());
            next
        });
        let next = self.names.len() as u32;
        match self.by_name.entry((name.clone(), module)) {
            hashbrown::hash_map::Entry::Occupied(known) => *known.get(),
            hashbrown::hash_map::Entry::Vacant(new) => {
                new.insert(next);
                self.names.push(name);
                self.frame_modules.push(module);
                self.kinds.push(kind(frame));
                next
            }
        }
    }

    /// Removes nodes below a share of both profiles; their weight goes to the caller.
    pub(super) fn prune(&mut self, entries: &mut [Entry], base: &mut [Entry], share: f64) {
        let totals = |entries: &[Entry]| {
            let mut totals = vec![0u64; self.nodes.len()];
            for entry in entries {
                let total = &mut totals[entry.node as usize];
                *total = total.saturating_add(entry.weight);
            }
            for at in (1..totals.len()).rev() {
                let parent = self.nodes[at].parent as usize;
                totals[parent] = totals[parent].saturating_add(totals[at]);
            }
            totals
        };
        let (here, before) = (totals(entries), totals(base));
        let least = |totals: &[u64]| totals[0] as f64 * share;
        let (here_least, before_least) = (least(&here), least(&before));
        let mut kept = vec![0u32; self.nodes.len()];
        let mut nodes = vec![self.nodes[0]];
        for at in 1..self.nodes.len() {
            let Node { parent, frame } = self.nodes[at];
            let parent = kept[parent as usize];
            let small = here[at] as f64 <= here_least && before[at] as f64 <= before_least;
            kept[at] = if small {
                parent
            } else {
                nodes.push(Node { parent, frame });
                nodes.len() as u32 - 1
            };
        }
        for entry in entries.iter_mut().chain(base) {
            entry.node = kept[entry.node as usize];
        }
        self.nodes = nodes;
        self.by_node = HashMap::new();
        self.forget_unused_frames();
    }

    fn forget_unused_frames(&mut self) {
        let mut numbers = vec![u32::MAX; self.names.len()];
        let (mut names, mut modules, mut kinds) = (Vec::new(), Vec::new(), String::new());
        let old_kinds = self.kinds.as_bytes();
        for node in self.nodes.iter_mut().skip(1) {
            let old = node.frame as usize;
            if numbers[old] == u32::MAX {
                numbers[old] = names.len() as u32;
                names.push(std::mem::take(&mut self.names[old]));
                modules.push(self.frame_modules[old]);
                kinds.push(char::from(old_kinds[old]));
            }
            node.frame = numbers[old];
        }
        (self.names, self.frame_modules, self.kinds) = (names, modules, kinds);
        self.by_name = HashMap::new();
    }
}

fn kind(frame: &Frame<'_>) -> char {
    if frame.symbol.is_empty() {
        return 'n';
    }
    match frame.mode {
        Mode::Kernel if ZFS_MODULES.contains(&frame.module) => 'z',
        Mode::Kernel => 'k',
        Mode::User => 'u',
        Mode::Unknown => 'x',
    }
}
