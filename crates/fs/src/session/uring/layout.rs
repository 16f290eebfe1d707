//! How many rings and buffers a machine gets.
//!
//! The kernel has a queue for each processor that is possible, puts a request into that of the
//! processor it was made on, and uses none of them before each has a slot to put it into. A slot
//! holds one request until it is answered, with a buffer as large as the largest request. So the
//! slots are what bounds both the memory and how many requests may wait for the origin at the same
//! time; they are shared out so that the buffers are [`BUFFERS_BYTES`] together where that is
//! possible. Memory is taken when a buffer is first used, by as much as it is used.

use std::collections::BTreeSet;
use std::io;

/// What all buffers may take.
const BUFFERS_BYTES: u64 = 64 << 20;
/// Slots of a queue whose processor runs.
const SLOTS_MIN: u64 = 4;
const SLOTS_MAX: u64 = 16;
/// Largest request, and the largest on a machine with many processors.
const PAYLOAD_BYTES: u32 = 1 << 20;
const PAYLOAD_SMALL_BYTES: u32 = 256 << 10;
const MANY_PROCESSORS: u64 = 16;
/// Rings, each with a thread of its own, at most.
const RINGS_MAX: usize = 16;

/// Rings of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rings: Vec<RingLayout>,
    /// Size of a payload buffer, and so the largest request that may be negotiated.
    pub(super) payload_bytes: u32,
}

/// What one ring serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RingLayout {
    /// The queue of each slot. A queue has the number of its processor.
    pub(super) slots: Vec<u16>,
    /// Running processors whose queues it serves, and where its thread belongs.
    pub(super) processors: Vec<usize>,
}

impl Layout {
    /// For this machine.
    ///
    /// # Errors
    /// If the system does not say what processors it has.
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
        let running = online.iter().filter(|number| **number < possible).count().max(1);
        let payload_bytes =
            if running as u64 > MANY_PROCESSORS { PAYLOAD_SMALL_BYTES } else { PAYLOAD_BYTES };
        let slots = BUFFERS_BYTES / (running as u64 * u64::from(payload_bytes));
        let slots = slots.clamp(SLOTS_MIN, SLOTS_MAX) as usize;
        let mut rings = vec![RingLayout::default(); running.min(RINGS_MAX).min(possible)];
        let count = rings.len();
        for number in 0..possible {
            let ring = rings.get_mut(number % count.max(1))?;
            let queue = u16::try_from(number).ok()?;
            if online.contains(&number) {
                ring.slots.extend(std::iter::repeat_n(queue, slots));
                ring.processors.push(number);
            } else {
                // Nothing comes from a processor that does not run, but the kernel wants a slot.
                ring.slots.push(queue);
            }
        }
        Some(Self { rings, payload_bytes })
    }

    /// What all buffers together may come to take.
    pub(super) fn buffers_bytes(&self) -> u64 {
        let slots: usize = self.rings.iter().map(|ring| ring.slots.len()).sum();
        slots as u64 * u64::from(self.payload_bytes)
    }
}

/// A list of processors as the kernel writes it: `0-3,8`. `None` if it is none.
fn processors(text: &str) -> Option<BTreeSet<usize>> {
    /// As many as `CONFIG_NR_CPUS` has ever allowed.
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
    fn two_processors_have_sixteen_slots_each() {
        let layout = Layout::new(2, &(0..2).collect()).unwrap();
        assert_eq!(layout.rings.len(), 2);
        assert_eq!(layout.rings[1], RingLayout { slots: vec![1; 16], processors: vec![1] });
        assert_eq!((layout.payload_bytes, layout.buffers_bytes()), (1 << 20, 32 << 20));
    }

    #[test]
    fn processors_that_do_not_run_get_one_slot() {
        let layout = Layout::new(8, &(0..2).collect()).unwrap();
        let slots: usize = layout.rings.iter().map(|ring| ring.slots.len()).sum();
        assert_eq!((layout.rings.len(), slots), (2, 2 * 16 + 6));
    }

    proptest! {
        #[test]
        fn every_queue_has_a_slot(possible in 1usize..1024, online in 1usize..1024) {
            let online = (0..online.min(possible)).collect();
            let layout = Layout::new(possible, &online).unwrap();
            let queues: BTreeSet<u16> =
                layout.rings.iter().flat_map(|ring| ring.slots.iter().copied()).collect();
            prop_assert_eq!(queues.len(), possible);
            prop_assert!(layout.rings.len() <= RINGS_MAX);
            prop_assert!(layout.rings.iter().all(|ring| !ring.slots.is_empty()));
            if possible <= 64 {
                let idle = (possible - online.len()) as u64 * u64::from(layout.payload_bytes);
                prop_assert!(layout.buffers_bytes() <= BUFFERS_BYTES + idle);
            }
        }

        #[test]
        fn any_text_is_a_list_or_none(text in ".{0,40}") {
            let _ = processors(&text);
        }
    }
}
