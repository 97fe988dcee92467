//! Merging traces of several hosts.

use super::{MergeError, MergedTraces, Placement};
use crate::report::scenario::{HostClock, Scenario};
use apus_trace::Side;
use apus_trace::event::Event;

const SECOND: i64 = 1_000_000_000;

/// Creates 400 RPCs over two seconds; the network takes at least 4000 ns there and 2000 ns back.
fn busy(clocks: [HostClock; 2]) -> Scenario {
    let (mut scenario, client, server) = Scenario::pair_with(clocks);
    for index in 0..400_i64 {
        let mut times = [500; 15];
        times[2] = 4_000 + index * 7_919 % 97 * 100;
        times[10] = 2_000 + index * 104_729 % 89 * 100;
        let id = 2 + 2 * index as u64;
        scenario.exchange(index * SECOND / 200, [client, server], id, [100, 100], times);
    }
    scenario
}

#[test]
fn clocks_that_differ_by_an_hour_and_fifty_ppm_are_aligned() {
    let hour = 3_600 * SECOND;
    let merged =
        busy([HostClock::default(), HostClock { ahead: hour, ppm: 50.0, up: 77 * SECOND }])
            .merged();
    assert_eq!(merged.clocks.len(), 2);
    let Placement::Traffic { against, ppm, uncertainty, packets } = merged.clocks[1].placement
    else {
        panic!("{:?}", merged.clocks);
    };
    assert_eq!((against, packets), (0, [400, 400]));
    assert!((ppm - 50.0).abs() < 0.2, "{ppm}");
    // Half the sum of the smallest delays: 4 µs there, 2 µs back.
    assert!((uncertainty - 3_000.0).abs() < 100.0, "{uncertainty}");
    assert!((merged.clocks[1].ahead - hour).abs() < 10_000, "{}", merged.clocks[1].ahead);
    // The asymmetry is invisible: both directions appear to take 3 µs, at the start and at the
    // end.
    for rpc in &merged.rpcs {
        let at = |side, event| rpc.first(side, event).unwrap().at;
        let there = at(Side::Server, Event::FromKernel) - at(Side::Client, Event::ToKernel);
        let back = at(Side::Client, Event::FromKernel) - at(Side::Server, Event::ToKernel);
        assert!(there >= 2_900 && back >= 2_900, "{there} {back}");
    }
    let least = merged.rpcs.iter().filter_map(super::TracedRpc::rtt).min().unwrap();
    assert!(least >= 13 * 500 + 6_000, "as the client measured it");
    assert_eq!(merged.notes, Vec::<String>::new());
}

#[test]
fn processes_of_one_host_need_no_packets() {
    let merged = busy([HostClock { ahead: 5, ppm: 3.0, up: 9 }; 2]).merged();
    assert_eq!(merged.clocks.len(), 1);
    assert_eq!(merged.clocks[0].processes, [0, 1]);
    let rpc = &merged.rpcs[0];
    let [departure, arrival] = [(Side::Client, Event::ToKernel), (Side::Server, Event::FromKernel)]
        .map(|(side, event)| rpc.first(side, event).unwrap().at);
    assert_eq!(arrival - departure, 4_000, "to the nanosecond");
}

#[test]
fn records_are_in_chronological_order() {
    let clock = HostClock { ahead: -7 * SECOND, ppm: -30.0, up: SECOND };
    let merged = busy([HostClock::default(), clock]).merged();
    assert!(merged.records.is_sorted_by_key(|entry| entry.at));
    assert!(merged.rpcs.iter().all(|rpc| rpc.records.is_sorted_by_key(|record| record.at)));
    assert_eq!(merged.rpcs.len(), 400);
    assert!(merged.rpcs.iter().all(|rpc| rpc.records.len() == 16), "both sides of each");
}

