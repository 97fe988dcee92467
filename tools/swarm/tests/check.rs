//! Situation: something changed in the protocol, and nobody has time for a thousand seeds. A few small ones with
//! each kind of fault run here; `apus sim check` runs the others.

use std::num::NonZero;

use apus_sim::fabric::Buffers;
use apus_sim::fault::{Corruption, Counters, Crash, Outages, Partition, Pause, Settings};
use apus_swarm::{Answer, Call, Kind, Peers, Scenario, Summary, Swarm, check, check_scenario};
use apus_workload::Rate;
use apus_workload::time::{MICROSECOND, MILLISECOND, SECOND};

/// A scenario, small and without faults.
fn small(mut scenario: Scenario) -> Scenario {
    scenario.calls.truncate(60);
    for call in &mut scenario.calls {
        (call.request, call.response) = (call.request.min(30_000), call.response.min(30_000));
    }
    scenario.faults = Settings::default();
    scenario.outages = Outages::default();
    scenario.heal_at = scenario.calls.last().map_or(0, |call| call.at) + MILLISECOND;
    scenario
}

/// Runs a scenario that is told to go wrong in some way, and sees that it does and that nothing is broken.
fn goes_well(change: impl Fn(&mut Scenario), happened: fn(&Counters) -> u64) {
    let mut times = 0;
    for seed in 1..5 {
        let mut scenario = small(Scenario::draw(seed));
        change(&mut scenario);
        let verdict = check_scenario(&scenario);
        if let Some(finding) = verdict.finding {
            panic!("{finding}");
        }
        times += happened(&verdict.tally.faults);
    }
    assert_ne!(times, 0, "the fault happens");
}

#[test]
fn nothing_goes_wrong() {
    goes_well(|_| {}, |_| 1);
}

#[test]
fn packets_are_lost() {
    goes_well(|scenario| scenario.faults.loss = 1_000, |counters| counters.lost);
}

#[test]
fn packets_are_lost_in_bursts() {
    let burst = |scenario: &mut Scenario| {
        (scenario.faults.burst, scenario.faults.burst_length) = (100, 10);
    };
    goes_well(burst, |counters| counters.lost_in_bursts);
}

#[test]
fn packets_arrive_twice() {
    goes_well(|scenario| scenario.faults.duplication = 2_000, |counters| counters.duplicated);
}

#[test]
fn packets_are_overtaken() {
    let reorder = |scenario: &mut Scenario| {
        (scenario.faults.reordering, scenario.faults.reordered_by) = (3_000, 200 * MICROSECOND);
    };
    goes_well(reorder, |counters| counters.reordered);
}

#[test]
fn packets_are_held_up() {
    let spike = |scenario: &mut Scenario| {
        (scenario.faults.spike, scenario.faults.spike_of) = (100, 10 * MILLISECOND);
    };
    goes_well(spike, |counters| counters.held_up);
}

#[test]
fn copies_come_when_all_is_forgotten() {
    let late = |scenario: &mut Scenario| {
        if scenario.config.profile() == apus_proto::Profile::Udp {
            (scenario.faults.very_late, scenario.faults.late_by) = (1_000, 300 * SECOND);
        }
    };
    goes_well(late, |counters| counters.very_late);
}

#[test]
fn corrupted_packets_are_caught_or_not() {
    goes_well(|scenario| scenario.faults.corruption = 500, |counters| counters.caught);
    let unnoticed = |scenario: &mut Scenario| {
        scenario.faults.corruption = 500;
        scenario.faults.corrupted = Corruption::Unnoticed;
    };
    goes_well(unnoticed, |counters| counters.corrupted);
}

#[test]
fn hosts_are_cut_off() {
    let cut = |scenario: &mut Scenario| {
        let until = scenario.heal_at;
        scenario.outages.partitions = vec![Partition { side: vec![0], from: 0, until }];
    };
    goes_well(cut, |counters| counters.cut_off);
}

#[test]
fn hosts_fall_asleep_and_do_everything_at_once() {
    let pause = |scenario: &mut Scenario| {
        let until = scenario.heal_at;
        scenario.outages.pauses = vec![Pause { host: 1, from: until / 3, until }];
    };
    goes_well(pause, |counters| counters.at_paused_host);
}

#[test]
fn hosts_die_and_come_back_or_not() {
    for returns in [true, false] {
        goes_well(
            |scenario| {
                let until = if returns { scenario.heal_at } else { u64::MAX };
                if scenario.config.profile() == apus_proto::Profile::Udp {
                    let at = scenario.heal_at / 3;
                    scenario.outages.crashes = vec![Crash { host: 1, at, until }];
                }
            },
            |counters| counters.at_dead_host,
        );
    }
}

/// Hosts with the Linux module among hosts with apus, and nothing, loss, or disorder between them.
#[test]
fn some_hosts_run_the_linux_module() {
    let troubles: [fn(&mut Settings); 3] = [
        |_| {},
        |faults| faults.loss = 1_000,
        |faults| {
            (faults.duplication, faults.reordering) = (1_000, 3_000);
            faults.reordered_by = 200 * MICROSECOND;
        },
    ];
    let mut packets = 0;
    for (seed, trouble) in (1..4).flat_map(|seed| troubles.map(|trouble| (seed, trouble))) {
        let mut scenario = small(Scenario::draw_with(seed, Peers::Kernel));
        let modules = scenario.kernel_hosts.len() as u32;
        assert!((1..scenario.hosts()).contains(&modules), "both are there");
        trouble(&mut scenario.faults);
        let verdict = check_scenario(&scenario);
        if let Some(finding) = verdict.finding {
            panic!("{finding}");
        }
        packets += verdict.tally.packets;
    }
    assert_ne!(packets, 0);
}

