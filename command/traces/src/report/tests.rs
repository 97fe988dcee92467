//! Reports on scenarios with known results.

use super::cores::{CoreUsage, MIN_GAP};
use super::delays::Delays;
use super::grants::{self, Grants};
use super::handoffs::Handoffs;
use super::losses::Losses;
use super::rpcs::{RpcList, RpcOrder};
use super::rtt::RoundTrips;
use super::scenario::{HostClock, Scenario, ThreadId, again, burst};
use super::timeline::Timeline;
use super::{Distribution, RpcFilter};
use crate::merge::MergedTraces;
use apus_trace::event::Event;
use apus_trace::{Side, Trace};

fn all() -> RpcFilter {
    RpcFilter::default()
}

/// Stage durations 1000, 2000, ... 15,000 ns.
fn steps() -> [i64; 15] {
    std::array::from_fn(|stage| 1_000 * (stage as i64 + 1))
}

/// Two RPCs of 100 bytes, the second with a slower service.
fn two_rpcs() -> Scenario {
    let (mut scenario, client, server) = Scenario::pair();
    let end = scenario.exchange(0, [client, server], 2, [100, 100], steps());
    let mut slow = steps();
    slow[7] += 50_000;
    scenario.exchange(end + 1_000, [client, server], 4, [100, 100], slow);
    scenario
}

mod timeline {
    use super::*;

    #[test]
    fn stages_add_up_to_the_round_trip() {
        let timeline = Timeline::of(&two_rpcs().merged(), &all());
        let [group] = &timeline.groups[..] else { panic!("{timeline:?}") };
        let means: Vec<f64> = group.stages.iter().map(|line| line.times.mean()).collect();
        let mut expected: Vec<f64> = steps().iter().map(|nanos| *nanos as f64).collect();
        expected[7] += 25_000.0;
        assert_eq!(means, expected, "each to the nanosecond");
        assert_eq!(group.rtt.mean(), 120_000.0 + 25_000.0);
        assert_eq!(group.sum_of_means(), group.rtt.mean());
        assert_eq!(group.differences()[0], 0.0);
        assert_eq!((group.sum_of_medians(), group.rtt.median()), (120_000, 120_000));
        assert_eq!(timeline.incomplete, 0);
    }

