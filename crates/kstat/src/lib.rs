//! Kernel statistics ("kstats") as OpenZFS publishes them, read and written, never interpreted.
//!
//! A kstat is a named table of counters. The same tables appear in four texts, and this crate
//! reads all of them into one type, [`Kstat`]:
//!
//! | text | where | reader |
//! |---|---|---|
//! | named kstat | Linux, `/proc/spl/kstat/<module>/<name>` | [`named`] (and its writer) |
//! | `sysctl kstat` | FreeBSD | [`sysctl`] |
//! | `kstat -p` | illumos | [`illumos`] |
//! | `kstat` blocks | illumos | [`illumos`] |
//!
//! Other rooms build on the texts: [`files`] has OpenZFS's files that its tools open, and
//! [`arcstats`] the one with 148 rows. [`source`] is where to read them from, [`arcstat`] the
//! columns that OpenZFS's `arcstat` derives from two readings, [`sum`] several readings as one,
//! and [`tree`] the tree of files in which OpenZFS's tools find them. Rows are declared in
//! `ogive-stats`.
//!
//! Single reads of a mount have formats of their own: [`trace`] for all of them,
//! [`sampled_reads`] for a sample.
//!
//! Invariants: nothing here panics on outside input, [`limits`] bounds every reader, and every
//! parse error names the line. There is no state and no lock in this crate.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod arcstat;
pub mod arcstats;
pub mod error;
pub mod files;
mod fixed_width;
pub mod illumos;
mod kstat;
pub mod limits;
pub mod named;
pub mod sampled_reads;
pub mod source;
pub mod sum;
pub mod sysctl;
pub mod table;
pub mod trace;
pub mod tree;

pub use error::{ParseError, ParseErrorKind};
pub use kstat::{Entry, Kstat, Value};
pub use source::{Source, SourceError};
pub use table::{Field, Rows, Table, Unit};

/// Reads kstats in whichever of the four texts `input` is written.
///
/// A Linux named kstat does not say its own module and name (they are its path), so both are
/// empty in the result; use [`named::parse`] where they are known. This is the entry point to
/// fuzz: it must return for any bytes.
///
/// # Errors
/// [`ParseErrorKind::UnknownFormat`] when no reader recognises the first line, otherwise whatever
/// the chosen reader reports.
pub fn parse(input: &[u8]) -> Result<Vec<Kstat>, ParseError> {
    limits::check_length(input)?;
    if sysctl::recognises(input) {
        sysctl::parse(input)
    } else if illumos::recognises_parsable(input) {
        illumos::parse_parsable(input)
    } else if illumos::recognises_blocks(input) {
        illumos::parse_blocks(input)
    } else if named::recognises(input) {
        named::parse("", "", input).map(|kstat| vec![kstat])
    } else {
        Err(ParseError::new(1, ParseErrorKind::UnknownFormat))
    }
}
