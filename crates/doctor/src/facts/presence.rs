//! Stacks without weights, asked the questions that are meant for profiles.
//!
//! A stack of `/proc/PID/stack`, a trace of the kernel's log and folded stacks of weight one show
//! where somebody was, not how much of the CPU that took. While presence is asked for, a share is
//! either "all" (some stack has it) or not known: presence can be proven this way, absence cannot.

use super::locks::matches;
use super::selector::Selector;
use super::{Facts, Known, absent, is_spin_symbol};
use crate::evidence::{Frame, KernelStack, Source};

/// How many functions or threads are named as found.
const MAX_NAMES: usize = 4;

/// A share that is there and whose size is not known.
const THERE: f64 = 100.0;

/// What is looked for on a stack.
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
    /// Asks for presence from now on, or for shares again; gives the functions found since.
    pub fn ask_for_presence(&self, on: bool) -> Vec<String> {
        let mut presence = self.presence.lock();
        let found = std::mem::take(&mut presence.1);
        presence.0 = on;
        found
    }

    /// Whether presence is asked for now.
    pub(super) fn asks_for_presence(&self) -> bool {
        self.presence.lock().0
    }

    /// Notes what was found.
    pub(super) fn is_present(&self, name: String) {
        let mut presence = self.presence.lock();
        if presence.1.len() < MAX_NAMES && !presence.1.contains(&name) {
            presence.1.push(name);
        }
    }

    /// The answer while presence is asked for; `None` while shares are.
    pub(super) fn presence_of(&self, sought: Sought<'_>) -> Option<Known<f64>> {
        if !self.asks_for_presence() {
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
                self.is_present(name);
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
    let at = |wanted: &Selector, frames: &[Frame]| {
        frames.iter().position(|frame| matches(frame, wanted))
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
