//! Reads the text of `perf script`. A sample is a head line with thread, CPU and time and below it
//! the stack, leaf first, or it is a single line. Other lines, such as fields of tracepoints or
//! lines that a mail program added, are counted and left out, and a note shows the first.
//!
//! Samples that other readers lose are kept: those without a stack, those of exiting threads, whose
//! number is -1, and those with few fields. The sum of weights stays the same.

mod frame;
mod head;
mod line;
mod shape;

use std::collections::BTreeMap;
use std::io::BufRead;

use super::Lines;
use crate::model::{
    Format, Meta, Mode, Profile, Rate, Reason, Sample, StackId, StringId, Unresolved, WeightUnit,
    event_base, samples_of_event,
};
pub use frame::Frame;
pub use head::Head;
pub use line::{Line, Script};

/// Frames of one stack at most; deeper ones lose their roots.
const DEPTH_MAX: usize = 4096;
/// Lines between two reports of progress.
const PROGRESS_LINES: u64 = 200_000;
/// Events counted by name; all further ones are counted together.
const EVENTS_MAX: usize = 50;
/// Characters shown of a line that was not recognised.
const SHOWN_CHARACTERS: usize = 80;

/// Whether this is the beginning of such a text. A text with neither times nor CPUs is only
/// recognised if `bare` is allowed, because much else looks like it.
pub(super) fn is_perf_script(text: &str, bare: bool) -> bool {
    Script::of(text, bare).is_some()
}

/// Reads the text that has this beginning.
pub(super) fn read(
    beginning: &str,
    source: impl BufRead,
    progress: &mut dyn FnMut(u64),
) -> Profile {
    let meta = Meta { format: Format::PerfScript, ..Meta::default() };
    let script = Script::of(beginning, true).unwrap_or_default();
    let mut reader = Reader { profile: Profile::new(meta), script, ..Reader::default() };
    let mut lines = Lines::new(source);
    let mut bytes = 0;
    while let Some(line) = lines.next() {
        bytes += line.len() as u64 + 1;
        reader.line(&line);
        if lines.number.is_multiple_of(PROGRESS_LINES) {
            progress(std::mem::take(&mut bytes));
        }
    }
    progress(bytes);
    reader.end_sample();
    let mut profile = reader.finish();
    if let Some(error) = &lines.error {
        let number = lines.number;
        profile.meta.note(format!("reading stopped after line {number}: {error}"));
    }
    if lines.cut > 0 {
        profile.meta.note(format!(
            "{} cut to 1 MiB",
            ogive_text::counted(lines.cut, "line was", "lines were")
        ));
    }
    profile
}

#[derive(Debug, Default)]
struct Open {
    name: String,
    pid: i32,
    tid: i32,
    cpu: u32,
    time_ns: u64,
    weight: u64,
}

