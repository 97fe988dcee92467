//! The way of one operation in the time traces of a mount and of a server.

use std::fs;

use apus::introspection;
use apus::trace::{Event, Record, Trace};
use apus_fs_core::client::OperationKind;
use apus_fs_core::wire::RequestKind;

use crate::harness::{Process, World, can_mount};

/// The trace that records a station, its event, and a further condition.
type Station<'a> = (&'a [Record], Event, &'a dyn Fn(&Record) -> bool);

/// All records of a process, the earliest first. Processes of one host read the same clock.
fn records(process: &Process) -> Vec<Record> {
    let bytes = introspection::Process::new(process.id()).request("trace dump").unwrap();
    let trace = Trace::read(&mut bytes.as_slice()).unwrap();
    let mut records: Vec<_> = trace.threads.into_iter().flat_map(|thread| thread.records).collect();
    records.sort_by_key(|record| record.ticks);
    records
}

/// The file is created in the cache; its batch passes the client, the network, the server and the
/// log; its response ends the `sync`.
#[test]
fn an_operation_is_seen_at_all_stations_in_order() {
    if !can_mount() {
        return;
    }
    let world = World::new();
    let server = world.serve(None);
    let (mount, place) = world.mount(&server.ready, "mount");
    let path = place.join("file");
    fs::write(&path, "hello").unwrap();
    fs::File::open(&path).unwrap().sync_all().unwrap();
    let (at_mount, at_server) = (records(&mount), records(&server));

    let of_kind = |kind: OperationKind| {
        let is_it = |record: &&Record| {
            record.event() == Some(Event::FsOperation) && record.a == kind as u32
        };
        at_mount.iter().find(is_it).unwrap_or_else(|| panic!("no {kind:?} in {at_mount:?}"))
    };
    // A batch leaves with the sync, or before it if the program pauses between its calls.
    let (create, sync) = (of_kind(OperationKind::Create), of_kind(OperationKind::Sync));
    let batch = RequestKind::Batch as u32;
    // Station by station: trace, event, and a further condition.
    let any = |_: &Record| true;
    let stations: [Station<'_>; 6] = [
        (&at_mount, Event::FsCall, &|record| record.a == batch),
        (&at_server, Event::FsRequest, &|record| record.a == batch),
        (&at_server, Event::FsCommit, &|record| record.a == 1 && record.b > 0),
        (&at_server, Event::FsRespond, &any),
        (&at_mount, Event::FsResponse, &any),
        (&at_mount, Event::FsReply, &|record| (record.a, record.b) == (0, sync.b)),
    ];
    // The network's stations: which RPCs are recorded is drawn, so that their place is not known.
    let has = |records: &[Record], event| records.iter().any(|it| it.event() == Some(event));
    assert!(has(&at_mount, Event::Call) && has(&at_server, Event::Reply));
    let mut at = create.ticks;
    for (records, event, is_right) in stations {
        let found = records
            .iter()
            .find(|record| record.ticks >= at && record.event() == Some(event) && is_right(record));
        at = found.unwrap_or_else(|| panic!("no {event:?} after {at} in {records:?}")).ticks;
    }
    assert!(mount.stop().success() && server.stop().success());
}
