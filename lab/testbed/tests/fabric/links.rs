//! Behaviour of links and switch: queues, priorities, drops, packet sizes.

use std::process::Command;

use apus_testbed::fabric::{Fabric, LEVELS, PortCounters, Spec, Uplink};
use apus_workload::Rate;
use serde_json::Value;

use crate::programs::{Running, run};
use crate::{fabric, test};

pub(crate) fn all(who: &str) {
    test(who, "hosts talk to each other", hosts_talk_to_each_other);
    test(who, "every level has its queue", every_level_has_its_queue);
    test(who, "apus's levels are the switch's", the_levels_of_apus_are_those_of_the_switch);
    test(who, "a high level overtakes", a_high_level_overtakes);
    test(who, "a full buffer drops", a_full_buffer_drops);
    test(who, "senders do not feel the switch", senders_do_not_feel_the_queue_in_the_switch);
    test(who, "the switch sees packets of real size", the_switch_sees_packets_of_real_size);
    test(who, "lost packets are counted", lost_packets_are_counted);
    test(who, "two fabrics are isolated from each other", two_fabrics_are_isolated);
}

fn small() -> Spec {
    Spec { nodes: 2, ..Spec::default() }
}

/// A slow link: a few packets form a long queue, all of it in the switch.
fn slow() -> Spec {
    Spec { link: Rate::from_mbps(1).unwrap(), uplink: Uplink::Free, ..small() }
}

fn queue(fabric: &Fabric, node: usize, level: u8) -> PortCounters {
    let counters = fabric.counters().unwrap();
    *counters.iter().find(|queue| queue.node == node && queue.level == level).unwrap()
}

/// Runs an experiment until it succeeds, ten times at most: a busy machine may stop the sender for
/// longer than the link takes to empty the queue. A fault of the switch would make every run fail.
fn one_of_ten(mut experiment: impl FnMut() -> Result<(), String>) {
    let mut why = String::new();
    for _ in 0..10 {
        match experiment() {
            Ok(()) => return,
            Err(failed) => why = failed,
        }
    }
    panic!("{why}");
}

/// The end of an experiment of [`one_of_ten`].
fn expect(condition: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(why()) }
}

fn hosts_talk_to_each_other() {
    let Some(fabric) = fabric(&Spec { nodes: 3, ..Spec::default() }) else { return };
    for bind in ["0.0.0.0:0", "[::]:0"] {
        for server in 0..3 {
            let mut echo = Running::start(&fabric, server, &["echo", bind]);
            let port = echo.line().rsplit_once(':').unwrap().1.to_owned();
            let address = match bind {
                "[::]:0" => format!("[{}]:{port}", fabric.layout().address_v6(server)),
                _ => format!("{}:{port}", fabric.address(server)),
            };
            for client in (0..3).filter(|client| *client != server) {
                assert_eq!(run(&fabric, client, &["ask", &address]), "hello");
            }
        }
    }
}

fn every_level_has_its_queue() {
    let Some(fabric) = fabric(&small()) else { return };
    let addresses =
        [format!("{}:9", fabric.address(1)), format!("[{}]:9", fabric.layout().address_v6(1))];
    let before = fabric.counters().unwrap();
    for level in 0..LEVELS {
        for address in &addresses {
            let kind = format!("{level}x{}x1000", 10 * (level + 1));
            run(&fabric, 0, &["send", address, &kind]);
        }
    }
    // A request at level 0 leaves last from the host's queue and from the switch: once it is
    // answered, no packet is in transit.
    let mut echo = Running::start(&fabric, 1, &["echo", &format!("{}:0", fabric.address(1))]);
    run(&fabric, 0, &["ask", &echo.line()]);
    for before in before.iter().filter(|queue| queue.node == 1) {
        let arrived = queue(&fabric, 1, before.level).packets - before.packets;
        let sent = 20 * u64::from(before.level + 1);
        // The request; in addition, neighbour discovery uses level 0 and multicast management level
        // 6.
        let noise = if matches!(before.level, 0 | 6) { 20 } else { 0 };
        let expected = sent..=sent + noise;
        assert!(expected.contains(&arrived), "level {}: {arrived} of {sent}", before.level);
    }
}

/// DATA of a request has the level of its size, and GRANTs have the highest: these are the classes
/// written by the transport.
fn the_levels_of_apus_are_those_of_the_switch() {
    let Some(fabric) = fabric(&small()) else { return };
    let map = apus_proto::Config::default();
    let highest = *map.priority_map().last().unwrap();
    let address = format!("{}:0", fabric.address(1));
    let mut server = Running::start(&fabric, 1, &["serve", &address]);
    let server_address = server.line();
    assert_eq!(run(&fabric, 0, &["call", &server_address, "300000"]), "300000");
    assert!(queue(&fabric, 0, highest).packets > 0, "the server's grants");
    let data: u64 = (0..highest).map(|level| queue(&fabric, 1, level).bytes).sum();
    assert!(data > 300_000, "{data} bytes of data below");
}

fn a_high_level_overtakes() {
    one_of_ten(overtakes);
}

