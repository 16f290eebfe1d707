//! The answer to a question without a measurement: stacks without weights, or unread lines.
//!
//! A stack of `/proc/PID/stack`, a trace in the kernel's log and a folded stack of weight one show
//! where a thread was. They do not show how much CPU it used. With [`Fallback::Presence`] a share
//! is therefore either all (a stack has the function) or unknown. A stack proves that a function is
//! there; it never proves that a function is absent.

use super::locks::matches;
use super::selector::Selector;
use super::{Facts, Known, absent, is_spin_symbol};
use crate::evidence::{Frame, KernelStack, Source};

/// The most functions or threads that are named as found.
const MAX_NAMES: usize = 4;

/// A share of unknown size that is not zero.
const THERE: f64 = 100.0;

/// The source of an answer where nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// None: without a measurement the answer is unknown.
    #[default]
    Nothing,
    /// Stacks without weights, and CPU over the life of a thread.
    Presence,
    /// Lines that no format claims.
    UnreadLines,
}

/// The function to look for on a stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sought<'a> {
    /// The leaf.
    Leaf(&'a Selector),
    /// Any frame.
    Anywhere(&'a Selector),
    /// The second below the first.
    Below(&'a Selector, &'a Selector),
    /// A spin for a lock below a caller.
    SpinBelow(&'a Selector),
}

impl Facts {
    /// Sets the source of answers without a measurement. Returns the functions and threads that the
    /// last setting found.
    pub fn fall_back_to(&self, fallback: Fallback) -> Vec<String> {
        let (_, found) = std::mem::replace(&mut *self.fallback.lock(), (fallback, Vec::new()));
        found
    }

    /// Whether this is the source of answers without a measurement now.
    pub(super) fn falls_back_to(&self, fallback: Fallback) -> bool {
        self.fallback.lock().0 == fallback
    }

    /// Notes a function or thread that was found.
    pub(super) fn found(&self, name: String) {
        let mut fallback = self.fallback.lock();
        if fallback.1.len() < MAX_NAMES && !fallback.1.contains(&name) {
            fallback.1.push(name);
        }
    }

    /// The answer by presence; `None` where presence is not allowed now.
    pub(super) fn presence_of(&self, sought: Sought<'_>) -> Option<Known<f64>> {
        if !self.falls_back_to(Fallback::Presence) {
            return None;
        }
        let evidence = self.evidence();
        let weightless = evidence.profiles.iter().filter(|profile| !profile.weighted);
        let weightless = weightless
            .flat_map(|profile| &profile.stacks)
            .map(|stack| (&stack.frames, &stack.source));
        let seen = evidence.kernel_stacks.iter().map(of);
        let mut found = false;
        for (frames, source) in seen.chain(weightless) {
            if let Some(name) = hit(frames, sought) {
                found = true;
                self.used(source);
                self.found(name);
            }
        }
        Some(if found { Ok(THERE) } else { absent("a stack with such a function") })
    }
}

fn of(stack: &KernelStack) -> (&Vec<Frame>, &Source) {
    (&stack.frames, &stack.source)
}

/// The function that was found.
fn hit(frames: &[Frame], sought: Sought<'_>) -> Option<String> {
    let at = |selector: &Selector, frames: &[Frame]| {
        frames.iter().position(|frame| matches(frame, selector))
    };
    let found = match sought {
        Sought::Anywhere(pattern) => at(pattern, frames),
        Sought::Leaf(pattern) => at(pattern, frames.get(..1)?),
        Sought::Below(caller, inner) => {
            at(inner, frames).filter(|place| at(caller, &frames[place + 1..]).is_some())
        }
        Sought::SpinBelow(caller) => frames
            .iter()
            .position(|frame| frame.symbol.as_deref().is_some_and(is_spin_symbol))
            .filter(|place| at(caller, &frames[place + 1..]).is_some()),
    };
    found.and_then(|place| frames[place].symbol.clone())
}
