//! Files being written: a journal over the object in the store, and the upload.
//!
//! A [`StagedFile`] puts every write into the journal at once, so it reads its own writes and
//! survives `SIGKILL`. A sync or a close makes an upload on condition that the object is still the
//! one that was changed. So no other client's object is overwritten.
//!
//! | state | entered by | a write that returned is | sync, close | after `SIGKILL` | another client changes the object |
//! |---|---|---|---|---|---|
//! | clean | an upload | | nothing to do | nothing to replay | seen at the next open |
//! | streaming | a large new file, written in order | in the journal; complete parts are being uploaded | the rest is uploaded, and the object appears | replayed, uploaded from its start | conflict |
//! | staged | any other change | in the journal | uploaded whole, or in parts, with unchanged ranges copied | replayed with the ETag of its base | conflict |
//! | conflict | a failed condition | `ESTALE` | `ESTALE` | kept | its bytes stay; ours are in the journal's `conflicts/` |
//!
//! With [`Durable::Journal`] a close needs only the journal, and the file is uploaded later.
//! [`StagedFile::resume`] resumes files that an earlier mount left.
//!
//! # Lost answers
//!
//! Each object carries the [`WriteId`](crate::journal::WriteId) of its last change. If an answer
//! was lost or a condition failed, the store is asked for the id of its object. If it is ours, the
//! upload has arrived, and later changes are based on that object. Only an object that is neither
//! ours nor the base is a conflict.
//!
//! # Stores that ignore conditions
//!
//! [`refusal`] says which uploads are refused then: new files if creation has no condition, other
//! files if overwriting has none. A file that fits into one request is not refused because of
//! multipart conditions. A user may declare that no other client writes
//! ([`Options::is_only_writer`]).
//!
//! # Renames
//!
//! [`rename_directory`] renames all keys below a prefix. Its own log in the journal lets the next
//! mount finish or undo an interrupted rename.
//!
//! # Locks
//!
//! Each file has three locks. `remote` is held during requests, so that a file has one upload at a
//! time. `order` is held during a write to the journal. The third is the log's own. They are taken
//! in this order. A write only tries `remote`, so it never waits for an upload. The lock of
//! [`Uploads`] is taken within `remote` and is a leaf.

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
