//! The four rules of the duel. A rule decides where an arrival goes, where a used entry moves,
//! which list evicts next, and which evicted keys are remembered. A rule's choice is written here
//! and nowhere else.
//!
//! - LIRS: a newcomer waits in a window of 1%. A ghost that comes back goes to MFU if it was away
//!   for less time than the oldest entry has been idle. The window's oldest leaves next.
//! - LRU: a newcomer goes to MRU, and a ghost that comes back to MFU. The oldest of all leaves
//!   next.
//! - 2Q: a newcomer waits in a window of 10%, and must be used twice there. A ghost that comes back
//!   goes to MFU if it left the window lately. The window's oldest leaves next.
//! - ARC: a newcomer goes to MRU. A ghost that comes back goes to MFU and moves `p`, which decides
//!   the list that evicts next.
//!
//! The constants of LIRS and of the queues are their authors'; none was fitted here. ARC's
//! arithmetic is in `policy/arc.rs`.
//!
//! A rule sees five lists of one kind through [`Lists`]. Two things have such lists. A shadow
//! directory ([`RuledCache`](super::ruled_cache::RuledCache)) knows all of them exactly. The
//! engine's lists are spread over its sublists (`balance/by_rules.rs`). So the engine first asks
//! questions that need no lists: those of [`Rule`] and [`used_in_window_by_rule`]. In a directory a
//! held entry is on no list; in the engine it stays on its list until an eviction meets it. No rule
//! has to know.
//!
//! The arithmetic is on bytes. *Main* is MRU and MFU together. ARC counts the window, if a change
//! of rule has left one, as the young end of MRU.

use crate::policy::List;
use crate::policy::arc::{self, ListBytes};

/// A rule for what comes in where, and what leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Low inter-reference recency (Jiang and Zhang, SIGMETRICS '02): keeps what is in, unless a
    /// newcomer comes back sooner. Right for loops and scans a bit larger than the cache.
    Lirs = 0,
    /// Least recently used: right where recency is all there is.
    Lru = 1,
    /// Two queues with reinsertion, after 2Q (Johnson and Shasha, VLDB '94) and S3-FIFO (Yang et
    /// al., SOSP '23). Right where most keys are used once, or in one burst.
    TwoQueues = 2,
    /// ARC as printed (Megiddo and Modha, FAST '03): the rule to go home to.
    Arc = 3,
}

impl Rule {
    /// All rules. Where two are as good, the later is taken: so ARC stands last.
    pub const ALL: [Self; 4] = [Self::Lirs, Self::Lru, Self::TwoQueues, Self::Arc];

    /// The rule a cache starts with: before any verdict, cached entries stay.
    pub const FIRST: Self = Self::Lirs;

    /// Its name, as in statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lirs => "lirs",
            Self::Lru => "lru",
            Self::TwoQueues => "2q",
            Self::Arc => "arc",
        }
    }

    /// Whether newcomers wait in the window.
    #[must_use]
    pub const fn has_window(self) -> bool {
        match self {
            Self::Lirs | Self::TwoQueues => true,
            Self::Lru | Self::Arc => false,
        }
    }

    /// Whether the oldest of MRU and MFU goes back to the window when they have too much.
    pub(crate) const fn demotes(self) -> bool {
        match self {
            Self::Lirs => true,
            Self::TwoQueues | Self::Lru | Self::Arc => false,
        }
    }

    /// Whether a victim that was used gets another round instead.
    pub(crate) const fn gives_second_chance(self) -> bool {
        match self {
            Self::TwoQueues => true,
            Self::Lirs | Self::Lru | Self::Arc => false,
        }
    }

    /// Whether MRU and MFU are one list in the order of their stamps. ARC has `p` instead.
    pub(crate) const fn merges_lists(self) -> bool {
        match self {
            Self::Lirs | Self::TwoQueues | Self::Lru => true,
            Self::Arc => false,
        }
    }
}

/// Every number in the duel that could be another. `docs/policy.md` says what changes with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Constants {
    /// LIRS's window: one in this many bytes of the capacity (its authors: 1%).
    pub lirs_window_divisor: u64,
    /// 2Q's window: one in this many bytes of the capacity (S3-FIFO: 10%).
    pub two_queues_window_divisor: u64,
    /// The least entries of a shadow. With twice as many, keys are sampled more thinly. With fewer,
    /// two rules look alike; with more, only the memory grows.
    pub shadow_entries: usize,
    /// The part of a cacheful of hits by which a rule must lead to be changed to.
    pub change_cost: f64,
    /// Requests after which scores are halved, in cachefuls.
    pub half_life_cachefuls: u64,
}

impl Constants {
    /// Those of the product.
    pub const DEFAULT: Self = Self {
        lirs_window_divisor: 100,
        two_queues_window_divisor: 10,
        shadow_entries: 1024,
        change_cost: 0.25,
        half_life_cachefuls: 16,
    };

