//! pprof's gzipped protocol buffer. Values are the number of samples and the weight, and threads
//! are labels. Every location has a mapping, because some readers fail without one.

use std::io::{self, Write};

use hashbrown::HashMap;
use prost::Message as _;

use super::html::unit_name;
use crate::model::{CPU_UNKNOWN, Rate, View, WeightUnit};
use crate::read::pprof::proto;

#[derive(Default)]
struct Table {
    strings: Vec<String>,
    index: HashMap<String, i64>,
}

impl Table {
    fn get(&mut self, text: &str) -> i64 {
        if let Some(known) = self.index.get(text) {
            return *known;
        }
        let number = self.strings.len() as i64;
        self.strings.push(text.to_owned());
        self.index.insert(text.to_owned(), number);
        number
    }
}

/// Writes the profile.
pub(super) fn write(out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    let message = message(view);
    let mut gzip = flate2::write::GzEncoder::new(out, flate2::Compression::default());
    gzip.write_all(&message.encode_to_vec())?;
    gzip.finish()?;
    Ok(())
}

fn message(view: &View<'_>) -> proto::Profile {
    let profile = view.profile();
    let meta = &profile.meta;
    let mut table = Table::default();
    table.get("");
    let samples_type = proto::ValueType { r#type: table.get("samples"), unit: table.get("count") };
    let (kind, unit) = match meta.unit {
        WeightUnit::Nanoseconds => ("cpu", "nanoseconds"),
        WeightUnit::Samples => ("weight", "count"),
        other => (unit_name(other), "count"),
    };
    let weight_type = proto::ValueType { r#type: table.get(kind), unit: table.get(unit) };
    let mut modules: HashMap<String, u64> = HashMap::new();
    let mut out = proto::Profile {
        sample_type: vec![samples_type, weight_type],
        default_sample_type: table.get(kind),
        ..proto::Profile::default()
    };
    for (id, frame) in profile.frames() {
        let number = id.index() as u64 + 1;
        let module = if frame.module.is_empty() { "[unknown]" } else { frame.module };
        let next = modules.len() as u64 + 1;
        let mapping_id = *modules.entry_ref(module).or_insert(next);
        if mapping_id == next {
            let filename = table.get(module);
            let mapping =
                proto::Mapping { id: next, filename, has_functions: true, ..Default::default() };
            out.mapping.push(mapping);
        }
        let name = table.get(&frame.name());
        let filename = table.get(module);
        out.function.push(proto::Function { id: number, name, system_name: name, filename });
        out.location.push(proto::Location {
            id: number,
            mapping_id,
            address: frame.address,
            line: vec![proto::Line { function_id: number, line: 0 }],
        });
    }
    out.sample = samples(view, &mut table);
    if let (Rate::Hertz(hertz), true) = (meta.rate, meta.unit == WeightUnit::Nanoseconds)
        && hertz > 0.0
    {
        out.period_type = Some(weight_type);
        out.period = (1e9 / hertz) as i64;
    }
    // Profile stores file a profile under this time.
    out.time_nanos = meta.began_unix_ns.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(0);
    out.duration_nanos = meta.duration_ns.and_then(|ns| i64::try_from(ns).ok()).unwrap_or(0);
    for note in &meta.notes {
        let comment = table.get(note);
        out.comment.push(comment);
    }
    out.string_table = table.strings;
    out
}

/// One sample per thread, CPU and stack. Times are dropped, because pprof's readers do not use
/// them.
fn samples(view: &View<'_>, table: &mut Table) -> Vec<proto::Sample> {
    let profile = view.profile();
    let mut merged: HashMap<(u32, u32, u32), (u64, u64)> = HashMap::new();
    for sample in view.samples() {
        let key = (sample.thread.index() as u32, sample.cpu, sample.stack.index() as u32);
        let (count, weight) = merged.entry(key).or_default();
        *count += u64::from(sample.count);
        *weight = weight.saturating_add(sample.weight);
    }
    let mut merged: Vec<_> = merged.into_iter().collect();
    merged.sort_unstable();
    let keys = ["thread", "pid", "tid", "cpu"].map(|key| table.get(key));
    let value = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    merged
        .into_iter()
        .map(|((thread, cpu, stack), (count, weight))| {
            let thread = profile.thread(crate::ThreadId(thread));
            let number = |key, num| proto::Label { key, str: 0, num };
            let str = table.get(thread.name);
            let mut label = vec![proto::Label { key: keys[0], str, num: 0 }];
            if thread.tid >= 0 {
                label.push(number(keys[1], i64::from(thread.pid)));
                label.push(number(keys[2], i64::from(thread.tid)));
            }
            if cpu != CPU_UNKNOWN {
                label.push(number(keys[3], i64::from(cpu)));
            }
            let stack = profile.stack(crate::StackId(stack));
            proto::Sample {
                location_id: stack.map(|frame| frame.index() as u64 + 1).collect(),
                value: vec![value(count), value(weight)],
                label,
            }
        })
        .collect()
}
