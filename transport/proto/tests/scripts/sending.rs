//! Order of transmission: SRPT, the oldest message's share, the pacer. Source:
//! docs/reference/homa-module.md, *Pacing and NIC queues* and *Unscheduled bytes and cutoffs*.

use crate::script::run;
use insta::assert_snapshot;

/// SEND-1, SEND-2, SEND-4: the shortest remaining message first; short ones before all.
#[test]
fn shortest_remaining_first() {
    assert_snapshot!(run("
        config link_mbps=100 max_nic_est_backlog_usecs=100
        meet P
        call P 30000
        call P 5000
        call P 20000
        call P 100
        +1ms
    "), @"
    > call P 30000
      -> P DATA c1 0..1396/30000 incoming=10000 cutoffs=1 prio=4
    > call P 5000
    > call P 20000
    > call P 100
      -> P DATA c4 0..100/100 cutoffs=1 prio=7
    > +1ms
      @0.12ms -> P DATA c2 0..1396/5000 cutoffs=1 prio=5
      @0.24ms -> P DATA c2 1396..2792/5000 cutoffs=1 prio=5
      @0.37ms -> P DATA c2 2792..4188/5000 cutoffs=1 prio=5
      @0.37ms -> P DATA c2 4188..5000/5000 cutoffs=1 prio=5
      @0.56ms -> P DATA c3 0..1396/20000 incoming=10000 cutoffs=1 prio=4
      @0.69ms -> P DATA c3 1396..2792/20000 incoming=10000 cutoffs=1 prio=4
      @0.81ms -> P DATA c3 2792..4188/20000 incoming=10000 cutoffs=1 prio=4
      @0.93ms -> P DATA c3 4188..5584/20000 incoming=10000 cutoffs=1 prio=4
    ");
}

/// SEND-3, HM `homa_qdisc.c` `homa_qdisc_enqueue`: messages shorter than `defer_min_bytes` are
/// never throttled.
#[test]
fn short_messages_bypass_the_pacer() {
    assert_snapshot!(run("
        config link_mbps=10 max_nic_est_backlog_usecs=100
        meet P
        call P 10000
        call P 999
        call P 1000
        +1ms
        count throttled
    "), @"
    > call P 10000
    > call P 999
      -> P DATA c2 0..999/999 cutoffs=1 prio=6
    > call P 1000
    > +1ms
    > count throttled
      throttled=1
    ");
}

/// SEND-5, HM `homa_qdisc.c` `homa_qdisc_get_deferred_homa`: the oldest message gets its share of
/// the throttled output.
#[test]
fn the_oldest_message_sends_too() {
    assert_snapshot!(run("
        config link_mbps=1000 max_nic_est_backlog_usecs=10 pacer_fifo_fraction=500 burst_bytes=1500
        meet P
        call P 30000
        call P 12000
        +100us
        count pacer_fifo_bytes
    "), @"
    > call P 30000
      -> P DATA c1 0..1396/30000 incoming=10000 cutoffs=1 prio=4
    > call P 12000
    > +100us
      @0.01ms -> P DATA c2 0..1396/12000 incoming=10000 cutoffs=1 prio=5
      @0.02ms -> P DATA c2 1396..2792/12000 incoming=10000 cutoffs=1 prio=5
      @0.03ms -> P DATA c2 2792..4188/12000 incoming=10000 cutoffs=1 prio=5
      @0.05ms -> P DATA c1 1396..2792/30000 incoming=10000 cutoffs=1 prio=4
      @0.06ms -> P DATA c2 4188..5584/12000 incoming=10000 cutoffs=1 prio=5
      @0.07ms -> P DATA c2 5584..6980/12000 incoming=10000 cutoffs=1 prio=5
      @0.08ms -> P DATA c1 2792..4188/30000 incoming=10000 cutoffs=1 prio=4
      @0.10ms -> P DATA c2 6980..8376/12000 incoming=10000 cutoffs=1 prio=5
    > count pacer_fifo_bytes
      pacer_fifo_bytes=2792
    ");
}

/// PRIO-1, SEND-8, HM `homa_utils.c` `homa_init`, ours: unscheduled bytes are the round-trip time
/// times the rate of the link, within bounds.
#[test]
fn unscheduled_bytes_follow_the_round_trip_time() {
    assert_snapshot!(run("
        config unsched_bytes_min=1000
        link 1000
        meet P
        +1s
        call P 100
        +30us
        P: DATA c1 0..10/10
        call P 50000
        +20ms
    "), @"
    > link 1000
    > +1s
    > call P 100
      -> P DATA c1 0..100/100 cutoffs=1 prio=7
    > +30us
    > P: DATA c1 0..10/10
      !! response c1: 10 B
    > call P 50000
      -> P DATA c2 0..1000/50000 incoming=1000 cutoffs=1 ack=c1 prio=4
    > +20ms
      @7.68ms -> P RESEND c2 everything prio=7
      @15.36ms -> P RESEND c2 everything prio=7
    ");
}

/// SEND-6: bursts are bounded, and a shorter message overtakes between two of them.
#[test]
fn bursts() {
    assert_snapshot!(run("
        config burst_bytes=10000 unsched_bytes=60000
        limit P 1452
        call P 60000
    "), @"
    > limit P 1452
    > call P 60000
      -> P DATA c1 0..9772/60000 packets=7 new prio=6
      -> P DATA c1 9772..19544/60000 packets=7 new prio=6
      -> P DATA c1 19544..29316/60000 packets=7 new prio=6
      -> P DATA c1 29316..39088/60000 packets=7 new prio=6
      -> P DATA c1 39088..48860/60000 packets=7 new prio=6
      -> P DATA c1 48860..58632/60000 packets=7 new prio=6
      -> P DATA c1 58632..60000/60000 new prio=6
    ");
}

/// SEND-11, WIRE-34: a message that is granted while others go first sends one packet before its
/// turn.
#[test]
fn a_granted_message_tells_that_it_waits() {
    let order = |config: &str, length: u32| {
        let output = run(&format!(
            "config {config} link_mbps=100 max_nic_est_backlog_usecs=100 burst_bytes=1500
            meet P
            meet Q
            call P 200000
            +2ms
            call Q {length}
            P: GRANT c1 30000 level=0
            +1ms
            "
        ));
        let sent = output.lines().skip_while(|line| !line.contains("GRANT c1"));
        let peers = sent.filter_map(|line| line.split_once("-> ")).map(|(_, packet)| &packet[..1]);
        peers.collect::<Vec<_>>().concat()
    };
    assert_eq!(order("informed_incoming=18000", 50_000), "PQQQQQQQP");
    assert_eq!(order("informed_incoming=0", 50_000), "QQQQQQQPP");
    assert_eq!(order("informed_incoming=18000", 17_000), "QQQQQQQPP", "it is nearly sent");
}

/// SEND-11. (A message that was granted before and after the packet for its age sent three packets
/// before its turn; seed 211484681421668.)
#[test]
fn a_message_is_not_early_after_a_packet_for_its_age() {
    let output = run("
        config informed_incoming=18000 link_mbps=100 max_nic_est_backlog_usecs=100 burst_bytes=1500 pacer_fifo_fraction=500
        meet P
        meet Q
        call P 200000
        +2ms
        call Q 50000
        +500us
        P: GRANT c1 30000 level=0
        +400us
        P: GRANT c1 40000 level=0
        +1ms
    ");
    let sent = output.lines().skip_while(|line| !line.contains("call Q"));
    let peers = sent.filter_map(|line| line.split_once("-> ")).map(|(_, packet)| &packet[..1]);
    assert!(peers.collect::<String>().starts_with("QQQQQPQQPQP"), "{output}");
}