/// A call that was given up while its server, which runs the Linux module, waits for grants: it would wait for ever.
/// (Found by seeds 2, 9 and 12 of `--peer-model kernel`: calls with deadlines left their responses at servers.)
#[test]
fn a_call_that_is_given_up_leaves_nothing_at_a_server_with_the_linux_module() {
    for seed in 1..4 {
        let mut scenario = small(Scenario::draw_with(seed, Peers::Kernel));
        scenario.calls.truncate(10);
        scenario.fabric.buffers = Buffers::PerPort(u64::MAX);
        for call in &mut scenario.calls {
            call.response = 200_000.min(scenario.config.max_message() as u32);
            call.deadline = Some(50 * MICROSECOND);
        }
        if let Some(finding) = check_scenario(&scenario).finding {
            panic!("{finding}");
        }
    }
}

/// Hosts of one rack of the paper's, of which the first runs the Linux module: nothing is lost, and one message is
/// granted at a time.
fn rack(calls: Vec<Call>) -> Scenario {
    let builder = apus_proto::Config::builder().profile(apus_proto::Profile::Kernel);
    let mut scenario = small(Scenario::draw_with(1, Peers::Kernel));
    scenario.config = builder.max_overcommit(1).grant_fifo_fraction(0).build().unwrap();
    scenario.fabric = apus_sim::fabric::Settings::new(apus_sim::preset::sigcomm18(), 1);
    scenario.fabric.topology.shape = "1x4x0".parse().unwrap();
    scenario.packet_limit = 1_472;
    (scenario.kernel_hosts, scenario.calls) = (vec![0], calls);
    scenario.heal_at = MILLISECOND;
    scenario
}

/// A call of a host with apus to the module of another one.
const fn to_module(from: u32, at: u64, request: u32, response: u32) -> Call {
    Call {
        from,
        to: 0,
        at,
        request,
        response,
        service: 0,
        answer: Answer::Reply,
        cancel: None,
        deadline: None,
        idempotent: false,
    }
}

/// RPC-5, the first half: nothing of the response is under way any more, so that only the word of who gives the call up
/// tells the module.
#[test]
fn a_call_that_is_given_up_while_its_response_waits_for_grants_leaves_nothing_at_the_module() {
    let granted = Call { to: 2, ..to_module(1, 0, 100, 400_000) };
    let mut waits = to_module(1, 20 * MICROSECOND, 100, 600_000);
    waits.deadline = Some(200 * MICROSECOND);
    if let Some(finding) = check_scenario(&rack(vec![granted, waits])).finding {
        panic!("{finding}");
    }
}

/// RPC-5, the second half: the word overtakes the request, which the module executes afterwards.
#[test]
fn a_call_that_is_given_up_before_its_request_arrives_leaves_nothing_at_the_module() {
    let mut calls = vec![to_module(1, 0, 40_000, 1), to_module(2, 0, 40_000, 1)];
    let mut overtaken = to_module(3, 20 * MICROSECOND, 1_000, 200_000);
    overtaken.deadline = Some(5 * MICROSECOND);
    calls.push(overtaken);
    if let Some(finding) = check_scenario(&rack(calls)).finding {
        panic!("{finding}");
    }
}

/// Two modules with more calls between them than questions fit on their link: each asks for every call every 5 ms and is
/// told BUSY, nobody gives up, and nothing else is sent (rows T-3, T-5, P-13, P-21). As soon as their applications give
/// up, all is well, for the hosts with apus that call them, too. (Seed 393 of `--peer-model kernel`.)
#[test]
fn two_modules_keep_each_other_busy_until_their_applications_give_up() {
    let mut scenario = small(Scenario::draw_with(1, Peers::Kernel));
    let mut builder = apus_proto::Config::builder().profile(apus_proto::Profile::Kernel);
    builder = builder.need_ack_limit(1).max_message(1_000);
    scenario.config = builder.build().unwrap();
    scenario.fabric.buffers = Buffers::PerPort(u64::MAX);
    scenario.fabric.topology.shape = "1x4x0".parse().unwrap();
    scenario.fabric.topology.host_rate = Rate::from_mbps(3).unwrap();
    scenario.kernel_hosts = vec![0, 1];
    let call = |from, to| Call { to, ..to_module(from, 0, 300, 300) };
    let between = [call(0, 1), call(1, 0)].repeat(50);
    let others = [call(2, 0), call(1, 2), call(3, 2), call(1, 3), call(3, 1)].repeat(2);
    scenario.calls = [between.clone(), others].concat();
    scenario.heal_at = MILLISECOND;
    let finding = check_scenario(&scenario).finding.expect("it never ends");
    assert_eq!(finding.violation.kind, Kind::Liveness);
    for call in &mut scenario.calls[..between.len()] {
        call.deadline = Some(100 * MILLISECOND);
    }
    if let Some(finding) = check_scenario(&scenario).finding {
        panic!("{finding}");
    }
}

/// Invariant S1.
#[test]
fn the_number_of_threads_changes_nothing() {
    let of = |jobs: usize| -> Summary {
        Swarm {
            seeds: 1_000_000..1_000_002,
            peers: Peers::Drawn,
            jobs: NonZero::new(jobs).unwrap(),
        }
        .run(|_, _| {})
    };
    let one = of(1);
    assert_eq!(one, of(2));
    assert_eq!(one.seeds, 2);
    let tally = check(1_000_000).tally;
    assert!(tally.packets > 0 && tally.packets < one.tally.packets);
}
