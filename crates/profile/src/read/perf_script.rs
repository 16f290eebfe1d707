//! The text of `perf script`: a line that says who, where and when, and below it the stack, leaf
//! first. Lines that are neither (source lines, tracepoint fields, what a mail program added) are
//! counted and left out.
//!
//! Samples that other readers lose are kept: those without a stack, and those of threads that were
//! exiting, whose number is -1. The sum of weights that goes in comes out.

use std::io::BufRead;

use super::Lines;
use crate::model::{
    CPU_UNKNOWN, Format, Meta, Mode, Profile, Rate, Reason, Sample, StackId, StringId, Unresolved,
    WeightUnit,
};

/// Frames of one stack at most; deeper ones lose their roots.
const DEPTH_MAX: usize = 4096;
/// Bytes between two reports of progress.
const PROGRESS_LINES: u64 = 200_000;

/// What the first line of a sample says.
#[derive(Debug, PartialEq)]
struct Head<'t> {
    name: &'t str,
    pid: i32,
    tid: i32,
    cpu: u32,
    time_ns: u64,
    period: Option<u64>,
    event: &'t str,
    /// What follows the event: a frame, when there is no call graph.
    rest: &'t str,
}

/// Whether this is the beginning of such a text.
pub(super) fn is_perf_script(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).take(400).peekable();
    while let Some(line) = lines.next() {
        if let Some(head) = Head::parse(line) {
            let next = lines.peek().copied().unwrap_or_default();
            if !head.event.is_empty() || frame(next).is_some() {
                return true;
            }
        }
    }
    false
}

