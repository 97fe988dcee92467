//! Small scenarios, at least one for each kind of fault. `apus-lab sim check` runs random scenarios
//! in larger numbers.

use std::num::NonZero;

use apus_sim::fabric::Buffers;
use apus_sim::fault::{Corruption, Counters, Crash, Outages, Partition, Pause, Settings};
use apus_sim::processor::{Cost, Costs, Processor, Stall};
use apus_swarm::{
    Division, Meddling, PeerModel, PlannedCall, Position, Processors, Scenario, ServerAction,
    Sharing, Swarm, SwarmSummary, ViolationKind, check, check_scenario,
};
use apus_wire::Role;
use apus_workload::Rate;
use apus_workload::time::{MICROSECOND, MILLISECOND, SECOND};

/// Reduces a scenario to few short calls, without faults.
fn small(mut scenario: Scenario) -> Scenario {
    scenario.calls.truncate(60);
    for call in &mut scenario.calls {
        (call.request, call.response) = (call.request.min(30_000), call.response.min(30_000));
    }
    scenario.faults = Settings::default();
    scenario.outages = Outages::default();
    scenario.restarts.clear();
    scenario.heal_at = scenario.calls.last().map_or(0, |call| call.at) + MILLISECOND;
    scenario
}

/// Runs a scenario with a fault, and asserts that the fault occurs and no promise is broken.
fn assert_no_failure(change: impl Fn(&mut Scenario), happened: fn(&Counters) -> u64) {
    let mut times = 0;
    for seed in 1..5 {
        let mut scenario = small(Scenario::generate(seed));
        change(&mut scenario);
        let result = check_scenario(&scenario);
        if let Some(failure) = result.failure {
            panic!("{failure}");
        }
        times += happened(&result.totals.faults);
    }
    assert_ne!(times, 0, "the fault occurs");
}

#[test]
fn a_run_without_faults_succeeds() {
    assert_no_failure(|_| {}, |_| 1);
}

#[test]
fn packets_are_lost() {
    assert_no_failure(|scenario| scenario.faults.loss = 1_000, |counters| counters.lost);
}

/// The first packets of requests or of responses: each is lost once, and calls succeed without any
/// other fault.
#[test]
fn first_packets_are_lost() {
    for role in [Role::Client, Role::Server] {
        let packets = [false, true].map(|is_lost| {
            let mut scenario = small(Scenario::generate_with(1, PeerModel::Apus));
            (scenario.sharing, scenario.processors) = (None, None);
            for call in &mut scenario.calls {
                (call.cancel, call.deadline, call.answer) = (None, None, ServerAction::Reply);
            }
            let calls = 0..scenario.calls.len() as u32;
            scenario.lost = calls.filter(|_| is_lost).map(|call| (call, role)).collect();
            let result = check_scenario(&scenario);
            if let Some(failure) = result.failure {
                panic!("{failure}");
            }
            (result.totals.packets, result.totals.datagrams)
        });
        let [(sent, arrived), (sent_with_loss, arrived_with_loss)] = packets;
        assert_eq!((sent, sent_with_loss - arrived_with_loss), (arrived, 60), "{role:?}");
    }
}

#[test]
fn packets_are_lost_in_bursts() {
    let burst = |scenario: &mut Scenario| {
        (scenario.faults.burst, scenario.faults.burst_length) = (100, 10);
    };
    assert_no_failure(burst, |counters| counters.lost_in_bursts);
}

#[test]
fn packets_are_duplicated() {
    assert_no_failure(
        |scenario| scenario.faults.duplication = 2_000,
        |counters| counters.duplicated,
    );
}

#[test]
fn packets_are_reordered() {
    let reorder = |scenario: &mut Scenario| {
        (scenario.faults.reordering, scenario.faults.reordered_by) = (3_000, 200 * MICROSECOND);
    };
    assert_no_failure(reorder, |counters| counters.reordered);
}

#[test]
fn packets_are_delayed() {
    let spike = |scenario: &mut Scenario| {
        (scenario.faults.spike, scenario.faults.spike_of) = (100, 10 * MILLISECOND);
    };
    assert_no_failure(spike, |counters| counters.held_up);
}

