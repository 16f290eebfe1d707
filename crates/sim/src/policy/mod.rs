//! The policies of a replay, and their common trait.
//!
//! `engine` runs ogive's own policies: ARC, the duel and the shipping engine. The others are
//! written here from their papers on purpose, as independent peers. They share no rule with the
//! duel, even where both have a 2Q or a LIRS.
//!
//! All policies weigh bytes: an entry weighs as much as the request that inserted it.
//! [`Simulation`](crate::Simulation) requests no key that weighs more than the cache.

mod car;
mod engine;
mod fifo_lru_clock;
mod frequency_sketch;
mod linked_lists;
mod lirs;
mod min;
mod s3_fifo;
mod sieve;
mod two_queue;
mod w_tiny_lfu;

use std::fmt;
use std::str::FromStr;

pub(crate) use self::linked_lists::Lists;

/// One access to one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The key.
    pub key: u64,
    /// Its weight in bytes, at least 1.
    pub bytes: u64,
    /// Number of the next request of this key, `u64::MAX` if there is none or it is unknown.
    pub next_use: u64,
}

impl Request {
    /// A request without a known future.
    #[must_use]
    pub const fn new(key: u64, bytes: u64) -> Self {
        Self { key, bytes, next_use: u64::MAX }
    }
}

/// Counts of a policy in addition to hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries evicted.
    pub evictions: u64,
    /// Misses of keys that the policy remembered; `None` if it remembers none.
    pub ghost_hits: Option<u64>,
}

/// A cache of keys without values, for one thread.
pub trait Policy: Send + fmt::Debug {
    /// Requests a key that weighs at most as much as the cache, and inserts it after a miss.
    /// Returns whether it was a hit.
    fn access(&mut self, request: &Request) -> bool;

    /// The counts.
    fn counts(&self) -> Counts;

    /// Weight of all entries; never more than the capacity.
    fn resident_bytes(&self) -> u64;
}

/// The policies by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicyName {
    /// Least recently used.
    Lru,
    /// First in, first out.
    Fifo,
    /// Second chance.
    Clock,
    /// 2Q, full version.
    TwoQueue,
    /// Low inter-reference recency set.
    Lirs,
    /// ARC as printed.
    Arc,
    /// Clock with adaptive replacement.
    Car,
    /// S3-FIFO in its authors' current version.
    S3Fifo,
    /// S3-FIFO as printed.
    S3FifoPrinted,
    /// SIEVE.
    Sieve,
    /// W-TinyLFU with an adaptive window.
    WTinyLfu,
    /// W-TinyLFU with a window of 1%.
    WTinyLfuFixed,
    /// W-TinyLFU with an adaptive window, and exact counts instead of a sketch.
    WTinyLfuExact,
    /// W-TinyLFU with a window of 1%, and exact counts instead of a sketch.
    WTinyLfuFixedExact,
    /// The best of LIRS, LRU, 2Q and ARC at each moment.
    Duel,
    /// Belady's MIN.
    Min,
    /// The shipping engine with this many sublists (0: the number that it chooses).
    Engine(usize),
    /// The same, with ARC alone.
    EngineArc(usize),
}

const NAMES: &[(&str, PolicyName, &str)] = &[
    ("lru", PolicyName::Lru, "least recently used"),
    ("fifo", PolicyName::Fifo, "first in, first out"),
    ("clock", PolicyName::Clock, "FIFO with a second chance"),
    ("2q", PolicyName::TwoQueue, "2Q, full version: Kin 25%, Kout 50%"),
    ("lirs", PolicyName::Lirs, "low inter-reference recency set: HIR 1%"),
    ("arc", PolicyName::Arc, "ARC exactly as in its paper"),
    ("car", PolicyName::Car, "clock with adaptive replacement"),
    ("s3-fifo", PolicyName::S3Fifo, "S3-FIFO in its authors' current version: small queue 10%"),
    ("s3-fifo-printed", PolicyName::S3FifoPrinted, "S3-FIFO as in its paper"),
    ("sieve", PolicyName::Sieve, "SIEVE"),
    ("w-tinylfu", PolicyName::WTinyLfu, "W-TinyLFU, adaptive window"),
    ("w-tinylfu-fixed", PolicyName::WTinyLfuFixed, "W-TinyLFU, window of 1%"),
    ("w-tinylfu-exact", PolicyName::WTinyLfuExact, "W-TinyLFU, adaptive window, exact counts"),
    (
        "w-tinylfu-fixed-exact",
        PolicyName::WTinyLfuFixedExact,
        "W-TinyLFU, window of 1%, exact counts",
    ),
    ("duel", PolicyName::Duel, "the best of LIRS, LRU, 2Q and ARC at each moment"),
    ("min", PolicyName::Min, "Belady's MIN, which knows the future"),
    ("ogive", PolicyName::Engine(0), "the engine of ogive, as it ships: the duel"),
    ("ogive-arc", PolicyName::EngineArc(0), "the engine of ogive, with ARC alone"),
];

