//! Queries over a profile. A [`View`] is a selection of its samples, and its methods are the
//! queries.

use std::borrow::Cow;

use hashbrown::HashMap;
use regex::Regex;

use super::{FrameId, Mode, Profile, Sample, StackId, Thread, ThreadId};

/// A weight and its part of the view's total.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The name of the thread, module or group.
    pub name: String,
    /// The weight, in [`super::Meta::unit`].
    pub weight: u64,
    /// Samples.
    pub samples: u64,
    /// The part of the view's total, 0 to 1.
    pub share: f64,
}

/// The weight of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct SymbolShare<'p> {
    /// The function; `[module]` where it has no name.
    pub symbol: Cow<'p, str>,
    /// The module as perf writes it.
    pub module: &'p str,
    /// Kernel or user.
    pub mode: Mode,
    /// The weight, in [`super::Meta::unit`].
    pub weight: u64,
    /// The part of the view's total, 0 to 1.
    pub share: f64,
}

/// Some of the samples of a profile.
#[derive(Debug, Clone)]
pub struct View<'p> {
    profile: &'p Profile,
    /// The indices of the chosen samples; `None` for all.
    chosen: Option<Vec<u32>>,
}

impl<'p> View<'p> {
    pub(super) fn all(profile: &'p Profile) -> Self {
        Self { profile, chosen: None }
    }