    const fn window_divisor(&self, rule: Rule) -> Option<u64> {
        match rule {
            Rule::Lirs => Some(self.lirs_window_divisor),
            Rule::TwoQueues => Some(self.two_queues_window_divisor),
            Rule::Lru | Rule::Arc => None,
        }
    }
}

/// Under 2Q, two uses in the window admit an entry. A burst of two requests that belong together is
/// one use after the arrival, which is too few (S3-FIFO).
const USES_TO_ADMIT: u8 = 2;

/// How many ghosts and window entries that a change of rule has left, one arrival takes away.
pub(crate) const LEFTOVERS_PER_ARRIVAL: u8 = 4;

/// Uses an entry remembers: two bits (S3-FIFO).
pub(crate) const USES_MAX: u8 = 3;

/// The lists a rule knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum On {
    Window = 0,
    Mru = 1,
    Mfu = 2,
    MruGhosts = 3,
    MfuGhosts = 4,
}

impl On {
    pub(in crate::policy) const ALL: [Self; 5] =
        [Self::Window, Self::Mru, Self::Mfu, Self::MruGhosts, Self::MfuGhosts];

    pub(in crate::policy) const fn is_ghost(self) -> bool {
        matches!(self, Self::MruGhosts | Self::MfuGhosts)
    }

    /// Where the ghosts of a list are.
    pub(in crate::policy) const fn ghosts(self) -> Self {
        match self {
            Self::Mfu | Self::MfuGhosts => Self::MfuGhosts,
            _ => Self::MruGhosts,
        }
    }

    /// The list of main.
    pub(crate) const fn main(list: List) -> Self {
        match list {
            List::Mru => Self::Mru,
            List::Mfu => Self::Mfu,
        }
    }

    /// MRU or MFU, of which this is the window, the list or its ghosts.
    pub(in crate::policy) const fn list(self) -> List {
        match self {
            Self::Mfu | Self::MfuGhosts => List::Mfu,
            Self::Window | Self::Mru | Self::MruGhosts => List::Mru,
        }
    }
}

/// The lists of one kind, and what their rule goes by.
pub(crate) trait Lists {
    /// The rule in force.
    fn rule(&self) -> Rule;
    /// Its constants.
    fn constants(&self) -> &Constants;
    /// The capacity of the kind.
    fn capacity_bytes(&self) -> u64;
    /// ARC's `p`.
    fn mru_target_bytes(&self) -> f64;
    /// Bytes of a list, held entries included.
    fn bytes(&self, on: On) -> u64;
    /// Whether a list has an entry that can be taken.
    fn any(&self, on: On) -> bool;
    /// Of MRU and MFU, the list with the older tail.
    fn older(&self) -> Option<On>;
}

/// An entry on its way in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) weight_bytes: u64,
    /// It goes to MFU.
    pub(crate) to_mfu: bool,
    /// Its ghost was one of MFU.
    pub(crate) was_mfu_ghost: bool,
}

/// A ghost hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Returning {
    /// The list it left.
    pub(crate) list: List,
    /// Bytes that have left the window since.
    pub(crate) away_bytes: u64,
}

/// Where an entry goes that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    /// It stays where it is, with one use more.
    Stays,
    /// To the head of the window.
    Window,
    /// To the head of MFU.
    Mfu,
}

fn main_bytes(lists: &impl Lists) -> u64 {
    lists.bytes(On::Mru) + lists.bytes(On::Mfu)
}

/// Whether main, with so many bytes more, has bytes that the rule wants for the window.
pub(crate) fn main_is_over(lists: &impl Lists, more_bytes: u64) -> bool {
    lists.constants().window_divisor(lists.rule()).is_some_and(|divisor| {
        let bytes = u128::from(main_bytes(lists).saturating_add(more_bytes));
        bytes * u128::from(divisor) > u128::from(lists.capacity_bytes()) * u128::from(divisor - 1)
    })
}

/// Whether a ghost that is asked for goes to MFU. `is_recent` says whether it was used since the
/// oldest of main was.
pub(crate) fn returns_to_mfu(
    lists: &impl Lists,
    ghost: Returning,
    is_recent: impl FnOnce() -> bool,
) -> bool {
    match lists.rule() {
        Rule::Lru | Rule::Arc => true,
        Rule::Lirs => is_recent(),
        // S3-FIFO: ghosts of the window alone, as many as main has entries.
        Rule::TwoQueues => {
            let divisor = lists.constants().two_queues_window_divisor;
            let main_bytes = lists.capacity_bytes() / divisor * (divisor - 1);
            ghost.list == List::Mru && ghost.away_bytes <= main_bytes
        }
    }
}

/// Whether a newcomer waits in the window.
pub(crate) fn waits(lists: &impl Lists, weight_bytes: u64) -> bool {
    main_is_over(lists, weight_bytes)
}

/// The move of an entry that is used in the window. `is_recent` as for [`returns_to_mfu`].
pub(crate) fn used_in_window(lists: &impl Lists, is_recent: impl FnOnce() -> bool) -> Used {
    used_in_window_by_rule(lists.rule()).unwrap_or_else(|| {
        if !is_recent() && main_is_over(lists, 0) { Used::Window } else { Used::Mfu }
    })
}