#[test]
fn late_duplicates_arrive_after_all_state_is_gone() {
    let late = |scenario: &mut Scenario| {
        if scenario.config.profile() == apus_proto::Profile::Udp {
            (scenario.faults.very_late, scenario.faults.late_by) = (1_000, 300 * SECOND);
        }
    };
    assert_no_failure(late, |counters| counters.very_late);
}

#[test]
fn corrupted_packets_are_detected_or_not() {
    assert_no_failure(|scenario| scenario.faults.corruption = 500, |counters| counters.caught);
    let unnoticed = |scenario: &mut Scenario| {
        scenario.faults.corruption = 500;
        scenario.faults.corrupted = Corruption::Unnoticed;
    };
    assert_no_failure(unnoticed, |counters| counters.corrupted);
}

#[test]
fn hosts_are_cut_off() {
    let cut = |scenario: &mut Scenario| {
        let until = scenario.heal_at;
        scenario.outages.partitions = vec![Partition { side: vec![0], from: 0, until }];
    };
    assert_no_failure(cut, |counters| counters.cut_off);
}

#[test]
fn hosts_are_paused() {
    let pause = |scenario: &mut Scenario| {
        let until = scenario.heal_at;
        scenario.outages.pauses = vec![Pause { host: 1, from: until / 3, until }];
    };
    assert_no_failure(pause, |counters| counters.at_paused_host);
}

/// Packets to hosts that report their room share datagrams (WIRE-29), and a lost datagram loses all
/// of its packets.
#[test]
fn packets_share_datagrams() {
    let run = |older_hosts: &dyn Fn(&Scenario) -> Vec<u32>| {
        let (mut packets, mut datagrams) = (0, 0);
        for seed in 1..5 {
            let mut scenario = small(Scenario::generate_with(seed, PeerModel::Apus));
            let older_hosts = older_hosts(&scenario);
            scenario.sharing = Some(Sharing { bursts: 16, receive_buffer: 4_000_000, older_hosts });
            scenario.calls.iter_mut().for_each(|call| call.at = 0);
            (scenario.faults.loss, scenario.processors) = (500, None);
            let result = check_scenario(&scenario);
            if let Some(failure) = result.failure {
                panic!("{failure}");
            }
            packets += result.totals.packets;
            datagrams += result.totals.datagrams;
        }
        (packets, datagrams)
    };
    let (packets, datagrams) = run(&|_| Vec::new());
    assert!(datagrams < packets, "{packets} packets in {datagrams} datagrams");
    let (packets, datagrams) = run(&|scenario| (0..scenario.hosts()).collect());
    assert_eq!(datagrams, packets, "no host states its room");
}

/// A socket that holds two packets, on a host that stalls for a while and is slow afterwards.
#[test]
fn sockets_overflow() {
    let mut overflows = 0;
    for seed in 1..5 {
        let mut scenario = small(Scenario::generate(seed));
        let limit = scenario.packet_limit + 66;
        let costs = Costs::at_rate(scenario.fabric.topology.host_rate, limit);
        let processor = Processor { costs, socket_buffer: 2 * u64::from(limit) };
        let until = scenario.heal_at;
        let stalls = vec![(1, Stall { from: until / 3, until })];
        scenario.processors = Some(Processors { processor, stalls });
        let result = check_scenario(&scenario);
        if let Some(failure) = result.failure {
            panic!("{failure}");
        }
        overflows += result.totals.socket_overflows;
    }
    assert_ne!(overflows, 0, "sockets overflow");
}

/// A processor passes calls to the protocol later than they are made: the run still waits for each
/// round of probes.
#[test]
fn probes_wait_for_processors() {
    let mut scenario = small(Scenario::generate_with(1, PeerModel::Apus));
    scenario.calls.clear();
    scenario.sharing = None;
    let costs = Costs::at_rate(scenario.fabric.topology.host_rate, scenario.packet_limit);
    let processor = Processor { costs, socket_buffer: 1_000_000 };
    scenario.processors = Some(Processors { processor, stalls: Vec::new() });
    let result = check_scenario(&scenario);
    if let Some(failure) = result.failure {
        panic!("{failure}");
    }
    assert_eq!(result.totals.rpcs, 3 * u64::from(scenario.hosts()), "three calls of each host");
}

