//! Sorts records by time within bounded memory.
//!
//! Recorders write the buffers of CPUs in turn and mark rounds. A record after a round is not older
//! than the records of the round before (Linux `tools/perf/util/ordered-events.c`). Without marks,
//! half of the waiting records are delivered whenever they exceed [`WAITING_BYTES_MAX`].

/// Bytes of waiting records at most.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// Waiting records at most.
const WAITING_MAX: usize = 1 << 20;

/// A waiting record.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    time_ns: u64,
    start: usize,
    len: u32,
    kind: u32,
    misc: u16,
    event: u16,
}

/// A record that is delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'b> {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// The index of its event.
    pub(crate) event: u16,
    pub(crate) body: &'b [u8],
}

/// Holds records until no older one can arrive.
#[derive(Debug, Default)]
pub(crate) struct TimeOrder {
    bytes: Vec<u8>,
    spare: Vec<u8>,
    waiting: Vec<Waiting>,
    /// The latest time in the previous round.
    before_ns: u64,
    /// The latest time so far.
    latest_ns: u64,
}

impl TimeOrder {
    /// Adds a record. One without a time is delivered at once.
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
        // A record's size has 16 bits.
        let len = record.body.len() as u32;
        let Record { kind, misc, event, .. } = record;
        self.waiting.push(Waiting { time_ns, start, len, kind, misc, event });
        if self.bytes.len() > WAITING_BYTES_MAX || self.waiting.len() > WAITING_MAX {
            self.deliver_half(deliver);
        }
    }

    /// Ends a round.
    pub(crate) fn end_round(&mut self, deliver: &mut impl FnMut(Record<'_>)) {
        self.deliver_until(self.before_ns, deliver);
        self.before_ns = self.latest_ns;
    }

    /// Delivers all records at the end.
    pub(crate) fn end(&mut self, deliver: &mut impl FnMut(Record<'_>)) {
        self.deliver_until(u64::MAX, deliver);
    }

    fn deliver_half(&mut self, deliver: &mut impl FnMut(Record<'_>)) {
        let mut times: Vec<u64> = self.waiting.iter().map(|waiting| waiting.time_ns).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.deliver_until(median, deliver);
    }

    fn deliver_until(&mut self, time_ns: u64, deliver: &mut impl FnMut(Record<'_>)) {
        // The sort is stable: records of the same time keep the order in which they were written.
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

    fn feed(rounds: &mut TimeOrder, times: &[u64], delivered: &mut Vec<u8>) {
        for time in times {
            let body = [*time as u8];
            let record = Record { kind: 9, misc: 0, event: 0, body: &body };
            rounds.add(record, Some(*time), &mut |record| delivered.push(record.body[0]));
        }
    }

    #[test]
    fn records_come_in_order_of_time() {
        let (mut rounds, mut delivered) = (TimeOrder::default(), Vec::new());
        for round in [&[1u64, 2, 3, 2, 3, 4][..], &[3, 5, 7, 4, 5, 6], &[6, 8, 7, 9]] {
            feed(&mut rounds, round, &mut delivered);
            rounds.end_round(&mut |record| delivered.push(record.body[0]));
        }
        rounds.end(&mut |record| delivered.push(record.body[0]));
        assert_eq!(delivered, [1, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9]);
    }

    #[test]
    fn without_marks_the_waiting_records_are_bounded() {
        let mut rounds = TimeOrder::default();
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
