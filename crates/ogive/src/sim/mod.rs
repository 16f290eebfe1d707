//! `ogive sim`: replays traces through caches, prints the paper's tables, and records a mount.
//!
//! `ogive-sim` reads traces and runs policies; this module has the options and the output.

pub(crate) mod args;
mod output;
mod page;
mod paper;
mod record;
pub(crate) mod watch;

use std::io::{self, Write as _};
use std::thread;

use anyhow::{Context as _, Result};
use ogive_sim::curve::curve_sizes;
use ogive_sim::{CurvePlan, Plan, PolicyName, replay};

use self::args::{CurveKeys, SimArgs};
use self::output::Answer;
use self::watch::Watch;
use crate::exit::{self, Refusal};
use crate::value::Count;

/// Points of the LRU curve.
const CURVE_POINTS: usize = 120;

/// Runs the subcommand; its exit code.
pub(crate) fn run(args: &SimArgs) -> Result<u8> {
    if args.paper {
        return paper::run(args);
    }
    if let (Some(mount_point), Some(output)) = (&args.record, &args.output) {
        record::run(mount_point, output, args.during)?;
        return Ok(exit::SUCCESS);
    }
    if args.traces.is_empty() {
        let refusal = Refusal::new(exit::USAGE, "cannot replay: no trace is named");
        return Err(refusal.hint("name files, or - for standard input").into());
    }
    let answer = answer(args)?;
    let mut out = io::stdout().lock();
    let text = if args.json {
        answer.json()?
    } else if args.csv {
        answer.csv()
    } else {
        answer.table(args.curve)
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the answer")?;
    for (path, make) in
        [(&args.svg, Answer::svg as fn(&Answer) -> String), (&args.html, page::html)]
    {
        if let Some(path) = path {
            ogive_private::write(path, make(&answer))
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(exit::SUCCESS)
}

fn answer(args: &SimArgs) -> Result<Answer> {
    let curve = match args.curve_keys {
        _ if !args.curve && args.svg.is_none() && args.html.is_none() => CurvePlan::None,
        CurveKeys::Exact => CurvePlan::Exact,
        CurveKeys::Sampled(keys) => CurvePlan::Sampled(keys),
    };
    let plan = Plan {
        traces: args.traces.clone(),
        read: args.reading.options(),
        policies: policies(args)?,
        sizes: args.size.iter().map(|size| size.0).collect(),
        curve,
        sample: args.sample,
        threads: threads(args),
    };
    let watch = Watch::new(&plan.traces, args.quiet);
    let result = replay(&plan, &mut |progress| watch.show(progress));
    watch.finish();
    let replayed = result.context("cannot replay")?;
    let footprint_bytes = replayed.footprint.map_or(0, |(_, bytes, _)| bytes);
    let curve = replayed.curve.as_ref().map(|curve| {
        // The curve of a sample is that of caches reduced by the sample's share.
        let sizes = curve_sizes(footprint_bytes, CURVE_POINTS);
        let scaled: Vec<u64> =
            sizes.iter().map(|size| ((*size as f64 * args.sample) as u64).max(1)).collect();
        let mut points = curve.points(&scaled);
        points.iter_mut().zip(sizes).for_each(|(point, size)| point.size_bytes = size);
        points
    });
    Ok(Answer::new(&plan, &replayed, curve))
}

fn policies(args: &SimArgs) -> Result<Vec<PolicyName>, Refusal> {
    let refuse = |reason| Refusal::new(exit::USAGE, format!("cannot replay: {reason}"));
    let mut policies = Vec::new();
    for name in args.policy.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if name == "all" {
            policies.extend(PolicyName::all().map(|(policy, _, _)| policy));
        } else {
            policies.push(name.parse().map_err(refuse)?);
        }
    }
    let sublists = args.sublists.iter().map(|Count(count)| PolicyName::Engine(*count as usize));
    policies.extend(sublists);
    let mut seen = Vec::new();
    policies.retain(|policy| {
        !seen.contains(policy) && {
            seen.push(*policy);
            true
        }
    });
    Ok(policies)
}

fn threads(args: &SimArgs) -> usize {
    match args.threads {
        Some(Count(threads)) => threads.min(256) as usize,
        None => thread::available_parallelism().map_or(1, usize::from),
    }
}

/// A size in the unit of the trace: bytes, or entries if every key weighs 1.
pub(crate) fn size_text(bytes: u64, in_entries: bool) -> String {
    if in_entries {
        return bytes.to_string();
    }
    format!("{:#}", ogive_text::Bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_carry_their_unit() {
        let text = |bytes| size_text(bytes, false);
        assert_eq!((text(0).as_str(), text(1023).as_str()), ("0 B", "1023 B"));
        assert_eq!((text(8 << 30), text(3 << 29)), ("8 GiB".into(), "1.5 GiB".into()));
        assert_eq!((text(u64::MAX), size_text(5000, true)), ("16 EiB".into(), "5000".into()));
    }
}
