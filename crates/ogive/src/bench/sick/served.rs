//! Mounts served by processes of their own, which end with the process that started them.
//!
//! A program that reads its own mount cannot be killed: its readers wait for answers that no thread
//! is left to give. So the load runs in one process and the mount in another. Both are this
//! program; hidden options choose the part. Standard input of the mount's process is a pipe: a byte
//! there is an order, and its end means that the starter has ended. The mount answers until then,
//! and is unmounted as usual.
//!
//! The source of a slow mount is a third process, which is stopped most of the time. It is killed
//! when the process that stops it ends, because a stopped process cannot see the end of a pipe.
//!
//! Every wait for such a process has a bound. A process that does not end in time is killed; its
//! mount ends with it, and readers get an error.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use ogive_fs::Mount;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use super::sickness::Sickness;
use super::slow::{self, SlowMount};
use super::{MOUNT, SOURCE, say, unmount_below};
use crate::fuse::{self, Unmount};

/// The limit for the end of a source process, and of the readers of a mount that is to end.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The limit for the end of the sick mount, which waits for the slow mount below it.
const PATIENCE_ABOVE: Duration = Duration::from_secs(25);
/// How often to check whether it has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Its report on standard output when the mount answers.
const READY: &str = "ready";

/// The part that a process serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// The sick mount.
    Ill,
    /// The slow source below it.
    Below,
}

/// An order of the starter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The source is slow from now on.
    Slow,
    /// The source is fast again.
    Fast,
    /// Unmount.
    End,
    /// The starter has ended: unmount, and remove its directory.
    Abandoned,
}

impl Order {
    fn byte(self) -> Option<u8> {
        match self {
            Self::Slow => Some(b's'),
            Self::Fast => Some(b'f'),
            Self::End => Some(b'e'),
            Self::Abandoned => None,
        }
    }

    /// Waits for the next order.
    fn next(from: &mut impl io::Read) -> Self {
        let mut byte = [0];
        match from.read_exact(&mut byte) {
            Ok(()) => [Self::Slow, Self::Fast]
                .into_iter()
                .find(|order| order.byte() == Some(byte[0]))
                .unwrap_or(Self::End),
            Err(_) => Self::Abandoned,
        }
    }
}

/// A process that serves a mount.
pub(super) struct Served {
    child: Child,
    orders: Option<ChildStdin>,
    patience: Duration,
}

impl Served {
    /// Starts it; when this returns, the mount answers.
    pub(super) fn start(part: Part, sickness: Sickness, work: &Path) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let part_name = part.to_possible_value().map(|value| value.get_name().to_owned());
        let mut child = Command::new(program)
            .args(["bench", "sick", &sickness.name(), "--part", &part_name.unwrap_or_default()])
            .arg("--dir")
            .arg(work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the process that the user started.
            .process_group(0)
            .spawn()
            .context("cannot start the process that serves the mount")?;
        let orders = child.stdin.take();
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out)
                .read_line(&mut line)
                .context("cannot read from the mount's process")?;
        }
        let patience = if part == Part::Ill { PATIENCE_ABOVE } else { PATIENCE };
        let served = Self { child, orders, patience };
        if line.trim_end() != READY {
            served.end().context("the mount did not come up")?;
            bail!("the mount did not come up");
        }
        Ok(served)
    }

    /// Its process.
    pub(super) fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Gives an order.
    pub(super) fn order(&mut self, order: Order) -> Result<()> {
        if let (Some(pipe), Some(byte)) = (&mut self.orders, order.byte()) {
            pipe.write_all(&[byte]).context("the process that serves the mount has ended")?;
        }
        Ok(())
    }

    /// Kills the process. Readers that wait for its mount get an error.
    pub(super) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
    }

    /// Unmounts and waits for the process, which may wait for programs that are inside the mount;
    /// one that takes too long is killed.
    pub(super) fn end(mut self) -> Result<()> {
        // A process that has ended needs no order; its status says what happened.
        let _ = self.order(Order::End);
        drop(self.orders.take());
        let late = Instant::now() + self.patience;
        let status = loop {
            let ended =
                self.child.try_wait().context("cannot wait for the process of the mount")?;
            match ended {
                Some(status) => break status,
                None if Instant::now() < late => std::thread::sleep(LOOK_AGAIN),
                None => {
                    self.kill();
                    self.child.wait().context("cannot wait for the process of the mount")?;
                    let seconds = self.patience.as_secs_f64();
                    bail!("the process of the mount did not end in {seconds} s; it was killed");
                }
            }
        };
        if !status.success() {
            bail!("the process that serves the mount ended with {status}");
        }
        Ok(())
    }
}

