//! pprof profiles, as Go, gperftools, Parca and many others write them, gzipped or not.
//!
//! Of several values, the one that counts CPU time is used, or else the default, or else the last,
//! as in pprof itself. Threads come from the customary labels.

pub(crate) mod proto;

use std::io::Read;

use hashbrown::HashMap;
use prost::Message as _;

use crate::model::{
    CPU_UNKNOWN, Format, FrameId, Meta, Mode, Profile, Rate, Sample, StackId, WeightUnit,
};

/// A profile of this size is held twice while it is decoded.
const BYTES_MAX: u64 = 512 << 20;
/// Frames of one stack at most.
const DEPTH_MAX: usize = 8192;

/// Whether these are the first bytes of a pprof profile: its first field is a value type, a message
/// of two small numbers.
pub(super) fn is_pprof(prefix: &[u8]) -> bool {
    let [0x0a, len, 0x08, ..] = *prefix else { return false };
    (2..=24).contains(&len)
        && prefix
            .get(2..2 + usize::from(len))
            .is_some_and(|body| proto::ValueType::decode(body).is_ok())
}

/// Reads a profile that is not compressed or already decompressed.
pub(super) fn read(source: &mut impl Read) -> Result<Profile, String> {
    let mut bytes = Vec::new();
    let mut notes = Vec::new();
    if let Err(error) = source.take(BYTES_MAX + 1).read_to_end(&mut bytes) {
        notes.push(format!("reading stopped: {error}"));
    }
    if bytes.len() as u64 > BYTES_MAX {
        return Err(format!("the profile is over {} MiB", BYTES_MAX >> 20));
    }
    let decoded = decode(&bytes, &mut notes)?;
    let mut profile = convert(&decoded);
    for note in notes {
        profile.meta.note(note);
    }
    profile.finish();
    Ok(profile)
}

/// Decodes a profile; of a truncated one, its whole fields.
fn decode(bytes: &[u8], notes: &mut Vec<String>) -> Result<proto::Profile, String> {
    let error = match proto::Profile::decode(bytes) {
        Ok(profile) => return Ok(profile),
        Err(error) => error,
    };
    let whole = whole_fields(bytes);
    let profile = proto::Profile::decode(&bytes[..whole])
        .ok()
        .filter(|profile| !profile.sample.is_empty())
        .ok_or_else(|| format!("the content is not a pprof profile: {error}"))?;
    notes.push(format!(
        "the profile ends in the middle: {whole} of {} bytes are used, names may be missing",
        bytes.len()
    ));
    Ok(profile)
}

/// The number of bytes in whole top-level fields.
fn whole_fields(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    loop {
        let done = bytes.len() - rest.len();
        let Ok((tag, wire)) = prost::encoding::decode_key(&mut rest) else { return done };
        let context = prost::encoding::DecodeContext::default();
        if prost::encoding::skip_field(wire, tag, &mut rest, context).is_err() {
            return done;
        }
    }
}

struct Names<'p> {
    strings: &'p [String],
}

impl<'p> Names<'p> {
    fn get(&self, index: i64) -> &'p str {
        usize::try_from(index).ok().and_then(|at| self.strings.get(at)).map_or("", String::as_str)
    }
}

fn convert(from: &proto::Profile) -> Profile {
    let names = Names { strings: &from.string_table };
    let (value, unit, event) = chosen_value(from, &names);
    let rate = match (&from.period_type, from.period) {
        (Some(kind), period) if period > 0 && names.get(kind.unit) == "nanoseconds" => {
            Rate::Hertz(1e9 / period as f64)
        }
        _ => Rate::Unknown,
    };
    let meta = Meta {
        format: Format::Pprof,
        event: event.to_owned(),
        unit,
        rate,
        began_unix_ns: u64::try_from(from.time_nanos).ok().filter(|ns| *ns > 0),
        duration_ns: u64::try_from(from.duration_nanos).ok().filter(|ns| *ns > 0),
        ..Meta::default()
    };
    let mut profile = Profile::new(meta);
    let frames = locations(from, &names, &mut profile);
    let mut negative = 0u64;
    for sample in &from.sample {
        let weight = sample.value.get(value).copied().unwrap_or(0);
        let Ok(weight) = u64::try_from(weight) else {
            negative += 1;
            continue;
        };
        let mut stack = StackId::EMPTY;
        for id in sample.location_id.iter().rev().take(DEPTH_MAX) {
            for frame in frames.get(id).into_iter().flatten() {
                stack = profile.push_frame(stack, *frame);
            }
        }
        let thread = thread(sample, &names, &mut profile);
        let time_ns = number(sample, &names, "timestamp_ns").unwrap_or(0);
        let count = sample
            .value
            .first()
            .filter(|_| value != 0)
            .and_then(|count| u32::try_from(*count).ok())
            .unwrap_or(1);
        let cpu = number(sample, &names, "cpu").and_then(|cpu| u32::try_from(cpu).ok());
        let cpu = cpu.unwrap_or(CPU_UNKNOWN);
        profile.push(Sample { time_ns, weight, thread, cpu, stack, count });
    }
    if negative > 0 {
        profile.meta.note(format!(
            "{negative} samples are negative (a difference of two profiles?) and were left out"
        ));
    }
    profile
}

