//! JSON for the Firefox Profiler (<https://profiler.firefox.com>), by `fxprof-processed-profile`:
//! one track for each thread, with separate colours for kernel and user.

use std::io::{self, Write};
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameHandle, FrameInfo,
    Profile as Firefox, ReferenceTimestamp, SamplingInterval, StackHandle, ThreadHandle, Timestamp,
};
use hashbrown::HashMap;

use super::html::Page;
use crate::model::{FrameId, Mode, Profile, Rate, StackId, WeightUnit};

/// Colours by mode.
struct Categories {
    kernel: CategoryHandle,
    user: CategoryHandle,
    other: CategoryHandle,
}

/// The frames and stacks of one thread, which have numbers of their own.
struct Track<'p> {
    profile: &'p Profile,
    thread: ThreadHandle,
    frames: HashMap<FrameId, FrameHandle>,
    stacks: HashMap<StackId, StackHandle>,
}

/// Writes the file.
pub(super) fn write(out: &mut dyn Write, page: &Page<'_>) -> io::Result<()> {
    let profile = page.view.profile();
    let interval = match profile.meta.rate {
        Rate::Hertz(hertz) if hertz > 0.0 => SamplingInterval::from_hz(hertz as f32),
        _ => SamplingInterval::from_millis(1),
    };
    let epoch = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::ZERO);
    let mut made = Firefox::new(page.title, epoch, interval);
    made.set_os_name("Linux");
    made.set_symbolicated(true);
    let categories = Categories {
        kernel: made.add_category("Kernel", CategoryColor::Orange),
        user: made.add_category("User", CategoryColor::Green),
        other: made.add_category("Other", CategoryColor::Gray),
    };
    let first_ns = profile.meta.first_time_ns.unwrap_or(0);
    let start = Timestamp::from_nanos_since_reference(0);
    let mut by_thread: Vec<Vec<_>> = vec![Vec::new(); profile.threads().len()];
    for sample in page.view.samples() {
        by_thread[sample.thread.index()].push(sample);
    }
    let mut processes = HashMap::new();
    for (thread, mut samples) in profile.threads().zip(by_thread) {
        if samples.is_empty() {
            continue;
        }
        samples.sort_by_key(|sample| sample.time_ns);
        let number = |id: i32| u32::try_from(id).unwrap_or(0);
        let process = *processes
            .entry(thread.pid)
            .or_insert_with(|| made.add_process(thread.name, number(thread.pid), start));
        let handle = made.add_thread(process, number(thread.tid), start, thread.pid == thread.tid);
        made.set_thread_name(handle, thread.name);
        let mut track =
            Track { profile, thread: handle, frames: HashMap::new(), stacks: HashMap::new() };
        for (order, sample) in samples.iter().enumerate() {
            let stack = track.stack(&mut made, &categories, sample.stack);
            // Samples without times follow one another.
            let after_ns = match sample.time_ns.checked_sub(first_ns) {
                Some(after_ns) if profile.meta.has_times => after_ns,
                _ => order as u64 * interval.nanos(),
            };
            let time = Timestamp::from_nanos_since_reference(after_ns);
            let (delta, weight) = match profile.meta.unit {
                WeightUnit::Nanoseconds => (sample.weight, u64::from(sample.count)),
                WeightUnit::Samples => (0, sample.weight),
                WeightUnit::Cycles | WeightUnit::Events => (0, u64::from(sample.count)),
            };
            let weight = i32::try_from(weight).unwrap_or(i32::MAX);
            made.add_sample(handle, time, stack, CpuDelta::from_nanos(delta), weight);
        }
    }
    serde_json::to_writer(io::BufWriter::new(out), &made)?;
    Ok(())
}

impl Track<'_> {
    /// The stack in this track's numbers. It goes down to a known stack and then up again without
    /// recursion, because stacks can be deep.
    fn stack(
        &mut self,
        made: &mut Firefox,
        categories: &Categories,
        stack: StackId,
    ) -> Option<StackHandle> {
        let mut missing = Vec::new();
        let mut at = stack;
        let mut known = None;
        while let Some((frame, caller)) = self.profile.split_stack(at) {
            if let Some(handle) = self.stacks.get(&at) {
                known = Some(*handle);
                break;
            }
            missing.push((at, frame));
            at = caller;
        }
        for (stack, frame) in missing.into_iter().rev() {
            let frame = self.frame(made, categories, frame);
            let handle = made.intern_stack(self.thread, known, frame);
            self.stacks.insert(stack, handle);
            known = Some(handle);
        }
        known
    }

    fn frame(
        &mut self,
        made: &mut Firefox,
        categories: &Categories,
        frame: FrameId,
    ) -> FrameHandle {
        if let Some(handle) = self.frames.get(&frame) {
            return *handle;
        }
        let shown = self.profile.frame(frame);
        let text = match shown.module_name() {
            "[unknown]" => shown.name().into_owned(),
            _ if shown.symbol.is_empty() => shown.name().into_owned(),
            module => format!("{} ({module})", shown.symbol),
        };
        let category = match shown.mode {
            Mode::Kernel => categories.kernel,
            Mode::User => categories.user,
            Mode::Unknown => categories.other,
        };
        let label = Frame::Label(made.intern_string(&text));
        let info =
            FrameInfo { frame: label, category_pair: category.into(), flags: FrameFlags::empty() };
        let handle = made.intern_frame(self.thread, info);
        self.frames.insert(frame, handle);
        handle
    }
}
