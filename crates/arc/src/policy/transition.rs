//! The moves of one entry between states. Each keeps a [`Sublist`] and the [`Balance`] in step.
//! None locks, or drops what it takes out; none allocates, except that the slab grows.

use super::balance::{Balance, Incoming};
use super::plain_sublist::{NodeId, Sublist};
use super::state::{Access, Kind, List, State, list_index};

/// Where an entry on its way in comes from, and so where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The list it goes to.
    pub list: List,
    /// Its ghost, if there was one: kind and list.
    pub ghost: Option<(Kind, List)>,
}

impl Arrival {
    /// A key without a ghost: to MRU.
    pub const NEW: Self = Self { list: List::Mru, ghost: None };

    /// A key of which there was a ghost. It goes to MFU, as in the paper. If it was prefetched, and
    /// evicted from MRU before any demand, this is its first use (OpenZFS, `arc_access`).
    #[must_use]
    pub fn of_ghost(kind: Kind, list: List, prefetched: bool) -> Self {
        let unused = prefetched && list == List::Mru;
        Self { list: if unused { List::Mru } else { List::Mfu }, ghost: Some((kind, list)) }
    }

    /// The arrival as the balance takes it.
    #[must_use]
    pub fn incoming(&self, kind: Kind, weight_bytes: u64) -> Incoming {
        let was_mfu_ghost = self.ghost == Some((kind, List::Mfu));
        let leftovers = super::duel::rules::LEFTOVERS_PER_ARRIVAL;
        Incoming { weight_bytes, kind, list: self.list, was_mfu_ghost, leftovers }
    }
}

/// The result of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The list on which the entry was found.
    pub list: List,
    /// The entry has to move from MRU to MFU: [`promote`] it.
    pub promote: bool,
    /// A demand has found what a prefetch brought.
    pub prefetch_paid: bool,
}

/// Notes a hit on a live entry.
///
/// A demand hit promotes. The first demand hit on a prefetched entry does not: it is the access
/// that the prefetch foresaw (OpenZFS, `arc_access`).
///
/// # Panics
/// If the node is not a live entry.
pub fn touch<K, P>(sublist: &mut Sublist<K, P>, id: NodeId, access: Access) -> Touch {
    let list = sublist.list_of(id).expect("only live entries are hit");
    let demand = access == Access::Demand;
    let prefetch_paid = demand && sublist.is_prefetched(id);
    if prefetch_paid {
        sublist.set_prefetched(id, false);
    }
    Touch { list, promote: demand && !prefetch_paid && list == List::Mru, prefetch_paid }
}

/// Moves an MRU entry that is on no list to MFU.
pub fn promote<K, P>(sublist: &mut Sublist<K, P>, balance: &mut Balance, id: NodeId) {
    let (kind, weight_bytes) = (sublist.kind(id), sublist.weight_bytes(id));
    sublist.set_state(id, State::Mfu);
    balance.sub(kind, List::Mru, false, weight_bytes);
    balance.add(kind, List::Mfu, false, weight_bytes);
}

/// Turns a ghost that is asked for into a loading node; adapts the balance first.
///
/// # Panics
/// If the node is not a ghost.
pub fn take_ghost<K, P>(sublist: &mut Sublist<K, P>, balance: &mut Balance, id: NodeId) -> Arrival {
    let kind = sublist.kind(id);
    let list = sublist.list_of(id).expect("a ghost stands on a list");
    let weight_bytes = sublist.weight_bytes(id);
    balance.ghost_hit(kind, list, weight_bytes);
    balance.sub(kind, list, true, weight_bytes);
    sublist.unlink(id);
    sublist.set_state(id, State::Loading);
    sublist.set_weight_bytes(id, 0);
    let prefetched = sublist.is_prefetched(id);
    sublist.set_prefetched(id, false);
    Arrival::of_ghost(kind, list, prefetched)
}

/// Turns a loading node for which there is room into a live entry, which is on no list yet.
/// The bytes must have been reserved with [`Balance::add_anon`].
pub fn arrive<K, P>(
    sublist: &mut Sublist<K, P>,
    balance: &mut Balance,
    id: NodeId,
    list: List,
    weight_bytes: u64,
    payload: P,
) {
    let kind = sublist.kind(id);
    sublist.set_state(id, State::live(list));
    sublist.set_weight_bytes(id, weight_bytes);
    sublist.set_payload(id, Some(payload));
    balance.sub_anon(kind, weight_bytes);
    balance.add(kind, list, false, weight_bytes);
}

/// An evicted entry.
#[derive(Debug)]
pub struct Evicted<K, P> {
    /// The key, if no ghost keeps it.
    pub key: Option<K>,
    /// The value.
    pub payload: Option<P>,
    /// Its weight in bytes.
    pub weight_bytes: u64,
    /// Its kind.
    pub kind: Kind,
    /// The list it was on.
    pub list: List,
    /// It was prefetched and never demanded.
    pub prefetched: bool,
}

/// Evicts a live entry that is on no list any more.
///
/// # Panics
/// If the node is not a live entry.
pub fn evict<K, P>(
    sublist: &mut Sublist<K, P>,
    balance: &mut Balance,
    id: NodeId,
    keep_ghost: bool,
    stamp: u64,
) -> Evicted<K, P> {
    let kind = sublist.kind(id);
    let list = sublist.list_of(id).expect("only live entries are evicted");
    let weight_bytes = sublist.weight_bytes(id);
    let prefetched = sublist.is_prefetched(id);
    balance.sub(kind, list, false, weight_bytes);
    let (key, payload) = if keep_ghost {
        sublist.set_state(id, State::ghost(list));
        sublist.link(id, stamp);
        balance.add(kind, list, true, weight_bytes);
        (None, sublist.set_payload(id, None))
    } else {
        sublist.unindex(id);
        sublist.free(id)
    };
    Evicted { key, payload, weight_bytes, kind, list, prefetched }
}

/// Evicts the oldest entry of a list, if there is one.
pub fn evict_tail<K, P>(
    sublist: &mut Sublist<K, P>,
    balance: &mut Balance,
    (kind, list): (Kind, List),
    keep_ghost: bool,
    stamp: u64,
) -> Option<Evicted<K, P>> {
    let id = sublist.tail(list_index(kind, list, false))?;
    sublist.unlink(id);
    Some(evict(sublist, balance, id, keep_ghost, stamp))
}

/// Forgets a ghost; gives its key back.
///
/// # Panics
/// If the node is not a ghost.
pub fn forget<K, P>(sublist: &mut Sublist<K, P>, balance: &mut Balance, id: NodeId) -> Option<K> {
    let list = sublist.list_of(id).expect("a ghost stands on a list");
    balance.sub(sublist.kind(id), list, true, sublist.weight_bytes(id));
    sublist.unlink(id);
    sublist.unindex(id);
    sublist.free(id).0
}

/// Removes a live entry.
///
/// # Panics
/// If the node is not a live entry.
pub fn remove<K, P>(
    sublist: &mut Sublist<K, P>,
    balance: &mut Balance,
    id: NodeId,
) -> (Option<K>, Option<P>) {
    let kind = sublist.kind(id);
    let list = sublist.list_of(id).expect("only live entries are removed");
    let weight_bytes = sublist.weight_bytes(id);
    balance.sub(kind, list, false, weight_bytes);
    sublist.unindex(id);
    sublist.unlink(id);
    sublist.free(id)
}