/// The same, as far as a rule says it without a look at the lists. `None`: LIRS asks whether the
/// entry is in its stack.
pub(crate) const fn used_in_window_by_rule(rule: Rule) -> Option<Used> {
    match rule {
        // Its uses decide when it leaves the window.
        Rule::TwoQueues => Some(Used::Stays),
        Rule::Lirs => None,
        Rule::Lru | Rule::Arc => Some(Used::Mfu),
    }
}

/// Uses an entry remembers, after one more.
pub(crate) const fn one_use_more(uses: u8) -> u8 {
    if uses < USES_MAX { uses + 1 } else { USES_MAX }
}

/// LIRS: whether the oldest of main has to go back to the window, because main has too much.
pub(crate) fn demotes(lists: &impl Lists) -> bool {
    lists.rule().demotes() && main_is_over(lists, 0)
}

/// The list whose oldest entry is evicted next.
pub(crate) fn victim(lists: &impl Lists, was_mfu_ghost: bool) -> Option<On> {
    let from = match lists.rule() {
        Rule::Lirs | Rule::TwoQueues => {
            let main = !lists.any(On::Window) || main_is_over(lists, 0);
            if main { lists.older() } else { None }
        }
        Rule::Lru => lists.older(),
        Rule::Arc => return arc_victim(lists, was_mfu_ghost),
    };
    from.or_else(|| lists.any(On::Window).then_some(On::Window))
}

/// ARC: the list that REPLACE takes from; another, if everything there is held.
fn arc_victim(lists: &impl Lists, was_mfu_ghost: bool) -> Option<On> {
    let mru_bytes = lists.bytes(On::Mru) + lists.bytes(On::Window);
    let order = match arc::replace(mru_bytes, lists.mru_target_bytes(), was_mfu_ghost) {
        List::Mru => [On::Mru, On::Window, On::Mfu],
        List::Mfu => [On::Mfu, On::Mru, On::Window],
    };
    order.into_iter().find(|&on| lists.any(on))
}

/// 2Q: an entry used twice in the window goes to MFU, and one used on MFU stays there. For a victim
/// that gets another round at the head of MFU: how many uses it has left.
pub(crate) fn second_chance(rule: Rule, on: On, uses: u8) -> Option<u8> {
    match on {
        _ if !rule.gives_second_chance() => None,
        On::Window if uses >= USES_TO_ADMIT => Some(0),
        On::Mfu if uses > 0 => Some(uses - 1),
        _ => None,
    }
}

/// Whether what leaves a list for an arrival is remembered. Under ARC, when MRU alone fills the
/// cache, its oldest leaves without a ghost.
pub(crate) fn leaves_a_ghost(lists: &impl Lists, from: On, arrival: Option<Arrival>) -> bool {
    let Some(arrival) = arrival else {
        return true;
    };
    lists.rule() != Rule::Arc
        || arrival.to_mfu
        || from == On::Mfu
        || list_bytes(lists).once_over(arrival.weight_bytes, lists.capacity_bytes()) == 0
}

/// The lists as ARC counts them: the window is a part of MRU.
fn list_bytes(lists: &impl Lists) -> ListBytes {
    ListBytes {
        mru: lists.bytes(On::Window) + lists.bytes(On::Mru),
        mfu: lists.bytes(On::Mfu),
        mru_ghosts: lists.bytes(On::MruGhosts),
        mfu_ghosts: lists.bytes(On::MfuGhosts),
    }
}

/// ARC: the ghosts that have to give for an arrival, if there are too many.
pub(crate) fn surplus_ghosts(lists: &impl Lists, arrival: Arrival) -> Option<On> {
    if lists.rule() != Rule::Arc {
        return None;
    }
    let (capacity, bytes) = (lists.capacity_bytes(), list_bytes(lists));
    let joins = if arrival.to_mfu { 0 } else { arrival.weight_bytes };
    let once_over = bytes.once_over(joins, capacity);
    if bytes.mru_ghosts > 0 && once_over > 0 {
        return Some(On::MruGhosts);
    }
    // The bytes by which MRU is over the capacity will leave without a ghost.
    let all = (bytes.all() + arrival.weight_bytes).saturating_sub(once_over);
    if all <= capacity.saturating_mul(2) {
        return None;
    }
    bytes.ghosts_to_forget().map(|list| On::main(list).ghosts())
}

/// ARC: `p` after a ghost was asked for, while the ghost still counts. `None`: the rule has no `p`.
pub(crate) fn adapted_target(lists: &impl Lists, ghost: (List, u64)) -> Option<f64> {
    let ghosts = [On::MruGhosts, On::MfuGhosts].map(|on| lists.bytes(on));
    let (p, capacity) = (lists.mru_target_bytes(), lists.capacity_bytes() as f64);
    (lists.rule() == Rule::Arc).then(|| arc::adapted_target(p, capacity, ghost, ghosts))
}
