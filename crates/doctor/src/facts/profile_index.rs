//! One profile, with its names interned, so that a pattern meets each name once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use super::known_names::{Leaf, is_idle_thread, is_zfs_function, is_zfs_module, leaf};
use super::owner::{Owner, Owners};
use super::selector::Selector;
use crate::atlas;
use crate::evidence::{Frame, Profile, Source};

/// A missing name.
pub(super) const NONE: u32 = u32::MAX;

/// Interned names of one kind.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// Names of threads that belong to a program but look like the kernel's.
    disguised: HashSet<u32>,
    matched: Mutex<HashMap<String, Arc<Vec<bool>>>>,
}

impl Names {
    fn number(&mut self, name: Option<&str>) -> u32 {
        let Some(name) = name else { return NONE };
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(NONE);
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// The names that a pattern matches.
    pub(super) fn matching(&self, pattern: &Selector) -> Arc<Vec<bool>> {
        if let Some(known) = self.matched.lock().get(pattern.as_str()) {
            return Arc::clone(known);
        }
        let hits = (0..).zip(&self.names);
        let hits = hits.map(|(number, name)| pattern.means(name, self.disguised.contains(&number)));
        let hits = Arc::new(hits.collect::<Vec<_>>());
        self.matched.lock().insert(pattern.as_str().to_owned(), Arc::clone(&hits));
        hits
    }

    pub(super) fn name(&self, number: u32) -> Option<&str> {
        self.names.get(number as usize).map(String::as_str)
    }
}

/// Whether a set of matches has a name.
pub(super) fn has(hits: &[bool], number: u32) -> bool {
    hits.get(number as usize).copied().unwrap_or(false)
}

/// A frame by numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) symbol: u32,
    pub(super) module: u32,
    pub(super) kernel: Option<bool>,
    pub(super) zfs: bool,
    pub(super) subsystem: Option<&'static str>,
}

/// The functions of a profile that a selector means.
#[derive(Debug)]
pub(super) enum Hits {
    /// By name.
    Names(Arc<Vec<bool>>),
    /// By subsystem.
    Subsystems(Arc<Selector>),
}

impl Hits {
    pub(super) fn has(&self, place: &Place) -> bool {
        match self {
            Self::Names(names) => has(names, place.symbol),
            Self::Subsystems(selector) => selector.has_subsystem(place.subsystem).unwrap_or(false),
        }
    }
}

/// A stack or chain: its share of busy samples in percent, and its frames, leaf first.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) thread: u32,
    /// Its process, or the thread itself.
    pub(super) process: u32,
    pub(super) places: Vec<Place>,
    pub(super) percent: f64,
    pub(super) leaf: Leaf,
    pub(super) source: Source,
}

/// A row of a table by numbers.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) thread: u32,
    pub(super) place: Place,
    pub(super) self_percent: Option<f64>,
    pub(super) total_percent: Option<f64>,
    pub(super) has_chains: bool,
    pub(super) leaf: Leaf,
    pub(super) source: Source,
}

/// One profile, indexed. Percentages are of busy samples.
#[derive(Debug)]
pub(super) struct ProfileIndex {
    pub(super) symbols: Names,
    pub(super) modules: Names,
    pub(super) threads: Names,
    /// Whole stacks: all samples.
    pub(super) stacks: Vec<Path>,
    /// Parts of a table's call graphs.
    pub(super) chains: Vec<Path>,
    pub(super) rows: Vec<Row>,
    /// Busy samples, where counted.
    pub(super) busy_samples: Option<f64>,
    pub(super) weighted: bool,
    /// Threads of ZFS.
    zfs_threads: HashSet<u32>,
    /// Cached subsystems of functions, by name, module and whether the function is in the kernel.
    subsystems: HashMap<(u32, u32, Option<bool>), Option<&'static str>>,
}

impl ProfileIndex {
    pub(super) fn new(profile: &Profile, owners: &Owners) -> Self {
        let mut index = Self {
            symbols: Names::default(),
            modules: Names::default(),
            threads: Names::default(),
            stacks: Vec::new(),
            chains: Vec::new(),
            rows: Vec::new(),
            busy_samples: None,
            weighted: profile.weighted,
            zfs_threads: HashSet::new(),
            subsystems: HashMap::new(),
        };
        index.add_stacks(profile);
        index.add_rows(profile);
        for (number, name) in (0..).zip(&index.threads.names) {
            if owners.of(name) == Owner::Zfs {
                index.zfs_threads.insert(number);
            } else if owners.is_disguised(name) {
                index.threads.disguised.insert(number);
            }
        }
        index
    }

    fn place(&mut self, frame: &Frame) -> Place {
        let symbol = self.symbols.number(frame.symbol.as_deref());
        let module = self.modules.number(frame.module.as_deref());
        let subsystem =
            *self.subsystems.entry((symbol, module, frame.kernel)).or_insert_with(|| {
                atlas::subsystem_of(frame.symbol.as_deref()?, frame.module.as_deref(), frame.kernel)
            });
        Place { symbol, module, kernel: frame.kernel, zfs: is_of_zfs(frame), subsystem }
    }

    /// The functions that a selector means.
    pub(super) fn functions(&self, selector: &Arc<Selector>) -> Hits {
        match &**selector {
            Selector::Subsystems(..) => Hits::Subsystems(Arc::clone(selector)),
            _ => Hits::Names(self.symbols.matching(selector)),
        }
    }

