//! The state of a staged file, computed from its records.
//!
//! A file is its base, visible below `shown`, with the extents over it, truncated or extended to
//! `size`. Each change has a revision. An upload gives the object all changes up to a revision;
//! later changes are then applied to the new base. So pieces keep their revisions, and earlier
//! sizes are kept.

use super::extents::{Extents, Piece, Span};
use super::format::{Base, Record};
use super::log::Place;
use std::ops::Range;

/// A staged file.
#[derive(Debug, Clone)]
pub struct State {
    pub(super) key: String,
    pub(super) base: Base,
    pub(super) size: u64,
    pub(super) shown: u64,
    pub(super) extents: Extents,
    /// The sizes that were set since the base, with their revisions.
    pub(super) sizes: Vec<(u64, u64)>,
    pub(super) revision: u64,
}

impl State {
    /// A file without changes.
    pub fn new(key: &str, base: Base) -> Self {
        let (size, shown) = (base.size(), base.size());
        Self {
            key: key.to_owned(),
            base,
            size,
            shown,
            extents: Extents::default(),
            sizes: Vec::new(),
            revision: 0,
        }
    }

    /// The object's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The base object.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The last revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// How many bytes of the file are in the log.
    pub fn staged_bytes(&self) -> u64 {
        self.extents.bytes()
    }

    /// How many pieces the file has; a size counts as one.
    pub fn pieces(&self) -> usize {
        self.extents.len() + self.sizes.len()
    }

    /// Whether the file differs from its base. A new file always does: it has to be uploaded even
    /// if it is empty.
    pub fn is_changed(&self) -> bool {
        self.base == Base::New
            || self.extents.len() > 0
            || self.shown < self.base.size()
            || self.size != self.base.size()
    }

    /// Whether no byte of the base is visible.
    pub fn is_all_new(&self) -> bool {
        self.shown == 0
    }

    /// The sources of a range, up to the end of the file.
    pub fn spans(&self, range: Range<u64>) -> Vec<Span> {
        let end = range.end.min(self.size);
        if range.start >= end {
            return Vec::new();
        }
        self.extents.spans(range.start..end, self.shown)
    }

    /// The part that a read of a range needs.
    pub(super) fn within(&self, range: Range<u64>) -> Self {
        Self {
            key: self.key.clone(),
            base: self.base.clone(),
            extents: self.extents.within(range),
            sizes: Vec::new(),
            ..*self
        }
    }

    pub(super) fn write(&mut self, offset: u64, piece: Piece) {
        self.revision = self.revision.max(piece.revision);
        // The gap between the old end and the write reads as zeroes.
        self.size = self.size.max(offset + piece.bytes);
        self.extents.insert(offset, piece);
    }

    /// An earlier size is dropped if this one is not larger: this one cuts at least as much of any
    /// new base.
    pub(super) fn resize(&mut self, revision: u64, size: u64) {
        while self.sizes.pop_if(|(_, before)| *before >= size).is_some() {}
        self.revision = self.revision.max(revision);
        self.extents.remove(size..u64::MAX);
        self.shown = self.shown.min(size);
        self.size = size;
        self.sizes.push((revision, size));
    }

    /// The object has all changes up to a revision; later ones are applied to the new base.
    pub(super) fn rebase(&mut self, through: u64, base: Base) {
        let mut pieces: Vec<_> =
            self.extents.iter().filter(|(_, piece)| piece.revision > through).collect();
        pieces.sort_by_key(|(_, piece)| piece.revision);
        let mut sizes = std::mem::take(&mut self.sizes);
        sizes.retain(|(revision, _)| *revision > through);
        let mut sizes = sizes.into_iter().peekable();
        let fresh = Self::new(&self.key, base);
        let before = std::mem::replace(self, fresh);
        self.revision = before.revision;
        for (offset, piece) in pieces {
            while let Some((revision, size)) = sizes.next_if(|(set, _)| *set < piece.revision) {
                self.resize(revision, size);
            }
            self.write(offset, piece);
        }
        sizes.for_each(|(revision, size)| self.resize(revision, size));
    }

    /// Applies a record.
    ///
    /// # Errors
    /// If the record does not belong in the log of a file.
    pub fn apply(&mut self, place: Place, record: Record<'_>) -> Result<(), &'static str> {
        match record {
            Record::Extent { revision, offset, bytes } => {
                let bytes = bytes.len() as u64;
                self.write(offset, Piece { bytes, revision, place, skip: 0 });
            }
            Record::Size { revision, size } => self.resize(revision, size),
            Record::Key(key) => key.clone_into(&mut self.key),
            Record::Uploaded { through, base } => self.rebase(through, base),
            Record::Durable => {}
            _ => return Err("the record does not belong in the log of a file"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program may truncate and extend a file any number of times before it closes it.
    #[test]
    fn sizes_that_no_longer_matter_are_dropped() {
        let mut state = State::new("k", Base::Object { etag: "\"e\"".to_owned(), size: 100 });
        let sizes = |state: &State| state.sizes.iter().map(|(_, size)| *size).collect::<Vec<_>>();
        for number in 0..1000 {
            state.resize(3 * number + 1, 200 + number);
            state.resize(3 * number + 2, 50 + number % 2);
            state.resize(3 * number + 3, 300 + number);
        }
        assert_eq!(sizes(&state), [50, 51, 1299]);
        assert_eq!((state.size, state.shown), (1299, 50));
        // An upload of a revision after the first truncation, and one of a revision before it.
        let mut later = state.clone();
        later.rebase(3000 - 1, Base::Object { etag: "\"f\"".to_owned(), size: 51 });
        assert_eq!((later.size, later.shown, sizes(&later)), (1299, 51, vec![1299]));
        state.rebase(0, Base::Object { etag: "\"f\"".to_owned(), size: 100 });
        assert_eq!((state.size, state.shown), (1299, 50));
    }

    #[test]
    fn a_repeated_truncation_counts_once() {
        let object = |size| Base::Object { etag: "\"e\"".to_owned(), size };
        let mut state = State::new("k", object(100));
        for (revision, size) in [(1, 0), (1, 0), (2, 5)] {
            state.resize(revision, size);
        }
        assert_eq!(state.sizes, [(1, 0), (2, 5)]);
        state.rebase(0, object(100));
        assert_eq!((state.size, state.shown), (5, 0));
    }
}
