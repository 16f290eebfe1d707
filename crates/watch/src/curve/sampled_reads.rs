//! The new entries in the sampled reads of a mount, look by look.
//!
//! Each look opens the file, reads from the first new entry on, and closes it. Entries have
//! numbers, so another reader costs nothing. A late look misses only the entries that the mount no
//! longer has.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ogive_kstat::sampled_reads::{ENTRY_BYTES, Entry, HEADER_BYTES, Header};
use ogive_sim::curve::Chosen;

/// Entries that a look takes at most; a mount keeps as many.
const ENTRIES_MAX: u64 = 1 << 16;

/// The new entries.
#[derive(Debug, Default)]
pub(super) struct New {
    pub(super) chosen: Vec<Chosen>,
    /// Reads that they are a sample of.
    pub(super) reads: u64,
    /// An estimate of the reads whose entries the mount dropped before this look.
    pub(super) dropped: u64,
    /// The time that they took.
    pub(super) time: Duration,
}

/// The file of a mount, and the number of the next new entry.
#[derive(Debug)]
pub(super) struct SampledReads {
    path: PathBuf,
    seen: Option<Seen>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    header: Header,
    at: Instant,
}

impl SampledReads {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, seen: None, bytes: Vec::new() }
    }

    /// Takes the new entries. In a new sampling, all entries are new.
    pub(super) fn look(&mut self, now: Instant, new: &mut New) -> std::io::Result<()> {
        *new = New { chosen: std::mem::take(&mut new.chosen), ..New::default() };
        new.chosen.clear();
        let file = File::open(&self.path)?;
        let mut head = [0; HEADER_BYTES];
        file.read_exact_at(&mut head, 0)?;
        let header = Header::decode(&head)
            .map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))?;
        let before = self.seen.filter(|seen| {
            let known = seen.header;
            known.sampling == header.sampling
                && known.next <= header.next
                && known.reads <= header.reads
        });
        let (known, reads) = before.map_or((0, 0), |seen| (seen.header.next, seen.header.reads));
        new.time = before.map_or(Duration::ZERO, |seen| now.saturating_duration_since(seen.at));
        self.seen = Some(Seen { header, at: now });

        let from = known.max(header.first).max(header.next.saturating_sub(ENTRIES_MAX));
        self.read(&file, &header, from)?;
        for bytes in self.bytes.as_chunks::<ENTRY_BYTES>().0 {
            // Only the damaged entry is lost.
            let Ok(Entry { hash, bytes, shift }) = Entry::decode(bytes) else { continue };
            new.chosen.push(Chosen { hash, bytes: bytes.into(), shift: shift.into() });
        }
        new.count(header.reads - reads, header.next - known);
        Ok(())
    }

    /// Reads the entries from this number on. The file may contain fewer than its header claims.
    fn read(&mut self, file: &File, header: &Header, from: u64) -> std::io::Result<()> {
        let length = (header.next - from) * ENTRY_BYTES as u64;
        self.bytes.clear();
        let (Some(place), Ok(length)) = (header.place_of(from), usize::try_from(length)) else {
            return Ok(());
        };
        self.bytes.resize(length, 0);
        let mut filled = 0;
        while filled < length {
            match file.read_at(&mut self.bytes[filled..], place + filled as u64) {
                Ok(0) => break,
                Ok(taken) => filled += taken,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.truncate(filled);
        Ok(())
    }
}

impl New {
    /// Says how many reads there were, of which so many entries should be here.
    fn count(&mut self, reads: u64, entries: u64) {
        let here = self.chosen.len() as u64;
        if here == entries && self.chosen.iter().all(|chosen| chosen.shift == 0) {
            // All of them; what is under way is in the number and not here yet, or the reverse.
            self.reads = here;
            return;
        }
        let missing = u128::from(reads) * u128::from(entries.saturating_sub(here));
        self.dropped = u64::try_from(missing / u128::from(entries.max(1))).unwrap_or(u64::MAX);
        self.reads = reads.saturating_sub(self.dropped);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::path::Path;

    /// The file as a mount would show it.
    pub(in super::super) fn write(
        file: &Path,
        sampling: u64,
        first: u64,
        reads: u64,
        entries: impl IntoIterator<Item = Entry>,
    ) {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let header = Header { sampling, first, next: first + entries.len() as u64, reads };
        let mut bytes = header.encode().to_vec();
        entries.iter().for_each(|entry| bytes.extend_from_slice(&entry.encode()));
        std::fs::write(file, bytes).unwrap();
    }

    fn entries(numbers: std::ops::Range<u64>, shift: u8) -> Vec<Entry> {
        numbers.map(|hash| Entry { hash, bytes: 10, shift }).collect()
    }

    struct Looks {
        place: tempfile::TempDir,
        log: SampledReads,
        start: Instant,
        new: New,
    }

    impl Looks {
        fn new() -> Self {
            let place = tempfile::tempdir().unwrap();
            let log = SampledReads::new(place.path().join("reads"));
            Self { place, log, start: Instant::now(), new: New::default() }
        }

        fn show(&self, sampling: u64, first: u64, reads: u64, entries: Vec<Entry>) {
            write(&self.place.path().join("reads"), sampling, first, reads, entries);
        }

        /// Hashes that are new, reads and dropped ones, and seconds, of a look at this second.
        fn look(&mut self, second: u64) -> (Vec<u64>, u64, u64, u64) {
            self.log.look(self.start + Duration::from_secs(second), &mut self.new).unwrap();
            let New { chosen, reads, dropped, time } = &self.new;
            (chosen.iter().map(|one| one.hash).collect(), *reads, *dropped, time.as_secs())
        }
    }

    #[test]
    fn each_read_is_new_once() {
        let mut looks = Looks::new();
        looks.show(1, 0, 0, entries(0..0, 0));
        assert_eq!(looks.look(0), (vec![], 0, 0, 0));
        looks.show(1, 0, 3, entries(0..3, 0));
        assert_eq!(looks.look(1), (vec![0, 1, 2], 3, 0, 1));
        assert_eq!(looks.look(2), (vec![], 0, 0, 1));
        looks.show(1, 2, 6, entries(2..6, 0));
        assert_eq!(looks.look(4), (vec![3, 4, 5], 3, 0, 2));
    }

    #[test]
    fn reads_that_the_mount_dropped_are_missing_in_their_share() {
        let mut looks = Looks::new();
        looks.show(1, 0, 0, entries(0..0, 0));
        looks.look(0);
        // Four of twelve have gone, and each stands for four.
        looks.show(1, 4, 48, entries(4..12, 2));
        let (new, reads, dropped, _) = looks.look(1);
        assert_eq!((new.len(), reads, dropped), (8, 32, 16));
    }

    #[test]
    fn another_sampling_is_new_and_the_time_between_is_not_counted() {
        let mut looks = Looks::new();
        looks.show(1, 0, 3, entries(0..3, 0));
        looks.look(0);
        looks.show(2, 0, 2, entries(7..9, 0));
        assert_eq!(looks.look(100), (vec![7, 8], 2, 0, 0));
    }

    #[test]
    fn hostile_bytes_are_an_error_or_nothing() {
        let mut looks = Looks::new();
        let file = looks.place.path().join("reads");
        let mut look = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            looks.log.look(looks.start, &mut looks.new).map(|()| looks.new.chosen.len())
        };
        assert_eq!(look(b"").unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(look(&[0xff; 4096]).unwrap_err().kind(), ErrorKind::InvalidData);
        // A header that claims more entries than the file has, and more than any file can have.
        let far = Header { sampling: 1, first: 0, next: u64::MAX, reads: u64::MAX };
        assert_eq!(look(&far.encode()).unwrap(), 0);
        let many = Header { next: 1 << 16, ..far };
        assert_eq!(look(&[&many.encode()[..], &[0xff; 100]].concat()).unwrap(), 0);
        // And fewer than before.
        let fewer = Header { next: 1, reads: 0, ..far };
        assert_eq!(look(&[&fewer.encode()[..], &[0; 16]].concat()).unwrap(), 1);
    }
}