    fn add_stacks(&mut self, profile: &Profile) {
        let (mut all, mut busy) = (0.0, 0.0);
        for stack in &profile.stacks {
            let weight = stack.weight.max(0.0);
            all += weight;
            let thread = stack.thread.as_deref();
            let kind = stack
                .frames
                .first()
                .and_then(|frame| frame.symbol.as_deref())
                .map_or(Leaf::Work, leaf);
            if thread.is_some_and(is_idle_thread) || kind == Leaf::Idle {
                continue;
            }
            busy += weight;
            let places = stack.frames.iter().map(|frame| self.place(frame)).collect();
            let thread = self.threads.number(thread);
            let process = match stack.process.as_deref() {
                Some(process) => self.threads.number(Some(process)),
                None => thread,
            };
            let source = stack.source.clone();
            self.stacks.push(Path { thread, process, places, percent: weight, leaf: kind, source });
        }
        for path in &mut self.stacks {
            path.percent = if busy > 0.0 { path.percent * 100.0 / busy } else { 0.0 };
        }
        if !self.stacks.is_empty() && profile.weighted {
            self.busy_samples = match profile.samples {
                Some(samples) if all > 0.0 => Some(count(samples) * busy / all),
                Some(samples) => Some(count(samples)),
                None => Some(busy),
            };
        }
    }

    fn add_rows(&mut self, profile: &Profile) {
        let idle: f64 = profile
            .rows
            .iter()
            .filter(|row| row_is_idle(row.thread.as_deref(), row.frame.symbol.as_deref()))
            .filter_map(|row| row.self_percent)
            .sum();
        let scale = if idle > 0.0 && idle < 99.9 { 100.0 / (100.0 - idle) } else { 1.0 };
        for row in &profile.rows {
            if row_is_idle(row.thread.as_deref(), row.frame.symbol.as_deref()) {
                continue;
            }
            let place = self.place(&row.frame);
            let thread = self.threads.number(row.thread.as_deref());
            self.rows.push(Row {
                thread,
                place,
                self_percent: row.self_percent.map(|percent| percent * scale),
                total_percent: row.total_percent.map(|percent| percent * scale),
                has_chains: !row.chains.is_empty(),
                leaf: row.frame.symbol.as_deref().map_or(Leaf::Work, leaf),
                source: row.source.clone(),
            });
            for chain in &row.chains {
                let places = chain.frames.iter().map(|frame| self.place(frame)).collect();
                let kind = chain
                    .frames
                    .first()
                    .and_then(|frame| frame.symbol.as_deref())
                    .map_or(Leaf::Work, leaf);
                let percent = chain.percent * scale;
                self.chains.push(Path {
                    thread,
                    process: thread,
                    places,
                    percent,
                    leaf: kind,
                    source: chain.source.clone(),
                });
            }
        }
        if self.stacks.is_empty() {
            self.busy_samples = profile.samples.map(|samples| count(samples) / scale);
        }
    }

    /// Higher is better: whole stacks before call graphs before plain tables, many samples first.
    pub(super) fn quality(&self) -> f64 {
        let deep = self.stacks.iter().any(|path| path.places.len() > 1);
        let kind = match () {
            () if deep && self.weighted => 4.0,
            () if !self.stacks.is_empty() && self.weighted => 2.5,
            () if !self.chains.is_empty() => 3.0,
            () if !self.rows.is_empty() => 2.0,
            () => 1.0,
        };
        kind * 1e6 + self.named_percent() * 1e3 + self.busy_samples.unwrap_or(0.0).min(999.0)
    }

    /// Percent of busy samples whose function has a name.
    fn named_percent(&self) -> f64 {
        if self.stacks.is_empty() {
            self.rows
                .iter()
                .filter(|row| row.place.symbol != NONE)
                .filter_map(|row| row.self_percent)
                .sum::<f64>()
                .min(100.0)
        } else {
            self.stacks
                .iter()
                .filter(|path| path.places.first().is_some_and(|place| place.symbol != NONE))
                .map(|path| path.percent)
                .sum()
        }
    }

    /// Whether callers are recorded at all.
    pub(super) fn has_callers(&self) -> bool {
        !self.chains.is_empty() || self.stacks.iter().any(|path| path.places.len() > 1)
    }

    /// Whether a path belongs to ZFS: one of its modules on the stack, or one of its threads.
    pub(super) fn is_zfs(&self, path: &Path) -> bool {
        path.places.iter().any(|place| place.zfs) || self.is_zfs_thread(path.thread)
    }

    /// Whether a thread belongs to ZFS.
    pub(super) fn is_zfs_thread(&self, thread: u32) -> bool {
        self.zfs_threads.contains(&thread)
    }
}

/// Whether a frame belongs to ZFS: by its module, or by its name where no module is known.
fn is_of_zfs(frame: &Frame) -> bool {
    match frame.module.as_deref() {
        Some(module) => is_zfs_module(module) || module.starts_with("libzpool"),
        None => frame.kernel != Some(false) && frame.symbol.as_deref().is_some_and(is_zfs_function),
    }
}

fn row_is_idle(thread: Option<&str>, symbol: Option<&str>) -> bool {
    thread.is_some_and(is_idle_thread) || symbol.is_some_and(|symbol| leaf(symbol) == Leaf::Idle)
}

#[expect(clippy::cast_precision_loss, reason = "a number of samples is far below 2^52")]
fn count(samples: u64) -> f64 {
    samples as f64
}
