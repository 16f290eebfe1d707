//! Files that are being written: the journal over the object that is there, and the way up.
//!
//! A [`StagedFile`] takes every write into the journal at once, so that it reads its own writes and
//! survives `SIGKILL` with them. What a sync or a close promises is kept by an upload whose
//! condition is the object that the changes were made to; nobody's object is ever overwritten.
//!
//! | state | entered by | a write that returned | sync, close | `SIGKILL` | somebody else changed it |
//! |---|---|---|---|---|---|
//! | clean | an upload | | nothing to do | nothing to replay | seen at the next open |
//! | streaming | a new file of some size, written in order | in the journal; whole parts are on their way up | what is left goes up, and the object appears | replayed, goes up from its beginning | conflict |
//! | staged | any other change | in the journal | uploaded whole, or in parts with copies of what did not change | replayed with the ETag that it was based on | conflict |
//! | conflict | a condition that failed | `ESTALE` | `ESTALE` | kept | its bytes stay; ours are in `conflicts/` of the journal |
//!
//! A close may be told to be content with the journal ([`Durable::Journal`]); the file goes up
//! later then. [`StagedFile::resume`] takes up what an earlier mount has left.
//!
//! # Lost answers
//!
//! The object carries the [`WriteId`](crate::journal::WriteId) of what it holds. Where an answer
//! was lost or a condition failed, the store is asked which id its object has: if it is ours, the
//! upload has arrived, and whatever came after it is a change of that object. Only an object that
//! is neither ours nor the one we started from is a conflict.
//!
//! # Stores that ignore conditions
//!
//! [`refusal`] says what is refused for it: a new file where creation has no condition, any other
//! where overwriting has none. A file that can go up in one request is not refused because of
//! parts. Who knows that nobody else writes may say so ([`Options::is_only_writer`]).
//!
//! # Renames
//!
//! [`rename_directory`] renames all keys below a prefix, with a log of its own in the journal, so
//! that a rename that is cut off is finished or taken back.
//!
//! # Locks
//!
//! Of each file: `remote`, held while the store is asked, so that there is one upload of a file at
//! a time; `order`, held for a write to the journal; the log's own. They are taken in this order. A
//! write only tries `remote`, so it never waits for an upload. The lock of [`Uploads`] is taken
//! within `remote` and holds nothing.

mod file;
mod plan;
mod rename;
mod upload;
mod uploads;

pub use file::{Durable, Options, StagedFile, Standing};
pub use plan::{Limits, Part, Plan};
pub use rename::{RENAME_MAX, RenameError, Renamed, rename_directory, resume_rename};
pub use upload::{StagedError, refusal};
pub use uploads::Uploads;

pub(crate) use rename::delete as delete_if_same;
