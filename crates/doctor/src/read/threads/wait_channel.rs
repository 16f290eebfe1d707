//! Where threads wait: the column WCHAN of `ps` names the kernel function in which a thread sleeps.
//!
//! For a thread in uninterruptible sleep (state D) it is a stack of one frame. Other threads sleep
//! because they have no work, so their function says nothing.

use crate::evidence::Thread;
use crate::pattern::Pattern;
use crate::read::table::{name_of, note_wait};
use crate::read::text::clean::Line;
use crate::read::text::frame;
use crate::read::text::reading::Reading;

/// A row that `grep` left of such a list, in the orders that people ask for: number and state, or
/// state and number; then where it waits, and the command.
static ROW: Pattern = Pattern::new(concat!(
    r"^(?:(?:[a-z_][\w.-]*\s+)?(?P<id>\d+)\s+(?:\d+\s+)?D[<>NLsl+]*",
    r"|D[<>NLsl+]*\s+(?:[a-z_][\w.-]*\s+)?(?P<number>\d+)(?:\s+\d+)?)",
    r"\s+(?P<channel>[a-z_][a-z0-9_.]*)\s+(?P<command>\S.*)$",
));
/// What functions are called in which threads wait: a program's name has none of it.
static WAITS: Pattern = Pattern::new(concat!(
    r"wait|lock|sleep|schedule|_down|down_|rwsem|mutex|futex|cv_|txg_|zio_|zil_|jbd2_|blk_|bio_",
    r"|nfs_|rpc_|request|_tag|flush|congest|reclaim|throttle",
));

/// Whether a line is a row of a thread that cannot be interrupted, with where it waits.
pub(crate) fn is_row(text: &str) -> bool {
    ROW.captures(text.trim()).is_some_and(|found| is_channel(&found["channel"], &found["command"]))
}

/// Whether a word is where a thread waits: by its own name, or before a command that shows that it
/// is one.
fn is_channel(channel: &str, command: &str) -> bool {
    WAITS.is_match(channel) || channel.contains('_') && command.starts_with(['/', '['])
}

/// Reads such a row; whether it was one.
pub(crate) fn read(line: &Line<'_>, reading: &mut Reading<'_>) -> bool {
    let Some(found) = ROW.captures(line.text.trim()) else { return false };
    if !is_channel(&found["channel"], &found["command"]) {
        return false;
    }
    let (name, kernel) = frame::thread(&found["command"]);
    let id = found.name("id").or_else(|| found.name("number"));
    let thread = Thread {
        id: id.and_then(|id| id.as_str().parse().ok()),
        kernel,
        state: Some('D'),
        ..reading.thread(name_of(&name, false), line)
    };
    note_wait(&thread, &found["channel"], reading);
    reading.evidence.threads.push(thread);
    true
}
