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

/// A row of such a list that `grep` selected, in the usual orders: number and state, or state and
/// number; then the wait channel and the command.
static ROW: Pattern = Pattern::new(concat!(
    r"^(?:(?:[a-z_][\w.-]*\s+)?(?P<id>\d+)\s+(?:\d+\s+)?D[<>NLsl+]*",
    r"|D[<>NLsl+]*\s+(?:[a-z_][\w.-]*\s+)?(?P<number>\d+)(?:\s+\d+)?)",
    r"\s+(?P<channel>[a-z_][a-z0-9_.]*)\s+(?P<command>\S.*)$",
));
/// Parts of the names of functions that wait; no program's name contains one.
static WAITS: Pattern = Pattern::new(concat!(
    r"wait|lock|sleep|schedule|_down|down_|rwsem|mutex|futex|cv_|txg_|zio_|zil_|jbd2_|blk_|bio_",
    r"|nfs_|rpc_|request|_tag|flush|congest|reclaim|throttle",
));

/// Whether a line is a row of a thread in uninterruptible sleep, with its wait channel.
pub(crate) fn is_row(text: &str) -> bool {
    ROW.captures(text.trim()).is_some_and(|found| is_channel(&found["channel"], &found["command"]))
}

/// Whether a word is a wait channel: by its own name, or because a path or a bracketed name
/// follows.
fn is_channel(channel: &str, command: &str) -> bool {
    WAITS.is_match(channel) || channel.contains('_') && command.starts_with(['/', '['])
}

/// Reads such a row; `false` if the line is none.
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
