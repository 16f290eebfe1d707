//! Stacks by the names of their frames, in the order of their folded lines
//! (`thread;root;...;leaf`). The text of a line is never held.
//!
//! Threads of one name are merged, and so are frames of one name under one caller, also across
//! profiles. All stacks share one tree. Its branches are sorted once, by the rank of each name. A
//! line is a thread, a node of that tree and weights: some 24 bytes, where its text may have
//! thousands.

use std::borrow::Cow;
use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::model::{Map, Sample, StackId, View};

/// Callers have smaller numbers. This is the node of a stack without frames.
const ROOT: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    caller: u32,
    name: u32,
}

/// One line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    thread: u32,
    node: u32,
    /// The weights of the line in the first and the second view.
    pub(super) weights: [u64; 2],
}

/// The lines of up to two views.
#[derive(Debug)]
pub(super) struct NamedStacks {
    names: Vec<String>,
    numbers: Map<String, u32>,
    nodes: Vec<Node>,
    index: HashTable<u32>,
    hasher: FixedState,
    lines: Vec<Line>,
}

impl NamedStacks {
    pub(super) fn new() -> Self {
        Self {
            names: Vec::new(),
            numbers: Map::default(),
            nodes: vec![Node { caller: ROOT, name: 0 }],
            index: HashTable::new(),
            hasher: FixedState::default(),
            lines: Vec::new(),
        }
    }

    /// Adds a figure of each sample of a view to the weights with this number, 0 or 1.
    pub(super) fn add(&mut self, view: &View<'_>, of: usize, figure: fn(&Sample) -> u64) {
        let profile = view.profile();
        let threads: Vec<u32> = profile
            .threads()
            .map(|thread| self.name(if thread.name.is_empty() { "[unknown]" } else { thread.name }))
            .collect();
        let names: Vec<u32> = profile.frames().map(|(_, frame)| self.name(&frame.name())).collect();
        let mut nodes = vec![ROOT; profile.stacks_len()];
        for (stack, _) in view.reached().into_iter().enumerate().filter(|(_, reached)| *reached) {
            if let Some((frame, caller)) = profile.split_stack(StackId(stack as u32)) {
                let (caller, name) = (nodes[caller.index()], names[frame.index()]);
                nodes[stack] = self.node(Node { caller, name });
            }
        }
        // Most samples share thread and stack with another.
        let mut sums: Map<(u32, u32), u64> = Map::default();
        for sample in view.samples() {
            let line = (threads[sample.thread.index()], nodes[sample.stack.index()]);
            let sum = sums.entry(line).or_default();
            *sum = sum.saturating_add(figure(sample));
        }
        self.lines.extend(sums.into_iter().map(|((thread, node), weight)| {
            let mut weights = [0; 2];
            weights[of] = weight;
            Line { thread, node, weights }
        }));
    }

    /// Sorts the lines by text, each once.
    pub(super) fn sort(&mut self) {
        let ranks = self.ranks();
        let places = self.places(&ranks);
        // The line of a thread without a stack ends with the thread's name.
        let key = |line: &Line| {
            (
                ranks[line.thread as usize][usize::from(line.node != ROOT)],
                places[line.node as usize],
            )
        };
        self.lines.sort_unstable_by_key(key);
        self.lines.dedup_by(|later, kept| {
            let same = (later.thread, later.node) == (kept.thread, kept.node);
            if same {
                for (sum, weight) in kept.weights.iter_mut().zip(later.weights) {
                    *sum = sum.saturating_add(weight);
                }
            }
            same
        });
    }

    /// The lines, sorted after [`Self::sort`].
    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Appends a line's text, without its weight.
    pub(super) fn text(&self, line: &Line, path: &mut Vec<u32>, out: &mut String) {
        out.push_str(&self.names[line.thread as usize]);
        path.clear();
        path.extend(self.path(line.node));
        for node in path.iter().rev() {
            out.push(';');
            out.push_str(&self.names[self.nodes[*node as usize].name as usize]);
        }
    }

