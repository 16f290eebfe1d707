//! The events of a recording, and the choice of the event to show: the first, in the recorder's
//! order, that has samples.
//!
//! It is not known in advance which events will have samples. The first one with a sample is shown,
//! and is replaced when an earlier one gets a sample. Events that measure the same on different
//! kinds of cores, or in different modes (`:u` and `:k`), are one event. Each sample is either
//! shown or counted as left out.

use linux_perf_event_reader::{AttrFlags, Endianness, RecordParseInfo, SampleFormat};

use super::Map;
use crate::model::{Meta, Rate, WeightUnit, event_base, samples_of, samples_of_event};
use crate::read::perf_data::Attribute;

/// The description of an event.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) parse: RecordParseInfo,
    /// `PERF_FORMAT_*`.
    pub(super) read_format: u64,
    /// Whether new threads inherit the event and may have counts of their own.
    pub(super) inherit: bool,
    /// A sample's weight if the sample does not give it.
    pub(super) weight: u64,
    unit: WeightUnit,
    rate: Rate,
    pub(super) name: String,
    /// Whether it only carries records about tasks.
    dummy: bool,
    exclude_user: bool,
    exclude_kernel: bool,
    /// `PERF_TYPE_*` and `PERF_COUNT_*`.
    kind: (u32, u64),
    shown: u64,
    left_out: u64,
}

/// The treatment of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    /// It is shown.
    Shown,
    /// It is shown, and all samples shown before are dropped.
    Instead,
    /// It is counted as left out.
    LeftOut,
}

/// All events of a recording.
#[derive(Debug, Default)]
pub(super) struct Events {
    events: Vec<Event>,
    by_id: Map<u64, u16>,
    /// The event that is shown.
    chosen: Option<usize>,
    /// Samples of an event that the recording does not describe.
    unknown: u64,
}

impl Events {
    pub(super) fn get(&self, index: u16) -> Option<&Event> {
        self.events.get(usize::from(index))
    }

    /// Adds an event, which gets the next number. The first event that can sample describes the
    /// profile until another one has samples.
    pub(super) fn add(&mut self, attribute: &Attribute, endian: Endianness, meta: &mut Meta) {
        let event = Event::new(attribute, endian);
        if !event.dummy && self.events.iter().all(|event| event.dummy) {
            event.describe(meta);
        }
        if let Ok(index) = u16::try_from(self.events.len()) {
            self.by_id.extend(attribute.ids.iter().map(|id| (*id, index)));
            self.events.push(event);
        }
    }

    /// Gives an event a name that arrived later.
    pub(super) fn rename(&mut self, index: usize, name: &str, meta: &mut Meta) {
        let first = self.events.iter().position(|event| !event.dummy);
        if let Some(event) = self.events.get_mut(index) {
            name.clone_into(&mut event.name);
            if self.chosen.or(first) == Some(index) {
                event.describe(meta);
            }
        }
    }

    /// The event with this number in the kernel.
    pub(super) fn by_id(&self, id: u64) -> Option<u16> {
        self.by_id.get(&id).copied()
    }

    /// Counts a sample of an event that the recording does not describe.
    pub(super) fn add_unknown(&mut self) {
        self.unknown += 1;
    }

    /// Counts a sample of an event and chooses its treatment.
    pub(super) fn choose(&mut self, index: u16, meta: &mut Meta) -> Choice {
        let index = usize::from(index);
        let Some(event) = self.events.get(index) else { return Choice::LeftOut };
        let choice = match self.chosen {
            _ if event.dummy => Choice::LeftOut,
            Some(chosen) if chosen == index => Choice::Shown,
            Some(chosen) if event.measures_the_same(&self.events[chosen]) => Choice::Shown,
            Some(chosen) if chosen < index => Choice::LeftOut,
            Some(_) => Choice::Instead,
            None => {
                event.describe(meta);
                self.chosen = Some(index);
                Choice::Shown
            }
        };
        if choice == Choice::Instead {
            event.describe(meta);
            self.chosen = Some(index);
            for event in &mut self.events {
                event.left_out += std::mem::take(&mut event.shown);
            }
        }
        let event = &mut self.events[index];
        match choice {
            Choice::LeftOut => event.left_out += 1,
            Choice::Shown | Choice::Instead => event.shown += 1,
        }
        choice
    }

