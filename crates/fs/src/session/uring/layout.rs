//! How many rings a mount starts with, and for which queues.
//!
//! The kernel has a queue for each possible processor, and puts a request into the queue of the
//! processor that made it. It uses no queue until each queue has a slot. A slot holds one request
//! until it is answered, with a buffer as large as the largest request.
//!
//! The queue of a running processor gets a ring with one slot. It gets more when all of its threads
//! wait for the origin ([`super::queue_threads`]). So the number of buffers is the largest number
//! of requests that ever waited at once. A buffer takes memory only as far as it is used. The
//! queues of all other processors share one ring.

use std::collections::BTreeSet;
use std::io;

/// Largest request, and the largest on a machine with many processors.
const PAYLOAD_BYTES: u32 = 1 << 20;
const PAYLOAD_SMALL_BYTES: u32 = 256 << 10;
const MANY_PROCESSORS: usize = 16;

/// The rings that a mount starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rings: Vec<RingLayout>,
    /// Size of a payload buffer, and so the largest request that may be negotiated.
    pub(super) payload_bytes: u32,
}

/// The queues of one ring, with a slot for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RingLayout {
    /// A queue has the number of its processor.
    pub(super) queues: Vec<u16>,
    /// Its processor runs, so threads may be added.
    pub(super) has_queue_threads: bool,
}

impl Layout {
    /// For this machine.
    ///
    /// # Errors
    /// If the system does not list its processors.
    pub(super) fn of_this_machine() -> io::Result<Self> {
        let read = |name: &str| {
            let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/{name}"))?;
            processors(&text).ok_or_else(|| {
                io::Error::other(format!("/sys/devices/system/cpu/{name} is no list: {text:?}"))
            })
        };
        Self::new(read("possible")?.len(), &read("online")?)
            .ok_or_else(|| io::Error::other("there is no processor, or there are too many"))
    }

    fn new(possible: usize, online: &BTreeSet<usize>) -> Option<Self> {
        let mut rings = Vec::new();
        // No request comes from a processor that does not run, but the kernel needs a slot for it.
        let mut idle = RingLayout { queues: Vec::new(), has_queue_threads: false };
        for number in 0..possible {
            let queue = u16::try_from(number).ok()?;
            if online.contains(&number) {
                rings.push(RingLayout { queues: vec![queue], has_queue_threads: true });
            } else {
                idle.queues.push(queue);
            }
        }
        let many = rings.len() > MANY_PROCESSORS;
        let payload_bytes = if many { PAYLOAD_SMALL_BYTES } else { PAYLOAD_BYTES };
        if !idle.queues.is_empty() {
            rings.push(idle);
        }
        (!rings.is_empty()).then_some(Self { rings, payload_bytes })
    }
}

/// A list of processors as the kernel writes it: `0-3,8`. `None` for other text.
fn processors(text: &str) -> Option<BTreeSet<usize>> {
    /// The most that `CONFIG_NR_CPUS` has ever allowed.
    const PROCESSORS_MAX: usize = 8192;
    let mut numbers = BTreeSet::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= PROCESSORS_MAX {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::seeded;
    use proptest::prelude::*;

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(processors("0-1\n").unwrap().len(), 2);
        assert_eq!(processors("0,2-4,9\n").unwrap(), BTreeSet::from([0, 2, 3, 4, 9]));
        for wrong in ["", "a", "1-", "3-1", "0-999999", "-1", "0,,1"] {
            assert!(processors(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn each_processor_that_runs_has_a_ring_and_the_others_share_one() {
        let layout = Layout::new(8, &(0..2).collect()).unwrap();
        let ring = |queues, has_queue_threads| RingLayout { queues, has_queue_threads };
        let idle = ring((2..8).collect(), false);
        assert_eq!(layout.rings, [ring(vec![0], true), ring(vec![1], true), idle]);
        assert_eq!(layout.payload_bytes, 1 << 20);
        assert_eq!(Layout::new(2, &(0..2).collect()).unwrap().rings.len(), 2);
        assert_eq!(Layout::new(0, &BTreeSet::new()), None);
    }

    proptest! {
        #![proptest_config(seeded())]

        #[test]
        fn every_queue_has_exactly_one_slot(possible in 1usize..1024,
            online in proptest::collection::btree_set(0usize..1024, 0..64)) {
            let layout = Layout::new(possible, &online).unwrap();
            let mut queues: Vec<u16> =
                layout.rings.iter().flat_map(|ring| ring.queues.iter().copied()).collect();
            queues.sort_unstable();
            prop_assert_eq!(queues, (0..possible as u16).collect::<Vec<_>>());
            let shared = layout.rings.iter().filter(|ring| !ring.has_queue_threads).count();
            prop_assert!(shared <= 1);
            prop_assert!(layout.rings.iter().all(|ring| !ring.has_queue_threads || ring.queues.len() == 1));
        }
    }
}
