//! Errors in a kstat text, each with its line.

use thiserror::Error;

use crate::limits;

/// A kstat text could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {kind}")]
pub struct ParseError {
    /// Line of the input, counted from 1.
    pub line: usize,
    /// The fault.
    pub kind: ParseErrorKind,
}

impl ParseError {
    pub(crate) fn new(line: usize, kind: ParseErrorKind) -> Self {
        Self { line, kind }
    }
}

/// The kinds of [`ParseError`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text begins like none of the four formats.
    #[error(
        "not a kstat text: expected a Linux kstat header (seven numbers), `kstat.` lines of \
         FreeBSD's sysctl, or the output of illumos's kstat"
    )]
    UnknownFormat,
    /// The input is longer than [`limits::MAX_INPUT_BYTES`].
    #[error("input of {bytes} bytes is over the limit of {}", limits::MAX_INPUT_BYTES)]
    InputTooLong {
        /// Length of the input.
        bytes: usize,
    },
    /// The line is longer than [`limits::MAX_LINE_BYTES`].
    #[error("line of {bytes} bytes is over the limit of {}", limits::MAX_LINE_BYTES)]
    LineTooLong {
        /// Length of the line.
        bytes: usize,
    },
    /// More rows than [`limits::MAX_ROWS`] in a kstat.
    #[error("more than {} rows in one kstat", limits::MAX_ROWS)]
    TooManyRows,
    /// More kstats than [`limits::MAX_KSTATS`].
    #[error("more than {} kstats in one input", limits::MAX_KSTATS)]
    TooManyKstats,
    /// The bytes of the line are not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// The input ends before the part named here.
    #[error("the text ends where {expected} should be")]
    Truncated {
        /// The missing part.
        expected: &'static str,
    },
    /// The first line of a Linux kstat is not `kid type 0xflags ndata data_size crtime snaptime`.
    #[error("bad header: {0}")]
    Header(&'static str),
    /// A Linux kstat of another type than named (1).
    #[error("kstat type {0} is not the named type (1); it has no name and value rows")]
    NotNamed(i64),
    /// The second line of a Linux kstat is not `name type data`.
    #[error("expected the line `name type data`")]
    ColumnLine,
    /// A row lacks a part.
    #[error("bad row: {0}")]
    Row(&'static str),
    /// The type code of a row is not 0 to 7.
    #[error("unknown data type {0:?}; OpenZFS writes 0 to 7")]
    DataType(String),
    /// The value does not fit its type.
    #[error("value {value:?} is not a number of type {type_code}")]
    Number {
        /// The text found.
        value: String,
        /// kstat data type code (1 to 6).
        type_code: u8,
    },
    /// The number of rows differs from the header.
    #[error("the header promises {promised} rows, the text has {found}")]
    RowCount {
        /// The number in the header.
        promised: usize,
        /// The number in the text.
        found: usize,
    },
}
