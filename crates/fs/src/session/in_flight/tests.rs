//! Requests in flight, and which side answers them.

use super::super::protocol::{Header, opcode, u64_at};
use super::*;
use crate::eventually::eventually;
use std::sync::Arc;

type Answers = Arc<Mutex<Vec<(u64, Result<Vec<u8>, Errno>)>>>;

struct Noted(Answers);

impl ReplyRoute for Noted {
    fn answer(self: Box<Self>, unique: u64, result: Result<&[u8], Errno>) {
        self.0.lock().push((unique, result.map(<[u8]>::to_vec)));
    }
}

fn request(unique: u64, node: u64, thread: u32) -> Request {
    let header = Header {
        total_bytes: 56,
        opcode: opcode::GETATTR,
        unique,
        node,
        user: 0,
        group: 0,
        thread,
    };
    Request::new(&header, &[0; 16], 0)
}

fn own_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

fn begin(in_flight: &Arc<InFlight>, answers: &Answers, unique: u64, node: u64, thread: u32) {
    let _ = in_flight.begin(&request(unique, node, thread), Box::new(Noted(answers.clone())));
}

/// Sets the time at which a request began.
fn since(in_flight: &InFlight, unique: u64, since: Instant) {
    in_flight.shard(unique).lock().get_mut(&unique).unwrap().since = since;
}

#[test]
fn an_answer_is_claimed_once() {
    let (in_flight, answers) = (Arc::new(InFlight::new(Some(TICK))), Answers::default());
    begin(&in_flight, &answers, 2, 9, own_thread());
    begin(&in_flight, &answers, 4, 9, own_thread());
    in_flight.answer_instead(2, AnswerReason::Interrupted);
    in_flight.answer_instead(2, AnswerReason::TimedOut);
    assert!(!in_flight.end(2), "it was answered");
    assert!(in_flight.end(4));
    in_flight.answer_instead(4, AnswerReason::Interrupted);
    assert_eq!(*answers.lock(), [(2, Err(Errno::INTR))]);
}

#[test]
fn a_signal_that_does_not_kill_fails_no_request() {
    let (in_flight, answers) = (Arc::new(InFlight::new(None)), Answers::default());
    begin(&in_flight, &answers, 2, 9, own_thread());
    in_flight.interrupt(2);
    in_flight.interrupt(6);
    let begun = Instant::now();
    since(&in_flight, 2, begun);
    in_flight.look(begun + 10 * TICK);
    assert!(answers.lock().is_empty());
    assert!(in_flight.is_hanging.load(Ordering::Relaxed));
    assert!(in_flight.waits_since(begun));
    assert!(in_flight.end(2));
    assert!(!in_flight.waits_since(begun));
    in_flight.look(begun + 10 * TICK);
    assert!(!in_flight.is_hanging.load(Ordering::Relaxed));
}

#[test]
fn an_unseen_thread_with_a_signal_may_be_dying() {
    let (in_flight, answers) = (Arc::new(InFlight::new(None)), Answers::default());
    begin(&in_flight, &answers, 2, 9, 0);
    begin(&in_flight, &answers, 4, 9, 0);
    in_flight.interrupt(2);
    assert!(answers.lock().is_empty(), "the watch has not checked yet");
    let begun = Instant::now();
    [2, 4].iter().for_each(|unique| since(&in_flight, *unique, begun));
    in_flight.look(begun + TICK - Duration::from_nanos(1));
    assert!(answers.lock().is_empty() && !in_flight.is_hanging.load(Ordering::Relaxed));
    in_flight.look(begun + TICK);
    assert_eq!(*answers.lock(), [(2, Err(Errno::INTR))]);
    assert!(!in_flight.end(2) && in_flight.end(4));
}

#[test]
fn a_request_that_takes_too_long_gets_eio() {
    let (in_flight, answers) = (Arc::new(InFlight::new(Some(4 * TICK))), Answers::default());
    for unique in [2, 4] {
        begin(&in_flight, &answers, unique, 9, own_thread());
    }
    let begun = Instant::now();
    since(&in_flight, 2, begun);
    since(&in_flight, 4, begun + 2 * TICK);
    in_flight.look(begun + 4 * TICK);
    assert_eq!(*answers.lock(), [(2, Err(Errno::IO))]);
    assert!(
        in_flight.is_hanging.load(Ordering::Relaxed),
        "an answered request that has not ended counts too"
    );
    assert!(!in_flight.end(2) && in_flight.end(4));
}

#[test]
fn the_root_is_shown_as_it_was_while_the_origin_does_not_answer() {
    let (in_flight, answers) = (Arc::new(InFlight::new(None)), Answers::default());
    let begun = Instant::now();
    for unique in [2, 4] {
        begin(&in_flight, &answers, unique, ROOT, own_thread());
        since(&in_flight, unique, begun);
    }
    in_flight.look(begun + TICK);
    assert!(answers.lock().is_empty(), "no attributes are known yet");
    assert!(in_flight.end(2));
    let directory = tempfile::tempdir().unwrap();
    let session = super::super::tests::session(directory.path());
    let known = session.view.attributes(ROOT, None).unwrap();
    in_flight.remember_root(&known);
    in_flight.look(begun + TICK);
    let answers = answers.lock();
    let bytes = answers[0].1.as_ref().unwrap();
    assert_eq!((bytes.len(), u64_at(bytes, 0), u64_at(bytes, 16)), (104, 0, ROOT));
    assert!(!in_flight.end(4));
}

#[test]
fn the_watch_sleeps_while_nothing_waits_and_ends_when_stopped() {
    let in_flight = Arc::new(InFlight::new(None));
    let watching = in_flight.clone();
    let watch = std::thread::spawn(move || watching.watch(|| false, || {}));
    let answers = Answers::default();
    begin(&in_flight, &answers, 2, 9, own_thread());
    assert!(!in_flight.is_parked.load(Ordering::Relaxed));
    assert!(in_flight.end(2));
    in_flight.look(Instant::now());
    let is_parked = || in_flight.is_parked.load(Ordering::Relaxed);
    assert!(is_parked());
    begin(&in_flight, &answers, 4, 9, own_thread());
    in_flight.look(Instant::now());
    // The watch may be in the middle of a check.
    eventually("the watch checks the waiting requests", || !is_parked());
    in_flight.stop();
    eventually("the watch ends", || watch.is_finished());
    watch.join().unwrap();
}

#[test]
fn the_watch_continues_after_a_panic() {
    let in_flight = Arc::new(InFlight::new(None));
    let (watching, looks) = (in_flight.clone(), Arc::new(AtomicBool::new(false)));
    let (looked, panics) = (looks.clone(), Arc::new(Mutex::new(0)));
    let counted = panics.clone();
    let watch = std::thread::spawn(move || {
        let look_after = || {
            assert!(looked.swap(true, Ordering::SeqCst), "on purpose, the first time");
            false
        };
        watching.watch(look_after, || *counted.lock() += 1);
    });
    let answers = Answers::default();
    begin(&in_flight, &answers, 2, 9, own_thread());
    eventually("the first look panics", || *panics.lock() == 1);
    assert!(in_flight.end(2));
    eventually("the next check finds no waiting request", || {
        in_flight.is_parked.load(Ordering::Relaxed)
    });
    assert!(looks.load(Ordering::SeqCst));
    in_flight.stop();
    eventually("the watch ends", || watch.is_finished());
    watch.join().unwrap();
    assert_eq!(*panics.lock(), 1);
}