    /// Joins adjacent lines that no picture can distinguish: those that share a branch, or a
    /// thread, whose first weight is below `least` in all. The first line stands for all.
    pub(super) fn joined(&self, least: f64) -> Vec<Line> {
        let mut joined: Vec<Line> = Vec::new();
        let mut totals = vec![0u64; self.nodes.len()];
        for of_thread in self.lines.chunk_by(|a, b| a.thread == b.thread) {
            for line in of_thread {
                for node in self.path(line.node).chain([ROOT]) {
                    let total = &mut totals[node as usize];
                    *total = total.saturating_add(line.weights[0]);
                }
            }
            let mut before = None;
            for line in of_thread {
                let path = self.path(line.node).chain([ROOT]);
                let light = path.take_while(|node| (totals[*node as usize] as f64) < least).last();
                match joined.last_mut().filter(|_| light.is_some() && light == before) {
                    Some(kept) => kept.weights[0] = kept.weights[0].saturating_add(line.weights[0]),
                    None => joined.push(*line),
                }
                before = light;
            }
            for line in of_thread {
                self.path(line.node).chain([ROOT]).for_each(|node| totals[node as usize] = 0);
            }
        }
        joined
    }

    /// A node and its callers, without the root.
    fn path(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let mut at = node;
        std::iter::from_fn(move || {
            let node = at;
            at = self.nodes[node as usize].caller;
            (node != ROOT).then_some(node)
        })
    }

    fn name(&mut self, name: &str) -> u32 {
        let name = clean(name);
        if let Some(known) = self.numbers.get(&*name) {
            return *known;
        }
        let next = self.names.len() as u32;
        self.names.push(name.clone().into_owned());
        self.numbers.insert(name.into_owned(), next);
        next
    }

    fn node(&mut self, node: Node) -> u32 {
        let hash = self.hasher.hash_one(node);
        if let Some(found) = self.index.find(hash, |&id| self.nodes[id as usize] == node) {
            return *found;
        }
        let next = self.nodes.len() as u32;
        self.nodes.push(node);
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        self.index.insert_unique(hash, next, |&id| hasher.hash_one(nodes[id as usize]));
        next
    }

    /// The rank of each name among all names, once for a line that ends with it and once for one
    /// where `;` follows.
    fn ranks(&self) -> Vec<[u32; 2]> {
        let mut order: Vec<(u32, bool)> =
            (0..self.names.len() as u32).flat_map(|name| [(name, false), (name, true)]).collect();
        order.sort_unstable_by(|a, b| self.compare(*a, *b));
        let mut ranks = vec![[0; 2]; self.names.len()];
        for (rank, (name, goes_on)) in order.into_iter().enumerate() {
            ranks[name as usize][usize::from(goes_on)] = rank as u32;
        }
        ranks
    }

    /// Compares names, with or without a `;` after them, as text.
    fn compare(&self, a: (u32, bool), b: (u32, bool)) -> std::cmp::Ordering {
        let text = |name: u32| self.names[name as usize].as_bytes();
        let (one, other) = (text(a.0), text(b.0));
        let common = one.len().min(other.len());
        let rest = |text: &'_ [u8], goes_on: bool| {
            [text.get(common).copied(), goes_on.then_some(b';')].into_iter().flatten().next()
        };
        one[..common].cmp(&other[..common]).then_with(|| rest(one, a.1).cmp(&rest(other, b.1)))
    }

    /// For each node, the rank of its line among all lines of one thread.
    fn places(&self, ranks: &[[u32; 2]]) -> Vec<u32> {
        // Below a node, each callee has two items: the line that ends there and the branch that
        // goes on. They are separate, because other names may sort between `name` and `name;`.
        let mut starts = vec![0u32; self.nodes.len() + 1];
        for node in &self.nodes[1..] {
            starts[node.caller as usize + 1] += 2;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut items = vec![(0u32, 0u32, false); (self.nodes.len() - 1) * 2];
        let mut next = starts.clone();
        for (number, node) in self.nodes.iter().enumerate().skip(1) {
            let at = &mut next[node.caller as usize];
            for goes_on in [false, true] {
                let rank = ranks[node.name as usize][usize::from(goes_on)];
                items[*at as usize] = (rank, number as u32, goes_on);
                *at += 1;
            }
        }
        let called = |node: u32| starts[node as usize] as usize..starts[node as usize + 1] as usize;
        for node in 0..self.nodes.len() as u32 {
            items[called(node)].sort_unstable();
        }
        let mut places = vec![0u32; self.nodes.len()];
        let (mut place, mut open) = (0, vec![called(ROOT)]);
        while let Some(branch) = open.last_mut() {
            match branch.next().map(|at| items[at]) {
                None => drop(open.pop()),
                Some((_, node, true)) => open.push(called(node)),
                Some((_, node, false)) => {
                    place += 1;
                    places[node as usize] = place;
                }
            }
        }
        places
    }
}

