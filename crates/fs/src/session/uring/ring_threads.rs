//! The threads of rings, from start to end.

use super::RingLayout;
use super::queue_threads::QueueThreads;
use super::queue_wakeup;
use super::rescue::Rescue;
use super::serve::Server;
use crate::session::Session;
use crate::session::device::PATIENCE;
use ogive_origin::Origin;
use ogive_threads::Alive;
use rustix::fd::OwnedFd;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// The state that the threads of all rings share.
pub(super) struct RingThreads<O: Origin> {
    pub(super) session: Arc<Session<O>>,
    pub(super) rescue: Arc<Rescue>,
    /// Size of a slot's payload buffer.
    pub(super) payload_bytes: usize,
    /// How many processors run.
    pub(super) processors: usize,
    /// Numbers the threads, for their names.
    started: AtomicUsize,
    alive: Alive,
}

/// A thread with a ring that waits for a connection to serve. It ends when this is dropped.
pub(super) struct NewThread {
    connection: mpsc::Sender<Arc<OwnedFd>>,
    ready: mpsc::Receiver<io::Result<()>>,
}

impl<O: Origin> RingThreads<O> {
    pub(super) fn new(
        session: Arc<Session<O>>,
        payload_bytes: usize,
        processors: usize,
    ) -> Arc<Self> {
        let (started, alive, rescue) = (AtomicUsize::new(0), Alive::default(), Rescue::new());
        Arc::new(Self { session, rescue, payload_bytes, processors, started, alive })
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// If the thread or the ring could not be created.
    pub(super) fn new_thread(
        self: &Arc<Self>,
        queue_threads: Option<Arc<QueueThreads>>,
        layout: RingLayout,
    ) -> io::Result<NewThread> {
        let (connection, device) = mpsc::channel();
        let (report, ready) = mpsc::channel();
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let threads = self.clone();
        let present = self.alive.enter();
        std::thread::Builder::new().name(format!("fuse_uring-{number}")).spawn(move || {
            match Server::new(threads, queue_threads, layout) {
                Ok(server) => run(server, &device, &report),
                // Without a receiver, nothing is left to do.
                Err(error) => drop(report.send(Err(error))),
            }
            drop(present);
        })?;
        let new_thread = NewThread { connection, ready };
        new_thread.report().map(|()| new_thread)
    }

    /// Waits for the threads after the connection has ended, within the time limit. Returns how
    /// many of them still wait for the origin.
    pub(super) fn join(&self) -> usize {
        self.rescue.end();
        self.alive.wait(PATIENCE)
    }
}

impl NewThread {
    /// Lets the thread serve a connection.
    ///
    /// # Errors
    /// If the kernel refuses its slots. The thread serves those that the kernel took.
    pub(super) fn serve(&self, device: Arc<OwnedFd>) -> io::Result<()> {
        let _ = self.connection.send(device);
        self.report()
    }

    fn report(&self) -> io::Result<()> {
        let ended = || Err(io::Error::other("the thread of a ring has ended"));
        self.ready.recv().unwrap_or_else(|_| ended())
    }
}

/// Starts one more thread for a queue; returns whether it could.
pub(super) fn add_thread<O: Origin>(
    threads: &Arc<RingThreads<O>>,
    queue_threads: &Arc<QueueThreads>,
    layout: &RingLayout,
    device: Arc<OwnedFd>,
) -> bool {
    let new_thread = threads.new_thread(Some(queue_threads.clone()), layout.clone());
    new_thread
        .and_then(|new_thread| new_thread.serve(device))
        .map(|()| queue_wakeup::wake(&threads.session.view, &layout.queues))
        .inspect_err(|error| log::warn!("cannot start another thread for a ring: {error}"))
        .is_ok()
}

/// Runs the thread of a ring.
fn run<O: Origin>(
    mut server: Server<O>,
    device: &mpsc::Receiver<Arc<OwnedFd>>,
    report: &mpsc::Sender<io::Result<()>>,
) {
    let _ = report.send(Ok(()));
    let Ok(device) = device.recv() else { return };
    let _ = report.send(server.register(device));
    let panicked = |_| Err(io::Error::other("its thread panicked"));
    if let Err(error) = catch_unwind(AssertUnwindSafe(|| server.serve())).unwrap_or_else(panicked) {
        // Requests would hang in queues that no thread serves. The end of the process ends the
        // connection, and the next mount recovers the rest.
        log::error!("a ring has failed: {error}; ending the process");
        std::process::abort();
    }
}
