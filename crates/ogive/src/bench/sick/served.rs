//! Mounts that processes of their own serve, for as long as whoever started them lives.
//!
//! A program that reads a mount which it serves itself cannot be killed: its readers wait for
//! answers, and nobody is left to give them. So the load runs in one process and the mount in
//! another, this program again, told by hidden options which part it has. Its standard input is a
//! pipe: a byte there is an order, and its end says that the starter has gone, however it went. The
//! mount answers to the last, and is then taken away as it always is.
//!
//! What lies below a slow mount is the third process, and stopped most of the time. It is killed when
//! the one that stops it dies, because a stopped process sees no pipe.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use ogive_fs::Mount;
use rustix::process::{Pid, Resource, Rlimit, Signal};

use super::sickness::Sickness;
use super::slow::{self, SlowMount};
use super::{MOUNT, SOURCE, say, unmount_below};
use crate::fuse::{self, Unmount};

/// What it says on standard output when the mount answers.
const READY: &str = "ready";

/// What a process serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// The mount that is ill.
    Ill,
    /// What takes its time below it.
    Below,
}

/// What the starter wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// What lies below takes its time from now on.
    Slow,
    /// It does not any more.
    Fast,
    /// Unmount.
    End,
    /// The starter has gone: unmount, and remove what it cannot remove any more.
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

    /// Waits for the next one.
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
            // Ctrl-C is for the one that was typed.
            .process_group(0)
            .spawn()
            .context("cannot start the process that serves the mount")?;
        let orders = child.stdin.take();
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).context("cannot hear from the mount")?;
        }
        let served = Self { child, orders };
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
            pipe.write_all(&[byte]).context("the process that serves the mount has gone")?;
        }
        Ok(())
    }

    /// Unmounts and waits for the process, which may wait for programs that are inside the mount.
    pub(super) fn end(mut self) -> Result<()> {
        // One that has gone needs no order; its status says what happened.
        let _ = self.order(Order::End);
        drop(self.orders.take());
        let status = self.child.wait().context("cannot wait for the process of the mount")?;
        if !status.success() {
            bail!("the process that serves the mount ended with {status}");
        }
        Ok(())
    }
}

/// What such a process does.
pub(super) fn serve(part: Part, sickness: Sickness, work: &Path) -> Result<()> {
    raise_descriptor_limit();
    match part {
        Part::Ill => serve_ill(sickness, work),
        Part::Below => {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
                .context("cannot follow the process that started this")?;
            let mount_point = work.join(slow::MOUNT);
            let mount = Mount::start(slow::options(sickness, work))?;
            let obeyed = obey(|_| Ok(())).map(drop);
            take_away(mount, &mount_point)?;
            obeyed
        }
    }
}

fn serve_ill(sickness: Sickness, work: &Path) -> Result<()> {
    let mount_point = work.join(MOUNT);
    let slow = sickness.slows().then(|| SlowMount::start(sickness, work)).transpose()?;
    let below = slow.as_ref().map(SlowMount::mount_point);
    let options = sickness.options(&work.join(SOURCE), &mount_point, work, below)?;
    let mount = Mount::start(options)?;
    let mut slowing = None;
    let obeyed = obey(|order| {
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
        say(&format!("its starter has gone; removing {}", work.display()));
        if unmount_below(work) {
            std::fs::remove_dir_all(work)
                .with_context(|| format!("cannot remove {}", work.display()))?;
        }
    }
    obeyed.map(drop).and(taken).and(ended)
}

/// Says that the mount answers, and does what it is told until it is to end.
fn obey(mut act: impl FnMut(Order) -> Result<()>) -> Result<Order> {
    let mut orders = io::stdin().lock();
    // A starter that has gone is heard of by the pipe of orders.
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
        // Somebody is inside; the mount goes when they do, its place in the tree goes now.
        fuse::unmount(mount_point, Unmount::Detach)
            .with_context(|| format!("cannot unmount {}", mount_point.display()))?;
        say("somebody still uses the mount; it was taken out of the tree");
        return Ok(());
    }
    mount.wait()?;
    Ok(())
}

/// As many descriptors as are allowed; where it cannot be raised, fewer files are held.
pub(super) fn raise_descriptor_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

#[cfg(test)]
mod tests {
    use super::*;

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