    /// The profile that is viewed.
    pub fn profile(&self) -> &'p Profile {
        self.profile
    }

    /// The samples.
    pub fn samples(&self) -> impl Iterator<Item = &'p Sample> + '_ {
        let all = self.profile.samples();
        let chosen = self.chosen.as_deref();
        let len = chosen.map_or(all.len(), <[u32]>::len);
        (0..len).map(move |at| &all[chosen.map_or(at, |chosen| chosen[at] as usize)])
    }

    /// The samples for which `keep` holds.
    pub fn filter(&self, mut keep: impl FnMut(&Sample) -> bool) -> View<'p> {
        let all = self.profile.samples();
        let indexes: Vec<u32> = match &self.chosen {
            Some(chosen) => chosen.iter().copied().filter(|at| keep(&all[*at as usize])).collect(),
            None => (0..all.len() as u32).filter(|at| keep(&all[*at as usize])).collect(),
        };
        View { profile: self.profile, chosen: Some(indexes) }
    }

    /// The samples outside the idle task, which `perf` calls `swapper`, thread 0. Sampling by clock
    /// counts idle CPUs too.
    pub fn busy(&self) -> View<'p> {
        let idle: Vec<bool> = self.profile.threads().map(|thread| is_idle(&thread)).collect();
        self.filter(|sample| !idle[sample.thread.index()])
    }

    /// The samples of threads for which `keep` holds.
    pub fn threads(&self, mut keep: impl FnMut(Thread<'p>) -> bool) -> View<'p> {
        let wanted: Vec<bool> = self.profile.threads().map(&mut keep).collect();
        self.filter(|sample| wanted[sample.thread.index()])
    }

    /// The samples of threads whose name matches.
    pub fn thread_names(&self, name: &Regex) -> View<'p> {
        self.threads(|thread| name.is_match(thread.name))
    }

    /// The samples with `from <= time < to`, in nanoseconds after the first sample of the profile.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> View<'p> {
        let first = self.profile.meta.first_time_ns.unwrap_or(0);
        self.filter(|sample| {
            let after = sample.time_ns.saturating_sub(first);
            from_ns <= after && after < to_ns
        })
    }

    /// The samples whose leaf's symbol matches.
    pub fn with_leaf(&self, symbol: &Regex) -> View<'p> {
        let frames: Vec<bool> =
            self.profile.frames().map(|(_, frame)| symbol.is_match(&frame.name())).collect();
        self.filter(|sample| {
            self.profile.split_stack(sample.stack).is_some_and(|(leaf, _)| frames[leaf.index()])
        })
    }

    /// Whether the view has no sample.
    pub fn is_empty(&self) -> bool {
        self.samples().next().is_none()
    }

    /// The sum of weights, in [`super::Meta::unit`].
    pub fn weight(&self) -> u64 {
        self.samples().fold(0, |sum, sample| sum.saturating_add(sample.weight))
    }

    /// The number of samples taken.
    pub fn count(&self) -> u64 {
        self.samples().map(|sample| u64::from(sample.count)).sum()
    }

    /// CPU seconds of these samples, if the source allows to compute them.
    pub fn cpu_seconds(&self) -> Option<f64> {
        self.profile.cpu_seconds(self.weight(), self.count())
    }

    /// The part of `of` that this view has by weight, 0 to 1; 0 if `of` is empty.
    pub fn share_of(&self, of: &View<'_>) -> f64 {
        fraction(self.weight(), of.weight())
    }

    /// The part of samples whose leaf's symbol matches, 0 to 1.
    pub fn self_share(&self, symbol: &Regex) -> f64 {
        self.with_leaf(symbol).share_of(self)
    }

    /// Functions by the weight of the samples that have them as leaf, heaviest first.
    pub fn self_by_symbol(&self) -> Vec<SymbolShare<'p>> {
        let mut by_frame: HashMap<FrameId, u64> = HashMap::new();
        for (stack, weight) in self.by_stack() {
            if let Some((leaf, _)) = self.profile.split_stack(stack) {
                *by_frame.entry(leaf).or_default() += weight;
            }
        }
        self.symbols(by_frame)
    }

    /// Functions by the weight of the samples that have them in their stack, heaviest first.
    /// Recursion counts once, and so do several nameless frames of one module.
    pub fn total_by_symbol(&self) -> Vec<SymbolShare<'p>> {
        // Frames that are shown alike are one: the first of them stands for all.
        let mut first: HashMap<(Cow<'p, str>, &'p str), FrameId> = HashMap::new();
        let alike: Vec<FrameId> = self
            .profile
            .frames()
            .map(|(id, frame)| *first.entry((frame.name(), frame.module)).or_insert(id))
            .collect();
        let mut by_frame: HashMap<FrameId, u64> = HashMap::new();
        let mut seen: HashMap<FrameId, StackId> = HashMap::new();
        for (stack, weight) in self.by_stack() {
            for frame in self.profile.stack(stack) {
                let frame = alike[frame.index()];
                if seen.insert(frame, stack) != Some(stack) {
                    *by_frame.entry(frame).or_default() += weight;
                }
            }
        }
        self.symbols(by_frame)
    }

    /// Weight by stack, in the order of stacks.
    pub fn by_stack(&self) -> Vec<(StackId, u64)> {
        let mut weights = vec![0u64; self.profile.stacks_len()];
        for sample in self.samples() {
            let weight = &mut weights[sample.stack.index()];
            *weight = weight.saturating_add(sample.weight);
        }
        let numbered = weights.into_iter().enumerate().filter(|(_, weight)| *weight > 0);
        numbered.map(|(stack, weight)| (StackId(stack as u32), weight)).collect()
    }

    /// Weight by thread name, heaviest first.
    pub fn by_thread_name(&self) -> Vec<Share> {
        self.grouped(
            |sample| self.profile.threads[sample.thread.index()].2,
            |id| self.profile.string(id).to_owned(),
        )
    }

    /// Weight by thread, heaviest first.
    pub fn by_thread(&self) -> Vec<(ThreadId, Share)> {
        let shares = self.grouped_by(|sample| sample.thread);
        let total = self.weight();
        let mut out: Vec<(ThreadId, Share)> = shares
            .into_iter()
            .map(|(id, (weight, samples))| {
                let name = self.profile.thread(id).name.to_owned();
                (id, Share { name, weight, samples, share: fraction(weight, total) })
            })
            .collect();
        out.sort_by_key(|(id, share)| (std::cmp::Reverse(share.weight), *id));
        out
    }

    /// Weight by group of threads, such as a role, heaviest first.
    pub fn by_thread_group(&self, group: impl Fn(Thread<'p>) -> String) -> Vec<Share> {
        let groups: Vec<String> = self.profile.threads().map(group).collect();
        self.grouped(|sample| groups[sample.thread.index()].as_str(), str::to_owned)
    }

    /// Weight by module of the leaf, heaviest first; samples without a stack are `[no stack]`.
    pub fn by_module(&self) -> Vec<Share> {
        self.grouped(
            |sample| match self.profile.split_stack(sample.stack) {
                Some((leaf, _)) => self.profile.frame(leaf).module_name(),
                None => "[no stack]",
            },
            str::to_owned,
        )
    }

    /// Whether each stack, by number, is that of a sample or one of its callers.
    pub(crate) fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.profile.stacks_len()];
        for sample in self.samples() {
            reached[sample.stack.index()] = true;
        }
        // Callers have smaller numbers, so one pass downwards marks all of them.
        for stack in (1..reached.len()).rev() {
            if reached[stack]
                && let Some((_, caller)) = self.profile.split_stack(StackId(stack as u32))
            {
                reached[caller.index()] = true;
            }
        }
        reached
    }

    fn grouped_by<K: std::hash::Hash + Eq>(
        &self,
        key: impl Fn(&Sample) -> K,
    ) -> HashMap<K, (u64, u64)> {
        let mut groups: HashMap<K, (u64, u64)> = HashMap::new();
        for sample in self.samples() {
            let (weight, samples) = groups.entry(key(sample)).or_default();
            *weight = weight.saturating_add(sample.weight);
            *samples += u64::from(sample.count);
        }
        groups
    }

    fn grouped<K: std::hash::Hash + Eq>(
        &self,
        key: impl Fn(&Sample) -> K,
        name: impl Fn(K) -> String,
    ) -> Vec<Share> {
        let total = self.weight();
        let mut shares: Vec<Share> = self
            .grouped_by(key)
            .into_iter()
            .map(|(key, (weight, samples))| Share {
                name: name(key),
                weight,
                samples,
                share: fraction(weight, total),
            })
            .collect();
        shares.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.name.cmp(&b.name)));
        shares
    }

    /// Merges frames of the same function and module, which differ only in their address.
    fn symbols(&self, by_frame: HashMap<FrameId, u64>) -> Vec<SymbolShare<'p>> {
        let total = self.weight();
        let mut merged: HashMap<(Cow<'p, str>, &'p str), SymbolShare<'p>> = HashMap::new();
        for (id, weight) in by_frame {
            let frame = self.profile.frame(id);
            let symbol = frame.name();
            let entry = merged.entry((symbol.clone(), frame.module)).or_insert(SymbolShare {
                symbol,
                module: frame.module,
                mode: frame.mode,
                weight: 0,
                share: 0.0,
            });
            entry.weight = entry.weight.saturating_add(weight);
        }
        let mut symbols: Vec<SymbolShare<'p>> = merged.into_values().collect();
        for symbol in &mut symbols {
            symbol.share = fraction(symbol.weight, total);
        }
        symbols.sort_by(|a, b| {
            b.weight.cmp(&a.weight).then_with(|| (&a.symbol, a.module).cmp(&(&b.symbol, b.module)))
        });
        symbols
    }
}

/// Whether a thread is a CPU's idle task. No process has `pid` 0: it is the idle task of each CPU.
fn is_idle(thread: &Thread<'_>) -> bool {
    (thread.tid == 0 && thread.pid <= 0)
        || thread.name == "swapper"
        || thread.name.starts_with("swapper/")
}

fn fraction(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