    #[test]
    fn stages_have_their_names_and_places() {
        let timeline = Timeline::of(&two_rpcs().merged(), &all());
        let named = |line: &super::super::timeline::StageLine| {
            format!("{} {}", line.stage.place, line.stage.name)
        };
        let names: Vec<String> = timeline.groups[0].stages.iter().map(named).collect();
        let expected = [
            "client submit",
            "client send",
            "network request",
            "server receive",
            "server hand off",
            "server wake up",
            "server return",
            "server service",
            "server submit",
            "server send",
            "network response",
            "client receive",
            "client hand off",
            "client wake up",
            "client return",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn stages_add_up_without_the_servers_trace() {
        let client = vec![("client.tt".to_owned(), two_rpcs().trace(0))];
        let timeline = Timeline::of(&MergedTraces::of(client).unwrap(), &all());
        let group = &timeline.groups[0];
        assert_eq!(group.differences()[0], 0.0);
        let beyond = group.stages.iter().find(|line| line.stage.name == "and server").unwrap();
        // Stages 3 to 11, and half of 50 µs.
        assert_eq!(beyond.times.mean(), 63_000.0 + 25_000.0);
        assert_eq!(group.stages.len(), 7);
    }

    #[test]
    fn a_thread_that_takes_its_message_itself_is_not_woken() {
        let (mut scenario, client, server) = Scenario::pair();
        scenario.exchange(0, [client, server], 2, [10, 10], steps());
        let mut trace = scenario.trace(0);
        let handed = [Event::HandedOff as u16, Event::Woken as u16];
        trace.threads[0].records.retain(|record| !handed.contains(&record.kind));
        let traces = vec![("c".to_owned(), trace), ("s".to_owned(), scenario.trace(1))];
        let timeline = Timeline::of(&MergedTraces::of(traces).unwrap(), &all());
        let last = timeline.groups[0].stages.last().unwrap();
        assert_eq!(
            (last.stage.name, last.times.mean()),
            ("return", 13_000.0 + 14_000.0 + 15_000.0)
        );
        assert_eq!(timeline.groups[0].differences(), [0.0; 2]);
    }

    #[test]
    fn an_rpc_that_has_not_ended_is_counted_and_left_out() {
        let mut scenario = two_rpcs();
        scenario.record_rpc(900_000, (0, 0), 6, Event::Call, (0, 100));
        let timeline = Timeline::of(&scenario.merged(), &all());
        assert_eq!((timeline.incomplete, timeline.groups[0].rtt.count()), (1, 2));
    }

    #[test]
    fn long_messages_are_filtered() {
        let (mut scenario, client, server) = Scenario::pair();
        scenario.exchange(0, [client, server], 2, [100, 90_000], steps());
        let short = RpcFilter { max_bytes: Some(1_000), ..all() };
        assert_eq!(Timeline::of(&scenario.merged(), &short).groups, []);
        let elsewhere = RpcFilter { peer: Some("10.0.0.3".to_owned()), ..all() };
        assert_eq!(Timeline::of(&scenario.merged(), &elsewhere).groups, []);
        let here = RpcFilter { peer: Some(":4000".to_owned()), min_us: Some(120), ..all() };
        assert_eq!(Timeline::of(&scenario.merged(), &here).groups[0].rtt.count(), 1);
    }

    #[test]
    fn shared_memory_is_a_separate_group() {
        let (mut scenario, client, server) = Scenario::pair();
        for (at, thread, event) in [
            (0, client, Event::Call),
            (100, client, Event::Queued),
            (300, client, Event::LocalSent),
            (700, server, Event::LocalReceived),
            (1_500, server, Event::RequestReturned),
            (1_600, server, Event::Reply),
            (1_700, server, Event::LocalSent),
            (2_000, client, Event::LocalReceived),
            (2_100, client, Event::Returned),
        ] {
            scenario.record_rpc(at, thread, 2, event, (0, 100));
        }
        let timeline = Timeline::of(&scenario.merged(), &all());
        let group = &timeline.groups[0];
        assert_eq!(
            (group.medium, group.rtt.mean(), group.sum_of_means()),
            ("memory", 2_100.0, 2_100.0)
        );
        let receive = group.stages.iter().find(|line| line.stage.name == "receive").unwrap();
        assert_eq!((receive.stage.place, receive.times.mean()), ("server", 400.0));
    }
}

/// Two hundred RPCs. The two slowest waited for the server's application and sent a RESEND.
fn mostly_fast() -> Scenario {
    let (mut scenario, client, server) = Scenario::pair();
    let mut at = 0;
    for index in 0..200 {
        let (id, mut times) = (2 + 2 * index, steps());
        let slow = [70, 140].contains(&index);
        if slow {
            times[7] += 300_000;
            scenario.record_rpc(at + 100_000, client, id, Event::ResendSent, burst(0, 100));
        }
        at = 1_000 + scenario.exchange(at, [client, server], id, [100, 100], times);
    }
    scenario
}

mod rtt {
    use super::*;

    #[test]
    fn common_circumstances_of_the_slowest_are_found() {
        let rtt = RoundTrips::of(&mostly_fast().merged(), &all());
        let [class] = &rtt.classes[..] else { panic!("{rtt:?}") };
        assert_eq!((class.upto_bytes, class.rtt.count()), (Some(100), 200));
        assert_eq!((class.rtt.median(), class.rtt.percentile(100.0)), (120_000, 420_000));
        let slowest = rtt.slowest.unwrap();
        assert_eq!((slowest.rpcs, slowest.slower_than_median), (2, 3.5));
        let service = slowest.stages.iter().find(|it| it.stage.name == "service").unwrap();
        assert_eq!((service.slowest, service.usual), (308_000.0, 8_000.0));
        let others = slowest.stages.iter().filter(|it| it.stage.name != "service");
        assert!(others.into_iter().all(|it| it.slowest == it.usual));
        let first = &slowest.circumstances[0];
        assert_eq!(first.what, "bytes were requested by RESEND");
        assert_eq!((first.of_slowest, first.of_others), (1.0, 0.0));
        assert!(slowest.circumstances.iter().all(|it| it.of_slowest > it.of_others));
        assert_eq!(slowest.examples.iter().map(|it| it.id).collect::<Vec<_>>(), [142, 282]);
        assert_eq!(slowest.examples[0].most.unwrap().name, "service");
    }

    #[test]
    fn a_long_message_may_take_longer() {
        let (mut scenario, client, server) = Scenario::pair();
        let mut at = 0;
        for id in 1..=100 {
            let (length, more) = if id == 50 { (500_000, 400_000) } else { (100, 0) };
            let mut times = steps();
            times[2] += more + if id == 7 { 100_000 } else { 0 };
            at = 1_000 + scenario.exchange(at, [client, server], 2 * id, [length, 10], times);
        }
        let rtt = RoundTrips::of(&scenario.merged(), &all());
        assert_eq!(rtt.classes.len(), 2);
        assert_eq!(rtt.classes[1].upto_bytes, Some(1_000_000));
        // Slower than other RPCs of its length; the long RPC is not.
        assert_eq!(rtt.slowest.unwrap().examples[0].id, 14);
    }

    #[test]
    fn a_trace_without_rpcs_has_no_classes() {
        let (scenario, ..) = Scenario::pair();
        let rtt = RoundTrips::of(&scenario.merged(), &all());
        assert_eq!((rtt.classes.len(), rtt.slowest), (0, None));
    }
}

/// A request of 3 packets of 1000 bytes: the first unscheduled, the second granted, the third lost
/// and retransmitted.
fn long_request() -> Scenario {
    let (mut scenario, client, server) = Scenario::pair();
    let records: [(i64, ThreadId, Event, (u32, u64)); 22] = [
        (0, client, Event::Call, (0, 3_000)),
        (1_000, client, Event::Queued, (0, 3_000)),
        (2_000, client, Event::DataSent, burst(0, 1_000)),
        (2_500, client, Event::ToKernel, (1, 0)),
        (5_000, server, Event::FromKernel, (1, 0)),
        (5_600, server, Event::DataReceived, burst(0, 1_000)),
        (5_700, server, Event::GrantSent, (0, 3_000)),
        (9_000, client, Event::GrantReceived, (0, 3_000)),
        (9_400, client, Event::DataSent, burst(1_000, 2_000)),
        (9_400, client, Event::GrantUsed, (0, 3_000)),
        (9_700, client, Event::ToKernel, (2, 1_000)),
        (12_000, server, Event::FromKernel, (1, 0)),
        (12_200, server, Event::DataReceived, burst(1_000, 1_000)),
        (50_000, server, Event::ResendSent, burst(2_000, 1_000)),
        (53_000, client, Event::ResendReceived, burst(2_000, 1_000)),
        (53_500, client, Event::DataSent, again(2_000, 1_000)),
        (53_600, client, Event::ToKernel, (1, 2_000)),
        (57_000, server, Event::FromKernel, (1, 0)),
        (57_100, server, Event::DataReceived, again(2_000, 1_000)),
        (57_200, server, Event::Parsed, (0, 3_000)),
        (58_000, server, Event::RequestReturned, (0, 3_000)),
        (70_000, client, Event::Returned, (0, 10)),
    ];
    for (at, thread, event, numbers) in records {
        scenario.record_rpc(at, thread, 2, event, numbers);
    }
    scenario
}

mod packets {
    use super::*;

    #[test]
    fn bursts_are_paired_with_received_pieces() {
        let delays = Delays::of(&long_request().merged(), &all());
        let times = |kind: &str| {
            let kind = delays.kinds.iter().find(|it| it.name == kind).unwrap();
            let time = |(name, times): &(&'static str, Distribution)| (*name, times.median());
            kind.stages.iter().map(time).collect::<Vec<_>>()
        };
        let stages = |waited, to_kernel, network, handled, lived| {
            vec![
                ("waited", waited),
                ("to kernel", to_kernel),
                ("network", network),
                ("handled", handled),
                ("lived", lived),
            ]
        };
        assert_eq!(times("request, unscheduled"), stages(1_000, 500, 2_500, 600, 3_600));
        assert_eq!(times("request, granted"), stages(8_400, 300, 2_300, 200, 2_800));
        assert_eq!(times("request, sent again"), stages(52_500, 100, 3_400, 100, 3_600));
        assert_eq!(times("GRANT"), [("came", 3_300), ("was used", 400)]);
        assert_eq!(times("RESEND"), [("came", 3_000)]);
        assert_eq!((delays.kinds.len(), delays.unpaired), (5, 0));
    }

    #[test]
    fn pieces_of_an_unknown_sender_are_counted() {
        let server = vec![("s".to_owned(), long_request().trace(1))];
        let delays = Delays::of(&MergedTraces::of(server).unwrap(), &all());
        assert_eq!((delays.kinds.len(), delays.unpaired), (0, 3));
    }

    #[test]
    fn an_rpc_has_its_rates_and_its_first_grant() {
        let rpcs = RpcList::of(&long_request().merged(), &all(), RpcOrder::Rtt, 10);
        let [line] = &rpcs.lines[..] else { panic!("{rpcs:?}") };
        let [request, response] = &line.messages;
        assert_eq!((line.id, line.rtt, request.length), (2, Some(70_000), Some(3_000)));
        assert_eq!(request.first_grant, Some(8_000));
        // 3000 bytes after the first burst in 51,500 ns; 2000 in 51,500 at the receiver.
        assert_eq!(request.transmit.map(|rate| (rate * 1e6).round()), Some(466_019.0));
        assert_eq!(request.receive.map(|rate| (rate * 1e6).round()), Some(310_680.0));
        // 3000 bytes in 600 + 200 + 100 ns.
        assert_eq!(request.copy.map(|rate| (rate * 1e3).round()), Some(26_667.0));
        assert_eq!((response.length, response.transmit), (Some(10), None));
        assert_eq!(line.remarks, ["resend_received", "resend_sent"]);
        assert!(line.client.address == "10.0.0.1:999", "{line:?}");
        assert_eq!((rpcs.rpcs, rpcs.first_grant.median()), (1, 8_000));
    }

    #[test]
    fn rpcs_have_the_requested_order() {
        let mut scenario = two_rpcs();
        scenario.record_rpc(0, (0, 0), 6, Event::Queued, (0, 500));
        let ids = |order, limit| {
            let rpcs = RpcList::of(&scenario.merged(), &all(), order, limit);
            rpcs.lines.iter().map(|line| line.id).collect::<Vec<_>>()
        };
        assert_eq!(ids(RpcOrder::Rtt, 9), [4, 2, 6], "what has not ended comes last");
        assert_eq!(ids(RpcOrder::Length, 1), [6]);
        assert_eq!(ids(RpcOrder::Time, 9)[2], 4);
        for (order, name) in RpcOrder::ALL {
            assert_eq!((name.parse(), order.to_string().as_str()), (Ok(order), name));
        }
        assert!("size".parse::<RpcOrder>().unwrap_err().contains("time, rtt, length"));
    }

    #[test]
    fn outstanding_and_available_bytes_are_integrated_over_time() {
        let grants = Grants::of(&long_request().merged(), grants::MIN_GAP);
        let [client, server] = &grants.processes[..] else { panic!("{grants:?}") };
        // 2000 bytes from 5.7 to 12.2 µs, 1000 from there until the message is complete at 57.2 µs.
        let outstanding = &server.outstanding;
        assert_eq!((outstanding.messages, outstanding.time, outstanding.max), (1, 51_500, 2_000));
        let mean = (2_000.0 * 6_500.0 + 1_000.0 * 45_000.0) / 51_500.0;
        assert!((outstanding.mean - mean).abs() < 1e-6, "{outstanding:?}");
        // 2000 bytes from 9.0 to 9.4 µs.
        let available = &client.available;
        assert_eq!((available.time, available.max, available.mean), (400, 2_000, 2_000.0));
        // Work waits from the first packet to the last, with one gap in between.
        let link = server.link;
        assert_eq!((link.bytes, link.waiting), (3_000, 51_600));
        assert_eq!((link.gaps, link.idle, link.longest), (1, 44_900, 44_900));
        assert_eq!(link.causes, [0, 0, 44_900], "everything had been sent");
    }

    #[test]
    fn idle_time_has_a_cause() {
        let (mut scenario, client, server) = Scenario::pair();
        let records = [
            (0, client, Event::DataSent, burst(0, 1_000)),
            (5_000, server, Event::DataReceived, burst(0, 1_000)),
            // No grant is sent for 100 µs.
            (105_000, server, Event::GrantSent, (0, 3_000)),
            (105_010, client, Event::GrantReceived, (0, 3_000)),
            (105_020, client, Event::DataSent, burst(1_000, 1_000)),
            (105_030, server, Event::DataReceived, burst(1_000, 1_000)),
            // The sender is idle for 200 µs.
            (305_000, client, Event::DataSent, burst(2_000, 1_000)),
            (305_030, server, Event::DataReceived, burst(2_000, 1_000)),
            (305_030, server, Event::Parsed, (0, 3_000)),
        ];
        for (at, thread, event, numbers) in records {
            scenario.record_rpc(at, thread, 2, event, numbers);
        }
        let grants = Grants::of(&scenario.merged(), grants::MIN_GAP);
        assert_eq!(grants.processes[1].link.causes, [100_030, 200_000, 0]);
    }
}

mod losses {
    use super::*;

    fn causes(scenario: &Scenario) -> Vec<(String, Option<i64>)> {
        let losses = Losses::of(&scenario.merged(), &all());
        losses.resends.into_iter().map(|resend| (resend.cause, resend.wait)).collect()
    }

    #[test]
    fn bytes_sent_and_not_received_were_lost_on_the_way() {
        assert_eq!(causes(&long_request()), [("on the way".to_owned(), Some(7_100))]);
        let mut scenario = long_request();
        scenario.record_rpc(40_000, (1, 0), 2, Event::Dropped, (1, 0));
        assert_eq!(causes(&scenario), [("dropped here: no room".to_owned(), Some(7_100))]);
        let rare = Losses::of(&scenario.merged(), &all()).rare;
        let dropped = rare.iter().find(|rare| rare.event == "dropped").unwrap();
        assert_eq!((dropped.reason.as_deref(), dropped.count), (Some("no room"), 1));
    }

    #[test]
    fn each_cause_is_recognized() {
        let (mut scenario, client, server) = Scenario::pair();
        let everything = burst(0, u32::MAX);
        let records = [
            // 2: the original transmission arrives after the RESEND.
            (2, 0, client, Event::DataSent, burst(0, 500)),
            (2, 90_000, server, Event::ResendSent, burst(0, 500)),
            (2, 95_000, server, Event::DataReceived, burst(0, 500)),
            // 4: already received.
            (4, 0, client, Event::DataSent, burst(0, 500)),
            (4, 5_000, server, Event::DataReceived, burst(0, 500)),
            (4, 90_000, server, Event::ResendSent, burst(0, 500)),
            // 6: only the first half was sent.
            (6, 0, client, Event::DataSent, burst(0, 500)),
            (6, 90_000, server, Event::ResendSent, burst(500, 500)),
            // 8: the application has not replied.
            (8, 0, client, Event::DataSent, burst(0, 500)),
            (8, 5_000, server, Event::Parsed, (0, 500)),
            (8, 90_000, client, Event::ResendSent, everything),
            // 10: the request arrives later.
            (10, 0, client, Event::Queued, (0, 500)),
            (10, 0, client, Event::DataSent, burst(0, 500)),
            (10, 90_000, client, Event::ResendSent, everything),
            (10, 95_000, server, Event::DataReceived, burst(0, 500)),
            // 12: half of the request waits for grants.
            (12, 0, client, Event::Queued, (0, 1_000)),
            (12, 0, client, Event::DataSent, burst(0, 500)),
            (12, 5_000, server, Event::DataReceived, burst(0, 500)),
            (12, 90_000, client, Event::ResendSent, everything),
        ];
        for (id, at, thread, event, numbers) in records {
            scenario.record_rpc(at, thread, id, event, numbers);
        }
        let mut resends = Losses::of(&scenario.merged(), &all()).resends;
        resends.sort_by_key(|resend| resend.id);
        let causes: Vec<&str> = resends.iter().map(|resend| resend.cause.as_str()).collect();
        let expected = [
            "late",
            "came before",
            "not sent yet",
            "still served",
            "request on the way",
            "request not sent yet",
        ];
        assert_eq!(causes, expected);
        assert_eq!((resends[0].wait, resends[3].length), (Some(5_000), None));
        let server = vec![("s".to_owned(), scenario.trace(1))];
        let alone = Losses::of(&MergedTraces::of(server).unwrap(), &all());
        let unknown = alone.causes.iter().find(|it| it.cause.starts_with("unknown")).unwrap();
        assert_eq!(unknown.resends, 2);
    }
}

mod threads {
    use super::*;

    #[test]
    fn a_handoff_lasts_from_notified_to_running() {
        let (mut scenario, client, server) = Scenario::pair();
        let worker = scenario.thread(1, "worker");
        let numbers = (0, 9);
        // Notified while asleep, notified while spinning, no waiter, and notified without a later
        // record.
        scenario.record_thread(500, worker, Event::Sleep, (1, 9));
        scenario.record_rpc(1_000, server, 2, Event::HandedOff, numbers);
        scenario.record_thread(8_000, worker, Event::Wake, (1, 9));
        scenario.record_rpc(8_100, worker, 2, Event::Woken, numbers);
        scenario.record_rpc(20_000, server, 4, Event::HandedOff, numbers);
        scenario.record_rpc(20_300, worker, 4, Event::Woken, numbers);
        scenario.record_rpc(30_000, server, 6, Event::HandedOff, (0, 0));
        scenario.record_rpc(40_000, server, 8, Event::HandedOff, numbers);
        // The poll role is passed to a sleeping waiter, and to a spinning one.
        scenario.record_thread(50_000, worker, Event::Sleep, (1, 9));
        scenario.record_thread(60_000, server, Event::PassTurn, numbers);
        scenario.record_thread(64_000, worker, Event::Wake, (1, 9));
        scenario.record_thread(70_000, server, Event::PassTurn, numbers);
        scenario.record_thread(80_000, worker, Event::Sleep, (1, 9));
        scenario.record_thread(90_000, worker, Event::Wake, (1, 9));
        let _ = client;
        let report = Handoffs::of(&scenario.merged(), &all());
        assert_eq!((report.handoffs, report.without_handoff, report.unmatched), (3, 1, 1));
        assert_eq!((report.asleep.values(), report.spinning.values()), (&[7_100][..], &[300][..]));
        let [pair] = &report.pairs[..] else { panic!("{report:?}") };
        assert_eq!((pair.asleep, pair.delay.count()), (1, 2));
        assert!(pair.from == "1: main" && pair.to == "1: worker", "{pair:?}");
        assert_eq!((report.role_passes, report.role_delays.values()), (2, &[4_000][..]));
    }

    #[test]
    fn a_gap_in_work_is_a_stall_and_waiting_is_not() {
        let (mut scenario, client, server) = Scenario::pair();
        // Waits for 10 ms, asleep and awake.
        scenario.record_thread(0, client, Event::Sleep, (0, 0));
        scenario.record_thread(5_000_000, client, Event::Wake, (0, 0));
        // A pass of 300 µs with a poll in its first 10 µs and a send in its last 5 µs.
        scenario.record_thread(10_010_000, client, Event::Look, (3, 10_000));
        scenario.record_thread(10_300_000, client, Event::Send, (3, 5_000));
        scenario.record_thread(10_300_000, client, Event::Pass, (3, 300_000));
        // The other process pauses at the same time, within a call.
        scenario.record_rpc(10_005_000, server, 2, Event::Reply, (0, 0));
        scenario.record_rpc(10_290_000, server, 2, Event::ToKernel, (1, 0));
        let cores = CoreUsage::of(&scenario.merged(), MIN_GAP);
        let stalls: Vec<_> =
            cores.stalls.iter().map(|it| (it.at, it.duration, it.others)).collect();
        assert_eq!(stalls, [(10_005_000, 285_000, 1), (10_010_000, 285_000, 1)]);
        assert_eq!(cores.stalls[0].between, ["reply", "to_kernel"]);
        assert_eq!(cores.stalls[1].between, ["look", "begin of send"]);
        assert_eq!(cores.simultaneous(), 2);
        let usage = &cores.threads[0];
        assert_eq!((usage.asleep, usage.working, usage.span), (5_000_000, 300_000, 10_300_000));
        assert_eq!(usage.gaps.count(), 1);
        assert_eq!(CoreUsage::of(&scenario.merged(), 300_000).stalls, []);
    }

    #[test]
    fn a_long_system_call_is_a_stall() {
        let (mut scenario, client, _) = Scenario::pair();
        scenario.record_thread(1_000_000, client, Event::Send, (1, 400_000));
        let cores = CoreUsage::of(&scenario.merged(), MIN_GAP);
        let [stall] = &cores.stalls[..] else { panic!("{cores:?}") };
        assert_eq!(
            (stall.duration, stall.between.each_ref().map(String::as_str)),
            (400_000, ["begin of send", "send"])
        );
    }
}

mod hostile {
    use super::*;
    use apus_trace::{PeerIndex, Record, Rpc};
    use proptest::prelude::*;

    /// Generates records whose ids and events often coincide.
    fn record() -> impl Strategy<Value = Record> {
        let event = prop::sample::select(Event::ALL);
        let ticks = prop_oneof![0..5_000_000_000_u64, any::<u64>()];
        let numbers =
            (prop_oneof![0..4_000_u32, any::<u32>()], prop_oneof![0..4_000_u64, any::<u64>()]);
        let rpc = (0..6_u64, any::<bool>(), prop_oneof![0..3_u16, any::<u16>()]);
        (ticks, event, rpc, numbers).prop_map(|(ticks, event, (id, server, peer), (a, b))| {
            let side = if server { Side::Server } else { Side::Client };
            match id {
                0 => Record::of_thread(ticks, event, a, b),
                id => Record::of_rpc(ticks, Rpc::new(2 * id, side, PeerIndex(peer)), event, a, b),
            }
        })
    }

    fn traces() -> impl Strategy<Value = Vec<(String, Trace)>> {
        let records = || prop::collection::vec(record(), 0..120);
        let clock = || (any::<i32>(), -1e9..1e9_f64, any::<u32>());
        (records(), records(), clock(), clock()).prop_map(|(one, two, a, b)| {
            let clock = |(ahead, ppm, up): (i32, f64, u32)| {
                let ahead = i64::from(ahead);
                HostClock { ahead, ppm: ppm.min(1e6), up: i64::from(up) }
            };
            let (scenario, ..) = Scenario::pair_with([clock(a), clock(b)]);
            let with = |process: usize, mut records: Vec<Record>| {
                let mut trace = scenario.trace(process);
                records.sort_by_key(|record| record.ticks);
                trace.threads[0].records = records;
                (process.to_string(), trace)
            };
            vec![with(0, one), with(1, two)]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Every report and export terminates for arbitrary file contents.
        #[test]
        fn any_file_is_reported_without_panic(traces in traces()) {
            let merged = MergedTraces::of(traces).unwrap();
            let json = serde_json::to_string(&(
                Timeline::of(&merged, &all()),
                RoundTrips::of(&merged, &all()),
                Delays::of(&merged, &all()),
                RpcList::of(&merged, &all(), RpcOrder::Time, 100),
                Grants::of(&merged, 0),
                Handoffs::of(&merged, &all()),
                Losses::of(&merged, &all()),
                CoreUsage::of(&merged, 0),
            ));
            prop_assert!(json.is_ok());
            prop_assert!(!crate::perfetto::export(&merged).is_empty());
            for rpc in &merged.rpcs {
                if let (Some(stages), Some(rtt)) = (super::super::stages::stages(rpc), rpc.rtt()) {
                    let sum: i64 = stages.into_iter().flatten().sum();
                    prop_assert_eq!(sum, rtt);
                }
            }
        }
    }
}