#[test]
fn hosts_crash_and_return_or_not() {
    for returns in [true, false] {
        assert_no_failure(
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

/// Hosts with the Linux module among hosts with apus: without faults, with losses, and with
/// reordering.
#[test]
fn some_hosts_run_the_linux_module() {
    let faults: [fn(&mut Settings); 3] = [
        |_| {},
        |faults| faults.loss = 1_000,
        |faults| {
            (faults.duplication, faults.reordering) = (1_000, 3_000);
            faults.reordered_by = 200 * MICROSECOND;
        },
    ];
    let mut packets = 0;
    for (seed, fault) in (1..4).flat_map(|seed| faults.map(|fault| (seed, fault))) {
        let mut scenario = small(Scenario::generate_with(seed, PeerModel::Kernel));
        let modules = scenario.kernel_hosts.len() as u32;
        assert!((1..scenario.hosts()).contains(&modules), "both kinds of hosts");
        fault(&mut scenario.faults);
        let result = check_scenario(&scenario);
        if let Some(failure) = result.failure {
            panic!("{failure}");
        }
        packets += result.totals.packets;
    }
    assert_ne!(packets, 0);
}

/// A call is cancelled while its server, which runs the Linux module, waits for grants; it would
/// wait forever. (Found by seeds 2, 9 and 12 of `--peer-model kernel`: calls with deadlines left
/// their responses at servers.)
#[test]
fn a_cancelled_call_leaves_no_state_at_the_module() {
    for seed in 1..4 {
        let mut scenario = small(Scenario::generate_with(seed, PeerModel::Kernel));
        scenario.calls.truncate(10);
        scenario.fabric.buffers = Buffers::PerPort(u64::MAX);
        for call in &mut scenario.calls {
            call.response = 200_000.min(scenario.config.max_message() as u32);
            call.deadline = Some(50 * MICROSECOND);
        }
        if let Some(failure) = check_scenario(&scenario).failure {
            panic!("{failure}");
        }
    }
}

/// Hosts of one rack of the paper's fabric; the first runs the Linux module. No packet is lost, and
/// one message is granted at a time.
fn rack(calls: Vec<PlannedCall>) -> Scenario {
    let builder = apus_proto::Config::builder().profile(apus_proto::Profile::Kernel);
    let mut scenario = small(Scenario::generate_with(1, PeerModel::Kernel));
    scenario.config = builder.max_overcommit(1).grant_fifo_fraction(0).build().unwrap();
    scenario.fabric = apus_sim::fabric::Settings::new(apus_sim::preset::sigcomm18(), 1);
    scenario.fabric.topology.shape = "1x4x0".parse().unwrap();
    scenario.packet_limit = 1_472;
    (scenario.kernel_hosts, scenario.calls) = (vec![0], calls);
    scenario.heal_at = MILLISECOND;
    scenario
}

/// Creates a call of a host with apus to the module.
const fn to_module(from: u32, at: u64, request: u32, response: u32) -> PlannedCall {
    PlannedCall {
        from,
        to: 0,
        at,
        request,
        response,
        service: 0,
        answer: ServerAction::Reply,
        cancel: None,
        deadline: None,
        idempotent: false,
        repeats: None,
    }
}

/// RPC-5, first half: no packet of the response is in flight, so only the client's notice of
/// cancellation informs the module.
#[test]
fn a_call_cancelled_while_its_response_waits_for_grants_leaves_no_state_at_the_module() {
    let granted = PlannedCall { to: 2, ..to_module(1, 0, 100, 400_000) };
    let mut waits = to_module(1, 20 * MICROSECOND, 100, 600_000);
    waits.deadline = Some(200 * MICROSECOND);
    if let Some(failure) = check_scenario(&rack(vec![granted, waits])).failure {
        panic!("{failure}");
    }
}

/// RPC-5, second half: the notice overtakes the request, which the module executes afterwards.
#[test]
fn a_call_cancelled_before_its_request_arrives_leaves_no_state_at_the_module() {
    let mut calls = vec![to_module(1, 0, 40_000, 1), to_module(2, 0, 40_000, 1)];
    let mut overtaken = to_module(3, 20 * MICROSECOND, 1_000, 200_000);
    overtaken.deadline = Some(5 * MICROSECOND);
    calls.push(overtaken);
    if let Some(failure) = check_scenario(&rack(calls)).failure {
        panic!("{failure}");
    }
}

/// Two modules with more calls between them than RESENDs fit on their link: each sends a RESEND for
/// every call every 5 ms and receives BUSY, no call times out, and no other packets are sent (HM
/// `homa_timer.c` `homa_timer_check_rpc`, `homa_incoming.c` `homa_resend_pkt` and
/// `homa_dispatch_pkts`). When their applications cancel, all calls end, including the calls of
/// hosts with apus. (Seed 393 of `--peer-model kernel`.)
#[test]
fn two_modules_exchange_resend_and_busy_until_their_applications_cancel() {
    let mut scenario = small(Scenario::generate_with(1, PeerModel::Kernel));
    let mut builder = apus_proto::Config::builder().profile(apus_proto::Profile::Kernel);
    builder = builder.need_ack_limit(1).max_message(1_000);
    scenario.config = builder.build().unwrap();
    scenario.fabric.buffers = Buffers::PerPort(u64::MAX);
    scenario.fabric.topology.shape = "1x4x0".parse().unwrap();
    scenario.fabric.topology.host_rate = Rate::from_mbps(3).unwrap();
    scenario.kernel_hosts = vec![0, 1];
    let call = |from, to| PlannedCall { to, ..to_module(from, 0, 300, 300) };
    let between = [call(0, 1), call(1, 0)].repeat(50);
    let others = [call(2, 0), call(1, 2), call(3, 2), call(1, 3), call(3, 1)].repeat(2);
    scenario.calls = [between.clone(), others].concat();
    scenario.heal_at = MILLISECOND;
    let failure = check_scenario(&scenario).failure.expect("the calls never end");
    assert_eq!(failure.violation.kind, ViolationKind::Liveness);
    for call in &mut scenario.calls[..between.len()] {
        call.deadline = Some(100 * MILLISECOND);
    }
    if let Some(failure) = check_scenario(&scenario).failure {
        panic!("{failure}");
    }
}

/// A module requests acks of 300 responses from its peer, another module, in each tick, and the
/// peer's processor takes half a millisecond per packet: its socket is full of NEED_ACKs for
/// seconds after the last response is acked. A restart of the host empties the socket. (Seed 770010
/// of `--peer-model kernel`: a call waited longer than its client.)
#[test]
fn packets_in_a_socket_are_lost_with_its_host() {
    let mut scenario = small(Scenario::generate_with(1, PeerModel::Kernel));
    scenario.config =
        apus_proto::Config::builder().profile(apus_proto::Profile::Kernel).build().unwrap();
    scenario.fabric = apus_sim::fabric::Settings::new(apus_sim::preset::sigcomm18(), 1);
    scenario.fabric.topology.shape = "1x3x0".parse().unwrap();
    (scenario.packet_limit, scenario.kernel_hosts) = (8_972, vec![0, 1]);
    let per_packet = |time| Cost { picos_per_packet: time * 1_000, picos_per_byte: 0 };
    let costs = Costs { receive: per_packet(500 * MICROSECOND), send: per_packet(MICROSECOND) };
    let processor = Processor { costs, socket_buffer: 800_000 };
    scenario.processors = Some(Processors { processor, stalls: Vec::new() });
    // All responses leave together, long after their clients have given up.
    let answered = 700 * MILLISECOND;
    let call = |at| PlannedCall {
        to: 1,
        service: answered - at,
        cancel: Some(3 * MILLISECOND),
        ..to_module(0, at, 100, 100)
    };
    scenario.calls = (0..300).map(|number| call(number * 2 * MILLISECOND)).collect();
    scenario.heal_at = answered + 300 * MILLISECOND;
    let result = check_scenario(&scenario);
    if let Some(failure) = result.failure {
        panic!("{failure}");
    }
    assert!(result.totals.socket_overflows > 1_000, "a socket is full of NEED_ACKs");
}

/// Invariant SWARM-1.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let of = |jobs: usize| -> SwarmSummary {
        Swarm {
            seeds: 1_000_000..1_000_002,
            peers: PeerModel::Random,
            files: true,
            jobs: NonZero::new(jobs).unwrap(),
        }
        .run(|_, _| {})
    };
    let one = of(1);
    assert_eq!(one, of(2));
    assert_eq!(one.seeds, 2);
    assert!(one.totals.file_operations > 0);
    let totals = check(1_000_000).totals;
    assert!(totals.packets > 0 && totals.packets < one.totals.packets);
}

/// A hostile host in each position is active, and breaks no promise. A silent hostile host is
/// inactive.
#[test]
fn hostile_hosts_in_every_position() {
    for (position, seed) in Position::ALL.into_iter().zip(1..) {
        let mut scenario = Scenario::generate_with(seed, PeerModel::Hostile);
        scenario.calls.truncate(300);
        scenario.heal_at = scenario.calls.last().map_or(0, |call| call.at) + MILLISECOND;
        let attack = scenario.attack.as_mut().unwrap();
        (attack.position, attack.per_mille, attack.until) = (position, 50, scenario.heal_at);
        let result = check_scenario(&scenario);
        if let Some(failure) = result.failure {
            panic!("{failure}");
        }
        assert_ne!(result.totals.hostile_packets, 0, "{position:?}");
        scenario.attack.as_mut().unwrap().is_silent = true;
        assert_eq!(check_scenario(&scenario).totals.hostile_packets, 0);
    }
}

/// A lost packet costs its message a RESEND, with and without an attack. (Seed 4100039: without the
/// attack, a request lost a packet from before the session, and was sent again in the session at
/// once; with the attack, the session existed at the first transmission.)
#[test]
fn lost_packets_are_lost_within_a_session() {
    let mut scenario = Scenario::generate_with(4_100_039, PeerModel::Hostile);
    scenario.calls.truncate(300);
    scenario.heal_at = scenario.calls.last().map_or(0, |call| call.at) + MILLISECOND;
    scenario.attack.as_mut().unwrap().until = scenario.heal_at;
    for one in 0..40 {
        scenario.lost = [(one, Role::Client)].into();
        if let Some(failure) = check_scenario(&scenario).failure {
            panic!("{failure}");
        }
    }
}

/// A host on the path of sealed packets repeats, changes, misattributes, replays and forges them,
/// without effect.
#[test]
fn a_host_on_the_path_can_only_stop_packets() {
    let mut hostile_packets = 0;
    for seed in 1..5 {
        let mut scenario = small(Scenario::generate_with(seed, PeerModel::Sealed));
        scenario.sealed = Some(Meddling {
            repeated: 50,
            changed: 50,
            shortened: 20,
            misattributed: 20,
            misdelivered: 20,
            replayed: 50,
            forged: 50,
        });
        let result = check_scenario(&scenario);
        if let Some(failure) = result.failure {
            panic!("{failure}");
        }
        hostile_packets += result.totals.hostile_packets;
    }
    assert_ne!(hostile_packets, 0);
}

/// Returns the first scenarios with such a division of hosts.
fn divided(is_wanted: fn(&Scenario) -> bool) -> impl Iterator<Item = Scenario> {
    let all = (0..).map(|seed| Scenario::generate_with(seed, PeerModel::Divided));
    all.filter(is_wanted).map(small).take(4)
}

#[test]
fn endpoints_have_shards_and_their_hosts_crash() {
    for mut scenario in divided(|scenario| matches!(scenario.division, Division::Shards(_))) {
        let at = scenario.heal_at / 2;
        scenario.outages.crashes = vec![Crash { host: 0, at, until: at + 50 * MICROSECOND }];
        let result = check_scenario(&scenario);
        if let Some(failure) = result.failure {
            panic!("{failure}");
        }
        assert_ne!(result.totals.rpcs, 0);
    }
}

/// The other processes of the host continue, and the next life of the restarted process is called
/// as well.
#[test]
fn single_processes_of_a_host_restart() {
    for mut scenario in divided(|scenario| matches!(scenario.division, Division::Processes(_))) {
        let times = [1, 2, 3].map(|part| scenario.heal_at * part / 4);
        let undisturbed = check_scenario(&scenario);
        scenario.restarts = times.into_iter().zip([0, 1, 0]).collect();
        let result = check_scenario(&scenario);
        if let Some(failure) = result.failure {
            panic!("{failure}");
        }
        assert_ne!(
            result.totals, undisturbed.totals,
            "processes that start anew send other packets"
        );
    }
}
