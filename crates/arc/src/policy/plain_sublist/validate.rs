//! Recounting a sublist: every invariant of it, checked from its nodes alone.

use super::{LISTS, NONE, NodeId, State, Sublist, list_index};

/// The result of a recount, by [`Sublist::validate`] or of a sublist of the cache. Only the latter
/// has holds, a window, dead entries and a cache above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Bytes by list (see [`list_index`]), held entries included in the state they have.
    pub state_bytes: [u64; LISTS],
    /// Bytes of entries that are on a list, by list.
    pub listed_bytes: [u64; LISTS],
    /// Bytes of MRU entries that wait in the window, by kind: a part of `state_bytes`.
    pub window_bytes: [u64; 2],
    /// Bytes of entries that were handed over: a part of `state_bytes`.
    pub handed_bytes: u64,
    /// Bytes of dead entries still held, by kind, oversize ones left out.
    pub dead_bytes: [u64; 2],
    /// Bytes of dead entries still held which are heavier than the cache, by kind.
    pub oversize_bytes: [u64; 2],
    /// Entries in state MRU or MFU.
    pub resident: u64,
    /// Ghosts.
    pub ghosts: u64,
    /// Loads in flight.
    pub loading: u64,
    /// Sum of all hold counts, loading nodes included.
    pub holds: u64,
}

impl Census {
    /// Adds another sublist's count.
    pub fn add(&mut self, other: &Self) {
        for i in 0..LISTS {
            self.state_bytes[i] += other.state_bytes[i];
            self.listed_bytes[i] += other.listed_bytes[i];
        }
        for i in 0..2 {
            self.window_bytes[i] += other.window_bytes[i];
            self.dead_bytes[i] += other.dead_bytes[i];
            self.oversize_bytes[i] += other.oversize_bytes[i];
        }
        self.handed_bytes += other.handed_bytes;
        self.resident += other.resident;
        self.ghosts += other.ghosts;
        self.loading += other.loading;
        self.holds += other.holds;
    }
}

impl<K: Eq, P> Sublist<K, P> {
    /// Recounts every list, the index and all sizes.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn validate(&self) -> Result<Census, String> {
        let mut census = Census::default();
        let (mut indexed, mut linked, mut vacant) = (0, 0, 0);
        for id in 0..self.nodes.len() as NodeId {
            let node = self.node(id);
            if node.state == State::Vacant {
                vacant += 1;
                continue;
            }
            self.validate_node(id, &mut census)?;
            let key = self.key(id);
            let found = self.find(node.hash, key) == Some(id);
            if !found {
                return Err(format!("node {id} {:?} is not in the index", node.state));
            }
            indexed += 1;
            linked += u64::from(node.linked);
        }
        if census.resident != self.resident_len as u64 {
            return Err(format!("{} live entries of {}", census.resident, self.resident_len));
        }
        if indexed != self.index.len() || vacant != self.vacant_len {
            return Err(format!("{indexed} indexed of {}, {vacant} vacant", self.index.len()));
        }
        self.validate_vacant()?;
        let mut walked = 0;
        for list in 0..LISTS {
            walked += self.validate_list(list, census.listed_bytes[list])?;
        }
        if walked != linked {
            return Err(format!("{linked} nodes say they are on a list, {walked} are"));
        }
        Ok(census)
    }

    fn validate_vacant(&self) -> Result<(), String> {
        let (mut id, mut before, mut len) = (self.vacant, NONE, 0);
        while id != NONE && len <= self.vacant_len {
            let node = self.node(id);
            if node.state != State::Vacant || node.newer != before {
                return Err(format!("node {id} is wrong in the chain of vacant ones"));
            }
            (before, id, len) = (id, node.older, len + 1);
        }
        if len != self.vacant_len {
            return Err(format!("{len} in the chain of {} vacant ones", self.vacant_len));
        }
        Ok(())
    }

    fn validate_node(&self, id: NodeId, census: &mut Census) -> Result<(), String> {
        let node = self.node(id);
        match node.state {
            State::Mru | State::Mfu => census.resident += 1,
            State::MruGhost | State::MfuGhost => {
                census.ghosts += 1;
                if node.payload.is_some() {
                    return Err(format!("ghost {id} has a payload"));
                }
            }
            State::Loading => census.loading += 1,
            State::Vacant => {}
        }
        let on_list = node.state.list().is_some();
        if on_list != node.linked {
            return Err(format!("node {id} {:?}: on a list {}", node.state, node.linked));
        }
        if let Some((list, ghost)) = node.state.list() {
            let list = list_index(node.kind, list, ghost);
            census.state_bytes[list] += node.weight_bytes;
            census.listed_bytes[list] += u64::from(node.linked) * node.weight_bytes;
            if node.weight_bytes == 0 {
                return Err(format!("node {id} weighs nothing"));
            }
        }
        Ok(())
    }

    fn validate_list(&self, list: usize, bytes: u64) -> Result<u64, String> {
        let ends = &self.lists[list];
        let (mut id, mut newer, mut len, mut stamp) = (ends.head, NONE, 0, u64::MAX);
        while id != NONE {
            let node = self.node(id);
            let its = node.state.list().map(|(l, ghost)| list_index(node.kind, l, ghost));
            if !node.linked || its != Some(list) || node.newer != newer || node.stamp > stamp {
                return Err(format!("node {id} is wrong on list {list}"));
            }
            len += 1;
            stamp = node.stamp;
            newer = id;
            id = node.older;
            if len > self.nodes.len() as u64 {
                return Err(format!("list {list} is a circle"));
            }
        }
        if newer != ends.tail || len != ends.len || bytes != ends.bytes {
            return Err(format!("list {list}: {len} nodes, {} said", ends.len));
        }
        Ok(len)
    }
}
