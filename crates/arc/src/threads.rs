//! Small numbers for threads. Each running thread has its own. The numbers of threads that have
//! ended are given out again, so tables that are kept by number stay small.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, OnceLock, PoisonError};

struct Numbers {
    free: BinaryHeap<Reverse<usize>>,
    next: usize,
}

/// Number 0 is left for threads that have to share.
static NUMBERS: Mutex<Numbers> = Mutex::new(Numbers { free: BinaryHeap::new(), next: 1 });

/// Gives the number back when the thread ends.
struct Own(usize);

impl Drop for Own {
    fn drop(&mut self) {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.free.push(Reverse(self.0));
        // Destructors that run later in this thread use a number that may be shared.
        let _ = NUMBER.try_with(|number| number.set(SHARED));
    }
}

const NONE: usize = usize::MAX;

/// The number of threads that are ending. They share it, and it is greater than any other.
pub(crate) const SHARED: usize = usize::MAX - 1;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    static OWN: Own = {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let number = numbers.free.pop().map_or(numbers.next, |Reverse(number)| number);
        numbers.next = numbers.next.max(number + 1);
        Own(number)
    };
}

/// The number of this thread.
#[inline]
pub(crate) fn number() -> usize {
    let number = NUMBER.get();
    if number == NONE { assign() } else { number }
}

/// The number of this thread. A number greater than any other if the thread has none yet, or has to
/// share one. Callers compare it with a limit, so they need no other check.
#[inline]
pub(crate) fn number_if_any() -> usize {
    NUMBER.get()
}

#[cold]
fn assign() -> usize {
    let number = OWN.try_with(|own| own.0).unwrap_or(SHARED);
    NUMBER.set(number);
    number
}

/// How many rings a sublist has at most.
pub(crate) const RINGS_MAX: usize = 64;

/// How many rings a sublist has by default: at least one for each processor, rounded up to a power
/// of two. More threads than processors never run at once, so more would not help.
pub(crate) fn rings() -> usize {
    static RINGS: OnceLock<usize> = OnceLock::new();
    *RINGS.get_or_init(|| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.next_power_of_two().clamp(2, RINGS_MAX)
    })
}