fn overtakes() -> Result<(), String> {
    let Some(fabric) = fabric(&slow()) else { return Ok(()) };
    let address = format!("{}:0", fabric.address(1));
    let mut collector = Running::start(&fabric, 1, &["collect", &address, "105"]);
    let address = collector.line();
    // A hundred packets of level 1 take more than a second to transmit, and the last packets are
    // sent long before that. Five packets, because the first packet of a level goes first anyway
    // (see `shaping`).
    run(&fabric, 0, &["send", &address, "1x100x1400", "7x5x1400"]);
    let order = collector.line();
    let last = order.rsplit(' ').next();
    expect(last == Some("1"), || format!("level 7 was sent last, and came last: {order}"))
}

fn a_full_buffer_drops() {
    one_of_ten(drops);
}

fn drops() -> Result<(), String> {
    let Some(fabric) = fabric(&Spec { buffer: 10_000, ..slow() }) else { return Ok(()) };
    run(&fabric, 0, &["send", &format!("{}:9", fabric.address(1)), "3x200x1400"]);
    let counters = loop {
        let counters = queue(&fabric, 1, 3);
        if counters.packets + counters.drops == 200 && counters.backlog == 0 {
            break counters;
        }
    };
    // Six packets fit into the buffer; the link transmits a few more meanwhile.
    assert!(counters.packets >= 6, "{counters:?}");
    expect(counters.drops > 100, || format!("{counters:?}"))
}

/// Linux would charge packets queued in the switch to the sender, and throttle it.
fn senders_do_not_feel_the_queue_in_the_switch() {
    one_of_ten(do_not_feel_the_queue);
}

fn do_not_feel_the_queue() -> Result<(), String> {
    let Some(fabric) = fabric(&slow()) else { return Ok(()) };
    run(&fabric, 0, &["send", &format!("{}:9", fabric.address(1)), "3x600x1400"]);
    let counters = queue(&fabric, 1, 3);
    // The sender's buffer is limited to 40 kB.
    expect(counters.backlog > 100_000, || format!("{counters:?}"))
}

/// Returns the packets and bytes that a port of the switch has received. `tc` would count the parts
/// of a long packet, too.
fn received(fabric: &Fabric, port: &str) -> (u64, u64) {
    let enter = fabric.layout().enter_switch();
    let mut command = Command::new(&enter[0]);
    let output = command
        .args(&enter[1..])
        .args(["/bin/sh", "-c"])
        .arg(format!("PATH=$PATH:/usr/sbin:/sbin ip -s -j link show {port}"))
        .output()
        .unwrap();
    let links: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counters = &links[0]["stats64"]["rx"];
    (counters["packets"].as_u64().unwrap(), counters["bytes"].as_u64().unwrap())
}

fn the_switch_sees_packets_of_real_size() {
    for uplink in [Uplink::Shaped, Uplink::Free] {
        let Some(fabric) = fabric(&Spec { uplink, ..small() }) else { return };
        let address = format!("{}:0", fabric.address(1));
        // Bursts of many packets in one system call.
        let mut server = Running::start(&fabric, 1, &["serve", &address]);
        let before = received(&fabric, "p1");
        run(&fabric, 0, &["call", &server.line(), "200000"]);
        let apus = received(&fabric, "p1");
        let packets = apus.0 - before.0;
        assert!(packets >= 137, "200000 bytes in {packets} packets over apus");
        assert!(apus.1 - before.1 <= 1_514 * packets);
        let mut sink = Running::start(&fabric, 1, &["sink", &address]);
        run(&fabric, 0, &["source", &sink.line(), "1000000"]);
        assert_eq!(sink.line(), "1000000");
        let tcp = received(&fabric, "p1");
        let packets = tcp.0 - apus.0;
        assert!(packets >= 685, "1000000 bytes in {packets} packets over TCP");
        assert!(tcp.1 - apus.1 <= 1_514 * packets);
    }
}

fn lost_packets_are_counted() {
    let Some(fabric) = fabric(&Spec { loss: 0.5, uplink: Uplink::Free, ..small() }) else { return };
    run(&fabric, 0, &["send", &format!("{}:9", fabric.address(1)), "3x200x100"]);
    let sum = || queue(&fabric, 1, 3).packets + fabric.lost().unwrap();
    // All are on one side or the other; neighbour discovery may be lost in addition.
    while sum() < 200 {}
    let arrived = queue(&fabric, 1, 3).packets;
    // Fails with a probability of 2^-199.
    assert!((1..200).contains(&arrived) && fabric.lost().unwrap() > 0, "{arrived} arrived");
}

fn two_fabrics_are_isolated() {
    let (Some(one), Some(other)) = (fabric(&small()), fabric(&small())) else { return };
    let address = format!("{}:4000", one.address(1));
    // The same address in each fabric, served by a different program.
    let mut first = Running::start(&one, 1, &["echo", &address]);
    let mut second = Running::start(&other, 1, &["collect", &address, "1"]);
    assert_eq!((first.line(), second.line()), (address.clone(), address.clone()));
    assert_eq!(run(&one, 0, &["ask", &address]), "hello");
    run(&other, 0, &["send", &address, "5x1x10"]);
    assert_eq!(second.line(), "5");
    drop(one);
    let mut echo = Running::start(&other, 1, &["echo", "0.0.0.0:4001"]);
    echo.line();
    assert_eq!(run(&other, 0, &["ask", &format!("{}:4001", other.address(1))]), "hello");
}