impl PolicyName {
    /// Name and meaning of every policy.
    pub fn all() -> impl Iterator<Item = (Self, &'static str, &'static str)> {
        NAMES.iter().map(|&(name, policy, meaning)| (policy, name, meaning))
    }

    /// Whether requests must have the next use of their key.
    #[must_use]
    pub const fn needs_future(self) -> bool {
        matches!(self, Self::Min)
    }

    /// An empty cache. `entry_bytes` is the expected weight of an entry, from which the engine
    /// computes its sublists.
    #[must_use]
    pub fn build(self, capacity_bytes: u64, entry_bytes: u64) -> Box<dyn Policy> {
        use fifo_lru_clock::{OneList, Rule};
        match self {
            Self::Lru => Box::new(OneList::new(Rule::Lru, capacity_bytes)),
            Self::Fifo => Box::new(OneList::new(Rule::Fifo, capacity_bytes)),
            Self::Clock => Box::new(OneList::new(Rule::Clock, capacity_bytes)),
            Self::TwoQueue => Box::new(two_queue::TwoQueue::new(capacity_bytes)),
            Self::Lirs => Box::new(lirs::Lirs::new(capacity_bytes)),
            Self::Arc => Box::new(engine::PaperArc::new(capacity_bytes)),
            Self::Car => Box::new(car::Car::new(capacity_bytes)),
            Self::S3Fifo => Box::new(s3_fifo::S3Fifo::new(capacity_bytes, true)),
            Self::S3FifoPrinted => Box::new(s3_fifo::S3Fifo::new(capacity_bytes, false)),
            Self::Sieve => Box::new(sieve::Sieve::new(capacity_bytes)),
            Self::WTinyLfu
            | Self::WTinyLfuFixed
            | Self::WTinyLfuExact
            | Self::WTinyLfuFixedExact => {
                let flavour = w_tiny_lfu::Flavour {
                    adaptive: matches!(self, Self::WTinyLfu | Self::WTinyLfuExact),
                    exact: matches!(self, Self::WTinyLfuExact | Self::WTinyLfuFixedExact),
                };
                Box::new(w_tiny_lfu::WTinyLfu::new(capacity_bytes, entry_bytes, flavour))
            }
            Self::Duel => Box::new(engine::FourRules::new(capacity_bytes)),
            Self::Min => Box::new(min::Min::new(capacity_bytes)),
            Self::Engine(sublists) | Self::EngineArc(sublists) => {
                let duel = matches!(self, Self::Engine(_));
                let policy = if duel { ogive_arc::Policy::Duel } else { ogive_arc::Policy::Arc };
                let sublists = (sublists > 0).then_some(sublists);
                Box::new(engine::Engine::new(capacity_bytes, policy, sublists, entry_bytes))
            }
        }
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(sublists) if *sublists > 0 => write!(f, "ogive/{sublists}"),
            Self::EngineArc(sublists) if *sublists > 0 => write!(f, "ogive-arc/{sublists}"),
            Self::Engine(_) => f.write_str("ogive"),
            Self::EngineArc(_) => f.write_str("ogive-arc"),
            other => {
                let row = NAMES.iter().find(|(_, policy, _)| policy == other);
                f.write_str(row.map_or("", |(name, _, _)| name))
            }
        }
    }
}

impl FromStr for PolicyName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
        let name = match plain(text).as_str() {
            "opt" | "belady" => "min".to_owned(),
            "twoq" => "2q".to_owned(),
            "engine" => "ogive".to_owned(),
            "engine:arc" | "ogive:arc" => "ogivearc".to_owned(),
            other => other.to_owned(),
        };
        if let Some(sublists) = name.strip_prefix("ogivearc/").and_then(|text| text.parse().ok()) {
            return Ok(Self::EngineArc(sublists));
        }
        if let Some(sublists) = name.strip_prefix("ogive/").and_then(|text| text.parse().ok()) {
            return Ok(Self::Engine(sublists));
        }
        let row = NAMES.iter().find(|(row, _, _)| plain(row) == name);
        row.map(|(_, policy, _)| *policy).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _, _)| *name).collect();
            format!("there is no policy \"{text}\"; there are {}", names.join(", "))
        })
    }
}