/// A name without the characters that separate names and lines.
fn clean(name: &str) -> Cow<'_, str> {
    let unclean = |c: char| c == ';' || c.is_control();
    if !name.contains(unclean) {
        return name.into();
    }
    let put = |c| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    };
    name.chars().map(put).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::seed::seeded;
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Mode, Profile};

    /// A profile of stacks: the thread's name, then the frames from the root.
    fn profile(stacks: &[(Vec<String>, u64)]) -> Profile {
        let mut profile = Profile::default();
        for (number, (names, weight)) in (1..).zip(stacks) {
            let mut stack = StackId::EMPTY;
            for name in &names[1..] {
                // Different frames of one name must become one.
                let (name, module) = (profile.intern(name), profile.intern(["a", "b"][number % 2]));
                let frame = profile.add_frame(name, module, Mode::User, 0);
                stack = profile.push_frame(stack, frame);
            }
            let thread = profile.add_thread(number as i32, number as i32, &names[0]);
            let (weight, cpu) = (*weight, 0);
            profile.push(Sample { time_ns: 0, weight, thread, cpu, stack, count: 1 });
        }
        profile
    }

    fn texts(stacks: &NamedStacks, lines: &[Line]) -> Vec<(String, [u64; 2])> {
        let (mut path, mut out) = (Vec::new(), Vec::new());
        for line in lines {
            let mut text = String::new();
            stacks.text(line, &mut path, &mut text);
            out.push((text, line.weights));
        }
        out
    }

    /// The boxes of at least this weight in a picture: depth, name, start, width.
    fn boxes(lines: &[(String, [u64; 2])], least: f64) -> Vec<(usize, String, u64, u64)> {
        let mut boxes: Vec<(usize, String, u64, u64)> = Vec::new();
        let (mut before, mut open): (Vec<&str>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut time = 0;
        for (text, weights) in lines {
            let names: Vec<&str> = text.split(';').collect();
            let common = names.iter().zip(&before).take_while(|(a, b)| a == b).count();
            open.truncate(common);
            for (depth, name) in names.iter().enumerate().skip(common) {
                open.push(boxes.len());
                boxes.push((depth, (*name).to_owned(), time, 0));
            }
            time += weights[0];
            open.iter().for_each(|at| boxes[*at].3 += weights[0]);
            before = names;
        }
        boxes.retain(|(.., width)| *width as f64 >= least);
        boxes.sort();
        boxes
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..seeded() })]

        #[test]
        fn lines_are_sorted_by_text_and_joined_ones_look_the_same(
            stacks in prop::collection::vec(
                (prop::collection::vec(r"[ab][ !.<a]{0,2}", 1..6), 1..100u64), 1..60),
            least in 0.0..300.0f64,
        ) {
            let mut expected: BTreeMap<String, [u64; 2]> = BTreeMap::new();
            let mut named = NamedStacks::new();
            for (of, stacks) in stacks.chunks(stacks.len().div_ceil(2)).enumerate() {
                for (stack, weight) in stacks {
                    expected.entry(stack.join(";")).or_default()[of] += weight;
                }
                named.add(&profile(stacks).view(), of, |sample| sample.weight);
            }
            named.sort();
            let lines = texts(&named, named.lines());
            prop_assert_eq!(&lines, &expected.into_iter().collect::<Vec<_>>());
            let joined = texts(&named, &named.joined(least));
            prop_assert_eq!(boxes(&joined, least), boxes(&lines, least));
            prop_assert!(joined.is_sorted_by_key(|(text, _)| text));
            prop_assert!(least > 0.0 || joined.len() == lines.len());
        }
    }

    #[test]
    fn separators_are_removed_from_names() {
        assert_eq!(clean("a;b\nc"), "a:b c");
        assert_eq!(clean("plain"), "plain");
    }
}
