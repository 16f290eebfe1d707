//! What a node remembers besides its state, packed into one byte.

/// What a node remembers besides its state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Brought in (or being loaded) for a prefetch, and no demand has asked for it yet.
    pub prefetched: bool,
    /// To become a ghost when the last hold is released.
    pub demote: bool,
    /// Loading: not in the index any more, to be dead as soon as it is loaded.
    pub doomed: bool,
    /// Dead: heavier than the cache, and so not counted against its target.
    pub oversize: bool,
}

impl Flags {
    const PREFETCHED: u8 = 1;
    const DEMOTE: u8 = 2;
    const DOOMED: u8 = 4;
    const OVERSIZE: u8 = 8;

    pub(super) fn pack(self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(self.prefetched, Self::PREFETCHED)
            | bit(self.demote, Self::DEMOTE)
            | bit(self.doomed, Self::DOOMED)
            | bit(self.oversize, Self::OVERSIZE)
    }

    pub(super) const fn unpack(bits: u8) -> Self {
        Self {
            prefetched: bits & Self::PREFETCHED != 0,
            demote: bits & Self::DEMOTE != 0,
            doomed: bits & Self::DOOMED != 0,
            oversize: bits & Self::OVERSIZE != 0,
        }
    }
}