#[derive(Default)]
struct Reader {
    profile: Profile,
    script: Script,
    open: Option<Open>,
    /// Frames of the open sample, leaf first: symbol, module, mode, address.
    frames: Vec<(StringId, Option<StringId>, Mode, u64)>,
    /// The event that is shown, without its modifiers.
    event: Option<String>,
    /// The samples of that event, by its name with modifiers.
    shown: BTreeMap<String, u64>,
    left_out: BTreeMap<String, u64>,
    lines: u64,
    not_understood: u64,
    /// The first line that was not recognised.
    first_not_understood: Option<(u64, String)>,
    unnamed: BTreeMap<(String, bool), (u64, u64)>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        self.lines += 1;
        match self.script.line(line) {
            Line::Head(head) => {
                self.end_sample();
                self.begin(&head);
            }
            Line::Frame(frame) if self.open.is_some() => self.frame(&frame),
            Line::End => self.end_sample(),
            Line::Comment => self.comment(line),
            Line::Lost(lost) => {
                self.end_sample();
                let meta = &mut self.profile.meta;
                meta.lost_samples = meta.lost_samples.saturating_add(lost);
            }
            Line::Record => self.end_sample(),
            // A frame of a sample that was left out, or the source line of a frame.
            Line::Frame(_) | Line::Source => {}
            Line::Other => {
                self.not_understood += 1;
                self.first_not_understood.get_or_insert_with(|| {
                    (self.lines, line.trim().chars().take(SHOWN_CHARACTERS).collect())
                });
            }
        }
    }

    /// `perf script --header` prints the description of the recording first.
    fn comment(&mut self, line: &str) {
        let Some((key, value)) = line.trim_start_matches('#').split_once(':') else { return };
        let value = value.trim().to_owned();
        let meta = &mut self.profile.meta;
        match key.trim() {
            "hostname" => meta.host = Some(value),
            "os release" => meta.os_release = Some(value),
            "arch" => meta.arch = Some(value),
            "cmdline" => meta.command = Some(value),
            "nrcpus online" => meta.cpus_online = value.parse().ok(),
            "event" if meta.rate == Rate::Unknown => {
                let frequency = value.split("sample_freq } = ").nth(1);
                let digits = frequency.and_then(|text| text.split(',').next());
                if let Some(hertz) = digits.and_then(|text| text.trim().parse().ok())
                    && value.contains("freq = 1")
                {
                    meta.rate = Rate::Hertz(hertz);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, head: &Head<'_>) {
        let base = event_base(head.event);
        let event = match &self.event {
            Some(event) => event,
            None => {
                let meta = &mut self.profile.meta;
                base.clone_into(&mut meta.event);
                meta.unit = match head.period {
                    None => WeightUnit::Samples,
                    Some(_) if base == "cpu-clock" || base == "task-clock" => {
                        WeightUnit::Nanoseconds
                    }
                    Some(_) if base.contains("cycles") => WeightUnit::Cycles,
                    Some(_) => WeightUnit::Events,
                };
                self.event.insert(base.to_owned())
            }
        };
        let is_shown = event == base;
        let counts = if is_shown { &mut self.shown } else { &mut self.left_out };
        if counts.len() < EVENTS_MAX || counts.contains_key(head.event) {
            *counts.entry(head.event.to_owned()).or_default() += 1;
        } else {
            *counts.entry("further ones".to_owned()).or_default() += 1;
        }
        if !is_shown {
            return;
        }
        let name = match (head.name, head.tid) {
            ("", tid) => format!(":{tid}"),
            (name, _) => name.to_owned(),
        };
        self.open = Some(Open {
            name,
            pid: head.pid,
            tid: head.tid,
            cpu: head.cpu,
            time_ns: head.time_ns,
            weight: head.period.unwrap_or(1),
        });
        if let Some(frame) = head.frame() {
            self.frame(&frame);
        }
    }

    fn frame(&mut self, frame: &Frame<'_>) {
        if self.frames.len() >= DEPTH_MAX {
            return;
        }
        let symbol = self.profile.intern(frame.symbol);
        let kernel = frame.is_kernel();
        let mode = if kernel { Mode::Kernel } else { Mode::User };
        let module = match frame.module {
            "inlined" => None,
            module if kernel => {
                let name = crate::assemble::kernel_module_name(module);
                Some(self.profile.intern(&name))
            }
            module => Some(self.profile.intern(module)),
        };
        if frame.symbol.is_empty() {
            let weight = match (&self.open, self.frames.is_empty()) {
                (Some(open), true) if open.tid != 0 => open.weight,
                _ => 0,
            };
            let key =
                (module.map_or(String::new(), |id| self.profile.string(id).to_owned()), kernel);
            if self.unnamed.len() < 10_000 || self.unnamed.contains_key(&key) {
                let (addresses, total) = self.unnamed.entry(key).or_default();
                *addresses += 1;
                *total = total.saturating_add(weight);
            }
        }
        self.frames.push((symbol, module, mode, frame.address));
    }

    fn end_sample(&mut self) {
        let Some(open) = self.open.take() else { return };
        let mut stack = StackId::EMPTY;
        let mut outer = self.profile.intern("[unknown]");
        for (symbol, module, mode, address) in self.frames.drain(..).rev() {
            // An inlined function belongs to its caller's module.
            let module = module.unwrap_or(outer);
            outer = module;
            let address = if mode == Mode::Kernel { address } else { 0 };
            let frame = self.profile.add_frame(symbol, module, mode, address);
            stack = self.profile.push_frame(stack, frame);
        }
        let thread = self.profile.add_thread(open.pid, open.tid, &open.name);
        let Open { cpu, time_ns, weight, .. } = open;
        self.profile.push(Sample { time_ns, weight, thread, cpu, stack, count: 1 });
    }

    fn finish(mut self) -> Profile {
        self.note_events();
        if let Some((number, text)) = &self.first_not_understood {
            let (verb, lines) = match self.not_understood {
                1 => ("was", "line"),
                _ => ("were", "lines"),
            };
            self.profile.meta.note(format!(
                "{} {lines} {verb} not understood; the first is line {number}: {text:?}",
                self.not_understood
            ));
        }
        let mut unresolved: Vec<Unresolved> = self
            .unnamed
            .into_iter()
            .map(|((module, kernel), (addresses, self_weight))| Unresolved {
                module,
                kernel,
                addresses,
                self_weight,
                reason: Reason::UnnamedInSource,
            })
            .collect();
        unresolved.sort_by_key(|entry| std::cmp::Reverse(entry.self_weight));
        self.profile.meta.unresolved = unresolved;
        self.profile.finish();
        self.profile
    }

    /// Notes which events are shown together and which are left out, each with its share.
    fn note_events(&mut self) {
        let meta = &mut self.profile.meta;
        let all: u64 = self.shown.values().chain(self.left_out.values()).sum();
        let share = |(event, samples): (&String, &u64)| samples_of_event(*samples, all, event);
        if self.shown.len() > 1 {
            let parts: Vec<String> = self.shown.iter().map(share).collect();
            meta.note(format!("these events measure the same and are one: {}", parts.join(", ")));
        }
        for counted in &self.left_out {
            let shown = &meta.event;
            let note = format!("left out: {}; those of {shown} are shown", share(counted));
            meta.note(note);
        }
    }
}

#[cfg(test)]
mod tests;