    /// Notes which events are shown together and which are left out, each with its share.
    pub(super) fn note(&self, meta: &mut Meta) {
        let counted = self.events.iter().map(|event| event.shown + event.left_out);
        let all = counted.sum::<u64>() + self.unknown;
        let shown: Vec<&Event> = self.events.iter().filter(|event| event.shown > 0).collect();
        if shown.len() > 1 {
            let parts: Vec<String> =
                shown.iter().map(|event| samples_of_event(event.shown, all, &event.name)).collect();
            meta.event = event_base(&shown[0].name).to_owned();
            meta.note(format!("these events measure the same and are one: {}", parts.join(", ")));
        }
        for event in self.events.iter().filter(|event| event.left_out > 0) {
            meta.note(format!(
                "left out: {}; those of {} are shown",
                samples_of_event(event.left_out, all, &event.name),
                meta.event
            ));
        }
        if self.unknown > 0 {
            meta.note(format!(
                "left out: {} of events that the recording does not describe",
                samples_of(self.unknown, all)
            ));
        }
    }
}

impl Event {
    fn new(attribute: &Attribute, endian: Endianness) -> Self {
        // PERF_TYPE_HARDWARE is 0 and PERF_TYPE_SOFTWARE is 1. Software event 9 is the dummy. The
        // upper half of a hardware event's config is the kind of core.
        let config = match attribute.kind {
            0 => attribute.config & u64::from(u32::MAX),
            _ => attribute.config,
        };
        let (known, unit) = match (attribute.kind, config) {
            (0, 0) => ("cycles", WeightUnit::Cycles),
            (1, 0) => ("cpu-clock", WeightUnit::Nanoseconds),
            (1, 1) => ("task-clock", WeightUnit::Nanoseconds),
            (1, 9) => ("dummy", WeightUnit::Events),
            _ => ("", WeightUnit::Events),
        };
        let name = match &attribute.name {
            Some(name) if !name.is_empty() => name.clone(),
            _ if known.is_empty() => {
                format!("type {} config {config:#x}", attribute.kind)
            }
            _ => known.to_owned(),
        };
        let cycles = unit == WeightUnit::Events && name.contains("cycles");
        let unit = if cycles { WeightUnit::Cycles } else { unit };
        let rate = match (attribute.period, attribute.frequency) {
            (0, _) => Rate::Unknown,
            (hertz, true) => Rate::Hertz(hertz as f64),
            (ns, false) if unit == WeightUnit::Nanoseconds => Rate::Hertz(1e9 / ns as f64),
            (period, false) => Rate::Period(period),
        };
        let weight = match (attribute.frequency, rate, unit) {
            (false, ..) => attribute.period.max(1),
            (true, Rate::Hertz(hertz), WeightUnit::Nanoseconds) => (1e9 / hertz).round() as u64,
            _ => 1,
        };
        let has = |flag| attribute.attr.flags.contains(flag);
        let parse = RecordParseInfo::new(&attribute.attr, endian);
        Self {
            read_format: attribute.read_format,
            inherit: has(AttrFlags::INHERIT) && parse.sample_format.contains(SampleFormat::TID),
            weight,
            unit,
            rate,
            dummy: (attribute.kind, attribute.config) == (1, 9),
            exclude_user: has(AttrFlags::EXCLUDE_USER),
            exclude_kernel: has(AttrFlags::EXCLUDE_KERNEL),
            kind: (attribute.kind, attribute.config),
            shown: 0,
            left_out: 0,
            parse,
            name,
        }
    }

    fn describe(&self, meta: &mut Meta) {
        meta.event.clone_from(&self.name);
        meta.unit = self.unit;
        meta.rate = self.rate;
    }

    /// Whether the other event counts the same where this one cannot: on another kind of core or in
    /// the other mode.
    fn measures_the_same(&self, other: &Self) -> bool {
        if event_base(&self.name) != event_base(&other.name) {
            return false;
        }
        let apart = |a: &Self, b: &Self| a.exclude_kernel && b.exclude_user;
        self.unit_of_cores() != other.unit_of_cores() || apart(self, other) || apart(other, self)
    }

