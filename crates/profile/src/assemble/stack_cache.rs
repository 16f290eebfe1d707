//! Caches the last stack of each recent thread. Two samples of a thread mostly differ only in their
//! innermost frames, so the shared frames need no second lookup.
//!
//! A stack is reused only for the same addresses in the same address space, so the result is that
//! of a lookup. A caller that changes the names of kernel addresses must call [`StackCache::clear`].

use crate::model::{Mode, StackId};

/// Threads whose last stack is remembered, at most.
const SLOTS: usize = 64;

/// The last stack of a thread.
#[derive(Debug, Default, Clone)]
pub(super) struct Path {
    space: u32,
    /// The frames, outermost first, each with the stack that ends there.
    frames: Vec<(Mode, u64, StackId)>,
}

/// The last stacks.
#[derive(Debug)]
pub(super) struct StackCache {
    slots: Vec<Path>,
}

impl Default for StackCache {
    fn default() -> Self {
        Self { slots: vec![Path::default(); SLOTS] }
    }
}

impl StackCache {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.slots.iter_mut().for_each(|path| path.frames.clear());
    }

    /// The last stack of this thread, or of another thread in the same slot. `cpu` separates the
    /// idle tasks, which share one thread number.
    pub(super) fn of(&mut self, tid: i32, cpu: u32) -> &mut Path {
        &mut self.slots[tid.cast_unsigned().wrapping_add(cpu) as usize % SLOTS]
    }
}

impl Path {
    /// Keeps the frames that a chain (outermost first) shares with this stack. Returns their number
    /// and the stack that ends with them.
    pub(super) fn keep(
        &mut self,
        space: u32,
        chain: impl Iterator<Item = (Mode, u64)>,
    ) -> (usize, StackId) {
        let same = |((mode, address, _), frame): &(&(Mode, u64, StackId), (Mode, u64))| {
            (*mode, *address) == *frame
        };
        let shared = if self.space == space {
            self.frames.iter().zip(chain).take_while(same).count()
        } else {
            0
        };
        self.space = space;
        self.frames.truncate(shared);
        (shared, self.frames.last().map_or(StackId::EMPTY, |(.., stack)| *stack))
    }

    /// Adds the next frame.
    pub(super) fn push(&mut self, mode: Mode, address: u64, stack: StackId) {
        self.frames.push((mode, address, stack));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_common_outermost_frames_are_reused() {
        let mut recent = StackCache::default();
        let path = recent.of(7, 0);
        let chain = [(Mode::User, 1), (Mode::User, 2), (Mode::Kernel, 3)];
        assert_eq!(path.keep(5, chain.into_iter()), (0, StackId::EMPTY));
        for (number, (mode, address)) in (1..).zip(chain) {
            path.push(mode, address, StackId(number));
        }
        assert_eq!(path.clone().keep(5, chain.into_iter()), (3, StackId(3)));
        assert_eq!(path.clone().keep(6, chain.into_iter()), (0, StackId::EMPTY));
        let other = [(Mode::User, 1), (Mode::User, 9), (Mode::Kernel, 3)];
        assert_eq!(path.clone().keep(5, other.into_iter()), (1, StackId(1)));
        let other = [(Mode::User, 1), (Mode::Kernel, 2)];
        assert_eq!(path.clone().keep(5, other.into_iter()), (1, StackId(1)));
        recent.clear();
        assert_eq!(recent.of(7, 0).keep(5, chain.into_iter()), (0, StackId::EMPTY));
    }
}
