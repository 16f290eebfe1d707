//! The map of a file: which of its bytes the log holds, and where. Pieces do not overlap.

use super::log::Place;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a file that are in one extent of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// How many bytes.
    pub bytes: u64,
    /// The revision that wrote them.
    pub revision: u64,
    /// The record of the extent.
    pub place: Place,
    /// Where they start in the extent.
    pub skip: u32,
}

/// The source of a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// In the log.
    Staged(Piece),
    /// The base object, at the same offset.
    Base(u64),
    /// None: the range reads as zeroes.
    Hole(u64),
}

impl Span {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Staged(piece) => piece.bytes,
            Self::Base(bytes) | Self::Hole(bytes) => *bytes,
        }
    }
}

/// The pieces of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Extents {
    pieces: BTreeMap<u64, Piece>,
    bytes: u64,
}

impl Extents {
    /// How many bytes the pieces have.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Piece)> + '_ {
        self.pieces.iter().map(|(offset, piece)| (*offset, *piece))
    }

    /// The pieces that overlap a range, uncut.
    pub(super) fn within(&self, range: Range<u64>) -> Self {
        if range.is_empty() {
            return Self::default();
        }
        let before = self.pieces.range(..=range.start).next_back().map(|(offset, _)| *offset);
        let pieces = self.pieces.range(before.unwrap_or(range.start)..range.end);
        let pieces: BTreeMap<_, _> = pieces.map(|(offset, piece)| (*offset, *piece)).collect();
        let bytes = pieces.values().map(|piece| piece.bytes).sum();
        Self { pieces, bytes }
    }

    /// How many pieces start in a range, counting up to `most`.
    pub(super) fn count_in(&self, range: Range<u64>, most: usize) -> usize {
        self.pieces.range(range).take(most).count()
    }

    /// Inserts a piece over earlier ones.
    pub(super) fn insert(&mut self, offset: u64, piece: Piece) {
        if piece.bytes > 0 {
            self.remove(offset..offset + piece.bytes);
            self.bytes += piece.bytes;
            self.pieces.insert(offset, piece);
        }
    }

    /// Removes a range.
    pub(super) fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // A piece that starts before the range keeps its head, and its tail if it ends after the
        // range.
        if let Some((offset, piece)) = self.pieces.range(..range.start).next_back() {
            let (offset, piece) = (*offset, *piece);
            let end = offset + piece.bytes;
            if end > range.start {
                self.bytes -= end.min(range.end) - range.start;
                self.pieces.insert(offset, Piece { bytes: range.start - offset, ..piece });
                self.insert_tail(offset, piece, range.end);
            }
        }
        while let Some((offset, piece)) = self.pieces.range(range.clone()).next() {
            let (offset, piece) = (*offset, *piece);
            self.pieces.remove(&offset);
            self.bytes -= (offset + piece.bytes).min(range.end) - offset;
            self.insert_tail(offset, piece, range.end);
        }
    }

    /// Inserts the tail of a piece, from `from` on.
    fn insert_tail(&mut self, offset: u64, piece: Piece, from: u64) {
        let end = offset + piece.bytes;
        if end > from {
            let skip = piece.skip + (from - offset) as u32;
            self.pieces.insert(from, Piece { bytes: end - from, skip, ..piece });
        }
    }

    /// The spans of a range. The base is visible below `shown`.
    pub(super) fn spans(&self, range: Range<u64>, shown: u64) -> Vec<Span> {
        let mut spans = Vec::new();
        let mut at = range.start;
        let before = self.pieces.range(..=range.start).next_back().map(|(offset, _)| *offset);
        for (offset, piece) in self.pieces.range(before.unwrap_or(range.start)..range.end) {
            let end = (offset + piece.bytes).min(range.end);
            if end <= at {
                continue;
            }
            let start = (*offset).max(at);
            gap(&mut spans, at..start, shown);
            let skip = piece.skip + (start - offset) as u32;
            spans.push(Span::Staged(Piece { bytes: end - start, skip, ..*piece }));
            at = end;
        }
        gap(&mut spans, at..range.end, shown);
        spans
    }
}

/// Adds the spans of a range that the log does not hold.
fn gap(spans: &mut Vec<Span>, range: Range<u64>, shown: u64) {
    let middle = shown.clamp(range.start, range.end.max(range.start));
    if middle > range.start {
        spans.push(Span::Base(middle - range.start));
    }
    if range.end > middle {
        spans.push(Span::Hole(range.end - middle));
    }
}
