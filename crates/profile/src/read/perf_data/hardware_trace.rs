//! Counts the bytes of traces that the processor wrote itself (Intel PT, Arm SPE and CoreSight).
//! Perf turns them into samples, and ogive only reports the missing share.

use super::header::Bytes;

/// Names of such traces, by the number in `PERF_RECORD_AUXTRACE_INFO`: `enum auxtrace_type` of
/// Linux `tools/perf/util/auxtrace.h`.
const KINDS: [&str; 8] = [
    "a trace by the processor",
    "Intel PT",
    "Intel BTS",
    "Arm CoreSight",
    "Arm SPE",
    "s390's CPU measurements",
    "HiSilicon PTT",
    "POWER's trace of virtual processors",
];

/// The kind and the bytes of the traces in a recording.
#[derive(Debug, Default)]
pub(super) struct HardwareTrace {
    kind: usize,
    bytes: u64,
}

impl HardwareTrace {
    /// Processes the body of a `PERF_RECORD_AUXTRACE_INFO`.
    pub(super) fn describe(&mut self, mut body: Bytes<'_>) {
        let kind = body.u32().and_then(|kind| usize::try_from(kind).ok());
        self.kind = kind.filter(|kind| *kind < KINDS.len()).unwrap_or(0);
    }

    /// Adds bytes of a trace.
    pub(super) fn add(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// The note for a recording of this many bytes, if it contains such a trace.
    pub(super) fn note(&self, all: u64) -> Option<String> {
        if self.bytes == 0 {
            return None;
        }
        let percent = self.bytes as f64 * 100.0 / all.max(self.bytes) as f64;
        Some(format!(
            "{} of its {all} bytes ({percent:.1}%) are {}, which is not decoded here; \
             \"perf inject --itrace=i100us -i FILE -o samples.data\" turns it into samples",
            self.bytes, KINDS[self.kind]
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linux_perf_event_reader::Endianness::LittleEndian;

    #[test]
    fn a_trace_is_noted_with_its_share() {
        let mut trace = HardwareTrace::default();
        assert_eq!(trace.note(1000), None);
        trace.describe(Bytes::new(&[1, 0, 0, 0, 0, 0, 0, 0], LittleEndian));
        trace.add(700);
        trace.add(200);
        let note = trace.note(1000).unwrap();
        assert!(note.starts_with("900 of its 1000 bytes (90.0%) are Intel PT"), "{note}");
        trace.describe(Bytes::new(&[99, 0, 0, 0], LittleEndian));
        assert!(trace.note(1000).unwrap().contains("a trace by the processor"));
    }
}
