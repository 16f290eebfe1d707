//! The promises of a pool of threads.

#[path = "../../../tests/eventually.rs"]
mod eventually;
#[path = "../../../tests/skipped.rs"]
mod skipped;

use super::*;
use eventually::{BOUND, eventually};
use std::collections::VecDeque;
use std::sync::mpsc;

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Jobs(VecDeque<Job>);

impl Queue for Jobs {
    type Work = Job;

    fn waiting(&self) -> usize {
        self.0.len()
    }

    fn take(&mut self, _: usize) -> Option<Job> {
        self.0.pop_front()
    }
}

fn pool(threads_max: usize) -> Pool<Jobs> {
    Pool::new("test", threads_max, || Box::new(|job: Job| job()))
}

fn push(pool: &Pool<Jobs>, job: impl FnOnce() + Send + 'static) -> Pushed {
    pool.push(|queue| {
        queue.0.push_back(Box::new(job));
        true
    })
}

#[test]
fn one_thread_runs_all_jobs_in_order_even_after_a_stop() {
    let pool = pool(1);
    let (send, receive) = mpsc::channel();
    let (hold, held) = mpsc::channel::<()>();
    assert_eq!(push(&pool, move || held.recv().unwrap()), Pushed::Queued);
    for number in 0..10 {
        let send = send.clone();
        assert_eq!(push(&pool, move || send.send(number).unwrap()), Pushed::Queued);
    }
    drop(send);
    assert_eq!(pool.threads(), 1);
    assert_eq!(pool.stop(Duration::from_millis(1), |_| ()), 1, "its thread is busy");
    assert_eq!(push(&pool, || panic!("a refused job runs")), Pushed::Refused);
    hold.send(()).unwrap();
    assert_eq!(receive.iter().collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
    assert_eq!(pool.stop(BOUND, |_| ()), 0);
    assert_eq!(pool.threads(), 0);
}

#[test]
fn jobs_taken_back_do_not_run_and_jobs_without_room_are_refused() {
    let pool = pool(1);
    let (hold, held) = mpsc::channel::<()>();
    let (begun, began) = mpsc::channel();
    let wait = move || {
        begun.send(()).unwrap();
        held.recv().unwrap();
    };
    assert_eq!(push(&pool, wait), Pushed::Queued);
    began.recv_timeout(BOUND).unwrap();
    assert_eq!(push(&pool, || unreachable!()), Pushed::Queued);
    assert_eq!(pool.push(|_| false), Pushed::Refused);
    assert_eq!(pool.take_back().0.len(), 1);
    hold.send(()).unwrap();
    assert_eq!(pool.stop(BOUND, |_| ()), 0);
}

#[test]
fn a_panic_ends_only_its_job_and_the_thread_gets_a_new_worker() {
    let (made, workers) = mpsc::channel();
    let pool: Pool<Jobs> = Pool::new("test", 1, move || {
        made.send(()).unwrap();
        Box::new(|job: Job| job())
    });
    assert_eq!(push(&pool, || panic!("on purpose")), Pushed::Queued);
    let (send, receive) = mpsc::channel();
    assert_eq!(push(&pool, move || send.send(1).unwrap()), Pushed::Queued);
    assert_eq!(receive.recv_timeout(BOUND), Ok(1));
    assert_eq!(pool.stop(BOUND, |_| ()), 0);
    assert_eq!(pool.panics(), 1);
    drop(pool);
    assert_eq!(workers.iter().count(), 2);
}

#[test]
fn threads_are_woken_at_most_once_for_each_job() {
    let pool = pool(4);
    let (send, receive) = mpsc::channel();
    let mut jobs = 0;
    for _ in 0..50 {
        for _ in 0..4 {
            let send = send.clone();
            assert_eq!(push(&pool, move || send.send(()).unwrap()), Pushed::Queued);
            jobs += 1;
        }
        (0..4).for_each(|_| receive.recv_timeout(BOUND).unwrap());
    }
    // All waits have begun and no job is left, so no thread may wake. The long run gives a wait
    // that would end by itself the time for it.
    eventually("all threads are idle", || {
        let state = pool.shared.state.lock();
        state.idle == state.threads
    });
    if skipped::is_nightly() {
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(pool.wakeups() <= jobs, "{} wake-ups for {jobs} jobs", pool.wakeups());
    assert!(pool.threads() <= 4);
    assert_eq!(pool.stop(BOUND, |_| ()), 0);
}