/// The index of the value to use, its unit and its name.
fn chosen_value<'p>(from: &proto::Profile, names: &Names<'p>) -> (usize, WeightUnit, &'p str) {
    let kinds: Vec<(&str, &str)> = from
        .sample_type
        .iter()
        .map(|kind| (names.get(kind.r#type), names.get(kind.unit)))
        .collect();
    let default = names.get(from.default_sample_type);
    let at = kinds
        .iter()
        .position(|(kind, unit)| *unit == "nanoseconds" && ["cpu", "cpu-clock"].contains(kind))
        .or_else(|| kinds.iter().position(|(kind, _)| !default.is_empty() && *kind == default))
        .unwrap_or(kinds.len().saturating_sub(1));
    let (kind, unit) = kinds.get(at).copied().unwrap_or(("samples", "count"));
    let unit = match (kind, unit) {
        (_, "nanoseconds") => WeightUnit::Nanoseconds,
        ("cycles", _) => WeightUnit::Cycles,
        ("samples", _) => WeightUnit::Samples,
        _ => WeightUnit::Events,
    };
    (at, unit, kind)
}

/// The frames of each location, outermost first.
fn locations(
    from: &proto::Profile,
    names: &Names<'_>,
    profile: &mut Profile,
) -> HashMap<u64, Vec<FrameId>> {
    let modules: HashMap<u64, &str> =
        from.mapping.iter().map(|mapping| (mapping.id, names.get(mapping.filename))).collect();
    let functions: HashMap<u64, &str> =
        from.function.iter().map(|function| (function.id, names.get(function.name))).collect();
    let mut frames = HashMap::new();
    for location in &from.location {
        let module = modules.get(&location.mapping_id).copied().unwrap_or_default();
        let mode = mode(module);
        let module = profile.intern(module);
        let mut of: Vec<FrameId> = Vec::new();
        for line in location.line.iter().rev().take(DEPTH_MAX) {
            let name = functions.get(&line.function_id).copied().unwrap_or_default();
            let symbol = profile.intern(name);
            of.push(profile.add_frame(symbol, module, mode, location.address));
        }
        if of.is_empty() {
            let symbol = profile.intern("");
            of.push(profile.add_frame(symbol, module, mode, location.address));
        }
        frames.insert(location.id, of);
    }
    frames
}

fn mode(module: &str) -> Mode {
    if module.is_empty() {
        Mode::Unknown
    } else if module.starts_with('[') && !["[unknown]", "[vdso]"].contains(&module) {
        Mode::Kernel
    } else {
        Mode::User
    }
}

fn thread(sample: &proto::Sample, names: &Names<'_>, profile: &mut Profile) -> crate::ThreadId {
    let text = |keys: &[&str]| {
        sample
            .label
            .iter()
            .find(|label| keys.contains(&names.get(label.key)))
            .map(|label| names.get(label.str))
    };
    let name = text(&["thread", "thread_name", "thread name", "comm"]).unwrap_or_default();
    let id = |key| {
        number(sample, names, key).and_then(|number| i32::try_from(number).ok()).unwrap_or(-1)
    };
    profile.add_thread(id("pid"), id("tid"), name)
}

fn number(sample: &proto::Sample, names: &Names<'_>, key: &str) -> Option<u64> {
    let label = sample.label.iter().find(|label| names.get(label.key) == key)?;
    match names.get(label.str).parse() {
        Ok(number) => Some(number),
        Err(_) => u64::try_from(label.num).ok(),
    }
}
