//! Exit codes, and the error that carries one.
//!
//! Every exit code is a row of [`EXIT_CODES`]; `--help`, the man pages and the code read the same
//! table. An error with a code other than 1 is a [`Refusal`] somewhere in its `anyhow` chain.

use std::fmt;

/// Everything went well.
pub(crate) const SUCCESS: u8 = 0;
/// Something failed that no other code names.
pub(crate) const FAILURE: u8 = 1;
/// The command line or an option does not make sense.
pub(crate) const USAGE: u8 = 2;
/// The source directory is missing, is no directory or cannot be read.
pub(crate) const SOURCE: u8 = 3;
/// The mount point cannot be used, or nothing of ogive's is mounted there.
pub(crate) const MOUNT_POINT: u8 = 4;
/// FUSE itself is missing or forbidden.
pub(crate) const FUSE: u8 = 5;
/// The mount is in use.
pub(crate) const BUSY: u8 = 6;

/// The doctor's evidence answers none of its questions: is it the CPU, which programs, is it ZFS.
pub(crate) const EVIDENCE: u8 = 7;
/// The doctor found a cause.
pub(crate) const CAUSE_FOUND: u8 = 8;

/// The doctor answered at least one of these, and the cause is open.
pub(crate) const CAUSE_OPEN: u8 = 9;

/// The meaning of each exit code: the one table behind the help texts and the man pages.
pub(crate) const EXIT_CODES: &[(u8, &str)] = &[
    (SUCCESS, "success"),
    (FAILURE, "failure: an input/output error, or anything the other codes do not name"),
    (USAGE, "usage: an option or an argument does not make sense"),
    (SOURCE, "source: SRC is missing, is not a directory or cannot be read"),
    (
        MOUNT_POINT,
        "mount point: MNT is missing, is not a directory, overlaps SRC, is already an ogive mount, \
         or is not one",
    ),
    (FUSE, "FUSE: /dev/fuse or fusermount3 is missing, or mounting is forbidden"),
    (BUSY, "busy: programs still use the mount"),
    (
        EVIDENCE,
        "doctor: the evidence does not show whether the CPU is the problem, which programs use it, \
         or whether it is ZFS",
    ),
    (CAUSE_FOUND, "doctor: ZFS or ogive wastes CPU, and the cause is named"),
    (CAUSE_OPEN, "doctor: the answer names what uses the CPU or waits, but not the cause"),
];

/// An error with its own exit code and, if there is one, the next step.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Refusal {
    /// An error that ends the program with `code`.
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    /// Adds what the user can do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Refusal {}

/// The exit code an error asks for: that of the outermost [`Refusal`] or of the file system's own
/// error.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    error
        .chain()
        .find_map(|cause| {
            cause
                .downcast_ref::<Refusal>()
                .map(|refusal| refusal.code)
                .or_else(|| cause.downcast_ref::<ogive_fs::MountError>().map(|e| e.exit_code()))
        })
        .unwrap_or(FAILURE)
}

/// Whether the error only means that the reader of our output has ended.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

/// Prints the error as one line on standard error and turns it into an exit code.
pub(crate) fn report(error: &anyhow::Error) -> u8 {
    if is_broken_pipe(error) {
        return SUCCESS;
    }
    let text = format!("{error:#}");
    if !crate::logger::print_error(&text) {
        // Without standard error there is nowhere to report to.
        let _ = print_line(&text);
    }
    code_of(error)
}

fn print_line(text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    writeln!(std::io::stderr().lock(), "ogive: {}", ogive_text::one_line(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn the_table_has_every_code_once_in_order() {
        let codes: Vec<u8> = EXIT_CODES.iter().map(|(code, _)| *code).collect();
        assert_eq!(
            codes,
            [
                SUCCESS,
                FAILURE,
                USAGE,
                SOURCE,
                MOUNT_POINT,
                FUSE,
                BUSY,
                EVIDENCE,
                CAUSE_FOUND,
                CAUSE_OPEN
            ]
        );
    }

    #[test]
    fn context_around_a_refusal_keeps_its_code_and_its_hint() {
        let refusal = Refusal::new(BUSY, "cannot unmount /m: in use").hint("close the files");
        let error = Err::<(), _>(refusal).context("while leaving").unwrap_err();
        assert_eq!(code_of(&error), BUSY);
        assert_eq!(
            format!("{error:#}"),
            "while leaving: cannot unmount /m: in use; close the files"
        );
    }

    #[test]
    fn an_ordinary_error_is_a_failure_and_a_broken_pipe_is_none() {
        let error = anyhow::anyhow!("disk on fire");
        assert_eq!(code_of(&error), FAILURE);
        assert!(!is_broken_pipe(&error));
        let pipe = anyhow::Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(is_broken_pipe(&pipe.context("cannot write statistics")));
    }
}
