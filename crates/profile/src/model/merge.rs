//! Merges samples, so that a recording of any length fits. Samples of the same thread and stack
//! within one time step become one sample with the sum of their weights and counts.

use super::{CPU_UNKNOWN, SAMPLES_MAX, Sample};

/// The first step, 20 ms: the column of a subsecond-offset map of 50 rows a second.
const FIRST_STEP_NS: u64 = 20_000_000;

/// Merges until at most half of [`SAMPLES_MAX`] are left. If samples differ only in thread and
/// stack, longer steps do not help; then the lightest samples lose their stacks.
pub(super) fn merge(samples: &mut Vec<Sample>, step_ns: &mut u64) {
    loop {
        *step_ns = if *step_ns == 0 { FIRST_STEP_NS } else { step_ns.saturating_mul(2) };
        merge_by(samples, *step_ns);
        if samples.len() <= SAMPLES_MAX / 2 {
            return;
        }
        if *step_ns > 1 << 62 {
            // Half a million pairs of thread and stack are all different. Drop the stacks of the
            // lighter half and keep the weights.
            samples.sort_unstable_by_key(|sample| std::cmp::Reverse(sample.weight));
            for sample in &mut samples[SAMPLES_MAX / 4..] {
                sample.stack = super::StackId::EMPTY;
            }
            merge_by(samples, *step_ns);
            keep_heaviest(samples, SAMPLES_MAX / 2);
            return;
        }
    }
}

/// The last resort if every sample has a thread of its own: the lightest become one sample.
fn keep_heaviest(samples: &mut Vec<Sample>, len: usize) {
    if samples.len() <= len {
        return;
    }
    samples.sort_unstable_by_key(|sample| std::cmp::Reverse(sample.weight));
    let rest: Vec<Sample> = samples.drain(len..).collect();
    if let Some(last) = samples.last_mut() {
        for sample in &rest {
            add(last, sample);
        }
    }
}

fn merge_by(samples: &mut Vec<Sample>, step_ns: u64) {
    for sample in samples.iter_mut() {
        sample.time_ns -= sample.time_ns % step_ns;
    }
    samples.sort_unstable_by_key(|sample| (sample.time_ns, sample.thread, sample.stack));
    samples.dedup_by(|sample, merged| {
        let same = (sample.time_ns, sample.thread, sample.stack)
            == (merged.time_ns, merged.thread, merged.stack);
        if same {
            add(merged, sample);
        }
        same
    });
}

fn add(merged: &mut Sample, sample: &Sample) {
    merged.weight = merged.weight.saturating_add(sample.weight);
    merged.count = merged.count.saturating_add(sample.count);
    if merged.cpu != sample.cpu {
        merged.cpu = CPU_UNKNOWN;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Profile, StackId, ThreadId};
    use super::*;

    fn sample(time_ns: u64, thread: u32) -> Sample {
        Sample {
            time_ns,
            weight: 3,
            thread: ThreadId(thread),
            cpu: 1,
            stack: StackId::EMPTY,
            count: 1,
        }
    }

    #[test]
    fn hostile_weights_do_not_overflow() {
        let mut profile = Profile::default();
        for time_ns in 1..4 {
            profile.push(Sample { weight: u64::MAX, ..sample(time_ns, 0) });
        }
        let weights = || profile.samples().iter().map(|sample| sample.weight);
        assert!(weights().try_fold(0_u64, u64::checked_add).is_some());
        assert!(weights().next() > Some(u64::MAX >> 9), "weights that fit are kept");
    }

    #[test]
    fn weights_survive_and_memory_is_bounded() {
        let mut profile = Profile::default();
        let samples = SAMPLES_MAX as u64 * 2 + 17;
        for n in 0..samples {
            profile.push(sample(1 + n * 1_000_000, (n % 7) as u32));
        }
        assert!(profile.samples().len() <= SAMPLES_MAX);
        let weight: u64 = profile.samples().iter().map(|sample| sample.weight).sum();
        assert_eq!(weight, samples * 3);
        assert!(profile.meta.time_step_ns >= FIRST_STEP_NS);
    }

    #[test]
    fn samples_of_all_different_threads_are_bounded() {
        let mut samples: Vec<Sample> =
            (0..SAMPLES_MAX as u64).map(|n| sample(n, n as u32)).collect();
        let mut step = 0;
        merge(&mut samples, &mut step);
        assert!(samples.len() <= SAMPLES_MAX / 2);
        assert_eq!(samples.iter().map(|s| s.weight).sum::<u64>(), SAMPLES_MAX as u64 * 3);
    }
}
