//! The mode of an inode's open files: served by the kernel itself, or by this process.
//!
//! The kernel keeps one mode per inode (`fs/fuse/iomode.c`). While it reads the bytes of an open
//! file itself, every other open must name the same backing. While it caches the pages of an open
//! file, no open may name a backing. A reply that breaks this gives the program `EIO`. So an open
//! joins the present mode, and chooses only if no file is open.
//!
//! A file counts from before its open is answered until its release arrives. The kernel sends the
//! release after it has dropped the file itself. So every file that the kernel has is counted here.
//! A file that is counted here and unknown to the kernel only keeps the present mode.

use crate::kernel::Backing;

/// The mode of an inode, and how many files it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum OpenMode {
    /// No file is open.
    #[default]
    Free,
    /// This process serves this many files.
    Here(u64),
    /// The kernel reads this many files itself, from this backing.
    Kernel(Backing, u64),
}

impl OpenMode {
    /// Whether a file that is opened now may choose.
    pub(super) fn is_free(self) -> bool {
        self == Self::Free
    }

    /// Adds a file that asks for this backing; returns the backing for the reply.
    pub(super) fn join(&mut self, requested: Option<Backing>) -> Option<Backing> {
        match self {
            Self::Here(files) => {
                *files += 1;
                None
            }
            Self::Kernel(backing, files) => {
                *files += 1;
                Some(*backing)
            }
            Self::Free => {
                *self = requested.map_or(Self::Here(1), |backing| Self::Kernel(backing, 1));
                requested
            }
        }
    }

    /// Removes a file. Returns a backing that no file needs any more.
    pub(super) fn leave(&mut self) -> Option<Backing> {
        match self {
            Self::Here(files) | Self::Kernel(_, files) if *files > 1 => {
                *files -= 1;
                None
            }
            _ => match std::mem::take(self) {
                Self::Kernel(backing, _) => Some(backing),
                Self::Free | Self::Here(_) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_joins_the_present_mode_and_only_the_first_chooses() {
        let (one, other) = (Some(Backing::numbered(1)), Some(Backing::numbered(2)));
        let mut mode = OpenMode::default();
        assert!(mode.is_free());
        assert_eq!(mode.join(one), one);
        assert_eq!(mode.join(other), one, "one backing an inode");
        assert_eq!(mode.join(None), one, "even without a request for it");
        assert!(!mode.is_free());
        assert_eq!((mode.leave(), mode.leave(), mode.leave()), (None, None, one));
        assert!(mode.is_free());
        assert_eq!((mode.join(None), mode.join(one)), (None, None), "the kernel caches its pages");
        assert_eq!((mode.leave(), mode.leave()), (None, None));
        assert_eq!(mode.join(other), other);
        assert_eq!((mode.leave(), mode.leave()), (other, None));
    }
}