    /// The unit of the processor that counts. `PERF_TYPE_HARDWARE` and `PERF_TYPE_HW_CACHE` have it
    /// in the upper half of their config, the unit's own events in their type.
    fn unit_of_cores(&self) -> u64 {
        match self.kind {
            (0 | 3, config) => config >> 32,
            (kind, _) => u64::from(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event with this name, kind, config and flags that samples 1,000 times a second.
    fn attribute((name, kind, config, flags): (&str, u32, u64, u64), id: u64) -> Attribute {
        const FREQUENCY: u64 = 1 << 10;
        let mut bytes = Vec::new();
        bytes.extend(kind.to_le_bytes());
        bytes.extend(64u32.to_le_bytes());
        for number in [config, 1000, 0, 0, FREQUENCY | flags, 0, 0] {
            bytes.extend(u64::to_le_bytes(number));
        }
        let mut attribute = Attribute::parse(&bytes, Endianness::LittleEndian).unwrap();
        attribute.name = Some(name.to_owned());
        attribute.ids.push(id);
        attribute
    }

    fn events(of: &[(&str, u32, u64, u64)]) -> (Events, Meta) {
        let (mut events, mut meta) = (Events::default(), Meta::default());
        for (id, event) in (100..).zip(of) {
            events.add(&attribute(*event, id), Endianness::LittleEndian, &mut meta);
        }
        (events, meta)
    }

    const EXCLUDE_USER: u64 = 1 << 4;
    const EXCLUDE_KERNEL: u64 = 1 << 5;

    #[test]
    fn an_earlier_event_replaces_a_later_one_and_each_sample_is_counted() {
        let (mut events, mut meta) = events(&[
            ("dummy:u", 1, 9, 0),
            ("alignment-faults", 1, 7, 0),
            ("cycles", 0, 0, 0),
            ("cpu-clock", 1, 0, 0),
        ]);
        let mut choose = |index| events.choose(index, &mut meta);
        assert_eq!(choose(3), Choice::Shown);
        assert_eq!(choose(3), Choice::Shown);
        assert_eq!(choose(2), Choice::Instead);
        assert_eq!(choose(3), Choice::LeftOut);
        assert_eq!(choose(0), Choice::LeftOut);
        assert_eq!(choose(2), Choice::Shown);
        events.add_unknown();
        events.note(&mut meta);
        assert_eq!((&*meta.event, meta.unit), ("cycles", WeightUnit::Cycles));
        assert_eq!(
            meta.notes,
            [
                "left out: 1 sample (14.3% of all) of the event dummy:u; those of cycles are shown",
                "left out: 3 samples (42.9% of all) of the event cpu-clock; those of cycles are \
                 shown",
                "left out: 1 sample (14.3% of all) of events that the recording does not describe",
            ]
        );
    }

    #[test]
    fn both_kinds_of_cores_and_both_modes_are_one_event() {
        for of in [
            [("cpu_atom/cycles/", 0, 10 << 32, 0), ("cpu_core/cycles/", 0, 4 << 32, 0)],
            [("cpu_atom/event=0x3c/", 10, 0x3c, 0), ("cpu_core/event=0x3c/", 4, 0x3c, 0)],
            [("cycles:u", 0, 0, EXCLUDE_KERNEL), ("cycles:k", 0, 0, EXCLUDE_USER)],
        ] {
            let (mut events, mut meta) = events(&of);
            for index in [1, 0, 1] {
                assert_eq!(events.choose(index, &mut meta), Choice::Shown, "{of:?}");
            }
            events.note(&mut meta);
            assert_eq!(meta.notes.len(), 1, "{:?}", meta.notes);
            assert!(meta.notes[0].starts_with("these events measure the same and are one: "));
        }
        let (mut events, mut meta) =
            events(&[("cycles", 0, 0, 0), ("cycles:u", 0, 0, EXCLUDE_KERNEL)]);
        assert_eq!(events.choose(0, &mut meta), Choice::Shown);
        assert_eq!(events.choose(1, &mut meta), Choice::LeftOut, "it counts the same again");
        assert_eq!(events.by_id(101), Some(1));
    }
}