/// Whether a condition comes true within [`PATIENCE`].
pub(super) fn comes_true(mut is_true: impl FnMut() -> bool) -> bool {
    let late = Instant::now() + PATIENCE;
    loop {
        if is_true() {
            return true;
        }
        if Instant::now() >= late {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The body of such a process.
pub(super) fn serve(part: Part, sickness: Sickness, work: &Path) -> Result<()> {
    raise_descriptor_limit();
    match part {
        Part::Ill => serve_sickness(sickness, work),
        Part::Below => {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .context("cannot follow the process that started this")?;
            let mount_point = work.join(slow::MOUNT);
            let mount = Mount::start(slow::options(sickness, work))?;
            let obeyed = follow_order(|_| Ok(())).map(drop);
            take_away(mount, &mount_point)?;
            obeyed
        }
    }
}

fn serve_sickness(sickness: Sickness, work: &Path) -> Result<()> {
    let mount_point = work.join(MOUNT);
    let slow = sickness.slows().then(|| SlowMount::start(sickness, work)).transpose()?;
    let below = slow.as_ref().map(SlowMount::mount_point);
    let options = sickness.options(&work.join(SOURCE), &mount_point, work, below)?;
    let mount = Mount::start(options)?;
    let mut slowing = None;
    let obeyed = follow_order(|order| {
        slowing = match (&slow, order) {
            (Some(slow), Order::Slow) => Some(slow.slow_down()?),
            _ => None,
        };
        Ok(())
    });
    drop(slowing);
    let taken = take_away(mount, &mount_point);
    let ended = slow.map_or(Ok(()), SlowMount::end);
    if matches!(obeyed, Ok(Order::Abandoned)) {
        say(&format!("its starter has ended; removing {}", work.display()));
        if unmount_below(work) {
            std::fs::remove_dir_all(work)
                .with_context(|| format!("cannot remove {}", work.display()))?;
        }
    }
    obeyed.map(drop).and(taken).and(ended)
}

/// Reports that the mount answers, and follows orders until it is to end.
fn follow_order(mut act: impl FnMut(Order) -> Result<()>) -> Result<Order> {
    let mut orders = io::stdin().lock();
    // The pipe of orders shows that the starter has ended.
    let _ = writeln!(io::stdout(), "{READY}");
    loop {
        match Order::next(&mut orders.by_ref()) {
            last @ (Order::End | Order::Abandoned) => return Ok(last),
            order => act(order)?,
        }
    }
}

fn take_away(mount: Mount, mount_point: &Path) -> Result<()> {
    if mount.unmounter().unmount().is_err() {
        // A program uses the mount, so it is detached now and ends when that program leaves.
        fuse::unmount(mount_point, Unmount::Detach)
            .with_context(|| format!("cannot unmount {}", mount_point.display()))?;
        say("a program still uses the mount; it was detached");
        return Ok(());
    }
    mount.wait()?;
    Ok(())
}

/// Raises the descriptor limit as far as allowed. If that fails, the load holds fewer files.
pub(super) fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that gets no order, because it is stopped.
    fn deaf(patience: Duration) -> Served {
        let mut child = Command::new("sleep")
            .arg("100000")
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("sleep(1) starts");
        let orders = child.stdin.take();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("it has a pid");
        rustix::process::kill_process(pid, Signal::STOP).expect("it can be stopped");
        Served { child, orders, patience }
    }

    #[test]
    fn a_process_that_takes_no_order_is_killed_and_reported() {
        let served = deaf(Duration::from_millis(50));
        let pid = served.pid().expect("it has a pid");
        let error = served.end().expect_err("it did not end by itself").to_string();
        assert!(error.contains("it was killed"), "{error}");
        let gone = rustix::process::test_kill_process(pid);
        assert_eq!(gone, Err(rustix::io::Errno::SRCH), "it is still there");
    }

    #[test]
    fn orders_come_through_a_pipe_whose_end_is_one_too() {
        let orders = [Order::Slow, Order::Fast, Order::End];
        let bytes: Vec<u8> = orders.iter().filter_map(|order| order.byte()).collect();
        let mut pipe = bytes.as_slice();
        for order in orders {
            assert_eq!(Order::next(&mut pipe), order);
        }
        assert_eq!(Order::next(&mut pipe), Order::Abandoned);
    }
}
