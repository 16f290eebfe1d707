//! Tools whose output people paste a few lines at a time: `zdb -m`, macOS `sample`.

use super::text::clean::Line;
use super::text::frame;
use super::text::number;
use super::text::reading::Reading;
use super::text::section::Section;
use crate::evidence::{Frame, Profile, Stack};
use crate::pattern::Pattern;

/// Whether a line is only a number, as `zfs list | wc -l` prints it under the prompt.
pub(crate) fn is_count(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && text.len() < 12 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads the number under a command that counts.
pub(crate) fn read_count(command: &str, line: &Line<'_>, reading: &mut Reading<'_>) {
    let mut table = reading.table("counted").scope(command.to_owned());
    table.gauge("lines", number::plain(&line.text), line);
    reading.push(table);
}

static METASLAB: Pattern =
    Pattern::new(r"^metaslab\s+(\d+)\s+offset\s+(\S+)\s+spacemap\s+(\S+)\s+free\s+(\S+)$");

/// Whether a line is a metaslab of `zdb -m`.
pub(crate) fn is_metaslab(text: &str) -> bool {
    METASLAB.is_match(text.trim())
}

/// Reads `zdb -m`. All metaslabs of a vdev have one size, the distance between two. The free share
/// of each is also recorded.
pub(crate) fn read_zdb(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut free = Vec::new();
    let mut last = None;
    for line in section.lines {
        let Some(found) = METASLAB.captures(line.text.trim()) else {
            reading.leave(line);
            continue;
        };
        let mut table = reading.table("zdb_metaslabs").scope(&found[1]);
        let hex = |text: &str| number::integer(&format!("0x{text}")).map(|value| value as f64);
        table.gauge("offset_bytes", hex(&found[2]), line);
        table.gauge(
            "spacemap",
            number::plain(&found[3]).or_else(|| number::count(&found[3])),
            line,
        );
        table.gauge("free_bytes", number::bytes(&found[4]), line);
        table.text("offset", &found[2], line);
        reading.push(table);
        let (offset, bytes) = (hex(&found[2]), number::bytes(&found[4]));
        let here = offset.zip(number::plain(&found[1]));
        if let (Some((offset_before, id_before)), Some((offset, id)), Some(bytes)) =
            (last, here, bytes)
            && offset > offset_before
            && id > id_before
        {
            let size = (offset - offset_before) / (id - id_before);
            free.push((100.0 * bytes / size, line));
        }
        last = here;
    }
    free.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((percent, line)) = free.get(free.len() / 2) {
        let mut table = reading.table("zdb");
        table.gauge("metaslab_free_percent_median", Some(*percent), line);
        reading.push(table);
    }
}

static SAMPLE_FRAME: Pattern =
    Pattern::new(r"^([\s+!:|]*)(\d+)\s+(.+?)\s+\(in ([^)]+)\)(?:\s+\+\s+\S+)?(?:\s+\[.*\])?$");
static SAMPLE_THREAD: Pattern = Pattern::new(r"^\s*(\d+)\s+(Thread_\w+)(?:\s+(.*))?$");

/// Reads macOS `sample` and `spindump`: a tree of counts, root first.
pub(crate) fn read_sample(section: &Section<'_>, reading: &mut Reading<'_>) {
    let mut path: Vec<(usize, f64, Frame, u32)> = Vec::new();
    let mut stacks: Vec<Stack> = Vec::new();
    let mut thread: Option<String> = None;
    // Samples of the current thread, and the position of its first stack.
    let (mut of_thread, mut first) = (0.0, 0);
    let mut waiting = Vec::new();
    for line in section.lines {
        if line.text.trim().is_empty() || line.text.trim() == "Call graph:" {
            continue;
        }
        if let Some(found) = SAMPLE_THREAD.captures(&line.text) {
            unwind(&mut path, 0, &thread, &mut stacks, reading);
            remove_waiting(&mut stacks, first, of_thread, &mut waiting);
            (of_thread, first) = (number::plain(&found[1]).unwrap_or(0.0), stacks.len());
            thread = Some(found.get(3).map_or(&found[2], |rest| rest.as_str()).trim().to_owned());
            continue;
        }
        let Some(found) = SAMPLE_FRAME.captures(&line.text) else {
            reading.leave(line);
            continue;
        };
        let (depth, count) = (found[1].len(), number::plain(&found[2]).unwrap_or(0.0));
        if !is_callee(&path, depth, count) {
            unwind(&mut path, depth, &thread, &mut stacks, reading);
        }
        if let Some(parent) = path.last_mut() {
            // A caller's own samples exclude those of its callees.
            parent.1 -= count;
        }
        if path.len() < 512 {
            path.push((depth, count, frame::frame(&found[3], Some(&found[4])), line.number));
        }
    }
    unwind(&mut path, 0, &thread, &mut stacks, reading);
    remove_waiting(&mut stacks, first, of_thread, &mut waiting);
    for (stacks, off_cpu) in [(stacks, false), (waiting, true)] {
        if !stacks.is_empty() {
            let samples = stacks.iter().map(|stack| stack.weight).sum::<f64>() as u64;
            let samples = Some(samples);
            let profile =
                Profile { stacks, samples, weighted: true, off_cpu, ..Profile::default() };
            reading.evidence.profiles.push(profile);
        }
    }
}

/// Whether the last frame called a frame of the same depth: their common caller has too few samples
/// left for both. Pasted text loses the indentation at the end of long chains.
fn is_callee(path: &[(usize, f64, Frame, u32)], depth: usize, count: f64) -> bool {
    let caller = path.iter().rfind(|(at, ..)| *at < depth);
    path.last().is_some_and(|(at, ..)| *at == depth)
        && caller.is_some_and(|(_, left, ..)| *left < count)
}

/// This many samples at one instruction are not chance.
const STILL_SAMPLES: f64 = 100.0;
/// From this share of its samples at one instruction, a thread was waiting.
const STILL_PART: f64 = 0.95;

/// Removes the stack of a thread that stayed at one instruction. `sample` samples threads by the
/// clock even if they do not run, and a running thread does not stay.
fn remove_waiting(stacks: &mut Vec<Stack>, first: usize, of_thread: f64, waiting: &mut Vec<Stack>) {
    let stands =
        |stack: &Stack| stack.weight >= STILL_SAMPLES && stack.weight >= STILL_PART * of_thread;
    if let Some(at) = stacks[first..].iter().position(stands) {
        waiting.push(stacks.remove(first + at));
    }
}

/// Closes the frames at `depth` and deeper; those with samples of their own become stacks.
fn unwind(
    path: &mut Vec<(usize, f64, Frame, u32)>,
    depth: usize,
    thread: &Option<String>,
    stacks: &mut Vec<Stack>,
    reading: &Reading<'_>,
) {
    while path.last().is_some_and(|(at, ..)| *at >= depth) {
        let own = path.last().map_or(0.0, |(_, own, ..)| *own);
        if own > 0.0 && stacks.len() < 100_000 {
            let frames = path.iter().rev().map(|(_, _, frame, _)| frame.clone()).collect();
            let line = path.last().map_or(0, |(.., line)| *line);
            // The thread that runs main() is named after its program, not its queue.
            let main = path.iter().find(|(_, _, frame, _)| frame.symbol.as_deref() == Some("main"));
            let program = main.and_then(|(_, _, frame, _)| frame.module.clone());
            stacks.push(Stack {
                thread: program.or_else(|| thread.clone()),
                process: None,
                frames,
                weight: own,
                source: reading.at_number(line),
            });
        }
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use crate::evidence::Evidence;
    use crate::read::{finish, read_bytes};

    #[test]
    fn a_thread_that_stays_at_one_instruction_waits_and_is_not_busy() {
        let text = "\
Call graph:
    2775 Thread_1   DispatchQueue_1: com.apple.main-thread  (serial)
    + 2775 start  (in libdyld.dylib) + 1  [0x7fff66663015]
    +   2775 main  (in zfs) + 2008  [0x1084464ef]
    +     2775 namespace_reload  (in libzfs.2.dylib) + 129  [0x108811cdf]
    +     2775 zfs_ioctl  (in libzfs.2.dylib) + 55  [0x108838cd5]
    2775 Thread_2
    + 2775 thread_start  (in libsystem_pthread.dylib) + 13  [0x7fff]
    +   1800 vdev_raidz_math  (in zfs.kext) + 40  [0x7ff1]
    +   975 vdev_raidz_math  (in zfs.kext) + 48  [0x7ff2]
";
        let mut evidence = Evidence::default();
        read_bytes(&mut evidence, "sample.txt", text.as_bytes());
        finish(&mut evidence);
        let leaves = |off_cpu: bool| -> Vec<(Option<String>, f64)> {
            let profiles = evidence.profiles.iter().filter(|profile| profile.off_cpu == off_cpu);
            let stacks = profiles.flat_map(|profile| &profile.stacks);
            stacks.map(|stack| (stack.frames[0].symbol.clone(), stack.weight)).collect()
        };
        let raidz = Some("vdev_raidz_math".to_owned());
        assert_eq!(leaves(false), [(raidz.clone(), 1800.0), (raidz, 975.0)]);
        assert_eq!(leaves(true), [(Some("zfs_ioctl".to_owned()), 2775.0)]);
    }
}
