//! Adds profiles that `ogive-profile` reads to the evidence.

use std::collections::HashMap;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use ogive_profile::read::{self, Options};
use ogive_profile::{Format, Mode, Profile, StackId, WeightUnit};

use super::{Loaded, unpack};
use crate::evidence::{self, Evidence, Input, Source, Stack, Statement};
use crate::read::frame;
use crate::read::host::mount_process::clear_name;

/// Distinct stacks at most; the heaviest stay.
const MAX_STACKS: usize = 200_000;

/// Bytes at the beginning of a file that show whether it is a recording.
pub(super) const PREFIX_BYTES: u64 = 64 << 10;

/// Reads an input if it is a profile of samples. `None` if it is not one, or if it is text that
/// other readers read better.
pub(super) fn read(
    name: &str,
    bytes: &[u8],
    kallsyms: Option<&[u8]>,
) -> Option<Result<Profile, String>> {
    let beginning = after_description(bytes);
    let format = read::recognise(&beginning[..beginning.len().min(4096)])?;
    // Folded stacks from elsewhere often have no weights; those of a capture do.
    if format == Format::Folded && !name.ends_with("profile.folded") {
        return None;
    }
    match read::bytes(name, bytes, &options(kallsyms)) {
        Ok(profile) => Some(Ok(profile)),
        // A paste may begin like perf script and continue as something else.
        Err(_) if format == Format::PerfScript => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

/// The text after the description that `perf script --header` prints first. The description may be
/// longer than the part that is examined.
fn after_description(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while rest.starts_with(b"# ") || rest.starts_with(b"#\n") {
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        rest = &rest[end..];
    }
    rest
}

/// Whether a file is a recording of perf, compressed or not. Only its beginning is read.
pub(super) fn is_recording(file: &mut std::fs::File) -> io::Result<bool> {
    let mut prefix = Vec::new();
    file.by_ref().take(PREFIX_BYTES).read_to_end(&mut prefix)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(begins_recording(&prefix))
}

/// Whether these first bytes, compressed or not, begin a recording of perf.
pub(super) fn begins_recording(prefix: &[u8]) -> bool {
    let prefix = unpack::beginning(prefix.to_vec());
    matches!(read::recognise(&prefix), Some(Format::PerfData | Format::PerfPipe))
}

/// Whether these bytes are a pprof profile.
pub(super) fn is_pprof(bytes: &[u8]) -> bool {
    read::recognise(&bytes[..bytes.len().min(4096)]) == Some(Format::Pprof)
}

/// Reads a recording from a pipe, in one pass.
pub(super) fn pipe(name: &str, source: impl io::Read) -> Result<Profile, String> {
    read::stream(name, source, &Options::default(), &mut |_| {}).map_err(|error| error.to_string())
}

/// Reads a recording in one pass. It holds one window of records, the functions and the stacks, at
/// any length of the recording.
pub(super) fn stream(
    path: &Path,
    kallsyms: Option<&[u8]>,
    progress: &mut dyn FnMut(u64),
) -> Result<Profile, String> {
    read::open(path, &options(kallsyms), progress).map_err(|error| error.to_string())
}

fn options(kallsyms: Option<&[u8]>) -> Options {
    let mut options = Options::default();
    options.symbols.kallsyms = kallsyms.map(<[u8]>::to_vec);
    options
}

/// Adds a profile to the loaded facts.
pub(super) fn add(loaded: &mut Loaded, name: &str, profile: Profile) {
    add_profile(&mut loaded.evidence, name, &profile);
    if loaded.profile.as_ref().is_none_or(|known| known.meta.samples < profile.meta.samples) {
        loaded.profile = Some(profile);
    }
}

/// Adds a profile to evidence under a name.
pub fn add_profile(evidence: &mut Evidence, name: &str, profile: &Profile) {
    let input: Arc<str> = Arc::from(name);
    let converted = evidence_of(&input, profile, &programs(evidence));
    let statement =
        |value: &str| Statement { value: value.to_owned(), source: Source::whole(&input) };
    let host = &mut evidence.host;
    if let Some(release) = &profile.meta.os_release {
        host.kernel.get_or_insert_with(|| statement(release));
        host.os.get_or_insert_with(|| statement("linux"));
    }
    if let Some(value) = profile.meta.cpus_online {
        host.cpus.get_or_insert_with(|| Statement { value, source: Source::whole(&input) });
    }
    let trouble = (!profile.meta.notes.is_empty()).then(|| profile.meta.notes.join("; "));
    let format = match profile.meta.format {
        Format::PerfScript => "perf script",
        Format::Pprof => "pprof",
        _ => "perf.data",
    };
    evidence.inputs.push(Input {
        name: input,
        formats: vec![format.to_owned()],
        facts: converted.stacks.len(),
        trouble,
        ..Input::default()
    });
    evidence.profiles.push(converted);
}

/// Names of programs by process number: the names of first threads in a list of threads. A first
/// thread itself may have no sample.
fn programs(evidence: &Evidence) -> HashMap<i32, String> {
    // Later readings come after earlier ones and replace them.
    let tasks = evidence.tasks.iter().map(|task| (task.process(), task.id, &task.name));
    let listed = evidence.threads.iter().filter(|thread| thread.process.is_some());
    let listed = listed.filter_map(|one| Some((one.process?, one.id?, &one.name)));
    let first = listed.chain(tasks).filter(|(process, id, _)| process == id);
    let called = |id, name: &String| clear_name(evidence, id, name).unwrap_or(name.clone());
    first.filter_map(|(_, id, name)| Some((i32::try_from(id).ok()?, called(id, name)))).collect()
}

/// A profile as evidence. Threads belong to the program that `programs` has for their process, or
/// else to the process whose first thread was sampled.
fn evidence_of(
    input: &Arc<str>,
    profile: &Profile,
    programs: &HashMap<i32, String>,
) -> evidence::Profile {
    // If the recording has no numbers, all threads have the same one, which is not a process.
    let mut processes: HashMap<i32, &str> = profile
        .threads()
        .filter(|thread| thread.pid == thread.tid && thread.pid > 0)
        .map(|thread| (thread.pid, thread.name))
        .collect();
    processes.extend(
        programs.iter().filter(|(pid, _)| **pid > 0).map(|(pid, name)| (*pid, name.as_str())),
    );
    let mut weights: HashMap<(Option<&str>, &str, StackId), u64> = HashMap::new();
    for sample in profile.samples() {
        let thread = profile.thread(sample.thread);
        let process = processes.get(&thread.pid).copied().filter(|name| *name != thread.name);
        *weights.entry((process, thread.name, sample.stack)).or_default() += sample.weight;
    }
    let mut heaviest: Vec<_> = weights.into_iter().collect();
    heaviest.sort_by_key(|((process, thread, _), weight)| {
        (std::cmp::Reverse(*weight), *thread, *process)
    });
    heaviest.truncate(MAX_STACKS);
    let source = Source::whole(input);
    #[expect(clippy::cast_precision_loss, reason = "weights are compared, not counted")]
    let stacks = heaviest
        .into_iter()
        .map(|((process, thread, stack), weight)| Stack {
            thread: (!thread.is_empty()).then(|| thread.to_owned()),
            process: process.map(str::to_owned),
            frames: frames_of(profile, stack),
            weight: weight as f64,
            source: source.clone(),
        })
        .collect();
    let off_cpu = profile.meta.is_of_waiting();
    let weighted = profile.meta.unit != WeightUnit::Events || !off_cpu;
    evidence::Profile {
        stacks,
        rows: Vec::new(),
        samples: Some(profile.meta.samples),
        weighted,
        off_cpu,
    }
}

/// The frames of a stack. A sample without a stack still counts for its thread.
fn frames_of(profile: &Profile, stack: StackId) -> Vec<evidence::Frame> {
    if stack == StackId::EMPTY {
        return vec![evidence::Frame::default()];
    }
    profile.stack(stack).map(|frame| frame_of(profile, frame)).collect()
}

fn frame_of(profile: &Profile, id: ogive_profile::FrameId) -> evidence::Frame {
    let found = profile.frame(id);
    evidence::Frame {
        symbol: frame::symbol_name(found.symbol),
        module: frame::module(found.module_name()),
        kernel: match found.mode {
            Mode::Kernel => Some(true),
            Mode::User => Some(false),
            Mode::Unknown => None,
        },
    }
}