/// Reads the text.
pub(super) fn read(source: impl BufRead, progress: &mut dyn FnMut(u64)) -> Profile {
    let meta = Meta { format: Format::PerfScript, ..Meta::default() };
    let mut reader = Reader { profile: Profile::new(meta), ..Reader::default() };
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
        profile.meta.note(format!("{} lines are over 1 MiB and were cut", lines.cut));
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
    open: Option<Open>,
    /// Frames of the open sample, leaf first: symbol, module, mode, address.
    frames: Vec<(StringId, Option<StringId>, Mode, u64)>,
    event: Option<String>,
    other_events: u64,
    ignored: u64,
    unnamed: std::collections::BTreeMap<(String, bool), (u64, u64)>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return self.end_sample();
        }
        if line.starts_with('#') {
            return self.comment(line);
        }
        let indented = line.starts_with([' ', '\t']);
        if self.open.is_some()
            && indented
            && let Some(frame) = frame(line)
        {
            return self.frame(&frame);
        }
        match Head::parse(line) {
            Some(head) => {
                self.end_sample();
                self.begin(&head);
            }
            None => self.ignored += 1,
        }
    }

    /// `perf script --header` puts the description of the recording in front.
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
        if head.event.starts_with("PERF_RECORD_") {
            return;
        }
        match &self.event {
            None => {
                self.event = Some(head.event.to_owned());
                let base = head.event.split(':').next().unwrap_or_default();
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
            }
            Some(event) if event != head.event => {
                self.other_events += 1;
                return;
            }
            Some(_) => {}
        }
        self.open = Some(Open {
            name: head.name.to_owned(),
            pid: head.pid,
            tid: head.tid,
            cpu: head.cpu,
            time_ns: head.time_ns,
            weight: head.period.unwrap_or(1),
        });
        if let Some(frame) = frame(head.rest) {
            self.frame(&frame);
        }
    }

    fn frame(&mut self, frame: &TextFrame<'_>) {
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
            // An inlined function is of its caller's module.
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
        if self.other_events > 0 {
            self.profile.meta.note(format!(
                "{} samples of other events were left out; those of {} are shown",
                self.other_events, self.profile.meta.event
            ));
        }
        if self.ignored > 0 {
            self.profile.meta.note(format!("{} lines were not understood", self.ignored));
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
}

impl<'t> Head<'t> {
    /// `comm  pid/tid [cpu] flags  time:  period event: rest`, of which all after the number may be
    /// missing. Names may hold blanks and numbers.
    fn parse(line: &'t str) -> Option<Self> {
        let tokens = tokens(line);
        for at in 1..tokens.len().min(64) {
            let (start, token) = tokens[at];
            let Some((pid, tid)) = numbers(token) else { continue };
            let name = line[..start].trim();
            let mut next = at + 1;
            let mut cpu = CPU_UNKNOWN;
            if let Some((_, token)) = tokens.get(next)
                && let Some(inner) = token.strip_prefix('[').and_then(|t| t.strip_suffix(']'))
                && let Ok(number) = inner.parse()
            {
                cpu = number;
                next += 1;
            }
            // Flags of -F +flags: one word.
            let time = (next..next + 2).find_map(|at| Some((at, time_ns(tokens.get(at)?.1)?)));
            let Some((time_at, time_ns)) = time else { continue };
            let (period, event, rest) = event(line, &tokens[time_at + 1..])?;
            return Some(Self { name, pid, tid, cpu, time_ns, period, event, rest });
        }
        None
    }
}

/// Period, event and what follows.
fn event<'t>(
    line: &'t str,
    tokens: &[(usize, &'t str)],
) -> Option<(Option<u64>, &'t str, &'t str)> {
    let (first_at, first) = *tokens.first()?;
    let (period, at, word) = match first.parse::<u64>() {
        Ok(period) => {
            let (at, word) = *tokens.get(1)?;
            (Some(period), at, word)
        }
        Err(_) => (None, first_at, first),
    };
    match word.strip_suffix(':') {
        Some(event) => Some((period, event, &line[at + word.len()..])),
        // MMAP and COMM records, with no colon after their name.
        None if word.starts_with("PERF_RECORD_") => Some((period, word, "")),
        None => None,
    }
}

/// Words with their places.
fn tokens(line: &str) -> Vec<(usize, &str)> {
    line.split_ascii_whitespace()
        .map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
        .take(80)
        .collect()
}

fn numbers(token: &str) -> Option<(i32, i32)> {
    match token.split_once('/') {
        Some((pid, tid)) => Some((pid.parse().ok()?, tid.parse().ok()?)),
        None => {
            let tid = token.parse().ok()?;
            Some((tid, tid))
        }
    }
}

/// `986.005328:`; a comma instead of the point is a locale's.
fn time_ns(token: &str) -> Option<u64> {
    let (seconds, fraction) = token.strip_suffix(':')?.split_once(['.', ','])?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let fraction = fraction.parse::<u64>().ok()? * scale;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// A frame as it is written.
#[derive(Debug, PartialEq)]
struct TextFrame<'t> {
    address: u64,
    /// Empty for `[unknown]`.
    symbol: &'t str,
    module: &'t str,
}

impl TextFrame<'_> {
    fn is_kernel(&self) -> bool {
        if self.address >= 1 << 63 {
            return true;
        }
        let brackets = self.module.starts_with('[');
        let user = ["[unknown]", "[vdso]", "[vsyscall]", "[heap]", "[stack]"];
        (brackets && !user.contains(&self.module) && !self.module.starts_with("[anon"))
            || self.module.starts_with("/lib/modules/")
    }
}

/// `ffffffff83c87970 do_user_addr_fault+0xd0 ([kernel.kallsyms])`.
fn frame(line: &str) -> Option<TextFrame<'_>> {
    let line = line.trim();
    let (address, rest) = line.split_once([' ', '\t'])?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let open = [" (/", " (["].iter().filter_map(|mark| rest.rfind(mark)).max();
    let open = open.or_else(|| rest.rfind(" ("));
    let (symbol, module) = match open {
        Some(at) if rest.ends_with(')') => (&rest[..at], &rest[at + 2..rest.len() - 1]),
        _ if rest.starts_with('(') && rest.ends_with(')') => ("", &rest[1..rest.len() - 1]),
        _ => (rest, ""),
    };
    let symbol = match symbol.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|b| b.is_ascii_hexdigit()) => name,
        _ => symbol,
    };
    let symbol = if symbol == "[unknown]" { "" } else { symbol.trim() };
    Some(TextFrame { address, symbol, module: module.strip_suffix(" (deleted)").unwrap_or(module) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_in_all_their_forms() {
        let head = |line| {
            Head::parse(line).map(|h| (h.name, h.pid, h.tid, h.cpu, h.time_ns, h.period, h.event))
        };
        assert_eq!(
            head("cat  5774 [000]   986.005328:   10101010 cpu-clock:ppp: "),
            Some(("cat", 5774, 5774, 0, 986_005_328_000, Some(10_101_010), "cpu-clock:ppp"))
        );
        assert_eq!(
            head("   tmux: server 12 7/8 [011] d..1. 1.5: cycles: "),
            Some(("tmux: server 12", 7, 8, 11, 1_500_000_000, None, "cycles"))
        );
        assert_eq!(
            head(":-1    -1 [001]   910.107090:     250000 cpu-clock: "),
            Some((":-1", -1, -1, 1, 910_107_090_000, Some(250_000), "cpu-clock"))
        );
        assert_eq!(
            head("java 31 12,000001: 1 cycles:u: ffff0 main (/usr/bin/java)").map(|h| h.4),
            Some(12_000_001_000)
        );
        for line in
            ["", "z_rd_int", "[  12.3] dmesg 5 6.5: line", "a;b;c 42", "x 99999999999 [0] 1.0: e:"]
        {
            assert_eq!(head(line), None, "{line}");
        }
    }

    #[test]
    fn frames_are_read_with_blanks_and_parentheses() {
        let parts = |line| frame(line).map(|f| (f.address, f.symbol, f.module));
        assert_eq!(
            parts("\tffffffff83c87970 do_user_addr_fault+0xd0 ([kernel.kallsyms])"),
            Some((0xffff_ffff_83c8_7970, "do_user_addr_fault", "[kernel.kallsyms]"))
        );
        assert_eq!(
            parts(
                "  7f1 std::vector<int (*)(char)>::push(int) const+0x1 (/usr/lib/a b.so (deleted))"
            ),
            Some((0x7f1, "std::vector<int (*)(char)>::push(int) const", "/usr/lib/a b.so"))
        );
        assert_eq!(
            parts("  3309d [unknown] (/usr/lib/libc.so.6)"),
            Some((0x3309d, "", "/usr/lib/libc.so.6"))
        );
        assert_eq!(parts("  12 inner (inlined)"), Some((0x12, "inner", "inlined")));
        assert_eq!(parts("  main.c:12"), None);
    }

    #[test]
    fn no_sample_and_no_weight_is_lost() {
        let text = "\
# hostname : zvm
z_rd_int   316/317 [001] 10.5:  100 cpu-clock:ppp:
\tffffffffc0a88b8d kfpu_end+0x1d ([icp])
\tffffffffc0a7825e aes_encrypt_block+0x4e ([icp])

:-1 -1 [000] 10.6: 100 cpu-clock:ppp:

swapper 0 [000] 10.7: 100 cpu-clock:ppp:
\tffffffff845 [unknown] ([kernel.kallsyms])
cut off and stran";
        let profile = read(text.as_bytes(), &mut |_| {});
        assert_eq!((profile.view().count(), profile.view().weight()), (3, 300));
        assert_eq!(profile.busy().weight(), 200);
        assert_eq!(profile.meta.without_stack, 1);
        assert_eq!(profile.meta.unit, WeightUnit::Nanoseconds);
        assert_eq!(profile.meta.host.as_deref(), Some("zvm"));
        assert_eq!(profile.meta.duration_ns, Some(200_000_000));
        let top = profile.busy().self_by_symbol();
        assert_eq!((&*top[0].symbol, top[0].module), ("kfpu_end", "[icp]"));
        assert_eq!(profile.meta.notes, ["1 lines were not understood"]);
        assert_eq!(profile.meta.unresolved[0].addresses, 1);
    }
}