#[test]
fn three_clocks_are_aligned_in_a_chain() {
    // A client, and a proxy that serves it and calls a server: the server's clock is aligned
    // through the proxy's clock.
    let mut scenario = Scenario::default();
    let clock = |ahead, up| HostClock { ahead, ppm: 0.0, up };
    let client = scenario.process("client", clock(0, 0), ["10.0.0.1:999", "10.0.0.2:4000"]);
    let proxy = scenario.process("proxy", clock(SECOND, 3), ["10.0.0.2:4000", "10.0.0.1:999"]);
    let threads = [client, proxy].map(|process| scenario.thread(process, "main"));
    scenario.exchange(0, threads, 2, [10, 10], [1_000; 15]);
    let mut traces = vec![scenario.trace(0), scenario.trace(1)];
    // The second pair; the proxy is its client.
    let mut behind = Scenario::default();
    let proxy = behind.process("proxy", clock(SECOND, 3), ["10.0.0.2:998", "10.0.0.3:4000"]);
    let server =
        behind.process("server", clock(-SECOND, 11 * SECOND), ["10.0.0.3:4000", "10.0.0.2:998"]);
    let threads = [proxy, server].map(|process| behind.thread(process, "main"));
    behind.exchange(2_000, threads, 102, [10, 10], [1_000; 15]);
    let mut proxies = behind.trace(0);
    proxies.head.pid = 7;
    traces.extend([proxies, behind.trace(1)]);
    let named = traces.into_iter().enumerate().map(|(place, trace)| (place.to_string(), trace));
    let merged = MergedTraces::of(named.collect()).unwrap();
    assert_eq!(merged.clocks.len(), 3, "both proxies have the same");
    let against = |clock: usize| match merged.clocks[clock].placement {
        Placement::Traffic { against, uncertainty, .. } => Some((against, uncertainty)),
        _ => None,
    };
    assert_eq!((against(1), against(2)), (Some((0, 1_000.0)), Some((1, 2_000.0))));
    let first = |id| merged.rpcs.iter().find(|rpc| rpc.id == id).unwrap().begin();
    assert_eq!(first(102) - first(2), 2_000);
}

#[test]
fn hosts_without_common_rpcs_are_aligned_by_wall_clocks() {
    let mut scenario = Scenario::default();
    let away = HostClock { ahead: 500, ppm: 0.0, up: 17 * SECOND };
    for clock in [HostClock::default(), away] {
        let process = scenario.process("alone", clock, ["10.0.0.1:1", "10.0.0.2:2"]);
        let thread = scenario.thread(process, "main");
        scenario.record_thread(1_000, thread, Event::Look, (1, 0));
    }
    let merged = scenario.merged();
    assert_eq!(merged.clocks[1].placement, Placement::WallClock);
    assert_eq!(merged.records[1].at - merged.records[0].at, 500, "as their wall clocks say");
    assert!(merged.notes[0].contains("cannot be aligned"), "{:?}", merged.notes);
}

#[test]
fn two_traces_of_one_process_are_rejected() {
    let (scenario, ..) = Scenario::pair();
    let one = |name: &str| (name.to_owned(), scenario.trace(0));
    let error = MergedTraces::of(vec![one("a.tt"), one("b.tt")]).unwrap_err();
    assert!(matches!(error, MergeError::DuplicateProcess { .. }), "{error}");
    assert!(error.to_string().starts_with("a.tt and b.tt are traces of the same process (client"));
    assert_eq!(MergedTraces::of(Vec::new()).unwrap_err(), MergeError::NoTraces);
}

#[test]
fn a_clock_set_during_the_trace_is_noted() {
    let (mut scenario, client, server) = Scenario::pair_with([
        HostClock::default(),
        HostClock { up: SECOND, ..HostClock::default() },
    ]);
    scenario.exchange(0, [client, server], 2, [10, 10], [1_000; 15]);
    // The server's clock is set back by 50 µs after the first RPC.
    let mut times = [1_000; 15];
    times[2] -= 50_000;
    times[10] += 50_000;
    scenario.exchange(SECOND / 1_000, [client, server], 4, [10, 10], times);
    let merged = scenario.merged();
    assert!(merged.notes[0].contains("before they are sent"), "{:?}", merged.notes);
}

#[test]
fn overwritten_records_are_noted() {
    let (mut scenario, client, _) = Scenario::pair();
    scenario.record_thread(0, client, Event::Look, (1, 0));
    let mut trace = scenario.trace(0);
    trace.threads[0].overwritten = 12;
    let merged = MergedTraces::of(vec![("a.tt".to_owned(), trace)]).unwrap();
    assert!(merged.notes[0].starts_with("a.tt: 12 older records"), "{:?}", merged.notes);
}
