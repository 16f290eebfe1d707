//! The programs that read: run to the end, with their CPU time.
//!
//! The harness waits for one program at a time, or for two that it adds up. So the CPU time that the
//! kernel charges to ended children between start and end belongs to these programs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;

use crate::error::{Context, Result};

/// A program that has ended.
pub struct Ran {
    /// From start to end.
    pub seconds: f64,
    /// CPU time, user and system.
    pub cpu_seconds: f64,
    /// Its output.
    pub output: Vec<u8>,
}

/// Runs `command`, which must succeed.
pub fn run(mut command: Command) -> Result<Ran> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let cpu_before = cpu_of_children()?;
    let started = Instant::now();
    let output = command.output().context(|| format!("cannot start {command:?}"))?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu_seconds = cpu_of_children()? - cpu_before;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {words}", output.status));
    }
    Ok(Ran { seconds, cpu_seconds, output: output.stdout })
}

/// CPU seconds of all children that have ended and been waited for.
pub fn cpu_of_children() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context(|| "getrusage".into())?;
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The result of a run of fio.
pub struct Fio {
    /// Reads a second, all jobs together.
    pub reads_per_second: f64,
    /// Bytes read in all.
    pub bytes: f64,
    /// CPU seconds of fio, its start included.
    pub cpu_seconds: f64,
    /// The 99th percentile of completion latency, in microseconds.
    pub p99_us: f64,
}

/// How the fio of one run reads.
pub struct FioPlan {
    /// Jobs, each with a file of its own.
    pub jobs: usize,
    /// Bytes of each file.
    pub file_bytes: u64,
    /// How long.
    pub seconds: u32,
}

impl FioPlan {
    /// Random 8 KiB reads of the files `data.0`, `data.1`, ... in `folder`. Without a folder it uses
    /// the null engine, which reads nothing and so measures fio's own cost.
    pub fn random_reads(&self, folder: Option<&Path>) -> Result<Fio> {
        let mut command = Command::new("fio");
        command.args(["--name=arc", "--rw=randread", "--bs=8k", "--thread", "--time_based"]);
        // By default fio drops the files from the page cache before it starts, and advises the kernel.
        command.args(["--invalidate=0", "--fadvise_hint=0", "--group_reporting"]);
        command.args(["--norandommap", "--randrepeat=1", "--output-format=json"]);
        command.arg(format!("--numjobs={}", self.jobs));
        command.arg(format!("--size={}", self.file_bytes));
        command.arg(format!("--runtime={}", self.seconds));
        match folder {
            Some(folder) => {
                command.args(["--ioengine=psync", "--readonly", "--allow_file_create=0"]);
                command.args(["--filename_format=data.$jobnum", "--directory"]).arg(folder);
            }
            None => {
                command.args(["--ioengine=null"]);
            }
        }
        let ran = run(command)?;
        let json: Value = serde_json::from_slice(json_part(&ran.output))
            .context(|| "fio printed no JSON".into())?;
        let read = &json["jobs"][0]["read"];
        let figure = |value: &Value| {
            value.as_f64().ok_or_else(|| format!("fio's JSON lacks a figure: {read}"))
        };
        if json["jobs"][0]["error"].as_i64() != Some(0) {
            return Err(format!("fio met an error: {}", json["jobs"][0]["error"]));
        }
        Ok(Fio {
            reads_per_second: figure(&read["iops"])?,
            bytes: figure(&read["io_bytes"])?,
            cpu_seconds: ran.cpu_seconds,
            p99_us: figure(&read["clat_ns"]["percentile"]["99.000000"])? / 1e3,
        })
    }
}

/// fio may print a line or two of its own before the JSON.
fn json_part(output: &[u8]) -> &[u8] {
    let start = output.iter().position(|&byte| byte == b'{').unwrap_or(0);
    &output[start..]
}
