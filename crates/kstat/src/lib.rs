//! Kernel statistics ("kstats") as OpenZFS publishes them: parsed and written, never interpreted.
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
//! Other modules build on the texts. [`files`] and [`arcstats`] are the tables of the files that
//! OpenZFS's tools open. [`tree`] is the tree of files in which the tools find them. [`source`]
//! reads kstats from a directory. [`arcstat`] has the columns that OpenZFS's `arcstat` derives from
//! two readings, and [`sum`] adds readings up. Rows are declared in `ogive-stats`.
//!
//! Single reads of a mount have formats of their own: [`trace`] for all reads, [`sampled_reads`]
//! for a sample.
//!
//! Invariants: outside input causes no panic, [`limits`] bounds every reader, and every parse error
//! names the line. There is no state and no lock in this crate.
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

/// Reads the kstats of `input`, in any of the four texts.
///
/// A Linux named kstat does not contain its module and name, which are its path. Both are empty in
/// the result; use [`named::parse`] if they are known. Fuzzing starts here: the function must
/// return for any bytes.
///
/// # Errors
/// [`ParseErrorKind::UnknownFormat`] if no reader recognises the first line, otherwise the error of
/// the chosen reader.
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
