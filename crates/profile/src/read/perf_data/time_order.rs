//! Records in the order of their times, within bounded memory.
//!
//! Recorders write buffers of CPUs one after another, and mark rounds: what comes after a round is
//! not older than what the round before held (Linux `tools/perf/util/ordered-events.c`). Where
//! marks are missing, half of what is waiting is let go whenever it exceeds [`WAITING_BYTES_MAX`].

/// Bytes of records that wait at most.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// Records that wait at most.
const WAITING_MAX: usize = 1 << 20;

/// A record that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    time_ns: u64,
    start: usize,
    len: u32,
    kind: u32,
    misc: u16,
    event: u16,
}

/// A record whose turn it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'b> {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// Which of the recorded events it belongs to.
    pub(crate) event: u16,
    pub(crate) body: &'b [u8],
}

/// Records that wait for their turn.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    bytes: Vec<u8>,
    spare: Vec<u8>,
    waiting: Vec<Waiting>,
    /// The latest time of the round before this.
    before_ns: u64,
    /// The latest time so far.
    latest_ns: u64,
}

impl Rounds {
    /// Adds a record; one without a time has its turn at once.
    pub(crate) fn add(
        &mut self,
        record: Record<'_>,
        time_ns: Option<u64>,
        deliver: &mut impl FnMut(Record<'_>),
    ) {
        let Some(time_ns) = time_ns else { return deliver(record) };
        self.latest_ns = self.latest_ns.max(time_ns);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record.body);
        // A record's size is 16 bits wide.
        let len = record.body.len() as u32;
        let Record { kind, misc, event, .. } = record;
        self.waiting.push(Waiting { time_ns, start, len, kind, misc, event });
        if self.bytes.len() > WAITING_BYTES_MAX || self.waiting.len() > WAITING_MAX {
            self.let_half_go(deliver);
        }
    }

    /// A round has ended.
    pub(crate) fn end_round(&mut self, deliver: &mut impl FnMut(Record<'_>)) {
        self.deliver_until(self.before_ns, deliver);
        self.before_ns = self.latest_ns;
    }

    /// Nothing more will come.
    pub(crate) fn end(&mut self, deliver: &mut impl FnMut(Record<'_>)) {
        self.deliver_until(u64::MAX, deliver);
    }

    fn let_half_go(&mut self, deliver: &mut impl FnMut(Record<'_>)) {
        let mut times: Vec<u64> = self.waiting.iter().map(|waiting| waiting.time_ns).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.deliver_until(median, deliver);
    }

    fn deliver_until(&mut self, time_ns: u64, deliver: &mut impl FnMut(Record<'_>)) {
        // Stable: records of one time keep the order in which they were written.
        self.waiting.sort_by_key(|waiting| waiting.time_ns);
        let due = self.waiting.partition_point(|waiting| waiting.time_ns <= time_ns);
        for waiting in &self.waiting[..due] {
            let Waiting { kind, misc, event, start, len, .. } = *waiting;
            let body = &self.bytes[start..start + len as usize];
            deliver(Record { kind, misc, event, body });
        }
        self.waiting.drain(..due);
        self.spare.clear();
        for waiting in &mut self.waiting {
            let start = self.spare.len();
            let end = waiting.start + waiting.len as usize;
            self.spare.extend_from_slice(&self.bytes[waiting.start..end]);
            waiting.start = start;
        }
        std::mem::swap(&mut self.bytes, &mut self.spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(rounds: &mut Rounds, times: &[u64], seen: &mut Vec<u8>) {
        for time in times {
            let body = [*time as u8];
            let record = Record { kind: 9, misc: 0, event: 0, body: &body };
            rounds.add(record, Some(*time), &mut |record| seen.push(record.body[0]));
        }
    }

    #[test]
    fn records_come_in_order_of_time() {
        let (mut rounds, mut seen) = (Rounds::default(), Vec::new());
        for round in [&[1u64, 2, 3, 2, 3, 4][..], &[3, 5, 7, 4, 5, 6], &[6, 8, 7, 9]] {
            feed(&mut rounds, round, &mut seen);
            rounds.end_round(&mut |record| seen.push(record.body[0]));
        }
        rounds.end(&mut |record| seen.push(record.body[0]));
        assert_eq!(seen, [1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9]);
    }

    #[test]
    fn without_marks_no_more_than_so_much_waits() {
        let mut rounds = Rounds::default();
        let body = vec![0; 65_000];
        let mut delivered = 0u64;
        for time in 0..2_000u64 {
            let record = Record { kind: 9, misc: 0, event: 0, body: &body };
            rounds.add(record, Some(time), &mut |_| delivered += 1);
            assert!(rounds.bytes.len() <= WAITING_BYTES_MAX + body.len());
        }
        rounds.end(&mut |_| delivered += 1);
        assert_eq!(delivered, 2_000);
    }
}
