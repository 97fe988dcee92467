//! Files that are written when a trigger freezes the trace.

use crate::{Tracing, pair, serve_while};
use apus::trace::{self, Event, FreezeReason, FreezeTriggers, Trace, TraceFiles, saved_files};
use apus::{BindError, Endpoint, EndpointBuilder, PollMode};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options that make every call count as slow.
fn slow(files: TraceFiles) -> EndpointBuilder {
    let triggers = FreezeTriggers::new().slow_rpc(Duration::ZERO);
    EndpointBuilder::default()
        .poll_mode(PollMode::Block)
        .freeze_triggers(triggers)
        .trace_files(files)
}

/// Returns the names of the files in a folder without host and process. An unfinished file has a
/// hidden name, and is left out.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let process = format!("-{}-", std::process::id());
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter_map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let shown = !name.starts_with('.');
        let named = || name.split_once(&process).unwrap_or_else(|| panic!("{name}")).1.to_owned();
        shown.then(|| (named(), path))
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

fn names(folder: &Path) -> Vec<String> {
    files(folder).into_iter().map(|(name, _)| name).collect()
}

/// Returns the reason in the head of a file.
fn reason(file: &Path) -> Option<FreezeReason> {
    Trace::load(file).unwrap().head.frozen.map(|frozen| frozen.reason)
}

#[test]
fn each_slow_call_writes_a_file_up_to_the_limit() {
    let _tracing = Tracing::all();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("not/there/yet");
    let (client, server) = pair(&slow(TraceFiles::new(&folder).at_most(3)));
    let before = saved_files().files;
    serve_while(&server, || {
        while saved_files().problem.is_none() {
            client.call(server.local_addr(), "hello").unwrap();
        }
    });
    let left = saved_files();
    assert_eq!((left.files - before, &left.folders[..]), (3, &[folder.clone()][..]));
    let problem = left.problem.unwrap();
    assert!(
        problem.contains("contains 3 traces") && problem.contains("not/there/yet"),
        "{problem}"
    );
    assert_eq!(
        trace::frozen().map(|frozen| frozen.reason),
        Some(FreezeReason::SlowRpc),
        "it stays"
    );
    assert_eq!(names(&folder), ["slow_rpc-1.tt", "slow_rpc-2.tt", "slow_rpc-3.tt"]);
    for (_, file) in files(&folder) {
        assert_eq!(reason(&file), Some(FreezeReason::SlowRpc));
        assert!(Trace::load(&file).unwrap().all(Event::Slow).count() > 0);
    }
    // With room in the folder, and after a manual resume, the next freeze writes a file again.
    std::fs::remove_file(&files(&folder)[0].1).unwrap();
    trace::resume();
    let (client, server) = pair(&slow(TraceFiles::new(&folder).at_most(3)));
    serve_while(&server, || drop(client.call(server.local_addr(), "hello").unwrap()));
    drop((client, server));
    while names(&folder).len() < 3 {
        std::thread::yield_now();
    }
}

#[test]
fn the_last_freeze_is_written_when_the_endpoints_end() {
    let _tracing = Tracing::all();
    let place = tempfile::tempdir().unwrap();
    let (client, server) = pair(&slow(TraceFiles::new(place.path())));
    serve_while(&server, || drop(client.call(server.local_addr(), "hello").unwrap()));
    drop((client, server));
    assert_eq!(names(place.path()), ["slow_rpc-1.tt"]);
    assert_eq!(trace::frozen(), None, "and recording goes on");
    assert_eq!(saved_files().folders, Vec::<PathBuf>::new());
}

#[test]
fn a_freeze_on_demand_stays_and_writes_no_file() {
    let _tracing = Tracing::all();
    let place = tempfile::tempdir().unwrap();
    let (client, server) = pair(&slow(TraceFiles::new(place.path())));
    assert!(trace::freeze(FreezeReason::Demand));
    drop((client, server));
    assert_eq!(names(place.path()), Vec::<String>::new());
    assert_eq!(trace::frozen().map(|frozen| frozen.reason), Some(FreezeReason::Demand));
}

#[test]
fn a_freeze_by_a_peer_writes_a_file() {
    let _tracing = Tracing::all();
    let place = tempfile::tempdir().unwrap();
    let obedient =
        EndpointBuilder::default().freeze_triggers(FreezeTriggers::new().obey_peers(true));
    let (client, server) = pair(&obedient.trace_files(TraceFiles::new(place.path())));
    std::thread::scope(|scope| {
        scope.spawn(|| server.recv_request().unwrap().reply("hello").unwrap());
        client.call(server.local_addr(), "hello").unwrap();
    });
    while names(place.path()).is_empty() {
        assert_eq!(client.freeze_peers(), 1);
        // Both are in this process, and the client has frozen their trace.
        trace::resume();
        assert!(server.try_recv_request().unwrap().is_none());
    }
    drop((client, server));
    let (name, file) = files(place.path()).remove(0);
    assert_eq!((name.as_str(), reason(&file)), ("peer-1.tt", Some(FreezeReason::Peer)));
}

#[test]
fn a_folder_that_cannot_be_created_is_an_error() {
    let files = TraceFiles::new("/dev/null/traces");
    let error = Endpoint::builder().trace_files(files).bind("127.0.0.1:0").err().unwrap();
    assert!(matches!(error, BindError::TraceFiles { .. }), "{error:?}");
    assert!(error.to_string().contains("/dev/null/traces"), "{error}");
}
