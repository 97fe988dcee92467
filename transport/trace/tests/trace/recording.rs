//! Recording, freezing and sampling.
//!
//! The process has one recorder, so these tests run one at a time.

use apus_trace::clock::ticks;
use apus_trace::{
    Event, FreezeReason, PeerIndex, Record, Rpc, Sampling, Side, Thread, Trace, recorder,
};
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};

static EXCLUSIVE: Mutex<()> = Mutex::new(());

/// Locks the recorder and sets it to record everything.
fn recorder() -> MutexGuard<'static, ()> {
    let guard = EXCLUSIVE.lock().unwrap_or_else(PoisonError::into_inner);
    recorder::resume();
    recorder::set_sampling(Sampling::All);
    guard
}

/// Runs `body` in a thread with this name; returns what the thread recorded.
fn thread(name: &str, body: impl FnOnce() + Send) -> Thread {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name(name.into());
        builder.spawn_scoped(scope, body).unwrap().join().unwrap();
    });
    let mut threads = recorder::snapshot().threads;
    threads.retain(|thread| thread.name == name);
    threads.pop().unwrap_or_else(|| Thread {
        name: name.into(),
        tid: 0,
        cpu: 0,
        overwritten: 0,
        records: Vec::new(),
    })
}

fn events(thread: &Thread) -> Vec<&'static str> {
    thread.records.iter().filter_map(Record::event).map(Event::name).collect()
}

#[test]
fn records_are_unchanged_in_a_file() {
    let _guard = recorder();
    let peer = recorder::peer("10.0.0.1:9".parse().unwrap(), "[::1]:4000".parse().unwrap());
    let rpc = Rpc::new(14, Side::Server, peer);
    recorder::name_values("drop_reason", &["first", "second"]);
    let begun = ticks();
    let thread = thread("kept", || {
        recorder::record_rpc(rpc, Event::Parsed, 0, 100);
        recorder::record_at(begun, Event::Look, 3, 500);
        recorder::record_rpc_at(begun + 1, rpc, Event::Dropped, 1, 0);
        recorder::record(Event::Sleep, 1, 77);
    });
    assert_eq!(events(&thread), ["look", "dropped", "parsed", "sleep"]);
    assert_eq!(thread.records[0].ticks, begun);
    assert_eq!(thread.records[2].rpc(), Some(rpc));

    let trace = recorder::snapshot();
    let mut bytes = Vec::new();
    trace.write(&mut bytes).unwrap();
    let read = Trace::read(&mut bytes.as_slice()).unwrap();
    assert_eq!(read, trace);
    assert_eq!(read.head.peer(peer).unwrap().address, "[::1]:4000".parse().unwrap());
    assert_eq!(read.head.peer(PeerIndex::NONE), None);
    assert_eq!((read.head.pid, read.head.period), (std::process::id(), 1));
    let dropped = read.all(Event::Dropped).find(|(of, _)| of.name == "kept").unwrap().1;
    assert_eq!(
        (read.name(dropped), read.value("drop_reason", dropped.a.into())),
        ("dropped", Some("second"))
    );
    let at = read.head.clock.monotonic(begun);
    assert!(read.head.clock.start.monotonic <= at && at <= read.head.clock.end.monotonic);
}

#[test]
fn a_file_is_complete_or_absent_and_an_error_names_it() {
    let _guard = recorder();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tt");
    thread("saved", || recorder::record(Event::Look, 1, 2));
    recorder::dump_to(&path).unwrap();
    let trace = Trace::load(&path).unwrap();
    assert!(trace.threads.iter().any(|thread| thread.name == "saved"));
    let nowhere = folder.path().join("nowhere/b.tt");
    let error = recorder::dump_to(&nowhere).unwrap_err().to_string();
    assert!(error.contains("nowhere/b.tt: No such file"), "{error}");
    assert!(Trace::load(&nowhere).unwrap_err().to_string().contains("nowhere/b.tt"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file is left");
}

#[test]
fn a_frozen_trace_is_retained_until_recording_is_resumed() {
    let _guard = recorder();
    let thread = thread("frozen", || {
        recorder::record(Event::Look, 1, 0);
        assert!(recorder::freeze(FreezeReason::LostPacket));
        assert!(!recorder::freeze(FreezeReason::Demand), "it is frozen already");
        recorder::set_sampling(Sampling::All);
        assert!(!recorder::is_on() && !recorder::is_traced(12));
        recorder::record(Event::Look, 2, 0);
        recorder::record_rpc(Rpc::new(2, Side::Client, PeerIndex::NONE), Event::Call, 0, 0);
    });
    assert_eq!(events(&thread), ["look", "frozen"]);
    let frozen = recorder::snapshot().head.frozen.unwrap();
    assert_eq!(frozen.reason, FreezeReason::LostPacket);
    assert_eq!(frozen.ticks, thread.records[1].ticks);
    assert_eq!(FreezeReason::NAMES[thread.records[1].a as usize], "lost_packet");
    assert!(recorder::resume() && !recorder::resume());
    assert!(recorder::is_traced(12));
    assert_eq!(recorder::frozen(), None);
}

#[test]
fn nothing_is_recorded_if_it_is_off() {
    let _guard = recorder();
    recorder::set_sampling(Sampling::Off);
    let thread = thread("off", || recorder::record(Event::Look, 1, 0));
    assert_eq!(events(&thread), [""; 0]);
    assert!(!recorder::freeze(FreezeReason::Demand), "there is nothing to retain");
    assert_eq!(recorder::snapshot().head.period, 0);
}

#[test]
fn one_rpc_per_period_is_traced_whatever_the_pattern_of_ids() {
    let _guard = recorder();
    for (period, step) in [(2_u32, 2_u64), (64, 2), (64, 4), (64, 128), (100, 2), (100, 200)] {
        let sampling = Sampling::Every(NonZeroU32::new(period).unwrap());
        recorder::set_sampling(sampling);
        let ids = (0..100_000).map(|i| (1 << 61) + i * step);
        let traced: Vec<u64> = ids.filter(|id| recorder::is_traced(*id)).collect();
        let expected = 100_000 / u64::from(period);
        let count = traced.len() as u64;
        assert!(count.abs_diff(expected) * 20 <= expected, "{count} of 1 in {period}, {step}");
        assert!(traced.iter().all(|id| sampling.traces(*id) && sampling.traces(id | 1)));
    }
    recorder::set_sampling(Sampling::All);
    assert!((0..1_000).all(recorder::is_traced));
}

#[test]
fn parsing_and_printing_a_sampling_agree() {
    for text in ["off", "sampled", "sampled=7", "all"] {
        assert_eq!(text.parse::<Sampling>().unwrap().to_string(), text);
    }
    for text in ["", "on", "sampled=", "sampled=0", "sampled=-1", "all=1"] {
        let error = text.parse::<Sampling>().unwrap_err().to_string();
        assert!(error.contains("`sampled=100`"), "{text}");
    }
    assert_eq!(Sampling::default().period(), Sampling::DEFAULT_PERIOD.get());
}
